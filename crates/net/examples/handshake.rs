//! What a configuration and a handshake cost, beside rustls.
//!
//! ```console
//! $ cargo run --release -p mimus-net --features serde --example handshake -- serve ca.pem &
//! 127.0.0.1:40001
//! $ cargo run ... -- mimus|chromium|classical|rustls 127.0.0.1:40001 ca.pem 200 [native]
//! $ cargo run ... -- configure 1000
//! $ cargo run ... -- hello 50
//! ```
//!
//! Each handshake is a full one on a connection of its own: no session is resumed. With `native` the
//! system's roots are trusted too. `classical` is Chromium's hello with a share of X25519 alone. `hello`
//! prints first flights of Chromium's in hexadecimal digits, for other readers. For instructions, run the
//! second under `valgrind --tool=callgrind`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use mimus_net::{
    dial::{Host, SocketOptions, TlsPlan},
    rt::{Blocking, Endpoint, Runtime as _},
    tls::{self, ClientHello, Roots, TlsConfig, TlsConfigBuilder},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

const HELLO: &str = include_str!("../tests/hellos/chromium-156.toml");

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", ca] => serve(ca),
        ["configure", times] => configure(times.parse().unwrap()),
        ["hello", times] => print_hellos(times.parse().unwrap()),
        [who, addr, ca, times, native @ ..] => {
            let (addr, ca) = (addr.parse().unwrap(), std::fs::read(ca).unwrap());
            let mut handshake = client(who, &ca, !native.is_empty());
            // The first one reads the trust store.
            handshake(addr);
            let mut took: Vec<_> = (0..times.parse().unwrap()).map(|_| handshake(addr)).collect();
            took.sort();
            println!("{who}: median {:?}, least {:?}", took[took.len() / 2], took[0]);
        }
        _ => println!(
            "serve CA | configure TIMES | mimus|chromium|classical|rustls ADDR CA TIMES [native]"
        ),
    }
}

/// A server whose certificate is issued by an intermediate one, as most are.
fn serve(ca_path: &str) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let authority = || {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let key = || KeyPair::generate().unwrap();
    let mut root = authority();
    root.distinguished_name.push(rcgen::DnType::CommonName, "Root");
    let root = CertifiedIssuer::self_signed(root, key()).unwrap();
    let mut issuer = authority();
    issuer.distinguished_name.push(rcgen::DnType::CommonName, "Issuer");
    let issuer = CertifiedIssuer::signed_by(issuer, key(), &root).unwrap();
    let leaf_key = key();
    let leaf = CertificateParams::new(vec!["bird.test".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &issuer).unwrap();
    std::fs::write(ca_path, root.pem()).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone(), issuer.der().clone()],
            PrivateKeyDer::from_pem_slice(leaf_key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    for stream in listener.incoming().map_while(Result::ok) {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut peer = rustls::StreamOwned::new(connection, stream);
        // Until the client leaves.
        let _ = peer.read(&mut [0; 16]);
    }
}

fn plan(config: TlsConfig) -> TlsPlan {
    TlsPlan {
        config,
        alpn: vec![b"h2", b"http/1.1"],
        early_data: false,
        ech: mimus_net::tls::Ech::Off,
    }
}

type Handshake = Box<dyn FnMut(SocketAddr) -> Duration>;

fn client(who: &str, ca: &[u8], native: bool) -> Handshake {
    if who == "rustls" {
        return rustls_client(ca, native);
    }
    let roots = if native { Roots::Native } else { Roots::None };
    let builder = TlsConfig::builder().roots(roots).add_ca(ca).session_resumption(false);
    let builder = match who {
        "mimus" => builder,
        "chromium" => builder.client_hello(hello()).session_resumption(false),
        "classical" => {
            let mut hello = ClientHello { ech_grease: None, ..hello() };
            hello.key_shares.remove(0);
            builder.client_hello(hello).session_resumption(false)
        }
        _ => panic!("nobody is called {who}"),
    };
    let config = builder.build().unwrap();
    let plan = plan(config);
    let host = Host::Name("bird.test".to_owned());
    Box::new(move |addr| {
        Blocking::block_on(async {
            let endpoint = Endpoint::Tcp(addr);
            let socket = Blocking.connect(&endpoint, &SocketOptions::default()).await.unwrap();
            let start = Instant::now();
            drop(tls::connect(socket, &plan, &host, addr.port()).await.unwrap());
            start.elapsed()
        })
    })
}

fn rustls_client(ca: &[u8], native: bool) -> Handshake {
    let mut roots = rustls::RootCertStore::empty();
    if native {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    Box::new(move |addr| {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        let start = Instant::now();
        let name = "bird.test".try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).unwrap();
        }
        stream.flush().unwrap();
        start.elapsed()
    })
}

fn hello() -> ClientHello {
    toml::from_str(HELLO).unwrap()
}

fn print_hellos(times: usize) {
    let config = TlsConfig::builder().roots(Roots::Webpki).client_hello(hello()).build().unwrap();
    let (plan, host) = (plan(config), Host::Name("a.test".to_owned()));
    for _ in 0..times {
        let flight = tls::first_flight(&plan, &host, 443).unwrap();
        println!("{}", flight.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
}

/// What it costs to make a configuration, and with it a first ClientHello, after the first time.
fn configure(times: u32) {
    let host = Host::Name("bird.test".to_owned());
    let measure = |name: &str, build: &dyn Fn(TlsConfigBuilder) -> TlsConfigBuilder| {
        let make = || {
            let start = Instant::now();
            let config = build(TlsConfig::builder()).build().unwrap();
            let built = start.elapsed();
            let plan = plan(config);
            tls::first_flight(&plan, &host, 443).unwrap();
            let first = start.elapsed();
            tls::first_flight(&plan, &host, 443).unwrap();
            [built, first - built, start.elapsed() - first]
        };
        make();
        let took: Vec<_> = (0..times).map(|_| make()).collect();
        let median = |part: usize| {
            let mut part: Vec<_> = took.iter().map(|took| took[part]).collect();
            part.sort();
            part[part.len() / 2]
        };
        println!(
            "{name}: built in {:?}, first hello {:?}, second {:?}",
            median(0),
            median(1),
            median(2)
        );
    };
    let hello = hello();
    measure("native roots", &|builder| builder);
    measure("native roots, Chromium", &|builder| builder.client_hello(hello.clone()));
    let root = webpki_root_certs::TLS_SERVER_ROOT_CERTS[0].to_vec();
    measure("native roots and one more, Chromium", &|builder| {
        builder.add_ca(&root).client_hello(hello.clone())
    });
}
