//! Encrypted Client Hello: where its configuration comes from, and what one is.

use std::fmt;

use bytes::Bytes;

/// Where the keys come from that a ClientHello is encrypted with (RFC 9849), so that who listens on the way does
/// not see the host's name.
///
/// A server that has other keys by now is asked once more with those that it gives, over a new connection (RFC 9849
/// section 6.1.6), once its certificate is seen to be that of the name in the configuration. One that gives none is
/// an error: the name is not sent in the clear instead.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Ech {
    /// From nowhere: the name goes in the clear.
    Off,
    /// From the host's HTTPS record (RFC 9848), where there is one and the resolver can tell it. The system's resolver
    /// cannot.
    #[default]
    Record,
    /// These.
    Config(EchConfigList),
}

impl From<EchConfigList> for Ech {
    fn from(list: EchConfigList) -> Self {
        Ech::Config(list)
    }
}

/// An ECHConfigList (RFC 9849 section 4), as the `ech` of an HTTPS record has it, of which BoringSSL supports at least
/// one configuration.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EchConfigList(Bytes);

/// The version of a configuration, which is the code point of the extension.
const VERSION: u16 = 0xfe0d;
/// RFC 9180 section 7.1: DHKEM(P-256, HKDF-SHA256) and DHKEM(X25519, HKDF-SHA256).
const KEMS: [u16; 2] = [0x0010, 0x0020];
/// RFC 9180 section 7.2: HKDF-SHA256.
const KDF: u16 = 1;
/// RFC 9180 section 7.3: AES-128-GCM, AES-256-GCM, ChaCha20Poly1305.
const AEADS: [u16; 3] = [1, 2, 3];

impl EchConfigList {
    /// The list that these bytes are.
    ///
    /// # Errors
    /// [`EchConfigError`] when they are none, or there is nothing in it that BoringSSL supports.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, EchConfigError> {
        let bytes = bytes.into();
        match supported(&bytes) {
            None => Err(EchConfigError("it is no ECHConfigList")),
            Some(0) => Err(EchConfigError("none of its configurations is supported")),
            Some(_) => Ok(EchConfigList(bytes)),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EchConfigList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EchConfigList({} bytes)", self.0.len())
    }
}

/// Why bytes are no [`EchConfigList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EchConfigError(&'static str);

impl fmt::Display for EchConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the ECH configuration: {}", self.0)
    }
}

impl std::error::Error for EchConfigError {}

/// How many configurations of a list can be used; none when it is no list.
fn supported(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let mut list = take_vector(&mut rest)?;
    if !rest.is_empty() || list.is_empty() {
        return None;
    }
    let mut count = 0;
    while !list.is_empty() {
        let version = take_u16(&mut list)?;
        let contents = take_vector(&mut list)?;
        // Of another version nothing but its length is known.
        if version == VERSION && is_supported(contents)? {
            count += 1;
        }
    }
    Some(count)
}

/// Whether a configuration of our version can be used; none when it is none.
fn is_supported(mut contents: &[u8]) -> Option<bool> {
    let at = &mut contents;
    take(at, 1)?;
    let kem = take_u16(at)?;
    let key = take_vector(at)?;
    let mut suites = take_vector(at)?;
    take(at, 1)?;
    let name = take(at, 1)?[0];
    let name = take(at, name.into())?;
    let mut extensions = take_vector(at)?;
    if !at.is_empty() || key.is_empty() || suites.is_empty() || name.is_empty() {
        return None;
    }
    let mut known = false;
    while !suites.is_empty() {
        let (kdf, aead) = (take_u16(&mut suites)?, take_u16(&mut suites)?);
        known |= kdf == KDF && AEADS.contains(&aead);
    }
    let mut demands = false;
    while !extensions.is_empty() {
        // RFC 9849 section 4.2: with this bit, who does not know it leaves the configuration alone.
        demands |= take_u16(&mut extensions)? & 0x8000 != 0;
        take_vector(&mut extensions)?;
    }
    Some(KEMS.contains(&kem) && known && !demands)
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

fn take_u16(from: &mut &[u8]) -> Option<u16> {
    let taken = take(from, 2)?;
    Some(u16::from_be_bytes(taken.try_into().ok()?))
}

/// Bytes behind their length in two.
fn take_vector<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u16(from)?;
    take(from, length.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
    }

    fn config(version: u16, kem: u8, aead: u8, extension: &[u8]) -> Vec<u8> {
        let contents = [
            &[7, 0, kem][..],
            &vector(&[1; 32]),
            &vector(&[0, 1, 0, aead, 0, 9, 0, 9]),
            &[64, 3],
            b"a.b",
            &vector(extension),
        ];
        [&version.to_be_bytes()[..], &vector(&contents.concat())].concat()
    }

    fn answer(configs: &[Vec<u8>]) -> Result<(), &'static str> {
        EchConfigList::from_bytes(vector(&configs.concat())).map(drop).map_err(|error| error.0)
    }

    #[test]
    fn one_that_can_be_used_is_enough() {
        let good = config(VERSION, 0x20, 1, &[]);
        assert_eq!(answer(std::slice::from_ref(&good)), Ok(()));
        assert_eq!(answer(&[config(0xfe0c, 9, 9, &[]), good]), Ok(()));
        assert_eq!(answer(&[config(VERSION, 0x10, 3, &[0, 5, 0, 1, 9])]), Ok(()));
        for other in [
            config(0xfe0c, 0x20, 1, &[]),
            config(VERSION, 0x21, 1, &[]),
            config(VERSION, 0x20, 4, &[]),
            config(VERSION, 0x20, 1, &[0x80, 5, 0, 0]),
        ] {
            assert_eq!(answer(&[other]), Err("none of its configurations is supported"));
        }
    }

    #[test]
    fn anything_cut_off_or_longer_is_no_list() {
        let good = vector(&config(VERSION, 0x20, 1, &[0, 5, 0, 1, 9]));
        for end in 0..good.len() {
            assert!(EchConfigList::from_bytes(good[..end].to_vec()).is_err(), "{end}");
        }
        assert!(EchConfigList::from_bytes([&good[..], &[0]].concat()).is_err());
        assert!(EchConfigList::from_bytes(vec![0, 0]).is_err());
        // The lengths inside lie.
        for at in 4..good.len() - 1 {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            // It may be another list, but is read without harm.
            let _ = EchConfigList::from_bytes(bad);
        }
    }
}
