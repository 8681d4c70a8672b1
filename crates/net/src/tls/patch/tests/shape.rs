//! ClientHellos against those that Firefox sent.

use boring::ssl::{SslOptions, SslVersion};
use mimus_proto::fingerprint::{Content, ExtensionId, Transport};

use super::{openssl::s_server, *};

const SUITES_140: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
    ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:\
    ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES256-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:\
    ECDHE-RSA-AES256-SHA:AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA:AES256-SHA";

const ORDER: [u16; 20] =
    [0, 23, 65281, 10, 11, 35, 16, 5, 34, 18, 51, 42, 43, 13, 44, 45, 49, 28, 27, 65037];

/// A version of Firefox, by what differs between them.
#[derive(Clone, Copy)]
struct Firefox {
    /// Cipher suites of [`SUITES_140`] that it no longer has.
    without: &'static [&'static str],
    ffdhe: bool,
    ech_payload: u16,
    ech_payload_with_psk: u16,
}

const FIREFOX_140: Firefox =
    Firefox { without: &[], ffdhe: true, ech_payload: 239, ech_payload_with_psk: 399 };
const FIREFOX_153: Firefox = Firefox { without: &["ECDHE-ECDSA-AES128-SHA"], ..FIREFOX_140 };
const FIREFOX_159: Firefox = Firefox {
    without: &["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"],
    ffdhe: false,
    ech_payload: 240,
    ech_payload_with_psk: 400,
};

unsafe extern "C" fn no_decompression(
    _: *mut ffi::SSL,
    _: *mut *mut ffi::CRYPTO_BUFFER,
    _: usize,
    _: *const u8,
    _: usize,
) -> c_int {
    0
}

impl Firefox {
    fn context(self) -> (SslContext, Sessions) {
        let (mut context, sessions) = client_context();
        context.set_min_proto_version(Some(SslVersion::TLS1_2)).unwrap();
        let suites: Vec<_> = SUITES_140.split(':').filter(|s| !self.without.contains(s)).collect();
        context.set_strict_cipher_list(&suites.join(":")).unwrap();
        context.enable_ocsp_stapling();
        context.enable_signed_cert_timestamps();
        context.set_alpn_protos(b"\x02h2\x08http/1.1").unwrap();
        let raw = context.as_ptr();
        let (tls13, groups) = ([0x1301, 0x1303, 0x1302], [0x11ec, 0x1d, 0x17, 0x18, 0x19]);
        // SAFETY: `raw` is a live SSL_CTX; the list lives through the call; null is no flags.
        let set = unsafe {
            ffi::SSL_CTX_set1_tls13_ciphers(raw, tls13.as_ptr(), std::ptr::null(), tls13.len())
        };
        assert_eq!(set, 1);
        // SAFETY: as above.
        let set = unsafe { ffi::SSL_CTX_set1_group_ids(raw, groups.as_ptr(), groups.len()) };
        assert_eq!(set, 1);
        for algorithm in [1, 2, 3] {
            // SAFETY: as above; the callback never touches what it is given.
            let added = unsafe {
                ffi::SSL_CTX_add_cert_compression_alg(raw, algorithm, None, Some(no_decompression))
            };
            assert_eq!(added, 1);
        }
        (context.build(), sessions)
    }

    fn client(self, context: &SslContext, session: Option<&SslSession>) -> Ssl {
        let mut ssl = Ssl::new(context).unwrap();
        ssl.set_hostname("a.test").unwrap();
        let shares = [0x11ec, 0x1d, 0x17];
        // SAFETY: `ssl` is a live SSL; the list lives through the call, which copies it.
        let set =
            unsafe { ffi::SSL_set1_client_key_shares(ssl.as_ptr(), shares.as_ptr(), shares.len()) };
        assert_eq!(set, 1);
        ssl.set_enable_ech_grease(true);
        set_extension_order(&mut ssl, &ORDER).unwrap();
        set_record_size_limit(&mut ssl, 16385).unwrap();
        set_delegated_credentials(&mut ssl, &[0x0403, 0x0503, 0x0603, 0x0203]).unwrap();
        let schemes = [
            0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0203, 0x0201,
        ];
        set_signature_algorithms(&mut ssl, &schemes).unwrap();
        if self.ffdhe {
            set_advertised_groups(&mut ssl, &[0x0100, 0x0101]).unwrap();
        }
        let mut payload = self.ech_payload;
        if let Some(session) = session {
            payload = self.ech_payload_with_psk;
            ssl.set_options(SslOptions::NO_TICKET);
            // SAFETY: the session is of a connection of the same context.
            unsafe { ssl.set_session(session) }.unwrap();
        }
        set_ech_grease(&mut ssl, &[1, 3], &[payload]).unwrap();
        ssl
    }
}

