//! The short texts that clients are known by.

use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest as _, Sha256};

use super::hello::ClientHello;
use super::http2::Frame;
use super::{ExtensionId, is_grease};

/// What a fingerprint is made of, and the short form that lists are searched by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fingerprint {
    /// In words and numbers.
    pub raw: String,
    /// The MD5 of that, in hexadecimal.
    pub hash: String,
}

impl Fingerprint {
    fn new(raw: String) -> Self {
        let hash = hex(&Md5::digest(&raw));
        Self { raw, hash }
    }
}

/// JA4 and its variants (FoxIO, `technical_details/JA4.md`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Ja4 {
    /// `JA4`: lists sorted and hashed.
    pub hash: String,
    /// `JA4_r`: lists sorted.
    pub raw: String,
    /// `JA4_o`: lists as sent, hashed.
    pub original_hash: String,
    /// `JA4_ro`: lists as sent.
    pub original_raw: String,
}

/// What the ClientHello came over: JA4's first letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TLS over TCP.
    Tcp,
    /// QUIC.
    Quic,
}

impl ClientHello {
    /// JA3: changes with every connection of a client that permutes its extensions.
    #[must_use]
    pub fn ja3(&self) -> Fingerprint {
        self.ja3_over(&self.extension_ids())
    }

    /// JA3 over sorted extensions.
    #[must_use]
    pub fn ja3n(&self) -> Fingerprint {
        let mut extensions = self.extension_ids();
        extensions.sort_unstable();
        self.ja3_over(&extensions)
    }

    fn ja3_over(&self, extensions: &[u16]) -> Fingerprint {
        Fingerprint::new(format!(
            "{},{},{},{},{}",
            self.legacy_version,
            decimals(known(&self.cipher_suites)),
            decimals(known(extensions)),
            decimals(known(self.groups())),
            decimals(self.point_formats()),
        ))
    }

    /// JA4. GREASE counts nowhere; where implementations differ (a GREASE signature algorithm), it
    /// does not count either.
    #[must_use]
    pub fn ja4(&self, transport: Transport) -> Ja4 {
        let ciphers: Vec<u16> = known(&self.cipher_suites).collect();
        let extensions: Vec<u16> = known(&self.extension_ids()).collect();
        let algorithms = hexes(known(self.signature_algorithms()));
        let front = self.ja4_front(transport, ciphers.len(), extensions.len());

        let (original_ciphers, original) = (hexes(ciphers.iter().copied()), &extensions);
        let original = with_algorithms(hexes(original.iter().copied()), &algorithms);
        let (mut ciphers, mut extensions) = (ciphers, extensions);
        ciphers.sort_unstable();
        extensions.sort_unstable();
        // What the server's name is, and whether there is one, says little of the client; ALPN stands
        // in front.
        extensions
            .retain(|&id| !matches!(ExtensionId(id), ExtensionId::SERVER_NAME | ExtensionId::ALPN));
        let (ciphers, sorted) = (hexes(ciphers), with_algorithms(hexes(extensions), &algorithms));
        Ja4 {
            hash: format!("{front}_{}_{}", sha12(&ciphers), sha12(&sorted)),
            raw: format!("{front}_{ciphers}_{sorted}"),
            original_hash: format!("{front}_{}_{}", sha12(&original_ciphers), sha12(&original)),
            original_raw: format!("{front}_{original_ciphers}_{original}"),
        }
    }

    fn ja4_front(&self, transport: Transport, ciphers: usize, extensions: usize) -> String {
        let transport = match transport {
            Transport::Tcp => 't',
            Transport::Quic => 'q',
        };
        let version = match self.version() {
            0x0304 => "13",
            0x0303 => "12",
            0x0302 => "11",
            0x0301 => "10",
            0x0300 => "s3",
            0x0002 => "s2",
            0xfeff => "d1",
            0xfefd => "d2",
            0xfefc => "d3",
            _ => "00",
        };
        let named = if self.extension(ExtensionId::SERVER_NAME).is_some() { 'd' } else { 'i' };
        let alpn = ja4_alpn(self.alpn().first().map_or(&[], |protocol| protocol));
        format!("{transport}{version}{named}{:02}{:02}{alpn}", ciphers.min(99), extensions.min(99))
    }

