//! The proxies, spoken to byte by byte.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{Read, Write};

use common::*;
use mimus_testkit::{Origin, Port};

fn http(origin: &Origin) -> u16 {
    origin.addr(Port::Http).unwrap().port()
}

#[test]
fn absolute_form_is_forwarded_and_the_connection_goes_on() {
    let origin = origin();
    let port = http(&origin);
    let mut stream = connect(&origin, Port::Proxy);
    for path in ["/get?x=1", "/stream/3", "/bytes/100000"] {
        let raw = format!(
            "GET http://origin.test:{port}{path} HTTP/1.1\r\nHost: origin.test:{port}\r\n\
             Proxy-Connection: keep-alive\r\nX-Case: Kept\r\n\r\n"
        );
        stream.write_all(raw.as_bytes()).unwrap();
        let answer = read_answer(&mut stream);
        assert_eq!((answer.status, answer.header("connection")), (200, None), "{path}");
    }
    let body = "POST http://localhost:PORT/upload HTTP/1.1\r\nHost: h\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    stream.write_all(body.replace("PORT", &port.to_string()).as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).json()["length"], 3);
    assert_eq!(origin.accepted(Port::Proxy), 1);
    let seen = origin.requests();
    let at_origin = seen.iter().find(|seen| seen.port == Port::Http).unwrap();
    assert!(at_origin.head.starts_with(b"GET /get?x=1 HTTP/1.1\r\nHost: origin.test:"));
    assert_eq!(at_origin.header("x-case").as_deref(), Some("Kept"));
    assert_eq!(at_origin.header("proxy-connection"), None);
    assert!(at_origin.header("via").is_some());
}

#[test]
fn a_truncated_answer_stays_truncated_through_the_proxy() {
    let origin = origin();
    let port = http(&origin);
    for (path, broken) in [("/bad/truncate", false), ("/bad/reset-mid-body?ms=200", true)] {
        let mut stream = connect(&origin, Port::Proxy);
        let raw = format!("GET http://127.0.0.1:{port}{path} HTTP/1.1\r\nHost: h\r\n\r\n");
        stream.write_all(raw.as_bytes()).unwrap();
        let (bytes, end) = read_all(&mut stream);
        assert!(bytes.ends_with(b"0123456789"), "{}", bytes.escape_ascii());
        assert_eq!(end.is_err(), broken, "{path}");
    }
}

#[test]
fn connect_tunnels_and_refuses() {
    let origin = origin();
    let mut stream = connect(&origin, Port::Proxy);
    let port = http(&origin);
    stream
        .write_all(format!("CONNECT [::1]:{port} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
        .unwrap();
    let head = read_head(&mut stream);
    if head.starts_with("HTTP/1.1 200 ") {
        stream.write_all(get("/get").as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream).status, 200);
    } else {
        assert!(head.starts_with("HTTP/1.1 502 "), "a machine without IPv6: {head}");
    }
    let mut stream = connect(&origin, Port::Proxy);
    // One write: what follows the head belongs to the tunnel.
    let both = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: h\r\n\r\n{}", get("/json"));
    stream.write_all(both.as_bytes()).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
    assert_eq!(read_answer(&mut stream).status, 200);
    for target in ["example.com:80", "10.0.0.1:80"] {
        let mut stream = connect(&origin, Port::Proxy);
        stream
            .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes())
            .unwrap();
        assert_eq!(read_answer(&mut stream).status, 502);
    }
    assert_eq!(origin.requests()[0].method, "CONNECT");
}

#[test]
fn credentials_are_wanted_and_checked() {
    let origin = origin();
    let port = http(&origin);
    let mut stream = connect(&origin, Port::ProxyAuth);
    let raw = |auth: &str| format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: h\r\n{auth}\r\n");
    stream.write_all(raw("").as_bytes()).unwrap();
    let answer = read_answer(&mut stream);
    assert_eq!(answer.status, 407);
    assert!(answer.header("proxy-authenticate").unwrap().starts_with("Basic "));
    stream.write_all(raw("Proxy-Authorization: Basic eDp5\r\n").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 407);
    // user:secret, on the same connection.
    stream.write_all(raw("Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n").as_bytes()).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
}