/// The first hello of a client that nobody answers.
fn sent(ssl: Ssl) -> ClientHello {
    let mut client = SslStream::new(ssl, ends().0).unwrap();
    assert_eq!(client.connect().unwrap_err().code(), ErrorCode::WANT_READ);
    hello(&client.get_ref().written)
}

/// Everything but what is drawn anew for each connection.
fn assert_same(ours: &ClientHello, theirs: &ClientHello) {
    assert_eq!(ours.legacy_version, theirs.legacy_version);
    assert_eq!(ours.session_id.len(), theirs.session_id.len());
    assert_eq!(ours.cipher_suites, theirs.cipher_suites);
    assert_eq!(ours.compression_methods, theirs.compression_methods);
    let ids = |hello: &ClientHello| hello.extensions.iter().map(|e| e.id).collect::<Vec<_>>();
    assert_eq!(ids(ours), ids(theirs));
    for (ours, theirs) in ours.extensions.iter().zip(&theirs.extensions) {
        match (&ours.content, &theirs.content) {
            (Content::Ech(ours), Content::Ech(theirs)) => {
                let public =
                    |ech: &mimus_proto::fingerprint::Ech| (ech.kdf, ech.enc_len, ech.payload_len);
                assert_eq!(public(ours), public(theirs));
                assert!([1, 3].contains(&ours.aead));
            }
            (Content::KeyShares(ours), Content::KeyShares(theirs)) => assert_eq!(ours, theirs),
            (Content::PreSharedKey(ours), Content::PreSharedKey(theirs)) => {
                assert_eq!(ours.identities.len(), theirs.identities.len());
            }
            _ => assert_eq!(ours.raw, theirs.raw, "{:?}", ours.id),
        }
    }
}

#[test]
fn hellos_of_firefox_equal_what_it_sent() {
    if !patched("hellos_of_firefox_equal_what_it_sent") {
        return;
    }
    const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tests/data/hellos");
    for (firefox, name, ja4) in [
        (FIREFOX_140, "firefox-140", "t13d1717h2_5b57614c22b0_3cbfd9057e0d"),
        (FIREFOX_153, "firefox-153", "t13d1617h2_86a278354501_3cbfd9057e0d"),
        (FIREFOX_159, "firefox-159", "t13d1517h2_8daaf6152771_3cbfd9057e0d"),
    ] {
        let theirs = hello(&std::fs::read(format!("{DATA}/{name}.bin")).unwrap());
        let (context, _) = firefox.context();
        for _ in 0..20 {
            let ours = sent(firefox.client(&context, None));
            assert_same(&ours, &theirs);
            assert_eq!(ours.ja3().raw, theirs.ja3().raw);
            assert_eq!(ours.ja4(Transport::Tcp).hash, ja4);
        }
    }
    let (context, _) = FIREFOX_153.context();
    let ours = sent(FIREFOX_153.client(&context, None));
    assert_eq!(ours.ja3().hash, "6447ab086255d194909d4013b1a89e87");
}

/// BoringSSL sends its tickets along with the first data.
fn read_ticket(pair: &mut Pair) {
    pair.server.write_all(b"!").unwrap();
    assert_eq!(pair.client.ssl_read(&mut [0; 1]).unwrap(), 1);
}

#[test]
fn a_resumed_hello_equals_what_firefox_sent() {
    if !patched("a_resumed_hello_equals_what_firefox_sent") {
        return;
    }
    let server_context = server_context().build();
    let (context, sessions) = FIREFOX_153.context();
    let mut first = Pair::new(FIREFOX_153.client(&context, None), server(&server_context));
    first.handshake().unwrap();
    read_ticket(&mut first);
    let session = sessions.lock().unwrap().take().unwrap();

    let mut second =
        Pair::new(FIREFOX_153.client(&context, Some(&session)), server(&server_context));
    second.handshake().unwrap();
    assert!(second.client.ssl().session_reused());
    let ours = hello(&second.client.get_ref().written);
    let theirs = include_bytes!("../../../../../proto/tests/data/hellos/firefox-153-resumed.bin");
    assert_same(&ours, &hello(theirs));
    assert!(ours.ja4(Transport::Tcp).hash.ends_with("_e6dcd7ae0a9e"));
    // The option that kept session_ticket out does not keep out the next ticket.
    read_ticket(&mut second);
    assert!(sessions.lock().unwrap().is_some());
}

