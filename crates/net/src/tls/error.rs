//! TLS failures as plain sentences.

use std::{cmp::Ordering, fmt, io, net::IpAddr};

use boring::{
    asn1::{Asn1Time, Asn1TimeRef},
    error::ErrorStack,
    nid::Nid,
    ssl::{Error, SslRef},
    x509::{X509NameRef, X509Ref, X509VerifyError},
};
use boring_sys as ffi;
use bytes::Bytes;

use super::EchConfigList;
use crate::{DialError, DialErrorKind, Phase};

/// How many of a certificate's names are worth listing.
const LISTED_NAMES: usize = 8;
/// How much of one name: the text is the peer's.
const NAME_CHARS: usize = 100;

/// Why TLS failed. It travels inside an [`io::Error`] once the connection is made.
#[derive(Debug)]
pub struct TlsError {
    kind: DialErrorKind,
    detail: String,
    source: Option<ErrorStack>,
    ech_retry: Option<EchConfigList>,
}

impl TlsError {
    /// [`DialErrorKind::Certificate`], or [`DialErrorKind::Tls`].
    pub fn kind(&self) -> DialErrorKind {
        self.kind
    }

    fn protocol(detail: impl Into<String>, source: Option<ErrorStack>) -> Self {
        TlsError { kind: DialErrorKind::Tls, detail: detail.into(), source, ech_retry: None }
    }

    /// What BoringSSL said of the connection with `peer` while it was in the handshake.
    pub(super) fn handshake(peer: &str, ssl: &SslRef, error: &Error) -> Self {
        if has_reason(error, ffi::SSL_R_CERTIFICATE_VERIFY_FAILED) {
            let reason = match ssl.verify_result() {
                Err(reason) => certificate(ssl, reason),
                Ok(()) => "it could not be verified".to_owned(),
            };
            return TlsError {
                kind: DialErrorKind::Certificate,
                detail: format!("the certificate of {peer} is not accepted: {reason}"),
                source: None,
                ech_retry: None,
            };
        }
        if has_reason(error, ffi::SSL_R_ECH_REJECTED) {
            return TlsError::ech_rejected(peer, ssl);
        }
        TlsError::of_stack(peer, error)
    }

    /// The server has other keys, or none; that it is who it has to be is known.
    fn ech_rejected(peer: &str, ssl: &SslRef) -> Self {
        let given = ssl.get_ech_retry_configs().map(Bytes::copy_from_slice);
        let given = given.and_then(|list| EchConfigList::from_bytes(list).ok());
        let why = match given {
            Some(_) => "its keys have changed",
            None => "it gives no keys to encrypt it with",
        };
        let detail = format!("{peer} refused the encrypted ClientHello: {why}");
        TlsError { ech_retry: given, ..TlsError::protocol(detail, None) }
    }

    /// What BoringSSL said of the connection with `peer`, whenever it was.
    pub(super) fn of_stack(peer: &str, error: &Error) -> Self {
        if let Some(alert) = peer_alert(error) {
            let hint = match alert {
                70 => ": it supports no TLS version that we allow",
                116 => ": it wants a client certificate",
                120 => ": it speaks none of the protocols offered by ALPN",
                _ => "",
            };
            let name = alert_name(alert);
            return TlsError::protocol(
                format!("{peer} sent the alert {name} ({alert}){hint}"),
                None,
            );
        }
        let not_tls = [
            ffi::SSL_R_WRONG_VERSION_NUMBER,
            ffi::SSL_R_HTTP_REQUEST,
            ffi::SSL_R_HTTPS_PROXY_REQUEST,
            ffi::SSL_R_INVALID_OUTER_RECORD_TYPE,
        ];
        let detail = if not_tls.iter().any(|reason| has_reason(error, *reason)) {
            format!("what {peer} sent is not TLS")
        } else if has_reason(error, ffi::SSL_R_UNSUPPORTED_PROTOCOL) {
            format!("{peer} chose a TLS version that we do not allow")
        } else if has_reason(error, ffi::SSL_R_NO_SHARED_CIPHER) {
            // A client's only by our patch.
            format!("{peer} chose a cipher suite that is only advertised: BoringSSL has none such")
        } else if has_reason(error, ffi::SSL_R_NO_SHARED_GROUP) {
            format!("{peer} asked for a group that is only advertised: BoringSSL has none such")
        } else {
            format!("{peer} broke the TLS protocol")
        };
        TlsError::protocol(detail, error.ssl_error().cloned())
    }

    /// The server answered rejected early data with another protocol than the one it was written in.
    pub(super) fn alpn_changed(peer: &str) -> Self {
        TlsError::protocol(
            format!("{peer} rejected the early data and changed the ALPN protocol"),
            None,
        )
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|stack| stack as _)
    }
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// A failed handshake with `peer` as the dialler reports it.
pub(super) fn dial_error(peer: &str, error: io::Error) -> DialError {
    if !error.get_ref().is_some_and(|inner| inner.is::<TlsError>()) {
        return DialError::io(Phase::Tls, format!("with {peer}"), error);
    }
    match error.downcast::<TlsError>() {
        Ok(TlsError { kind, detail, source, ech_retry }) => {
            let error = DialError::new(Phase::Tls, kind, detail).with_ech_retry(ech_retry);
            match source {
                Some(source) => error.caused_by(source),
                None => error,
            }
        }
        Err(error) => DialError::io(Phase::Tls, format!("with {peer}"), error),
    }
}

