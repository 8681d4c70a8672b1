//! -v: what happens, told on the standard error.

use std::{fmt::Write, time::Duration};

use mimus::{ConnectionInfo, Fields, Hook, Observation, TlsInfo, Url, Version};

use super::{harmless, pretty::Palette, tell};
use crate::observe::{reason, version_name};

/// Tells what happens.
#[derive(Debug, Clone)]
pub(crate) struct Verbose {
    pub(crate) palette: Palette,
    pub(crate) show_secrets: bool,
}

/// Whether fields of this name carry what nobody else should see.
pub(crate) fn is_secret(name: &str) -> bool {
    const SECRET: [&str; 7] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
        "x-auth-token",
        "x-amz-security-token",
    ];
    SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

/// What is shown in the place of a secret. The scheme of credentials, and the name and attributes of
/// a cookie, are worth seeing and no secret.
pub(crate) fn without_secret(name: &str, value: &str) -> String {
    const HIDDEN: &str = "[hidden]";
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "authorization" | "proxy-authorization" => match value.split_once(' ') {
            Some((scheme, _)) => format!("{scheme} {HIDDEN}"),
            None => HIDDEN.to_owned(),
        },
        "set-cookie" => {
            let (pair, attributes) = value.split_at(value.find(';').unwrap_or(value.len()));
            format!("{}={HIDDEN}{attributes}", pair.split('=').next().unwrap_or_default())
        }
        "cookie" => {
            let names = value.split(';').map(|pair| pair.split('=').next().unwrap_or_default());
            names.map(|name| format!("{name}={HIDDEN}")).collect::<Vec<_>>().join(";")
        }
        _ => HIDDEN.to_owned(),
    }
}

/// The URL, without user name and password.
pub(crate) fn without_userinfo(url: &Url) -> Url {
    let mut url = url.clone();
    // These fail only where there is nothing to take out.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// The fields as HTTP/2 has them (RFC 9113 sections 8.2 and 8.3.1): names in lower case, and the host not
/// among them.
fn as_http2(fields: &Fields) -> Fields {
    let mut shown = Fields::new();
    for (name, value) in fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        // They were fields before.
        let _ = shown.append(&name.to_ascii_lowercase(), value);
    }
    shown
}

impl Verbose {
    /// A remark of our own.
    pub(crate) fn remark(&self, text: &str) {
        tell(&self.palette.quiet(&format!("* {text}")));
    }

    fn head(
        &self,
        mark: char,
        start_line: &str,
        status: Option<u16>,
        pseudo: &[(&str, &str)],
        fields: &Fields,
    ) {
        let mut lines = format!("{mark} {}\n", self.palette.start_line(start_line, status));
        for (name, value) in pseudo {
            let _ =
                writeln!(lines, "{mark} {}", self.palette.field(name, &harmless(value.as_bytes())));
        }
        for (name, value) in fields.iter() {
            let value = harmless(value);
            let value = match is_secret(name) && !self.show_secrets {
                true => without_secret(name, &value),
                false => value,
            };
            let _ = writeln!(lines, "{mark} {}", self.palette.field(name, &value));
        }
        lines.push(mark);
        tell(&lines);
    }

    fn connected(&self, what: &str, connection: &ConnectionInfo) {
        let peer = connection.peer.map_or("the Unix socket".to_owned(), |addr| addr.to_string());
        let local = connection.local.map(|addr| format!(" from {addr}")).unwrap_or_default();
        let dial = connection.dial;
        let phases = [
            ("resolved", dial.resolve),
            ("connected", dial.connect),
            ("tunnelled", dial.proxy),
            ("TLS", dial.tls),
        ];
        let phases: Vec<String> = phases
            .into_iter()
            .filter_map(|(phase, time)| time.map(|time| format!("{phase} in {}", millis(time))))
            .collect();
        let proxy =
            connection.proxy.as_ref().map(|p| format!(", the proxy {p}")).unwrap_or_default();
        self.remark(&format!("{what} to {peer}{proxy}{local}: {}", phases.join(", ")));
        if let Some(tls) = &connection.tls {
            self.remark(&tls_text(tls));
        }
    }
}

fn tls_text(tls: &TlsInfo) -> String {
    let mut text = format!("{}, {}", tls.version, tls.cipher);
    for part in [tls.group, tls.signature].into_iter().flatten() {
        let _ = write!(text, ", {part}");
    }
    if let Some(alpn) = &tls.alpn {
        let _ = write!(text, ", ALPN {}", harmless(alpn));
    }
    text += if tls.resumed { ", resumed session" } else { ", new session" };
    if tls.early_data {
        text += ", early data";
    }
    match tls.certificates.len() {
        0 => {}
        n => {
            let _ = write!(text, ", {n} certificate{}", if n == 1 { "" } else { "s" });
        }
    }
    text
}

impl Hook for Verbose {
    fn observe(&self, happened: &Observation<'_>) {
        match happened {
            Observation::Connected { connection } => self.connected("connection", connection),
            Observation::Preconnected { connection } => {
                self.connected("spare connection", connection);
            }
            Observation::Coalesced { connection } => {
                let peer = connection.peer.map(|addr| format!(" to {addr}")).unwrap_or_default();
                self.remark(&format!("the connection{peer} serves this host as well"));
            }
            Observation::Reused { connection } => {
                let peer = connection.peer.map(|addr| format!(" to {addr}")).unwrap_or_default();
                self.remark(&format!("the connection{peer} is used again"));
            }
            Observation::Sending { method, target, version, pseudo, fields, .. } => {
                let line = format!("{method} {target} {}", version_name(*version));
                match *version {
                    Version::HTTP_2 => self.head('>', &line, None, pseudo, &as_http2(fields)),
                    _ => self.head('>', &line, None, &[], fields),
                }
            }
            Observation::Informational { head } | Observation::Head { head, .. } => {
                let reason = harmless(reason(head));
                let status = head.status.as_u16();
                let line = format!("{} {status} {reason}", version_name(head.version));
                self.head('<', &line, Some(status), &[], &head.fields);
            }
            Observation::Redirecting { to, .. } => {
                self.remark(&format!("the redirect to {} is followed", without_userinfo(to)));
            }
            Observation::Retrying { error, after } => {
                let why = error.map_or("the status asks for it".to_owned(), |e| format!("{e:#}"));
                self.remark(&format!("another attempt in {}: {why}", millis(*after)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_the_rest_is_not() {
        let table = [
            ("Authorization", "Basic dTpw", "Basic [hidden]"),
            ("authorization", "dTpw", "[hidden]"),
            ("Cookie", "a=1; b=2", "a=[hidden]; b=[hidden]"),
            ("Set-Cookie", "a=1; Path=/; Secure", "a=[hidden]; Path=/; Secure"),
            ("X-Api-Key", "k k", "[hidden]"),
        ];
        for (name, value, expected) in table {
            assert!(is_secret(name));
            assert_eq!(without_secret(name, value), expected);
        }
        assert!(!is_secret("Accept"));
    }

    #[test]
    fn a_peer_cannot_drive_the_terminal() {
        assert_eq!(harmless(b"a\x1b[2Jb\r"), "a\\u{1b}[2Jb\\r");
        assert_eq!(harmless("é\t".as_bytes()), "é\t");
    }
}
