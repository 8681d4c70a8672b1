//! What our patch adds to BoringSSL, as far as the BoringSSL of this build has it.
//!
//! boring-sys writes its bindings from the headers of the BoringSSL it links, wherever that is from: so
//! they have the patch's functions if, and only if, the library has them. [`PATCH`] takes them from
//! there, and stand-ins where there are none. It decides itself: there is no feature to forget, and
//! no build script that would have to look for the library in the same places as boring-sys.

use std::ffi::c_int;

use boring::{error::ErrorStack, ssl::SslRef};
use boring_sys::SSL;
use foreign_types::ForeignTypeRef as _;

/// Whether the BoringSSL of this build has Mimus's patch, without which it cannot send every
/// browser's ClientHello.
pub const BORINGSSL_IS_PATCHED: bool = PATCH.version == 2;

type SetList = unsafe extern "C" fn(*mut SSL, *const u16, usize) -> c_int;
type SetFlag = unsafe extern "C" fn(*mut SSL, c_int) -> c_int;

struct Patch {
    version: c_int,
    extension_order: SetList,
    advertised_groups: SetList,
    advertised_ciphers: SetList,
    advertised_versions: SetList,
    signature_algorithms: SetList,
    delegated_credentials: SetList,
    record_size_limit: unsafe extern "C" fn(*mut SSL, u16) -> c_int,
    ech_grease: unsafe extern "C" fn(*mut SSL, *const u16, usize, *const u16, usize) -> c_int,
    grease_sigalg: SetFlag,
    padding: SetFlag,
}

const PATCH: Patch = {
    // What a block imports goes before what is outside of it, also by a glob, if there is any.
    #[allow(unused_imports)]
    use boring_sys::*;
    Patch {
        version: MIMUS_CLIENT_HELLO,
        extension_order: SSL_mimus_set1_extension_order,
        advertised_groups: SSL_mimus_set1_advertised_groups,
        advertised_ciphers: SSL_mimus_set1_advertised_ciphers,
        advertised_versions: SSL_mimus_set1_advertised_versions,
        signature_algorithms: SSL_mimus_set1_signature_algorithms,
        delegated_credentials: SSL_mimus_set1_delegated_credential_prefs,
        record_size_limit: SSL_mimus_set_record_size_limit,
        ech_grease: SSL_mimus_set1_ech_grease,
        grease_sigalg: SSL_mimus_set_grease_sigalg,
        padding: SSL_mimus_set_padding,
    }
};

#[allow(unused_imports)]
use absent::*;

/// A BoringSSL without the patch: nothing can be set.
#[allow(dead_code, unused_imports, non_snake_case)]
mod absent {
    use super::{SSL, c_int};

    pub(super) const MIMUS_CLIENT_HELLO: c_int = 0;

    pub(super) unsafe extern "C" fn list(_: *mut SSL, _: *const u16, _: usize) -> c_int {
        0
    }

    pub(super) use list as SSL_mimus_set1_advertised_ciphers;
    pub(super) use list as SSL_mimus_set1_advertised_groups;
    pub(super) use list as SSL_mimus_set1_advertised_versions;
    pub(super) use list as SSL_mimus_set1_delegated_credential_prefs;
    pub(super) use list as SSL_mimus_set1_extension_order;
    pub(super) use list as SSL_mimus_set1_signature_algorithms;

    pub(super) unsafe extern "C" fn SSL_mimus_set_record_size_limit(_: *mut SSL, _: u16) -> c_int {
        0
    }

    pub(super) unsafe extern "C" fn SSL_mimus_set1_ech_grease(
        _: *mut SSL,
        _: *const u16,
        _: usize,
        _: *const u16,
        _: usize,
    ) -> c_int {
        0
    }

    pub(super) unsafe extern "C" fn flag(_: *mut SSL, _: c_int) -> c_int {
        0
    }

