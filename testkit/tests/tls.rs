//! TLS ports, met with a client of rustls.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use common::*;
use mimus_testkit::{Origin, Port};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned, crypto::ring,
};

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn config(origin: &Origin, identity: bool) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(origin.ca_pem().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = if identity {
        let client = origin.client_identity();
        let cert = CertificateDer::from_pem_slice(client.cert_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(client.key_pem.as_bytes()).unwrap();
        builder.with_client_auth_cert(vec![cert], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn open(origin: &Origin, port: Port, name: &str, config: &Arc<ClientConfig>) -> Tls {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(client, connect(origin, port))
}

/// One GET over TLS on that port; the error is the handshake's.
fn try_get(origin: &Origin, port: Port, name: &str, identity: bool) -> io::Result<Answer> {
    let mut stream = open(origin, port, name, &Arc::new(config(origin, identity)));
    stream.write_all(get("/get").as_bytes())?;
    stream.flush()?;
    // In TLS 1.3 a refused client learns of it only with its first read.
    let mut first = [0];
    stream.read_exact(&mut first)?;
    Ok(read_answer(&mut first.chain(stream)))
}

#[test]
fn the_right_certificate_names_every_name_of_the_origin() {
    let origin = origin();
    for name in ["localhost", "127.0.0.1", "::1", "origin.test"] {
        assert_eq!(try_get(&origin, Port::Https, name, false).unwrap().status, 200, "{name}");
    }
    let seen = origin.requests();
    let sni: Vec<_> = seen.iter().map(|seen| seen.tls.clone().unwrap().sni).collect();
    assert_eq!(sni, [Some("localhost".to_owned()), None, None, Some("origin.test".to_owned())]);
    assert_eq!(seen[0].tls.as_ref().unwrap().alpn.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(seen[0].tls.as_ref().unwrap().version, "TLSv1_3");
    assert!(origin.https_url("/x").starts_with("https://localhost:"));
}

#[test]
fn wrong_certificates_are_refused_each_for_its_reason() {
    let origin = origin();
    for (port, reason) in [
        (Port::TlsWrongName, "NotValidForName"),
        (Port::TlsExpired, "Expired"),
        (Port::TlsNotYetValid, "NotValidYet"),
        (Port::TlsSelfSigned, "UnknownIssuer"),
    ] {
        let error = try_get(&origin, port, "localhost", false).unwrap_err();
        assert!(format!("{error:?}").contains(reason), "{port:?}: {error:?}");
    }
    assert!(origin.requests().is_empty());
    assert_eq!(try_get(&origin, Port::TlsWrongName, "wrong.test", false).unwrap().status, 200);
}

#[test]
fn a_client_certificate_is_required_where_told() {
    let origin = origin();
    let error = try_get(&origin, Port::TlsClientCert, "localhost", false).unwrap_err();
    assert!(format!("{error:?}").contains("CertificateRequired"), "{error:?}");
    assert_eq!(try_get(&origin, Port::TlsClientCert, "localhost", true).unwrap().status, 200);
    assert!(origin.requests()[0].tls.as_ref().unwrap().client_cert);
}

#[test]
fn versions_and_alpn_are_as_told() {
    let origin = origin();
    for (port, version) in [(Port::Tls12, "TLSv1_2"), (Port::Tls13, "TLSv1_3")] {
        origin.reset();
        try_get(&origin, port, "localhost", false).unwrap();
        assert_eq!(origin.requests()[0].tls.as_ref().unwrap().version, version);
    }
    origin.reset();
    try_get(&origin, Port::TlsNoAlpn, "localhost", false).unwrap();
    assert_eq!(origin.requests()[0].tls.as_ref().unwrap().alpn, None);
    let only_12 = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&tokio_rustls::rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut stream = open(&origin, Port::Tls13, "localhost", &Arc::new(only_12));
    assert!(stream.write_all(b"x").is_err());
    assert_ne!(stream.conn.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[test]
fn sessions_resume_and_carry_early_data() {
    let origin = origin();
    for port in [Port::Https, Port::Tls12] {
        origin.reset();
        let config = Arc::new(config(&origin, false));
        for resumed in [false, true] {
            let mut stream = open(&origin, port, "localhost", &config);
            stream.write_all(get("/get").as_bytes()).unwrap();
            assert_eq!(read_answer(&mut stream).json()["tls_resumed"], resumed, "{port:?}");
        }
    }
    origin.reset();
    let mut config = config(&origin, false);
    config.enable_early_data = true;
    let config = Arc::new(config);
    let mut first = open(&origin, Port::TlsEarlyData, "localhost", &config);
    first.write_all(get("/get").as_bytes()).unwrap();
    read_answer(&mut first);
    let mut second = open(&origin, Port::TlsEarlyData, "localhost", &config);
    let request = get("/get?early");
    let mut early = second.conn.early_data().expect("a ticket for early data");
    early.write_all(request.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut second).status, 200);
    assert!(second.conn.is_early_data_accepted());
    let tls = origin.requests()[1].tls.clone().unwrap();
    assert_eq!((tls.resumed, tls.early_data), (true, request.len()));
}

#[test]
fn handshakes_fail_as_told() {
    let origin = origin();
    let error = |port| try_get(&origin, port, "localhost", false).unwrap_err();
    assert_eq!(error(Port::TlsReset).kind(), ErrorKind::ConnectionReset);
    assert_eq!(error(Port::TlsClose).kind(), ErrorKind::UnexpectedEof);
    assert_eq!(error(Port::TlsGarbage).kind(), ErrorKind::InvalidData);
    let mut stream = open(&origin, Port::TlsStall, "localhost", &Arc::new(config(&origin, false)));
    stream.sock.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    assert_eq!(stream.write_all(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(stream);
    eventually("none is left", || origin.open_connections() == 0);
}

#[test]
fn a_body_can_end_without_close_notify_and_with_a_reset() {
    let origin = origin();
    let config = Arc::new(config(&origin, false));
    for (path, kind) in [
        ("/until-close", None),
        ("/bad/no-close-notify", Some(ErrorKind::UnexpectedEof)),
        ("/bad/reset-until-close?ms=200", Some(ErrorKind::ConnectionReset)),
    ] {
        let mut stream = open(&origin, Port::Https, "localhost", &config);
        stream.write_all(get(path).as_bytes()).unwrap();
        let (bytes, end) = read_all(&mut stream);
        assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"), "{path}");
        assert_eq!(end.err().map(|error| error.kind()), kind, "{path}");
    }
}

#[test]
fn the_proxy_over_tls_forwards() {
    let origin = origin();
    let port = origin.addr(Port::Http).unwrap().port();
    let config = Arc::new(config(&origin, false));
    let mut stream = open(&origin, Port::ProxyTls, "localhost", &config);
    let raw = format!("CONNECT origin.test:{port} HTTP/1.1\r\nHost: h\r\n\r\n");
    stream.write_all(raw.as_bytes()).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
    assert_eq!(origin.accepted(Port::ProxyTls), 1);
}