fn exact<const N: usize>(stream: &mut impl Read) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("a reply");
    bytes
}

#[test]
fn socks_5_takes_names_and_addresses() {
    let origin = origin();
    let port = http(&origin).to_be_bytes();
    for to in [&b"\x03\x0borigin.test"[..], &b"\x01\x7f\0\0\x01"[..]] {
        let mut stream = connect(&origin, Port::Socks);
        stream.write_all(b"\x05\x02\x00\x02").unwrap();
        assert_eq!(exact(&mut stream), [5, 0]);
        stream.write_all(&[b"\x05\x01\x00", to, &port].concat()).unwrap();
        assert_eq!(exact::<10>(&mut stream)[..2], [5, 0]);
        stream.write_all(get("/get").as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream).status, 200);
    }
    let seen = &origin.requests()[0];
    assert_eq!((seen.method.as_str(), seen.port), ("SOCKS5", Port::Socks));
    assert!(seen.target.starts_with("origin.test:"));
    for (to, code) in [(&b"\x03\x0bexample.com"[..], 4), (&b"\x09"[..], 8)] {
        let mut stream = connect(&origin, Port::Socks);
        stream.write_all(&[b"\x05\x01\x00\x05\x01\x00", to, &port].concat()).unwrap();
        assert_eq!(exact(&mut stream), [5, 0]);
        assert_eq!(exact::<10>(&mut stream)[..2], [5, code]);
    }
    let refused = origin.addr(Port::Refused).unwrap().port().to_be_bytes();
    let mut stream = connect(&origin, Port::Socks);
    stream
        .write_all(&[&b"\x05\x01\x00\x05\x01\x00\x01\x7f\0\0\x01"[..], &refused].concat())
        .unwrap();
    assert_eq!(exact::<12>(&mut stream)[2..4], [5, 5]);
}

#[test]
fn socks_5_checks_the_password() {
    let origin = origin();
    let port = http(&origin).to_be_bytes();
    let mut none = connect(&origin, Port::SocksAuth);
    none.write_all(b"\x05\x01\x00").unwrap();
    assert_eq!(exact(&mut none), [5, 0xff]);
    for (password, right) in [(&b"\x06secret"[..], true), (&b"\x05wrong"[..], false)] {
        let mut stream = connect(&origin, Port::SocksAuth);
        stream.write_all(b"\x05\x01\x02").unwrap();
        assert_eq!(exact(&mut stream), [5, 2]);
        stream.write_all(&[&b"\x01\x04user"[..], password].concat()).unwrap();
        assert_eq!(exact(&mut stream), [1, u8::from(!right)]);
        if right {
            stream.write_all(&[&b"\x05\x01\x00\x01\x7f\0\0\x01"[..], &port].concat()).unwrap();
            assert_eq!(exact::<10>(&mut stream)[..2], [5, 0]);
        } else {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
    }
}

#[test]
fn socks_4_and_4a_are_granted() {
    let origin = origin();
    let port = http(&origin).to_be_bytes();
    for (rest, version) in
        [(&b"\x7f\0\0\x01me\0"[..], "SOCKS4"), (&b"\0\0\0\x01me\0localhost\0"[..], "SOCKS4A")]
    {
        origin.reset();
        let mut stream = connect(&origin, Port::Socks);
        stream.write_all(&[&b"\x04\x01"[..], &port, rest].concat()).unwrap();
        assert_eq!(exact::<8>(&mut stream)[..2], [0, 0x5a]);
        stream.write_all(get("/get").as_bytes()).unwrap();
        assert_eq!(read_answer(&mut stream).status, 200);
        assert_eq!(origin.requests()[0].method, version);
    }
}

#[test]
fn proxies_can_be_broken_too() {
    let origin = origin();
    let mut stream = connect(&origin, Port::ProxyBroken);
    stream.write_all(b"CONNECT localhost:1 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut stream).status, 502);
    for port in [Port::ProxyStall, Port::SocksStall] {
        let mut stream = connect(&origin, port);
        stream.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
        stream.write_all(b"CONNECT localhost:1 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    drop(stream);
    eventually("none is left", || origin.open_connections() == 0);
}
