//! Hellos made from data, against those that browsers sent.
#![allow(missing_docs, clippy::unwrap_used)]

mod tls_peer;

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as _,
    path::Path,
};

use mimus_net::{
    dial::{Host, TlsPlan},
    tls::{
        self, BORINGSSL_IS_PATCHED, ClientHello, Roots, TlsConfig, TlsVersion,
        client_hello::{
            CertificateCompression, CipherSuite, Extension, ExtensionOrder, Group, SignatureScheme,
            TrustAnchor,
        },
    },
};
use mimus_proto::fingerprint::{
    self, Content, ExtensionId, HelloReader, KeyShare, Transport, is_grease,
};
use tls_peer::{connect, echo, host, ping, run, serve};

type Sent = fingerprint::ClientHello;

const CHROMIUM: &str = include_str!("hellos/chromium-156.toml");
const FIREFOX: &str = include_str!("hellos/firefox-153.toml");
/// What Chromium draws the length of a GREASE ECH's payload from.
const ECH_PAYLOADS: [u16; 4] = [144, 176, 208, 240];

/// A browser's hello, as it was recorded.
fn recorded(name: &str) -> Sent {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests/data/hellos");
    read(&std::fs::read(data.join(format!("{name}.bin"))).unwrap())
}

fn read(bytes: &[u8]) -> Sent {
    let mut reader = HelloReader::new();
    let hello = reader.recv(bytes).unwrap().unwrap();
    // One record, of the version that RFC 8446 section 5.1 allows a first hello.
    assert_eq!(reader.records().len(), 1);
    assert_eq!(reader.records()[0].version, 0x0301);
    assert_eq!(usize::from(reader.records()[0].len), hello.message.len());
    hello
}

fn hello(text: &str) -> ClientHello {
    toml::from_str(text).unwrap()
}

/// Whether Chromium's signature algorithms have GREASE in `version`.
fn greases_signatures(version: u32) -> bool {
    version >= 153
}

/// Chromium's hello in `version`, as far as this build can send it: where the signature algorithms have
/// no GREASE, it takes our patch to leave it out.
fn chromium(version: u32) -> ClientHello {
    let mut hello = hello(CHROMIUM);
    if version < 156 {
        // The builds were headless shells, or older than the field trial.
        hello.trust_anchors = None;
    }
    if version < 150 {
        hello.signature_algorithms.retain(|scheme| scheme.0 >> 8 != 0x09);
    }
    if !greases_signatures(version) && BORINGSSL_IS_PATCHED {
        hello.signature_algorithms_grease = Some(false);
    }
    if version < 133 {
        hello.application_settings.as_mut().unwrap().code_point = Extension(17513);
    }
    hello
}

fn config(hello: ClientHello) -> TlsConfig {
    TlsConfig::builder().roots(Roots::Webpki).client_hello(hello).build().unwrap()
}