    /// The print of tls.peet.ws: GREASE is named where it stands, extensions are sorted as text.
    #[must_use]
    pub fn peetprint(&self) -> Fingerprint {
        let protocols: Vec<String> = self.alpn().iter().map(|name| peet_protocol(name)).collect();
        let mut extensions: Vec<String> =
            self.extension_ids().into_iter().map(named_grease).collect();
        extensions.sort_unstable();
        let greased = |numbers: &[u16]| joined(numbers.iter().copied().map(named_grease), '-');
        Fingerprint::new(
            [
                greased(self.versions()),
                protocols.join("-"),
                greased(self.groups()),
                greased(self.signature_algorithms()),
                decimals(self.psk_modes()),
                decimals(self.certificate_compression()),
                greased(&self.cipher_suites),
                extensions.join("-"),
            ]
            .join("|"),
        )
    }

    fn extension_ids(&self) -> Vec<u16> {
        self.extensions.iter().map(|extension| extension.id.0).collect()
    }
}

/// The first and the last character of the first protocol; of its hexadecimal form when either is
/// neither letter nor digit.
fn ja4_alpn(protocol: &[u8]) -> String {
    let (Some(&first), Some(&last)) = (protocol.first(), protocol.last()) else {
        return "00".to_owned();
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(first), char::from(last)].iter().collect();
    }
    format!("{:x}{:x}", first >> 4, last & 0xf)
}

fn with_algorithms(mut extensions: String, algorithms: &str) -> String {
    if !algorithms.is_empty() {
        extensions.push('_');
        extensions.push_str(algorithms);
    }
    extensions
}

fn peet_protocol(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    match &*text {
        "h2" => "2".to_owned(),
        "h3" => "3".to_owned(),
        other => other.strip_prefix("http/").unwrap_or(other).to_owned(),
    }
}

fn named_grease(number: u16) -> String {
    if is_grease(number) { "GREASE".to_owned() } else { number.to_string() }
}

/// What a connection of HTTP/2 begins with, as Akamai writes it down: SETTINGS, the connection's
/// WINDOW_UPDATE, PRIORITY frames, and the order of the first request's pseudo-fields.
#[must_use]
pub fn akamai(frames: &[Frame]) -> Fingerprint {
    let (mut settings, mut window, mut priorities, mut pseudo) = (None, None, vec![], None);
    for frame in frames {
        match frame {
            Frame::Settings { ack: false, settings: list } if settings.is_none() => {
                settings = Some(list.iter().map(|(id, value)| format!("{}:{value}", id.0)));
            }
            Frame::WindowUpdate { stream: 0, increment } if window.is_none() => {
                window = Some(increment.to_string());
            }
            Frame::Priority { stream, priority } => {
                let weight = u16::from(priority.weight) + 1;
                let exclusive = u8::from(priority.exclusive);
                priorities.push(format!("{stream}:{exclusive}:{}:{weight}", priority.depends_on));
            }
            Frame::Headers(block) => {
                let names = block.fields.iter().map(|field| &field.name);
                let letters = names.filter_map(|name| match &name[..] {
                    [b':', letter, ..] => Some(char::from(*letter)),
                    _ => None,
                });
                pseudo = Some(joined(letters, ','));
                break;
            }
            _ => {}
        }
    }
    if priorities.is_empty() {
        priorities.push("0".to_owned());
    }
    Fingerprint::new(format!(
        "{}|{}|{}|{}",
        settings.map(|settings| joined(settings, ';')).unwrap_or_default(),
        window.as_deref().unwrap_or("00"),
        priorities.join(","),
        pseudo.unwrap_or_default(),
    ))
}

/// Without GREASE.
fn known(numbers: &[u16]) -> impl Iterator<Item = u16> {
    numbers.iter().copied().filter(|&number| !is_grease(number))
}

fn decimals<T: std::fmt::Display>(numbers: impl IntoIterator<Item = T>) -> String {
    joined(numbers, '-')
}

fn hexes(numbers: impl IntoIterator<Item = u16>) -> String {
    joined(numbers.into_iter().map(|number| format!("{number:04x}")), ',')
}

fn joined<T: std::fmt::Display>(items: impl IntoIterator<Item = T>, between: char) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push(between);
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{item}");
    }
    text
}

/// The first twelve characters of the SHA-256; zeros for nothing, as JA4 has it.
fn sha12(text: &str) -> String {
    if text.is_empty() {
        return "000000000000".to_owned();
    }
    hex(&Sha256::digest(text)[..6])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