fn ssl_reasons(error: &Error) -> impl Iterator<Item = i32> {
    let errors = error.ssl_error().map(ErrorStack::errors).unwrap_or_default();
    errors.iter().filter_map(|error| error.library_reason(ffi::ERR_LIB_SSL))
}

fn has_reason(error: &Error, reason: i32) -> bool {
    ssl_reasons(error).any(|found| found == reason)
}

/// The fatal alert that the peer sent, if that is what happened.
pub(super) fn peer_alert(error: &Error) -> Option<u8> {
    ssl_reasons(error).find_map(|reason| u8::try_from(reason - ffi::SSL_AD_REASON_OFFSET).ok())
}

/// RFC 8446 section 6, and the older ones that servers still send.
fn alert_name(alert: u8) -> &'static str {
    match alert {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => "of an unknown kind",
    }
}

/// Why the peer's certificate was not accepted; "it" is that certificate.
fn certificate(ssl: &SslRef, reason: X509VerifyError) -> String {
    let leaf = ssl.peer_certificate();
    let leaf = leaf.as_deref();
    match reason {
        X509VerifyError::CERT_HAS_EXPIRED => {
            out_of_date(ssl, "expired on", X509Ref::not_after, Ordering::Less)
        }
        X509VerifyError::CERT_NOT_YET_VALID => {
            out_of_date(ssl, "is not valid before", X509Ref::not_before, Ordering::Greater)
        }
        X509VerifyError::HOSTNAME_MISMATCH | X509VerifyError::IP_ADDRESS_MISMATCH => {
            other_name(leaf)
        }
        X509VerifyError::DEPTH_ZERO_SELF_SIGNED_CERT => self_signed(),
        X509VerifyError::SELF_SIGNED_CERT_IN_CHAIN => {
            "the root that its chain ends in is not trusted".to_owned()
        }
        X509VerifyError::UNABLE_TO_GET_ISSUER_CERT
        | X509VerifyError::UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        | X509VerifyError::UNABLE_TO_VERIFY_LEAF_SIGNATURE => {
            // One that may not sign certificates is not even looked at as its own issuer.
            if leaf.is_some_and(is_own_issuer) {
                return self_signed();
            }
            let issuer = leaf.map_or_else(String::new, |leaf| common_name(leaf.issuer_name()));
            format!("its issuer{issuer} is not trusted, or the server left out a link to the root")
        }
        X509VerifyError::CERT_SIGNATURE_FAILURE => {
            "it bears the name of a trusted issuer, but not its signature".to_owned()
        }
        other => other.error_string().to_owned(),
    }
}

fn self_signed() -> String {
    "it is self-signed, and not one of the trusted ones".to_owned()
}

fn is_own_issuer(certificate: &X509Ref) -> bool {
    let issuer = certificate.issuer_name().to_der();
    issuer.is_ok() && issuer.ok() == certificate.subject_name().to_der().ok()
}

/// Which certificate of the chain has a date on the wrong side of now.
fn out_of_date(
    ssl: &SslRef,
    verb: &str,
    date: fn(&X509Ref) -> &Asn1TimeRef,
    wrong: Ordering,
) -> String {
    let now = Asn1Time::days_from_now(0).ok();
    let is_wrong = |certificate: &X509Ref| {
        now.as_ref().is_some_and(|now| date(certificate).compare(now).is_ok_and(|o| o == wrong))
    };
    let mut chain = ssl.peer_cert_chain().into_iter().flatten().enumerate();
    match chain.find(|(_, certificate)| is_wrong(certificate)) {
        Some((0, leaf)) => format!("it {verb} {}", date(leaf)),
        Some((_, issuer)) => {
            let name = common_name(issuer.subject_name());
            format!("the certificate of its issuer{name} {verb} {}", date(issuer))
        }
        None => format!("a certificate of its chain {verb} a date that it does not tell"),
    }
}

fn other_name(leaf: Option<&X509Ref>) -> String {
    let names = leaf.and_then(X509Ref::subject_alt_names);
    let names: Vec<String> = names
        .iter()
        .flatten()
        .filter_map(|name| {
            let ip = || name.ipaddress().and_then(ip_address).map(|ip| ip.to_string());
            name.dnsname().map(printable).or_else(ip)
        })
        .collect();
    let more = match names.len().saturating_sub(LISTED_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match names.as_slice() {
        [] => "it names no host".to_owned(),
        names => {
            let listed = &names[..names.len().min(LISTED_NAMES)];
            format!("it is for {}{more}", listed.join(", "))
        }
    }
}

fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// ` "the common name"`, or nothing.
fn common_name(name: &X509NameRef) -> String {
    let entry = name.entries_by_nid(Nid::COMMONNAME).next();
    let text = entry.and_then(|entry| entry.data().as_utf8().ok());
    text.map_or_else(String::new, |text| format!(" \"{}\"", printable(&text)))
}

/// The peer's text made fit for a terminal and a log line.
fn printable(text: &str) -> String {
    text.chars().take(NAME_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_certificate_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(printable(&"x".repeat(1000)).len(), NAME_CHARS);
    }

    #[test]
    fn addresses_come_in_two_lengths() {
        assert_eq!(ip_address(&[127, 0, 0, 1]), Some("127.0.0.1".parse().unwrap()));
        let mut v6 = [0; 16];
        v6[15] = 1;
        assert_eq!(ip_address(&v6), Some("::1".parse().unwrap()));
        assert_eq!(ip_address(&[1, 2, 3]), None);
    }
}