fn plan(config: &TlsConfig, alpn: &[&'static [u8]]) -> TlsPlan {
    TlsPlan { alpn: alpn.to_vec(), ..tls_peer::plan(config) }
}

fn both(config: &TlsConfig) -> TlsPlan {
    // Not in the browser's order, which is the hello's business.
    plan(config, &[b"http/1.1", b"h2"])
}

fn first_flight(plan: &TlsPlan, host: &Host) -> Sent {
    read(&tls::first_flight(plan, host, 443).unwrap())
}

/// All of a hello that does not vary between connections of one browser, in a form that compares.
#[derive(Debug, PartialEq)]
struct Constant {
    head: (u16, usize, Vec<u8>),
    cipher_suites: Vec<u16>,
    extensions: BTreeMap<u16, Vec<u8>>,
    key_shares: Vec<KeyShare>,
    /// GREASE stands first and last.
    ends: [bool; 2],
    ech: Option<(u16, u16, u16)>,
    psk: Option<Vec<u8>>,
}

/// One GREASE value for all.
fn greased(codes: &[u16]) -> Vec<u16> {
    codes.iter().map(|code| if is_grease(*code) { 0x0a0a } else { *code }).collect()
}

fn constant(hello: &Sent, grease_signatures: bool) -> Constant {
    let mut constant = Constant {
        head: (hello.legacy_version, hello.session_id.len(), hello.compression_methods.to_vec()),
        cipher_suites: greased(&hello.cipher_suites),
        extensions: BTreeMap::new(),
        key_shares: Vec::new(),
        ends: [false; 2],
        ech: None,
        psk: None,
    };
    let mut extensions: Vec<_> = hello.extensions.iter().collect();
    if extensions.last().unwrap().id == ExtensionId(41) {
        extensions.pop();
    }
    let ends = [extensions.first(), extensions.last()];
    constant.ends = ends.map(|end| end.unwrap().content == Content::Grease);
    for extension in &hello.extensions {
        let raw = match &extension.content {
            Content::Grease => continue,
            Content::KeyShares(shares) => {
                let share = |share: &KeyShare| {
                    let mut share = *share;
                    share.group = greased(&[share.group])[0];
                    share
                };
                constant.key_shares = shares.iter().map(share).collect();
                Vec::new()
            }
            Content::Ech(ech) => {
                constant.ech = Some((ech.kdf, ech.aead, ech.enc_len));
                Vec::new()
            }
            Content::PreSharedKey(offer) => {
                constant.psk = Some(offer.binders.clone());
                Vec::new()
            }
            Content::Numbers(codes) => {
                let mut codes = greased(codes);
                if extension.id == ExtensionId(13) && !grease_signatures {
                    codes.retain(|code| !is_grease(*code));
                }
                codes.iter().flat_map(|code| code.to_be_bytes()).collect()
            }
            _ => extension.raw.to_vec(),
        };
        assert_eq!(constant.extensions.insert(extension.id.0, raw), None, "{}", extension.id.0);
    }
    constant
}

/// Which GREASE values have to be the same, and which differ (RFC 8701 section 3.1, and what Chromium
/// makes of it).
fn assert_grease(hello: &Sent) {
    let one = |codes: &[u16]| {
        let grease: Vec<_> = codes.iter().copied().filter(|code| is_grease(*code)).collect();
        assert_eq!(grease.len(), 1, "{codes:x?}");
        assert_eq!(codes.first(), grease.first());
        grease[0]
    };
    one(&hello.cipher_suites);
    one(hello.versions());
    let shares: Vec<_> = hello.key_shares().iter().map(|share| share.group).collect();
    assert_eq!(one(hello.groups()), one(&shares));
    let extensions = hello.extensions.iter().filter(|extension| is_grease(extension.id.0));
    let [first, last] = extensions.collect::<Vec<_>>()[..] else { panic!("two extensions") };
    assert_ne!(first.id, last.id);
    assert_eq!((&first.raw[..], &last.raw[..]), (&[][..], &[0][..]));
}

fn ech_payload(hello: &Sent) -> u16 {
    match hello.extension(ExtensionId(65037)).unwrap().content {
        Content::Ech(ech) => ech.payload_len,
        ref other => panic!("{other:?}"),
    }
}

/// JA4, hashed and not: the forms that do not vary with the order of the extensions.
fn ja4(hello: &Sent) -> [String; 2] {
    let ja4 = hello.ja4(Transport::Tcp);
    [ja4.hash, ja4.raw]
}

fn order(hello: &Sent) -> Vec<u16> {
    let ids = hello.extensions.iter().map(|extension| extension.id.0);
    ids.filter(|id| !is_grease(*id)).collect()
}

#[test]
fn each_chromium_is_met_to_the_byte_but_for_what_it_draws() {
    let mut payloads = BTreeSet::new();
    for version in [156, 153, 150, 149, 147, 131] {
        let theirs = recorded(&format!("chromium-{version}"));
        let greased = greases_signatures(version) || BORINGSSL_IS_PATCHED;
        let plan = both(&config(chromium(version)));
        let mut orders = BTreeSet::new();
        for _ in 0..50 {
            let ours = first_flight(&plan, &host("a.test"));
            assert_eq!(constant(&ours, greased), constant(&theirs, greased), "{version}");
            assert_eq!(ours.ja3n(), theirs.ja3n(), "{version}");
            assert_eq!(ja4(&ours), ja4(&theirs), "{version}");
            if greased {
                assert_eq!(ours.peetprint(), theirs.peetprint(), "{version}");
            }
            assert_grease(&ours);
            assert!(orders.insert(order(&ours)), "{version}: the same order twice");
            payloads.insert(ech_payload(&ours));
            // Nothing else has a length that varies.
            let rest = |hello: &Sent| hello.message.len() - usize::from(ech_payload(hello));
            let signature_grease = if greased { 0 } else { 2 };
            assert_eq!(rest(&ours), rest(&theirs) + signature_grease, "{version}");
        }
    }
    assert_eq!(payloads.into_iter().collect::<Vec<_>>(), ECH_PAYLOADS);
}

/// Whether the test can be made; that it has to be, `MIMUS_REQUIRE_PATCH` says.
fn patched() -> bool {
    let required = std::env::var_os("MIMUS_REQUIRE_PATCH").is_some();
    assert!(BORINGSSL_IS_PATCHED || !required, "this build's BoringSSL lacks Mimus's patch");
    BORINGSSL_IS_PATCHED
}

/// Firefox's hello in `version`.
fn firefox(version: u32) -> ClientHello {
    let mut hello = hello(FIREFOX);
    if version == 140 {
        let after = hello.cipher_suites.iter().position(|suite| suite.0 == 0xc00a).unwrap();
        hello.cipher_suites.insert(after + 1, CipherSuite(0xc009));
    }
    if version == 159 {
        hello.cipher_suites.retain(|suite| suite.0 != 0xc00a);
        hello.groups.retain(|group| group.0 < 0x0100 || group.0 > 0x0101);
        let ech = hello.ech_grease.as_mut().unwrap();
        ech.payload_lengths = vec![240];
        ech.payload_lengths_with_psk = vec![400];
    }
    hello
}

#[test]
fn each_firefox_is_met_to_the_byte_but_for_what_it_draws() {
    if !patched() {
        assert!(refused(firefox(153)).contains("lacks Mimus's patch"));
        return;
    }
    let mut aeads = BTreeSet::new();
    for version in [153, 140, 159] {
        let theirs = recorded(&format!("firefox-{version}"));
        let plan = both(&config(firefox(version)));
        for _ in 0..50 {
            let mut ours = first_flight(&plan, &host("a.test"));
            assert_eq!(ours.peetprint(), theirs.peetprint(), "{version}");
            assert_eq!(ours.ja3(), theirs.ja3(), "{version}");
            assert_eq!(ja4(&ours), ja4(&theirs), "{version}");
            assert_eq!(order(&ours), order(&theirs), "{version}");
            assert_eq!(ours.message.len(), theirs.message.len(), "{version}");
            assert_eq!(ech_payload(&ours), ech_payload(&theirs), "{version}");
            aeads.insert(take_aead(&mut ours));
            let mut theirs = theirs.clone();
            take_aead(&mut theirs);
            assert_eq!(constant(&ours, true), constant(&theirs, true), "{version}");
        }
    }
    assert_eq!(aeads.into_iter().collect::<Vec<_>>(), [1, 3]);
}

/// The AEAD of GREASE ECH, which Firefox draws.
fn take_aead(hello: &mut Sent) -> u16 {
    let ech = hello.extensions.iter_mut().find(|extension| extension.id == ExtensionId(65037));
    match &mut ech.unwrap().content {
        Content::Ech(ech) => std::mem::take(&mut ech.aead),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_websocket_of_chromium_asks_for_http1_alone_and_has_no_settings() {
    let theirs = recorded("chromium-156-websocket");
    let plan = plan(&config(chromium(156)), &[b"http/1.1"]);
    let ours = first_flight(&plan, &host("a.test"));
    assert_eq!(constant(&ours, true), constant(&theirs, true));
    assert_eq!(ours.ja4(Transport::Tcp).hash, "t13d1516h1_8daaf6152771_5b37b36a67c0");
    assert_eq!(ja4(&ours), ja4(&theirs));
}

#[test]
fn an_address_is_not_named() {
    let theirs = recorded("chromium-156-address");
    let plan = both(&config(chromium(156)));
    let ours = first_flight(&plan, &Host::Addr([127, 0, 0, 1].into(), 0));
    assert_eq!(ours.server_name(), None);
    assert_eq!(constant(&ours, true), constant(&theirs, true));
    assert_eq!(ja4(&ours), ja4(&theirs));
}

#[test]
fn a_session_is_offered_as_chromium_offers_it() {
    let theirs = recorded("chromium-156-resumed");
    let ca = tls_peer::Authority::new();
    let server = serve(ca.issue(&["a.test"]).server(), echo);
    let config = ca.client().client_hello(chromium(156)).build().unwrap();
    run(async { ping(&mut *connect(server.addr, &config, "a.test").await.unwrap()).await });
    let flight = tls::first_flight(&both(&config), &host("a.test"), server.addr.port()).unwrap();
    let ours = read(&flight);
    assert_eq!(order(&ours).last(), Some(&41));
    assert_eq!(constant(&ours, true), constant(&theirs, true));
    assert_eq!(ja4(&ours), ja4(&theirs));
    assert_grease(&ours);
}

#[test]
fn a_session_is_offered_as_firefox_offers_it() {
    if !patched() {
        return;
    }
    let theirs = recorded("firefox-153-resumed");
    let ca = tls_peer::Authority::new();
    let server = serve(ca.issue(&["a.test"]).server(), echo);
    let config = ca.client().client_hello(firefox(153)).build().unwrap();
    run(async {
        for _ in 0..2 {
            ping(&mut *connect(server.addr, &config, "a.test").await.unwrap()).await;
        }
    });
    let flight = tls::first_flight(&both(&config), &host("a.test"), server.addr.port()).unwrap();
    let ours = read(&flight);
    assert_eq!(ja4(&ours), ja4(&theirs));
    assert_eq!(order(&ours), order(&theirs));
    assert_eq!(ech_payload(&ours), ech_payload(&theirs));
}

#[test]
fn a_websocket_of_firefox_takes_no_compressed_certificates() {
    if !patched() {
        return;
    }
    let config = config(firefox(153));
    let ours = |alpn| order(&first_flight(&plan(&config, alpn), &host("a.test")));
    let usual = ours(&[b"h2", b"http/1.1"]);
    let http1 = ours(&[b"http/1.1"]);
    assert_eq!(http1, usual.into_iter().filter(|id| *id != 27).collect::<Vec<_>>());
}

#[test]
fn without_a_hello_nothing_is_imitated() {
    let plain = TlsConfig::builder().roots(Roots::Webpki).build().unwrap();
    let ours = first_flight(&both(&plain), &host("a.test"));
    let grease = ours.extensions.iter().any(|extension| is_grease(extension.id.0));
    assert!(!grease);
    assert_eq!(ours.alpn(), [&b"http/1.1"[..], b"h2"]);
    assert!(ours.extension(ExtensionId(65037)).is_none());
}

#[test]
fn what_is_set_after_the_hello_wins() {
    let config = TlsConfig::builder().roots(Roots::Webpki).client_hello(chromium(156));
    let config = config.max_version(TlsVersion::Tls12).build().unwrap();
    let ours = first_flight(&both(&config), &host("a.test"));
    assert!(!ours.versions().contains(&0x0304));
}

/// The text of the error with which a configuration with `hello` is refused, and of its source.
fn refused(hello: ClientHello) -> String {
    let error = TlsConfig::builder().roots(Roots::Webpki).client_hello(hello).build().unwrap_err();
    assert_eq!(error.to_string(), "TLS configuration: the ClientHello cannot be sent");
    error.source().unwrap().to_string()
}

type Change = fn(&mut ClientHello);

/// What goes beyond stock BoringSSL, and how it is named.
const PATCHED: [(&str, Change); 12] = [
    ("cipher_suites: .* TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", |hello| {
        hello.cipher_suites.push(CipherSuite(0xc012));
    }),
    ("groups: .* ffdhe2048", |hello| hello.groups.push(Group(0x0100))),
    ("signature_algorithms: .* ed448", |hello| {
        hello.signature_algorithms.push(SignatureScheme(0x0808));
    }),
    ("signature_algorithms: .* a second rsa_pss_rsae_sha384", |hello| {
        hello.signature_algorithms.push(SignatureScheme(0x0805));
    }),
    ("signature_algorithms_grease: ", |hello| hello.signature_algorithms_grease = Some(false)),
    ("extension_order: ", |hello| {
        let order = (0..60).chain([17613, 51764, 65037, 65281]);
        hello.extension_order = ExtensionOrder::Fixed(order.map(Extension).collect());
    }),
    ("advertised_versions: ", |hello| hello.advertised_versions = vec![TlsVersion::Tls11]),
    ("padding: ", |hello| hello.padding = true),
    ("record_size_limit: ", |hello| hello.record_size_limit = Some(16385)),
    ("delegated_credentials: ", |hello| {
        hello.delegated_credentials = vec![SignatureScheme(0x0403)];
    }),
    ("ech_grease.payload_lengths: ", |hello| {
        hello.ech_grease.as_mut().unwrap().payload_lengths = vec![239];
    }),
    ("ech_grease.aeads: ", |hello| hello.ech_grease.as_mut().unwrap().aeads = vec![3.into()]),
];

#[test]
fn what_takes_the_patch_is_sent_with_it_and_refused_by_name_without() {
    for (says, change) in PATCHED {
        let mut hello = chromium(156);
        change(&mut hello);
        if BORINGSSL_IS_PATCHED {
            first_flight(&both(&config(hello)), &host("a.test"));
            continue;
        }
        let error = refused(hello);
        let named = says.split(" .* ").all(|part| error.contains(part));
        assert!(named && error.contains("lacks Mimus's patch"), "{error}, not {says}");
    }
}

#[test]
fn what_no_build_can_send_is_refused() {
    let changes: [(&str, Change); 4] = [
        ("cipher_suites: BoringSSL lacks 0x13ff", |hello| {
            hello.cipher_suites.insert(1, CipherSuite(0x13ff));
        }),
        ("cipher_suites: BoringSSL lacks the first one below", |hello| {
            hello.cipher_suites.insert(3, CipherSuite(0xc012));
        }),
        ("key_shares: BoringSSL lacks x448", |hello| {
            hello.groups.push(Group(0x001e));
            hello.key_shares.push(Group(0x001e));
        }),
        ("groups: BoringSSL lacks the first one", |hello| hello.groups.insert(0, Group(0x001e))),
    ];
    for (says, change) in changes {
        let mut hello = chromium(156);
        change(&mut hello);
        let error = refused(hello);
        assert!(error.contains(says), "{error}, not {says}");
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let changes: [(&str, Change); 21] = [
        ("min_version", |hello| {
            hello.min_version = TlsVersion::Tls13;
            hello.max_version = TlsVersion::Tls12;
        }),
        ("advertised_versions", |hello| hello.advertised_versions = vec![TlsVersion::Tls12]),
        ("advertised_versions", |hello| hello.advertised_versions = vec![TlsVersion::Tls11; 2]),
        ("advertised_versions", |hello| {
            hello.max_version = TlsVersion::Tls12;
            hello.advertised_versions = vec![TlsVersion::Tls10];
        }),
        ("cipher_suites", |hello| hello.cipher_suites.clear()),
        ("cipher_suites", |hello| hello.cipher_suites.rotate_left(3)),
        ("cipher_suites", |hello| hello.cipher_suites.push(CipherSuite(0x1301))),
        ("cipher_suites", |hello| hello.cipher_suites.insert(0, CipherSuite(0x0a0a))),
        ("cipher_suites", |hello| hello.max_version = TlsVersion::Tls12),
        ("groups", |hello| hello.groups.push(Group(0x001d))),
        ("groups", |hello| hello.groups.clear()),
        ("key_shares", |hello| hello.key_shares.reverse()),
        ("signature_algorithms", |hello| hello.signature_algorithms.clear()),
        ("signature_algorithms_grease", |hello| {
            hello.grease = false;
            hello.signature_algorithms_grease = Some(true);
        }),
        ("alpn", |hello| hello.alpn.push(String::new())),
        ("application_settings", |hello| hello.alpn = vec!["http/1.1".to_owned()]),
        ("application_settings", |hello| {
            hello.application_settings.as_mut().unwrap().code_point = Extension(17);
        }),
        ("certificate_compression", |hello| {
            hello.certificate_compression.push(CertificateCompression::Brotli);
        }),
        ("ech_grease", |hello| hello.ech_grease.as_mut().unwrap().payload_lengths = vec![16]),
        ("record_size_limit", |hello| hello.record_size_limit = Some(63)),
        ("extension_order", |hello| {
            hello.extension_order = ExtensionOrder::Fixed((0..60).map(Extension).collect());
        }),
    ];
    for (part, change) in changes {
        let mut hello = chromium(156);
        hello.check().unwrap();
        change(&mut hello);
        assert_eq!(hello.check().unwrap_err().part(), part);
        assert!(refused(hello).starts_with(&format!("ClientHello: {part}: ")));
    }
}

#[test]
fn text_and_data_are_the_same() {
    for text in [CHROMIUM, FIREFOX] {
        let read = hello(text);
        let written = toml::to_string(&read).unwrap();
        assert_eq!(hello(&written), read, "{written}");
    }
    let firefox = hello(FIREFOX);
    assert_eq!(firefox.cipher_suites[0].to_string(), "TLS_AES_128_GCM_SHA256");
    assert_eq!(firefox.groups[6].to_string(), "ffdhe3072");
    assert_eq!(firefox.certificate_compression.len(), 3);
    assert_eq!(CipherSuite(0xfafe).to_string(), "0xfafe");
    assert_eq!("0xfafe".parse(), Ok(CipherSuite(0xfafe)));
}

#[test]
fn what_is_misspelt_is_an_error() {
    let wrong = |line: &str| toml::from_str::<ClientHello>(line).unwrap_err().to_string();
    assert!(wrong("sigalgs = []").contains("unknown field `sigalgs`"));
    assert!(wrong("groups = ['x25518']").contains("\"x25518\" is not a group"));
    assert!(wrong("groups = ['0x1fffe']").contains("is not a group"));
    assert!(wrong("groups = ['0x+1d']").contains("is not a group"));
    assert!(wrong("groups = [65536]").contains("16 bits"));
    assert!(wrong("groups = [-1]").contains("-1"));
    assert!(wrong("certificate_compression = ['gzip']").contains("gzip"));
    assert!(wrong("trust_anchors = ['1.2.']").contains("numbers between dots"));
    assert!(wrong("ech_grease = { lengths = [1] }").contains("unknown field `lengths`"));
    let alps = "application_settings = { code_point = 17613, protocols = [{ name = 'h2', settings = '0' }] }";
    assert!(wrong(alps).contains("hexadecimal"));
}

#[test]
fn trust_anchors_are_numbers_between_dots() {
    for (text, bytes) in [
        ("44947.2.1", &[0x82, 0xdf, 0x13, 2, 1][..]),
        ("0", &[0]),
        ("127.128", &[0x7f, 0x81, 0]),
        ("18446744073709551615", &[0x81, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f]),
    ] {
        let anchor: TrustAnchor = text.parse().unwrap();
        assert_eq!(anchor.as_bytes(), bytes);
        assert_eq!(anchor.to_string(), text);
        assert_eq!(TrustAnchor::from_bytes(bytes), Ok(anchor));
    }
    for wrong in [&[][..], &[0x80], &[0x80, 1], &[1, 0x80, 1], &[0xff; 10], &[1; 256]] {
        assert!(TrustAnchor::from_bytes(wrong).is_err(), "{wrong:x?}");
    }
    for wrong in ["", ".", "1.", "+1", "1.-1", "a", "18446744073709551616"] {
        assert!(wrong.parse::<TrustAnchor>().is_err(), "{wrong}");
    }
}
