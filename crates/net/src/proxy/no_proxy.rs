//! `NO_PROXY`: whom to reach directly.
//!
//! curl's rules: entries are separated by commas or spaces; `*` alone is everybody; `example.com` and
//! `.example.com` are that name and every name below it; an address is that address, `10.0.0.0/8` a
//! network; `host:port` holds for that port only. Names compare without case and final dot.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::dial::Host;

/// A parsed list. What is not understood matches nobody.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NoProxy {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rule {
    whom: Whom,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whom {
    Everybody,
    /// In lower case, without dots at its ends.
    Domain(String),
    Network(IpNet),
}

impl NoProxy {
    /// The rules in `list`. Never fails: a list is often shared with programs that know other rules.
    pub fn parse(list: &str) -> Self {
        let entries = list.split([',', ' ', '\t', '\n', '\r']);
        NoProxy { rules: entries.filter(|entry| !entry.is_empty()).filter_map(rule).collect() }
    }

    /// Whether `host` at `port` is to be reached directly.
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        let ip = match host {
            Host::Addr(ip, _) => Some(*ip),
            Host::Name(name) => name.parse().ok(),
        };
        let ip = ip.map(|ip: IpAddr| ip.to_canonical());
        self.rules.iter().filter(|rule| rule.port.is_none_or(|own| own == port)).any(|rule| match (
            &rule.whom, host, ip,
        ) {
            (Whom::Everybody, _, _) => true,
            (Whom::Network(network), _, Some(ip)) => network.contains(&ip),
            (Whom::Domain(domain), Host::Name(name), None) => is_below(name, domain),
            _ => false,
        })
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

fn rule(entry: &str) -> Option<Rule> {
    // A bare IPv6 address has colons of its own.
    if let Some(network) = network(entry) {
        return Some(Rule { whom: Whom::Network(network), port: None });
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (entry, None),
    };
    if host == "*" {
        return Some(Rule { whom: Whom::Everybody, port });
    }
    if let Some(network) = network(host) {
        return Some(Rule { whom: Whom::Network(network), port });
    }
    let domain = host.trim_matches('.').to_ascii_lowercase();
    let usable = !domain.is_empty() && !domain.contains([':', '/', '*', '[', ']']);
    usable.then_some(Rule { whom: Whom::Domain(domain), port })
}

/// An address, with or without brackets, or a network.
fn network(text: &str) -> Option<IpNet> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some(IpNet::from(ip.to_canonical()));
    }
    text.parse().ok()
}

fn is_below(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).as_bytes();
    let domain = domain.as_bytes();
    match name.len().checked_sub(domain.len()) {
        None => false,
        Some(0) => name.eq_ignore_ascii_case(domain),
        Some(at) => name[at - 1] == b'.' && name[at..].eq_ignore_ascii_case(domain),
    }
}
