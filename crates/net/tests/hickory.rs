//! The DNS resolver against a name server of our own, from every runtime.
#![cfg(all(feature = "hickory", feature = "smol"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    thread,
};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig},
    net::runtime::TokioRuntimeProvider,
};
use mimus_net::{
    dial::{HickoryResolver, Resolve},
    rt::Blocking,
};

const A: u16 = 1;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;

/// Answers A and AAAA queries for `both.test`, and ones for HTTPS records of some names; says nothing about `silent.test`, and knows no other
/// name. Returns its port.
fn name_server() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || -> io::Result<()> {
        let mut query = [0; 512];
        loop {
            let (n, from) = socket.recv_from(&mut query)?;
            if let Some(reply) = reply(&query[..n]) {
                socket.send_to(&reply, from)?;
            }
        }
    });
    port
}

/// RFC 1035 section 4.1: the question again, and an answer whose name points back to it.
fn reply(query: &[u8]) -> Option<Vec<u8>> {
    let name_len = query[12..].iter().position(|&b| b == 0)? + 1;
    let (name, rest) = query[12..].split_at(name_len);
    let kind = u16::from_be_bytes([rest[0], rest[1]]);
    let data: Vec<u8> = match (name, kind) {
        (b"\x04both\x04test\x00", A) => Ipv4Addr::LOCALHOST.octets().into(),
        (b"\x04both\x04test\x00", AAAA) => Ipv6Addr::LOCALHOST.octets().into(),
        (b"\x06silent\x04test\x00", _) => return None,
        (b"\x04both\x04test\x00", HTTPS) => service(1, b"\x00", &[(1, b"\x02h2"), (5, b"keys")]),
        (b"\x05_8443\x06_https\x04both\x04test\x00", HTTPS) => {
            service(1, b"\x04both\x04test\x00", &[(3, &8443_u16.to_be_bytes()), (5, b"others")])
        }
        (b"\x05_8444\x06_https\x04both\x04test\x00", HTTPS) => {
            service(1, b"\x00", &[(3, &9_u16.to_be_bytes()), (5, b"of another port")])
        }
        (b"\x05alias\x04test\x00", HTTPS) => service(0, b"\x04both\x04test\x00", &[]),
        (b"\x05other\x04test\x00", HTTPS) => service(1, b"\x04both\x04test\x00", &[(5, b"theirs")]),
        (b"\x06strict\x04test\x00", HTTPS) => {
            service(1, b"\x00", &[(0, &[0xff, 0]), (5, b"keys"), (0xff00, b"")])
        }
        (b"\x05plain\x04test\x00", HTTPS) => service(1, b"\x00", &[(1, b"\x02h2")]),
        _ => Vec::new(),
    };
    let (rcode, answers) = if data.is_empty() { (3, 0) } else { (0, 1) };
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, 0x80 | rcode, 0, 1, 0, answers, 0, 0, 0, 0]);
    reply.extend(name);
    reply.extend(&rest[..4]);
    if answers == 1 {
        reply.extend([0xc0, 12]);
        reply.extend(&rest[..4]);
        reply.extend(60u32.to_be_bytes());
        reply.extend((data.len() as u16).to_be_bytes());
        reply.extend(data);
    }
    Some(reply)
}

/// RFC 9460 section 2.2.
fn service(priority: u16, target: &[u8], params: &[(u16, &[u8])]) -> Vec<u8> {
    let mut data = [&priority.to_be_bytes()[..], target].concat();
    for (key, value) in params {
        data.extend(key.to_be_bytes());
        data.extend((value.len() as u16).to_be_bytes());
        data.extend(*value);
    }
    data
}

fn resolver(handle: tokio::runtime::Handle) -> HickoryResolver {
    let mut udp = ConnectionConfig::udp();
    udp.port = name_server();
    let server = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, vec![udp]);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    HickoryResolver::new(builder.build().unwrap(), handle)
}

async fn lookups(rt: support::Rt, resolver: HickoryResolver) {
    let mut ips = resolver.resolve("both.test.", &*rt).await.unwrap();
    ips.sort();
    assert_eq!(ips, [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
    let error = resolver.resolve("missing.test.", &*rt).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    for (name, port, keys) in [
        ("both.test.", 443, Some("keys")),
        ("both.test.", 8443, Some("others")),
        ("both.test.", 8444, None),
        ("both.test.", 8445, None),
        ("alias.test.", 443, None),
        ("other.test.", 443, None),
        ("strict.test.", 443, None),
        ("plain.test.", 443, None),
        ("missing.test.", 443, None),
    ] {
        let found = resolver.ech(name, port, &*rt).await.unwrap();
        assert_eq!(found.as_deref(), keys.map(str::as_bytes), "{name} {port}");
    }
}

#[test]
fn on_its_own_runtime_and_on_others() {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let resolver = resolver(tokio.handle().clone());
    support::smol(|rt| lookups(rt, resolver.clone()));
    support::blocking(|rt| lookups(rt, resolver.clone()));
    support::current_thread(|rt| lookups(rt, resolver.clone()));
    tokio.block_on(lookups(std::sync::Arc::new(Blocking), resolver));
}

#[test]
fn a_dropped_lookup_is_cancelled() {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let resolver = resolver(tokio.handle().clone());
    let lookup = resolver.resolve("silent.test.", &Blocking);
    let metrics = tokio.handle().metrics();
    assert!(metrics.num_alive_tasks() > 0);
    drop(lookup);
    drop(resolver);
    let patience = std::time::Instant::now() + support::ms(2_000);
    while metrics.num_alive_tasks() > 0 {
        assert!(std::time::Instant::now() < patience, "the lookup goes on");
        thread::sleep(support::ms(5));
    }
}
