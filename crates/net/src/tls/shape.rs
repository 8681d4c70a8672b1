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
        CertificateCompression, CipherSuite, Extension, ExtensionOrder, Group, SessionTicket,
        SignatureScheme,
    },
    compression,
    patch::{self, BORINGSSL_IS_PATCHED},
};

/// The lengths of a GREASE ECH's payload that BoringSSL draws from.
const ECH_PAYLOADS: [u16; 4] = [144, 176, 208, 240];

/// Whether this BoringSSL can send `hello`, and if not, what of it.
pub(super) fn check(hello: &ClientHello) -> Result<(), ClientHelloError> {
    let (tls13, others) = hello.suites();
    if let Some(suite) = tls13.iter().find(|suite| !has_suite(**suite)) {
        return Err(never("cipher_suites", format!("BoringSSL lacks {suite}")));
    }
    if !others.is_empty() && known_suites(others).0.is_empty() {
        return Err(never("cipher_suites", "BoringSSL lacks the first one below TLS 1.3".into()));
    }
    if let Some(group) = hello.key_shares.iter().find(|group| !has_group(**group)) {
        return Err(never("key_shares", format!("BoringSSL lacks {group}")));
    }
    if known_groups(hello).0.is_empty() {
        return Err(never("groups", "BoringSSL lacks the first one".into()));
    }
    match beyond_stock(hello) {
        Some((part, what)) if !BORINGSSL_IS_PATCHED => Err(ClientHelloError::new(
            part,
            format!(
                "the BoringSSL of this build cannot send {what}: it lacks Mimus's patch, see \
                 \"Building\" in CONTRIBUTING.md"
            ),
        )),
        _ => Ok(()),
    }
}

fn never(part: &'static str, why: String) -> ClientHelloError {
    ClientHelloError::new(part, why)
}

/// The first part of `hello` that takes our patch, and what of it.
fn beyond_stock(hello: &ClientHello) -> Option<(&'static str, String)> {
    let (_, others) = hello.suites();
    if let [suite, ..] = known_suites(others).1 {
        return Some(("cipher_suites", suite.to_string()));
    }
    if let [group, ..] = known_groups(hello).1 {
        return Some(("groups", group.to_string()));
    }
    if let Some(scheme) = odd_scheme(&hello.signature_algorithms) {
        return Some(("signature_algorithms", scheme));
    }
    let ech = hello.ech_grease.clone().unwrap_or_default();
    let grease = hello.signature_algorithms_grease;
    let others = [
        ("advertised_versions", !hello.advertised_versions.is_empty()),
        ("extension_order", hello.extension_order != ExtensionOrder::Permuted),
        ("signature_algorithms_grease", grease.is_some_and(|grease| grease != hello.grease)),
        ("record_size_limit", hello.record_size_limit.is_some()),
        ("delegated_credentials", !hello.delegated_credentials.is_empty()),
        ("padding", hello.padding),
        ("ech_grease.payload_lengths", !stock_payloads(&ech.payload_lengths)),
        ("ech_grease.payload_lengths_with_psk", !stock_payloads(&ech.payload_lengths_with_psk)),
        ("ech_grease.aeads", !ech.aeads.is_empty()),
    ];
    let (part, _) = others.into_iter().find(|(_, beyond)| *beyond)?;
    Some((part, "it as asked".to_owned()))
}

fn stock_payloads(lengths: &[u16]) -> bool {
    let all = ECH_PAYLOADS.iter().all(|length| lengths.contains(length));
    lengths.is_empty() || all && lengths.iter().all(|length| ECH_PAYLOADS.contains(length))
}

/// A signature algorithm that BoringSSL lacks, or that is there twice.
fn odd_scheme(schemes: &[SignatureScheme]) -> Option<String> {
    schemes.iter().enumerate().find_map(|(at, scheme)| {
        // SAFETY: the call looks a number up in a table.
        let name = unsafe { ffi::SSL_get_signature_algorithm_name(scheme.0, 1) };
        if schemes[..at].contains(scheme) {
            return Some(format!("a second {scheme}"));
        }
        name.is_null().then(|| scheme.to_string())
    })
}

fn has_suite(suite: CipherSuite) -> bool {
    // SAFETY: the call looks a number up in a table.
    let cipher = unsafe { ffi::SSL_get_cipher_by_value(suite.0) };
    // Lists of TLS 1.2 are told by name.
    !cipher.is_null() && suite.name().is_some()
}

fn has_group(group: Group) -> bool {
    // SAFETY: the call looks a number up in a table.
    !unsafe { ffi::SSL_get_group_name(group.0) }.is_null()
}