#[test]
fn ech_grease_is_drawn_from_the_lists() {
    if !patched("ech_grease_is_drawn_from_the_lists") {
        return;
    }
    let context = client_context().0.build();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let mut ssl = Ssl::new(&context).unwrap();
        ssl.set_enable_ech_grease(true);
        set_ech_grease(&mut ssl, &[1, 3], &[207, 239]).unwrap();
        let hello = sent(ssl);
        let ech = hello.extension(ExtensionId(65037)).unwrap();
        let Content::Ech(ech) = &ech.content else { panic!("{ech:?}") };
        seen.insert((ech.aead, ech.payload_len));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 207), (1, 239), (3, 207), (3, 239)]);
    let mut ssl = Ssl::new(&context).unwrap();
    assert!(set_ech_grease(&mut ssl, &[4], &[]).is_err(), "HPKE has no such AEAD");
}

#[test]
fn what_is_only_advertised_stands_last_and_what_stands_twice_stays() {
    if !patched("what_is_only_advertised_stands_last_and_what_stands_twice_stays") {
        return;
    }
    let mut context = client_context().0;
    context.set_strict_cipher_list("ECDHE-RSA-AES128-GCM-SHA256").unwrap();
    let mut ssl = Ssl::new(&context.build()).unwrap();
    set_advertised_ciphers(&mut ssl, &[0xc008, 0xc012]).unwrap();
    set_advertised_groups(&mut ssl, &[0x0100]).unwrap();
    set_advertised_versions(&mut ssl, &[0x0302, 0x0301]).unwrap();
    let schemes = [0x0403, 0x0805, 0x0805, 0x7777];
    set_signature_algorithms(&mut ssl, &schemes).unwrap();
    let hello = sent(ssl);
    assert!(hello.cipher_suites.ends_with(&[0xc02f, 0xc008, 0xc012]), "{:x?}", hello.cipher_suites);
    assert_eq!(hello.groups().last(), Some(&0x0100));
    assert_eq!(hello.versions(), [0x0304, 0x0303, 0x0302, 0x0301]);
    assert_eq!(hello.signature_algorithms(), schemes);
}

/// A ServerHello of TLS 1.2 or below in a record, without extensions (RFC 5246 section 7.4.1.3).
fn server_hello(version: u16, suite: u16) -> Vec<u8> {
    let body = [&version.to_be_bytes()[..], &[7; 32], &[0], &suite.to_be_bytes(), &[0]].concat();
    let header = |kind: &[u8], len: usize| [kind, &(len as u16).to_be_bytes()].concat();
    [header(&[22, 3, 3], 4 + body.len()), header(&[2, 0], body.len()), body].concat()
}

#[test]
fn a_server_that_chooses_what_is_only_advertised_is_left_with_an_alert() {
    if !patched("a_server_that_chooses_what_is_only_advertised_is_left_with_an_alert") {
        return;
    }
    let mut context = client_context().0;
    context.set_min_proto_version(Some(SslVersion::TLS1_2)).unwrap();
    let context = context.build();
    // RFC 8446 section 6.2: handshake_failure, protocol_version; illegal_parameter is for what is not listed.
    for (version, suite, reason, alert) in [
        (0x0303, 0xc008, ffi::SSL_R_NO_SHARED_CIPHER, 40),
        (0x0303, 0xc012, ffi::SSL_R_WRONG_CIPHER_RETURNED, 47),
        (0x0302, 0xc02f, ffi::SSL_R_UNSUPPORTED_PROTOCOL, 70),
    ] {
        let mut ssl = Ssl::new(&context).unwrap();
        set_advertised_ciphers(&mut ssl, &[0xc008]).unwrap();
        set_advertised_versions(&mut ssl, &[0x0302]).unwrap();
        let (near, mut far) = ends();
        far.write_all(&server_hello(version, suite)).unwrap();
        let mut client = SslStream::new(ssl, near).unwrap();
        let error = client.connect().unwrap_err();
        let found = error.ssl_error().unwrap().errors()[0].library_reason(ffi::ERR_LIB_SSL);
        assert_eq!(found, Some(reason), "{error}");
        let last = records(&client.get_ref().written).pop().unwrap();
        assert_eq!((last.kind, &last.bytes[..]), (21, &[2, alert][..]));
    }
}

