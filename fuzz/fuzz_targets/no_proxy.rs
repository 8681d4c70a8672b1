//! A `NO_PROXY` list is the sum of its entries, whatever they are, and compares names without case.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::net::IpAddr;

use mimus_fuzz::{Choices, fuzz};
use mimus_net::dial::Host;
use mimus_net::proxy::no_proxy::NoProxy;

const PORTS: [u16; 3] = [80, 443, 8080];

fn hosts(choices: &mut Choices<'_>) -> Vec<Host> {
    let mut hosts = vec![Host::Name(choices.text())];
    let octets: [u8; 4] = std::array::from_fn(|_| choices.byte());
    hosts.push(Host::Addr(octets.into(), 0));
    let mapped = std::net::Ipv4Addr::from(octets).to_ipv6_mapped();
    hosts.push(Host::Addr(mapped.into(), 0));
    let octets: [u8; 16] = std::array::from_fn(|_| choices.byte());
    hosts.push(Host::Addr(octets.into(), 0));
    hosts
}

/// A name that stands in a list means itself and what is below it, and no more.
fn check_own(name: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if name.is_empty() || name.starts_with('.') || name.ends_with('.') || !name.bytes().all(plain) {
        return;
    }
    let list = NoProxy::parse(name);
    let matches = |name: String| list.matches(&Host::Name(name), 80);
    assert!(matches(name.to_owned()), "{name} is not itself");
    let is_address = name.parse::<IpAddr>().is_ok();
    assert_eq!(matches(format!("below.{name}")), !is_address);
    assert!(!matches(format!("beside{name}")));
    assert!(is_address || matches(format!("{name}.")), "the root's dot changes {name}");
}

fuzz!("no_proxy", |data| {
    let mut choices = Choices::new(data);
    let hosts = hosts(&mut choices);
    let (first, second) = (choices.text(), String::from_utf8_lossy(choices.rest()).into_owned());
    let both = NoProxy::parse(&format!("{first},{second}"));
    let shouted = NoProxy::parse(&second.to_ascii_uppercase());
    let everybody = NoProxy::parse(&format!("{first} *"));
    let (first, second) = (NoProxy::parse(&first), NoProxy::parse(&second));
    assert_eq!(both.is_empty(), first.is_empty() && second.is_empty());
    for port in PORTS {
        for host in &hosts {
            let matches = second.matches(host, port);
            assert_eq!(both.matches(host, port), first.matches(host, port) || matches);
            assert_eq!(shouted.matches(host, port), matches);
            assert!(everybody.matches(host, port));
        }
        // The same address in two notations.
        assert_eq!(second.matches(&hosts[1], port), second.matches(&hosts[2], port));
    }
    if let Host::Name(name) = &hosts[0] {
        check_own(name);
    }
});
