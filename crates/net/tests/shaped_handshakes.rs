//! Handshakes with a browser's hello, against servers of others.
#![allow(missing_docs, clippy::unwrap_used)]

mod tls_peer;

use std::{
    io::{self, Read as _, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use boring::{
    hpke::HpkeKey,
    pkey::PKey,
    ssl::{AlpnError, Ssl, SslContextBuilder, SslEchKeys, SslMethod, SslRef, select_next_proto},
    x509::X509,
};
use foreign_types::{ForeignType as _, ForeignTypeRef as _};
use mimus_net::{
    DialErrorKind, Socket,
    dial::{DialTimeouts, Dialer, Plan, StaticResolver, TlsPlan},
    rt::Blocking,
    tls::{
        self, BORINGSSL_IS_PATCHED, ClientHello, Ech, EchConfigList, TlsConfig, TlsVersion,
        client_hello::{CertificateCompression, Extension},
    },
};
use rustls::{
    HandshakeKind,
    crypto::{
        CryptoProvider,
        ring::{default_provider, kx_group},
    },
    version::{TLS12, TLS13},
};
use tls_peer::*;

fn chromium() -> ClientHello {
    toml::from_str(include_str!("hellos/chromium-156.toml")).unwrap()
}

async fn browse(addr: SocketAddr, config: &TlsConfig) -> Box<dyn Socket> {
    let plan = TlsPlan { alpn: vec![b"h2", b"http/1.1"], ..plan(config) };
    tls::connect(tcp(addr).await, &plan, &host("bird.test"), addr.port()).await.unwrap()
}

fn firefox() -> ClientHello {
    toml::from_str(include_str!("hellos/firefox-153.toml")).unwrap()
}

#[test]
fn rustls_agrees_and_resumes() {
    agrees_and_resumes(&chromium());
    if BORINGSSL_IS_PATCHED {
        agrees_and_resumes(&firefox());
    }
}

fn agrees_and_resumes(hello: &ClientHello) {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    for (version, name) in [(&TLS13, "TLSv1.3"), (&TLS12, "TLSv1.2")] {
        let mut server = identity.server_with(&[version], None);
        server.alpn_protocols = vec![b"h2".to_vec()];
        let server = serve(server, echo);
        let config = ca.client().client_hello(hello.clone()).build().unwrap();
        run(async {
            for n in 0..3 {
                let mut socket = browse(server.addr, &config).await;
                ping(&mut *socket).await;
                let info = socket.tls().unwrap();
                assert_eq!((info.version, info.resumed), (name, n > 0));
                assert_eq!(info.alpn.as_deref(), Some(&b"h2"[..]));
                assert_eq!(info.application_settings, None);
            }
        });
    }
}

#[test]
fn a_hello_without_resumption_never_resumes() {
    let ca = Authority::new();
    let server = serve(ca.issue(&["bird.test"]).server(), echo);
    let hello = ClientHello { resumption: false, ..chromium() };
    let config = ca.client().client_hello(hello).build().unwrap();
    run(async {
        for _ in 0..3 {
            let mut socket = browse(server.addr, &config).await;
            ping(&mut *socket).await;
            assert!(!socket.tls().unwrap().resumed);
        }
    });
}

#[test]
fn a_server_may_ask_for_another_group() {
    let ca = Authority::new();
    // Chromium offers the group, but sends no share of it.
    let groups = CryptoProvider { kx_groups: vec![kx_group::SECP384R1], ..default_provider() };
    let server = ca.issue(&["bird.test"]).server_by(groups, &[&TLS13], None);
    let server = serve(server, echo);
    let config = ca.client().client_hello(chromium()).build().unwrap();
    run(async {
        for n in 0..2 {
            let mut socket = browse(server.addr, &config).await;
            ping(&mut *socket).await;
            let info = socket.tls().unwrap();
            assert_eq!((info.group, info.resumed), (Some("P-384"), n > 0));
        }
    });
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen[0].kind, Some(HandshakeKind::FullWithHelloRetryRequest));
}

/// A server on BoringSSL, which speaks what rustls does not, and then echoes. `shape` is done to each
/// context, `each` to each connection.
fn boring_server(
    identity: &Identity,
    shape: impl Fn(&mut SslContextBuilder),
    each: impl Fn(&mut SslRef) + Send + Sync + 'static,
) -> SocketAddr {
    let mut context = SslContextBuilder::new(SslMethod::tls()).unwrap();
    context.set_certificate(&X509::from_pem(identity.chain.as_bytes()).unwrap()).unwrap();
    let key = PKey::private_key_from_pem(identity.key.as_bytes()).unwrap();
    context.set_private_key(&key).unwrap();
    context.set_alpn_select_callback(|_, offered| {
        select_next_proto(b"\x02h2\x08http/1.1", offered).ok_or(AlpnError::NOACK)
    });
    shape(&mut context);
    let context = context.build();
    listen(move |stream| {
        let mut ssl = Ssl::new(&context).unwrap();
        each(&mut ssl);
        let stream = ssl.accept(stream).map_err(|error| io::Error::other(error.to_string()))?;
        echo(stream)
    })
}

/// Agrees on ALPS for h2 at the code point, and says `settings`.
fn agree_on_settings(ssl: &mut SslRef, code_point: Extension, settings: &[u8]) {
    // SAFETY: `ssl` is a live SSL that nobody else uses; the bytes live through the call.
    unsafe {
        boring_sys::SSL_set_alps_use_new_codepoint(ssl.as_ptr(), (code_point.0 == 17613).into());
    }
    // SAFETY: as above.
    let added = unsafe {
        boring_sys::SSL_add_application_settings(
            ssl.as_ptr(),
            b"h2".as_ptr(),
            2,
            settings.as_ptr(),
            settings.len(),
        )
    };
    assert_eq!(added, 1);
}

#[test]
fn a_servers_settings_come_with_the_handshake() {
    // SETTINGS with one setting, and an ACCEPT_CH of nothing.
    const FRAMES: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\0\0\x89\0\0\0\0\0";
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    for code_point in [17513, 17613].map(Extension) {
        for settings in [FRAMES, b""] {
            let each = move |ssl: &mut SslRef| agree_on_settings(ssl, code_point, settings);
            let addr = boring_server(&identity, |_| {}, each);
            let mut hello = chromium();
            hello.application_settings.as_mut().unwrap().code_point = code_point;
            let config = ca.client().client_hello(hello).build().unwrap();
            run(async {
                for n in 0..2 {
                    let mut socket = browse(addr, &config).await;
                    ping(&mut *socket).await;
                    let info = socket.tls().unwrap();
                    assert_eq!(info.application_settings.as_deref(), Some(settings));
                    assert_eq!(info.resumed, n > 0);
                }
                // Not for HTTP/1.1, as for a WebSocket.
                let plan = TlsPlan { alpn: vec![b"http/1.1"], ..plan(&config) };
                let bird = host("bird.test");
                let mut socket = tls::connect(tcp(addr).await, &plan, &bird, 1).await.unwrap();
                ping(&mut *socket).await;
                assert_eq!(socket.tls().unwrap().application_settings, None);
            });
        }
    }
}

/// How often a server has compressed its certificate.
static COMPRESSED: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

fn compress(algorithm: usize, message: &[u8]) -> Vec<u8> {
    COMPRESSED[algorithm].fetch_add(1, Ordering::SeqCst);
    match algorithm {
        1 => {
            let best = flate2::Compression::best();
            let mut to = flate2::write::ZlibEncoder::new(Vec::new(), best);
            to.write_all(message).unwrap();
            to.finish().unwrap()
        }
        2 => {
            let mut to = Vec::new();
            let settings = brotli::enc::BrotliEncoderParams::default();
            brotli::BrotliCompress(&mut &*message, &mut to, &settings).unwrap();
            to
        }
        _ => zstd::bulk::compress(message, 3).unwrap(),
    }
}

/// What BoringSSL calls to compress a certificate. With `LIE` it says something else.
unsafe extern "C" fn compressor<const ALGORITHM: usize, const LIE: bool>(
    _ssl: *mut boring_sys::SSL,
    out: *mut boring_sys::CBB,
    input: *const u8,
    len: usize,
) -> i32 {
    // SAFETY: BoringSSL passes that many bytes.
    let message = unsafe { std::slice::from_raw_parts(input, len) };
    let message = if LIE { &[message, &[0; 1 << 20]].concat() } else { message };
    let compressed = compress(ALGORITHM, message);
    // SAFETY: BoringSSL passes a live CBB; the bytes live through the call, which copies them.
    unsafe { boring_sys::CBB_add_bytes(out, compressed.as_ptr(), compressed.len()) }
}

fn compressing_server<const ALGORITHM: usize, const LIE: bool>(identity: &Identity) -> SocketAddr {
    let shape = |context: &mut SslContextBuilder| {
        // SAFETY: the context is live and ours, and the function stays.
        let added = unsafe {
            boring_sys::SSL_CTX_add_cert_compression_alg(
                context.as_ptr(),
                ALGORITHM as u16,
                Some(compressor::<ALGORITHM, LIE>),
                None,
            )
        };
        assert_eq!(added, 1);
    };
    boring_server(identity, shape, |_| {})
}

#[test]
fn compressed_certificates_are_taken_and_bombs_are_not() {
    use CertificateCompression::{Brotli, Zlib, Zstd};
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    let honest = [
        compressing_server::<1, false>(&identity),
        compressing_server::<2, false>(&identity),
        compressing_server::<3, false>(&identity),
    ];
    let liars = [
        compressing_server::<1, true>(&identity),
        compressing_server::<2, true>(&identity),
        compressing_server::<3, true>(&identity),
    ];
    let hello = ClientHello { certificate_compression: vec![Zlib, Brotli, Zstd], ..chromium() };
    let config = ca.client().client_hello(hello).build().unwrap();
    run(async {
        for addr in honest {
            ping(&mut *browse(addr, &config).await).await;
        }
        for addr in liars {
            let error = connect(addr, &config, "bird.test").await.unwrap_err();
            assert_eq!(error.kind(), DialErrorKind::Tls);
        }
    });
    let compressed = COMPRESSED.each_ref().map(|count| count.load(Ordering::SeqCst));
    assert_eq!(compressed, [0, 2, 2, 2]);
}

/// The ECHConfig of `key`, for servers behind `public.test`.
fn ech_config(key: &HpkeKey) -> Vec<u8> {
    let (mut bytes, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: the key is live, the name ends in a zero byte, and both places may be written to.
    let made = unsafe {
        boring_sys::SSL_marshal_ech_config(
            &mut bytes,
            &mut len,
            7,
            key.as_ptr(),
            c"public.test".as_ptr(),
            64,
        )
    };
    assert_eq!(made, 1);
    // SAFETY: BoringSSL has allocated that many bytes.
    let config = unsafe { std::slice::from_raw_parts(bytes, len) }.to_vec();
    // SAFETY: they are ours to free, once.
    unsafe { boring_sys::OPENSSL_free(bytes.cast()) };
    config
}

fn ech_server(identity: &Identity, seed: u8) -> (SocketAddr, EchConfigList) {
    let key = || HpkeKey::dhkem_p256_sha256(&[seed; 32]).unwrap();
    let config = ech_config(&key());
    let list = [&(config.len() as u16).to_be_bytes()[..], &config].concat();
    let shape = |context: &mut SslContextBuilder| {
        let mut keys = SslEchKeys::builder().unwrap();
        keys.add_key(true, &config, key()).unwrap();
        context.set_ech_keys(&keys.build()).unwrap();
    };
    (boring_server(identity, shape, |_| {}), EchConfigList::from_bytes(list).unwrap())
}

#[test]
fn a_name_travels_encrypted_to_who_has_the_key() {
    let ca = Authority::new();
    let (server, list) = ech_server(&ca.issue(&["bird.test"]), 1);
    let config = ca.client().client_hello(chromium()).build().unwrap();
    let plan = TlsPlan { ech: list.into(), alpn: vec![b"h2"], ..plan(&config) };
    let bird = host("bird.test");
    let sees = |name: &[u8]| {
        let flight = tls::first_flight(&plan, &bird, 443).unwrap();
        flight.windows(name.len()).any(|window| window == name)
    };
    assert!(sees(b"public.test") && !sees(b"bird.test"));
    run(async {
        for n in 0..2 {
            let socket = tcp(server).await;
            let mut socket = tls::connect(socket, &plan, &bird, server.port()).await.unwrap();
            ping(&mut *socket).await;
            let info = socket.tls().unwrap();
            assert_eq!((info.ech_accepted, info.resumed), (true, n > 0));
        }
        // Without its configuration, the name goes in the clear beside an extension that means nothing.
        let mut socket = browse(server, &config).await;
        ping(&mut *socket).await;
        assert!(!socket.tls().unwrap().ech_accepted);
        // Whose key is another one has to be the public name's owner, and says so.
        for (name, kind) in
            [("public.test", DialErrorKind::Tls), ("bird.test", DialErrorKind::Certificate)]
        {
            let (other, _) = ech_server(&ca.issue(&[name]), 2);
            let error = tls::connect(tcp(other).await, &plan, &bird, 1).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let refused = error.to_string().contains("refused the encrypted ClientHello");
            assert_eq!(refused, kind == DialErrorKind::Tls, "{error}");
        }
    });
}

#[test]
fn keys_that_have_changed_are_asked_for_once_more() {
    let ca = Authority::new();
    let (_, stale) = ech_server(&ca.issue(&["public.test"]), 1);
    let (server, fresh) = ech_server(&ca.issue(&["bird.test", "public.test"]), 2);
    let mute = boring_server(&ca.issue(&["bird.test", "public.test"]), |_| {}, |_| {});
    let mut hellos = vec![chromium()];
    hellos.extend(BORINGSSL_IS_PATCHED.then(firefox));
    for hello in hellos {
        let config = ca.client().client_hello(hello).build().unwrap();
        let plan = |addr: SocketAddr, ech: Ech| {
            let tls = TlsPlan { ech, alpn: vec![b"h2"], ..plan(&config) };
            Plan::new(host("bird.test"), addr.port()).with_tls(tls)
        };
        run(async {
            let table = StaticResolver::new().with("bird.test", [server.ip()]);
            let dialer = |table: StaticResolver| {
                Dialer::new(Arc::new(Blocking)).with_resolver(Arc::new(table))
            };
            let limits = DialTimeouts::default();
            for (table, ech) in [
                (table.clone(), Ech::Config(fresh.clone())),
                (table.clone(), Ech::Config(stale.clone())),
                (table.clone().with_ech("bird.test", fresh.as_bytes().to_vec()), Ech::Record),
                (table.clone().with_ech("bird.test", stale.as_bytes().to_vec()), Ech::Record),
            ] {
                let mut dialed = dialer(table).dial(&plan(server, ech), &limits).await.unwrap();
                ping(&mut *dialed.socket).await;
                assert!(dialed.tls.unwrap().ech_accepted);
            }
            for (table, ech) in [
                (table.clone(), Ech::Record),
                (table.clone().with_ech("bird.test", b"no list".to_vec()), Ech::Record),
                (table.clone().with_ech("bird.test", stale.as_bytes().to_vec()), Ech::Off),
            ] {
                let dialed = dialer(table).dial(&plan(server, ech), &limits).await.unwrap();
                assert!(!dialed.tls.unwrap().ech_accepted);
            }
            // Who gives no keys is not told the name in the clear.
            let gone = plan(mute, Ech::Config(stale.clone()));
            let error = dialer(table).dial(&gone, &limits).await.unwrap_err();
            assert!(error.to_string().contains("it gives no keys to encrypt it with"), "{error}");
            assert_eq!(error.kind(), DialErrorKind::Tls);
        });
    }
}

#[test]
fn keys_are_taken_from_nobody_but_the_name_in_the_configuration() {
    let ca = Authority::new();
    let (_, stale) = ech_server(&ca.issue(&["public.test"]), 1);
    let (server, _) = ech_server(&ca.issue(&["bird.test"]), 2);
    let config = ca.client().build().unwrap();
    let tls = TlsPlan { ech: stale.into(), ..plan(&config) };
    run(async {
        let error = tls::connect(tcp(server).await, &tls, &host("bird.test"), 1).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::Certificate, "{error}");
        assert_eq!(error.ech_retry_configs(), None);
    });
}

#[test]
fn what_is_only_advertised_is_named_when_a_server_chooses_it() {
    if !BORINGSSL_IS_PATCHED {
        return;
    }
    let hello = ClientHello {
        cipher_suites: [0x1301, 0xc02f, 0xc008].map(Into::into).to_vec(),
        advertised_versions: vec![TlsVersion::Tls11],
        ..chromium()
    };
    for (version, suite, what) in [
        (0x0303_u16, 0xc008_u16, "a cipher suite that is only advertised"),
        (0x0302, 0xc02f, "a TLS version that we do not allow"),
    ] {
        // A ServerHello of RFC 5246 section 7.4.1.3, without extensions.
        let (version, suite) = (version.to_be_bytes(), suite.to_be_bytes());
        let body = [&version[..], &[7; 32], &[0], &suite, &[0]].concat();
        let answer = [&[22, 3, 3, 0, 42, 2, 0, 0, 38][..], &body].concat();
        let server = listen(move |mut peer| {
            peer.read_exact(&mut [0; 5])?;
            peer.write_all(&answer)?;
            io::copy(&mut peer, &mut io::sink()).map(drop)
        });
        let config = Authority::new().client().client_hello(hello.clone()).build().unwrap();
        let plan = TlsPlan { alpn: vec![b"h2"], ..plan(&config) };
        let error =
            run(async { tls::connect(tcp(server).await, &plan, &host("bird.test"), 1).await });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::Tls);
        assert!(error.to_string().contains(what), "{error}");
    }
}