#[test]
fn padding_brings_a_hello_of_an_unlucky_length_to_512_bytes() {
    if !patched("padding_brings_a_hello_of_an_unlucky_length_to_512_bytes") {
        return;
    }
    // A short hello: what TLS 1.3 says needs more than 255 bytes.
    let mut context = client_context().0;
    context.set_grease_enabled(true);
    context.set_max_proto_version(Some(SslVersion::TLS1_2)).unwrap();
    context.set_strict_cipher_list("ECDHE-RSA-AES128-GCM-SHA256").unwrap();
    let short = context.build();
    // A list of protocols (RFC 7301 section 3.1) with so many bytes, two at least.
    let filler = |mut bytes: usize| {
        let mut list = Vec::new();
        while bytes > 0 {
            let name = if bytes <= 200 { bytes - 1 } else { 100 };
            list.push(name as u8);
            list.extend(std::iter::repeat_n(b'a', name));
            bytes -= 1 + name;
        }
        list
    };
    let hello = |context: &SslContext, groups: &[u16], protocols: usize, padding: bool| {
        let mut ssl = Ssl::new(context).unwrap();
        // SAFETY: `ssl` is a live SSL; the list lives through the call, which copies it.
        let set = unsafe { ffi::SSL_set1_group_ids(ssl.as_ptr(), groups.as_ptr(), groups.len()) };
        assert_eq!(set, 1);
        ssl.set_alpn_protos(&filler(protocols)).unwrap();
        set_padding(&mut ssl, padding).unwrap();
        sent(ssl)
    };
    let x25519 = &[0x1d];
    let bare = hello(&short, x25519, 2, false).message.len();
    for (len, padded) in [(255, 255), (256, 512), (400, 512), (507, 512), (511, 516), (512, 512)] {
        let protocols = len - bare + 2;
        assert_eq!(hello(&short, x25519, protocols, false).message.len(), len);
        let ours = hello(&short, x25519, protocols, true);
        assert_eq!(ours.message.len(), padded, "{len}");
        let last = ours.extensions.last().unwrap();
        assert_eq!(last.id == ExtensionId(21), padded != len, "{len}: {last:?}");
        assert!(last.id != ExtensionId(21) || last.raw.iter().all(|byte| *byte == 0));
    }
    let long = hello(&client_context().0.build(), &[0x11ec, 0x1d], 2, true);
    assert!(long.message.len() > 512 && long.extension(ExtensionId(21)).is_none());
}

#[test]
fn padding_counts_the_session_that_stands_behind_it() {
    if !patched("padding_counts_the_session_that_stands_behind_it") {
        return;
    }
    let server_context = server_context().build();
    let (mut context, sessions) = client_context();
    context.set_curves_list("X25519").unwrap();
    let context = context.build();
    let client = || {
        let mut ssl = Ssl::new(&context).unwrap();
        set_padding(&mut ssl, true).unwrap();
        ssl
    };
    let mut first = Pair::new(client(), server(&server_context));
    first.handshake().unwrap();
    read_ticket(&mut first);
    let session = sessions.lock().unwrap().take().unwrap();
    for name in [1, 63, 100, 200] {
        let with_session = |padding: bool| {
            let mut ssl = client();
            set_padding(&mut ssl, padding).unwrap();
            ssl.set_hostname(&"a".repeat(name)).unwrap();
            // SAFETY: the session is of a connection of the same context.
            unsafe { ssl.set_session(&session) }.unwrap();
            sent(ssl)
        };
        let (bare, ours) = (with_session(false).message.len(), with_session(true));
        let expected = match bare {
            256..508 => 512,
            508..512 => bare + 5,
            _ => bare,
        };
        assert_eq!(ours.message.len(), expected, "{bare}");
        assert_eq!(ours.extensions.last().unwrap().id, ExtensionId(41));
    }
}

#[test]
fn grease_can_leave_the_signature_algorithms_alone() {
    if !patched("grease_can_leave_the_signature_algorithms_alone") {
        return;
    }
    let mut context = client_context().0;
    context.set_grease_enabled(true);
    let context = context.build();
    for on in [true, false] {
        let mut ssl = Ssl::new(&context).unwrap();
        set_grease_sigalg(&mut ssl, on).unwrap();
        let hello = sent(ssl);
        let grease = |value: u16| value & 0x0f0f == 0x0a0a;
        assert!(grease(hello.cipher_suites[0]));
        assert_eq!(grease(hello.signature_algorithms()[0]), on);
    }
}