/// The suites that can be agreed on, and those that can only be advertised: from the first that
/// BoringSSL lacks, because what is advertised goes behind the rest.
fn known_suites(suites: &[CipherSuite]) -> (&[CipherSuite], &[CipherSuite]) {
    suites.split_at(suites.iter().take_while(|suite| has_suite(**suite)).count())
}

/// The same of the groups.
fn known_groups(hello: &ClientHello) -> (&[Group], &[Group]) {
    let groups = &hello.groups;
    groups.split_at(groups.iter().take_while(|group| has_group(**group)).count())
}

fn codes<T: Copy + Into<u16>>(list: &[T]) -> Vec<u16> {
    list.iter().map(|code| (*code).into()).collect()
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
    let names: Vec<_> = known_suites(others).0.iter().filter_map(|suite| suite.name()).collect();
    if !names.is_empty() {
        context.set_strict_cipher_list(&names.join(":"))?;
    }
    let context = context.as_ptr();
    let tls13 = codes(tls13);
    // SAFETY: `context` is a live SSL_CTX that we hold exclusively; the list lives through the call,
    // which copies it; null is no flags.
    done(unsafe {
        ffi::SSL_CTX_set1_tls13_ciphers(context, tls13.as_ptr(), std::ptr::null(), tls13.len())
    })?;
    let groups = codes(known_groups(hello).0);
    // SAFETY: as above.
    done(unsafe { ffi::SSL_CTX_set1_group_ids(context, groups.as_ptr(), groups.len()) })?;
    if odd_scheme(&hello.signature_algorithms).is_none() {
        let schemes = codes(&hello.signature_algorithms);
        // SAFETY: as above.
        done(unsafe {
            ffi::SSL_CTX_set_verify_algorithm_prefs(context, schemes.as_ptr(), schemes.len())
        })?;
    }
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

/// What is set for each connection, which offers `alpn`, and a pre-shared key if `psk`.
pub(super) fn connection(
    ssl: &mut SslRef,
    hello: &ClientHello,
    alpn: &[&[u8]],
    psk: bool,
) -> Result<(), ErrorStack> {
    let shares = codes(&hello.key_shares);
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the list lives through the call, which
    // copies it.
    done(unsafe { ffi::SSL_set1_client_key_shares(ssl.as_ptr(), shares.as_ptr(), shares.len()) })?;
    ssl.set_enable_ech_grease(hello.ech_grease.is_some());
    if psk && hello.session_ticket == SessionTicket::WithoutPsk {
        // It is about the tickets of TLS 1.2 alone.
        ssl.set_options(SslOptions::NO_TICKET);
    }
    add_settings(ssl, hello, alpn)?;
    if beyond_stock(hello).is_some() { patched(ssl, hello, psk) } else { Ok(()) }
}

fn add_settings(ssl: &mut SslRef, hello: &ClientHello, alpn: &[&[u8]]) -> Result<(), ErrorStack> {
    let Some(alps) = &hello.application_settings else { return Ok(()) };
    let new = c_int::from(alps.code_point == Extension::ALPS);
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the call sets a flag.
    unsafe { ffi::SSL_set_alps_use_new_codepoint(ssl.as_ptr(), new) };
    for protocol in &alps.protocols {
        let (name, settings) = (protocol.name.as_bytes(), &protocol.settings.0);
        if alpn.contains(&name) {
            // SAFETY: as above; both byte strings live through the call, which copies them.
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

/// What takes our patch.
fn patched(ssl: &mut SslRef, hello: &ClientHello, psk: bool) -> Result<(), ErrorStack> {
    if let ExtensionOrder::Fixed(order) = &hello.extension_order {
        patch::set_extension_order(ssl, &codes(order))?;
    }
    patch::set_advertised_ciphers(ssl, &codes(known_suites(hello.suites().1).1))?;
    patch::set_advertised_groups(ssl, &codes(known_groups(hello).1))?;
    patch::set_advertised_versions(ssl, &codes(&hello.advertised_versions))?;
    if odd_scheme(&hello.signature_algorithms).is_some() {
        patch::set_signature_algorithms(ssl, &codes(&hello.signature_algorithms))?;
    }
    patch::set_grease_sigalg(ssl, hello.signature_algorithms_grease != Some(false))?;
    patch::set_delegated_credentials(ssl, &codes(&hello.delegated_credentials))?;
    patch::set_record_size_limit(ssl, hello.record_size_limit.unwrap_or(0))?;
    patch::set_padding(ssl, hello.padding)?;
    let Some(ech) = &hello.ech_grease else { return Ok(()) };
    let with_psk = psk && !ech.payload_lengths_with_psk.is_empty();
    let lengths = if with_psk { &ech.payload_lengths_with_psk } else { &ech.payload_lengths };
    patch::set_ech_grease(ssl, &codes(&ech.aeads), lengths)
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