    pub(super) use flag as SSL_mimus_set_grease_sigalg;
    pub(super) use flag as SSL_mimus_set_padding;
}

type Done = Result<(), ErrorStack>;

/// BoringSSL's 1 and 0.
fn done(result: c_int) -> Done {
    if result == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

fn set_list(set: SetList, ssl: &mut SslRef, list: &[u16]) -> Done {
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the list lives through the call, which
    // copies it.
    done(unsafe { set(ssl.as_ptr(), list.as_ptr(), list.len()) })
}

/// Has the extensions follow `types` on each connection; those that are not sent are skipped, and
/// those that are not named come last, before `pre_shared_key`.
pub(super) fn set_extension_order(ssl: &mut SslRef, types: &[u16]) -> Done {
    set_list(PATCH.extension_order, ssl, types)
}

/// Appends `groups` to `supported_groups`, to be seen but never agreed to.
pub(super) fn set_advertised_groups(ssl: &mut SslRef, groups: &[u16]) -> Done {
    set_list(PATCH.advertised_groups, ssl, groups)
}

/// Appends `suites` to the cipher suites, to be seen but never agreed to.
pub(super) fn set_advertised_ciphers(ssl: &mut SslRef, suites: &[u16]) -> Done {
    set_list(PATCH.advertised_ciphers, ssl, suites)
}

/// Appends `versions` to `supported_versions`, to be seen but never agreed to.
pub(super) fn set_advertised_versions(ssl: &mut SslRef, versions: &[u16]) -> Done {
    set_list(PATCH.advertised_versions, ssl, versions)
}

/// Sends `schemes` as `signature_algorithms`, also those that BoringSSL does not know or that are
/// there twice.
pub(super) fn set_signature_algorithms(ssl: &mut SslRef, schemes: &[u16]) -> Done {
    set_list(PATCH.signature_algorithms, ssl, schemes)
}

/// Sends `delegated_credential` (RFC 9345) with `schemes`; what the server then presents is verified.
pub(super) fn set_delegated_credentials(ssl: &mut SslRef, schemes: &[u16]) -> Done {
    set_list(PATCH.delegated_credentials, ssl, schemes)
}

/// Sends `record_size_limit` (RFC 8449), 64 to 16385 bytes, and keeps to the server's. As a server,
/// answers a client that sends it. 0: neither.
pub(super) fn set_record_size_limit(ssl: &mut SslRef, limit: u16) -> Done {
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the call sets a number.
    done(unsafe { (PATCH.record_size_limit)(ssl.as_ptr(), limit) })
}

/// Draws the AEAD (of HPKE, RFC 9180 section 7.3) and the payload's length of GREASE ECH from these
/// lists; an empty one leaves the choice to BoringSSL.
pub(super) fn set_ech_grease(ssl: &mut SslRef, aeads: &[u16], payload_lengths: &[u16]) -> Done {
    // SAFETY: `ssl` is a live SSL that we hold exclusively; both lists live through the call, which
    // copies them.
    done(unsafe {
        (PATCH.ech_grease)(
            ssl.as_ptr(),
            aeads.as_ptr(),
            aeads.len(),
            payload_lengths.as_ptr(),
            payload_lengths.len(),
        )
    })
}

fn set_flag(set: SetFlag, ssl: &mut SslRef, on: bool) -> Done {
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the call sets a flag.
    done(unsafe { set(ssl.as_ptr(), c_int::from(on)) })
}

/// Whether GREASE, where it is on, has a value among the signature algorithms. It has by default.
pub(super) fn set_grease_sigalg(ssl: &mut SslRef, on: bool) -> Done {
    set_flag(PATCH.grease_sigalg, ssl, on)
}

/// Whether hellos of 256 to 511 bytes are padded (RFC 7685). They are not by default.
pub(super) fn set_padding(ssl: &mut SslRef, on: bool) -> Done {
    set_flag(PATCH.padding, ssl, on)
}

#[cfg(test)]
mod tests;