#[test]
fn rustls_answers_and_resumes() {
    if !patched("rustls_answers_and_resumes") {
        return;
    }
    let (certificate, key) = certificate(|_| {});
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der(&certificate)], key.serialize_der().try_into().unwrap())
            .unwrap();
        config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
        let config = Arc::new(config);
        let (context, sessions) = FIREFOX_153.context();
        for resumed in [false, true] {
            let session = sessions.lock().unwrap().take();
            assert_eq!(session.is_some(), resumed);
            // Where the ticket is one of TLS 1.2, session_ticket carries it.
            let mut ssl = FIREFOX_153.client(&context, None);
            if let Some(session) = session {
                // SAFETY: the session is of a connection of the same context.
                unsafe { ssl.set_session(&session) }.unwrap();
            }
            let (near, far) = ends();
            let mut client = SslStream::new(ssl, near).unwrap();
            rustls_handshake(&mut client, far, config.clone());
            assert_eq!(client.ssl().session_reused(), resumed);
        }
    }
}

fn der(pem: &str) -> rustls::pki_types::CertificateDer<'static> {
    X509::from_pem(pem.as_bytes()).unwrap().to_der().unwrap().into()
}

/// To the end, with one byte behind it, and what of tickets comes before that.
fn rustls_handshake(client: &mut SslStream<End>, mut far: End, config: Arc<rustls::ServerConfig>) {
    let mut server = rustls::ServerConnection::new(config).unwrap();
    let mut said = false;
    loop {
        match client.connect().and_then(|()| client.ssl_read(&mut [0; 1])) {
            Ok(n) => return assert_eq!(n, 1),
            Err(error) => assert_eq!(error.code(), ErrorCode::WANT_READ, "{error}"),
        }
        while server.read_tls(&mut far).is_ok_and(|n| n > 0) {
            server.process_new_packets().unwrap();
        }
        if !server.is_handshaking() && !said {
            server.writer().write_all(b"!").unwrap();
            said = true;
        }
        while server.wants_write() {
            server.write_tls(&mut far).unwrap();
        }
    }
}

fn firefox() -> Ssl {
    FIREFOX_153.client(&FIREFOX_153.context().0, None)
}

#[test]
fn openssl_answers_and_resumes() {
    const NAME: &str = "openssl_answers_and_resumes";
    if !patched(NAME) {
        return;
    }
    let Some(server) = s_server(NAME, &["-tls1_3"]) else { return };
    let (context, sessions) = FIREFOX_153.context();
    for resumed in [false, true] {
        let session = sessions.lock().unwrap().take();
        let mut client = server.dial(FIREFOX_153.client(&context, session.as_ref()));
        client.connect().unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // s_server closes without a word of TLS.
        let _ = client.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(client.ssl().session_reused(), resumed);
    }
}

#[test]
fn a_retry_for_an_offered_group_succeeds() {
    const NAME: &str = "a_retry_for_an_offered_group_succeeds";
    if !patched(NAME) {
        return;
    }
    let Some(server) = s_server(NAME, &["-tls1_3", "-groups", "P-521"]) else { return };
    let mut client = server.dial(firefox());
    client.connect().unwrap();
    // The second hello keeps to the order as well.
    let hellos: Vec<_> = records(&client.get_ref().written)
        .into_iter()
        .filter(|record| record.kind == 22)
        .map(|record| ClientHello::parse(record.bytes.into()).unwrap())
        .collect();
    let [first, second] = &hellos[..] else { panic!("{} hellos", hellos.len()) };
    let shares: Vec<_> = second.key_shares().iter().map(|share| share.group).collect();
    assert_eq!(shares, [0x19]);
    let ids = |hello: &ClientHello| hello.extensions.iter().map(|e| e.id).collect::<Vec<_>>();
    assert_eq!(ids(first), ids(second));
}

#[test]
fn a_retry_for_a_group_that_is_only_advertised_fails_cleanly() {
    const NAME: &str = "a_retry_for_a_group_that_is_only_advertised_fails_cleanly";
    if !patched(NAME) {
        return;
    }
    let Some(server) = s_server(NAME, &["-tls1_3", "-groups", "ffdhe2048"]) else { return };
    let mut client = server.dial(firefox());
    let error = client.connect().unwrap_err();
    assert_eq!(error.code(), ErrorCode::SSL, "{error}");
    let last = records(&client.get_ref().written).pop().unwrap();
    // RFC 8446 section 6.2: handshake_failure.
    assert_eq!((last.kind, &last.bytes[..]), (21, &[2, 40][..]));
}
