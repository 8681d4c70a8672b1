//! Early data (0-RTT, RFC 8446 section 2.3): the calls that the safe wrapper lacks.

use boring::ssl::SslRef;
use foreign_types::ForeignTypeRef as _;

/// What became of early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyData {
    /// None was offered: it was not asked for, or no session allowed it.
    #[default]
    NotOffered,
    /// Offered, and the server has not answered.
    Pending,
    /// The server took it.
    Accepted,
    /// The server refused it; what had been written was sent again after the handshake.
    Rejected,
}

/// Lets `ssl` offer early data, if its session allows it.
pub(super) fn enable(ssl: &mut SslRef) {
    // SAFETY: `ssl` is a live SSL that we hold exclusively; the call sets a flag.
    unsafe { boring_sys::SSL_set_early_data_enabled(ssl.as_ptr(), 1) }
}

/// Whether writes now would travel as early data.
pub(super) fn in_progress(ssl: &SslRef) -> bool {
    // SAFETY: `ssl` is a live SSL; the call only reads.
    unsafe { boring_sys::SSL_in_early_data(ssl.as_ptr()) != 0 }
}

/// Whether the server took the early data. Meaningful after the handshake.
pub(super) fn accepted(ssl: &SslRef) -> bool {
    // SAFETY: `ssl` is a live SSL; the call only reads.
    unsafe { boring_sys::SSL_early_data_accepted(ssl.as_ptr()) != 0 }
}

/// Goes on with the handshake after the server refused the early data. Only to be called when
/// BoringSSL has just said so (`SSL_ERROR_EARLY_DATA_REJECTED`): it aborts the process otherwise.
pub(super) fn reset_rejected(ssl: &mut SslRef) {
    // SAFETY: `ssl` is a live SSL that we hold exclusively, stopped at the rejection.
    unsafe { boring_sys::SSL_reset_early_data_reject(ssl.as_ptr()) }
}
