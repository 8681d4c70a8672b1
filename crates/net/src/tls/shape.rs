//! A [`ClientHello`] told to BoringSSL: what [`hello`](super::hello) does for those who want one.

use std::ffi::c_int;

use boring::{
    error::ErrorStack,
    ssl::{SslContextBuilder, SslOptions, SslRef},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef as _;

use super::{
    ClientHello, ClientHelloError,
    client_hello::{
        CertificateCompression, EchGrease, Extension, ExtensionOrder, Group, SessionTicket,
    },
    compression,
};

/// The lengths of a GREASE ECH's payload that BoringSSL draws from.
const ECH_PAYLOADS: [u16; 4] = [144, 176, 208, 240];

/// What of `hello` this BoringSSL cannot send, if anything.
pub(super) fn check(hello: &ClientHello) -> Result<(), ClientHelloError> {
    for suite in &hello.cipher_suites {
        // SAFETY: the call looks a number up in a table.
        let cipher = unsafe { ffi::SSL_get_cipher_by_value(suite.0) };
        // Lists of TLS 1.2 are told by name.
        if cipher.is_null() || suite.name().is_none() {
            return Err(lacks("cipher_suites", suite));
        }
    }
    if let Some(group) = hello.groups.iter().find(|group| !implemented(**group)) {
        return Err(lacks("groups", group));
    }
    for (at, scheme) in hello.signature_algorithms.iter().enumerate() {
        // SAFETY: the call looks a number up in a table.
        let name = unsafe { ffi::SSL_get_signature_algorithm_name(scheme.0, 1) };
        if name.is_null() {
            return Err(lacks("signature_algorithms", scheme));
        }
        if hello.signature_algorithms[..at].contains(scheme) {
            return Err(lacks("signature_algorithms", &format!("a second {scheme}")));
        }
    }
    check_patched(hello)
}

/// What takes a patched BoringSSL, whatever the values.
fn check_patched(hello: &ClientHello) -> Result<(), ClientHelloError> {
    let ech = hello.ech_grease.as_ref();
    let stock_payloads = |ech: &EchGrease| {
        let same = |one: &[u16], other: &[u16]| one.iter().all(|length| other.contains(length));
        let lengths = &ech.payload_lengths;
        lengths.is_empty() || same(lengths, &ECH_PAYLOADS) && same(&ECH_PAYLOADS, lengths)
    };
    let grease = hello.signature_algorithms_grease;
    let needs = [
        ("extension_order", hello.extension_order != ExtensionOrder::Permuted),
        ("signature_algorithms_grease", grease.is_some_and(|grease| grease != hello.grease)),
        ("record_size_limit", hello.record_size_limit.is_some()),
        ("delegated_credentials", !hello.delegated_credentials.is_empty()),
        ("session_ticket", hello.session_ticket == SessionTicket::WithoutPsk),
        ("ech_grease.payload_lengths", !ech.is_none_or(stock_payloads)),
        (
            "ech_grease.payload_lengths_with_psk",
            ech.is_some_and(|ech| !ech.payload_lengths_with_psk.is_empty()),
        ),
        ("ech_grease.aeads", ech.is_some_and(|ech| !ech.aeads.is_empty())),
    ];
    match needs.into_iter().find(|(_, needed)| *needed) {
        Some((part, _)) => Err(unpatched(part, "cannot send it as asked")),
        None => Ok(()),
    }
}

fn lacks(part: &'static str, what: &dyn std::fmt::Display) -> ClientHelloError {
    unpatched(part, &format!("does not have {what}"))
}

fn unpatched(part: &'static str, what: &str) -> ClientHelloError {
    ClientHelloError::new(
        part,
        format!(
            "the BoringSSL of this build {what}; profiles of this kind need a build with patched \
             BoringSSL, see \"Building\" in Mimus's CONTRIBUTING.md"
        ),
    )
}

fn implemented(group: Group) -> bool {
    // SAFETY: the call looks a number up in a table.
    !unsafe { ffi::SSL_get_group_name(group.0) }.is_null()
}

/// BoringSSL's 1 and 0.
fn done(result: c_int) -> Result<(), ErrorStack> {
    if result == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// What all connections with this hello share, with `compression` for certificates.
pub(super) fn context(
    context: &mut SslContextBuilder,
    hello: &ClientHello,
    compression: &[CertificateCompression],
) -> Result<(), ErrorStack> {
    context.set_grease_enabled(hello.grease);
    context.set_permute_extensions(hello.extension_order == ExtensionOrder::Permuted);
    if hello.session_ticket == SessionTicket::Never {
        context.set_options(SslOptions::NO_TICKET);
    }
    if hello.signed_certificate_timestamps {
        context.enable_signed_cert_timestamps();
    }
    if hello.ocsp_stapling {
        context.enable_ocsp_stapling();
    }
    set_lists(context, hello)?;
    compression::register(context, compression)
}

/// Cipher suites, groups, signature algorithms, trust anchors.
fn set_lists(context: &mut SslContextBuilder, hello: &ClientHello) -> Result<(), ErrorStack> {
    let (tls13, others) = hello.suites();
    let names: Vec<_> = others.iter().filter_map(|suite| suite.name()).collect();
    if !names.is_empty() {
        context.set_strict_cipher_list(&names.join(":"))?;
    }
    let context = context.as_ptr();
    let tls13: Vec<u16> = tls13.iter().map(|suite| suite.0).collect();
    // SAFETY: `context` is a live SSL_CTX that we hold exclusively; the list lives through the call,
    // which copies it; null is no flags.
    done(unsafe {
        ffi::SSL_CTX_set1_tls13_ciphers(context, tls13.as_ptr(), std::ptr::null(), tls13.len())
    })?;
    let groups: Vec<u16> = hello.groups.iter().map(|group| group.0).collect();
    // SAFETY: as above.
    done(unsafe { ffi::SSL_CTX_set1_group_ids(context, groups.as_ptr(), groups.len()) })?;
    let schemes: Vec<u16> = hello.signature_algorithms.iter().map(|scheme| scheme.0).collect();
    // SAFETY: as above.
    done(unsafe {
        ffi::SSL_CTX_set_verify_algorithm_prefs(context, schemes.as_ptr(), schemes.len())
    })?;
    let Some(anchors) = &hello.trust_anchors else { return Ok(()) };
    let mut wire = Vec::new();
    for anchor in anchors {
        // A trust anchor has at most 255 bytes.
        wire.push(anchor.as_bytes().len() as u8);
        wire.extend_from_slice(anchor.as_bytes());
    }
    // SAFETY: as above.
    done(unsafe { ffi::SSL_CTX_set1_requested_trust_anchors(context, wire.as_ptr(), wire.len()) })
}

/// What is set for each connection, which offers `alpn`.
pub(super) fn connection(
    ssl: &mut SslRef,
    hello: &ClientHello,
    alpn: &[&[u8]],
) -> Result<(), ErrorStack> {
    let shares: Vec<u16> = hello.key_shares.iter().map(|group| group.0).collect();
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the list lives through the call, which
    // copies it.
    done(unsafe { ffi::SSL_set1_client_key_shares(ssl.as_ptr(), shares.as_ptr(), shares.len()) })?;
    ssl.set_enable_ech_grease(hello.ech_grease.is_some());
    let Some(alps) = &hello.application_settings else { return Ok(()) };
    let new = c_int::from(alps.code_point == Extension::ALPS);
    // SAFETY: as above; the call sets a flag.
    unsafe { ffi::SSL_set_alps_use_new_codepoint(ssl.as_ptr(), new) };
    for protocol in &alps.protocols {
        let (name, settings) = (protocol.name.as_bytes(), &protocol.settings.0);
        if alpn.contains(&name) {
            // SAFETY: as above, for both byte strings.
            done(unsafe {
                ffi::SSL_add_application_settings(
                    ssl.as_ptr(),
                    name.as_ptr(),
                    name.len(),
                    settings.as_ptr(),
                    settings.len(),
                )
            })?;
        }
    }
    Ok(())
}

/// What the server said by ALPS, once the handshake is done; none when it was not agreed on.
pub(super) fn peer_settings(ssl: &SslRef) -> Option<Vec<u8>> {
    // SAFETY: `ssl` is a live SSL; the call only reads.
    if unsafe { ffi::SSL_has_application_settings(ssl.as_ptr()) } == 0 {
        return None;
    }
    let (mut data, mut len) = (std::ptr::null(), 0);
    // SAFETY: as above; both places may be written to.
    unsafe { ffi::SSL_get0_peer_application_settings(ssl.as_ptr(), &mut data, &mut len) };
    if data.is_null() || len == 0 {
        return Some(Vec::new());
    }
    // SAFETY: BoringSSL owns `len` bytes there until `ssl` changes, and we hold it while we copy.
    Some(unsafe { std::slice::from_raw_parts(data, len) }.to_vec())
}
