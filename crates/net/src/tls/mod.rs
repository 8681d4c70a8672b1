//! TLS on BoringSSL, as bytes in and bytes out.
//!
//! A [`TlsConfig`] says whom to trust and who we are; [`connect`] makes a handshake over any
//! [`Socket`] and gives back a [`Socket`], so TLS inside TLS (an HTTPS origin behind an HTTPS proxy)
//! is nothing special. BoringSSL never sees a file descriptor: it reads and writes memory, and the
//! socket below moves whole batches of records in one system call.

mod compression;
mod config;
mod early;
mod ech;
mod error;
mod hello;
#[cfg(feature = "listen")]
pub mod listen;
mod machine;
mod patch;
mod reuse;
mod roots;
mod session;
mod shape;
mod socket;

use crate::{
    DialError, DialErrorKind, Phase, Socket,
    dial::{Host, TlsPlan},
};
use machine::TlsMachine;

pub use config::{Roots, TlsConfig, TlsConfigBuilder, TlsConfigError};
pub use early::EarlyData;
pub use ech::{Ech, EchConfigError, EchConfigList};
pub use error::TlsError;
pub use mimus_proto::tls::{self as client_hello, ClientHello, ClientHelloError, TlsVersion};
pub use patch::BORINGSSL_IS_PATCHED;
pub use socket::TlsSocket;

/// What a handshake agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsInfo {
    /// `TLSv1.3`, `TLSv1.2`...
    pub version: &'static str,
    /// The cipher suite's IANA name.
    pub cipher: String,
    /// The key agreement group (`X25519`, `P-256`...).
    pub group: Option<&'static str>,
    /// How the peer signed the handshake (`ecdsa_secp256r1_sha256`...); `None` when resumed.
    pub signature: Option<&'static str>,
    /// The protocol chosen by ALPN.
    pub alpn: Option<Vec<u8>>,
    /// The peer's settings for the protocol, as they came by ALPS (draft-vvv-tls-alps): for `h2` frames
    /// such as SETTINGS and ACCEPT_CH. `None` when ALPS was not agreed on.
    pub application_settings: Option<Vec<u8>>,
    /// Whether the name travelled encrypted (RFC 9849).
    pub ech_accepted: bool,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Whether early data was accepted. `false` until the server has said so.
    pub early_data: bool,
    /// The peer's certificate chain, leaf first, each in DER.
    pub certificates: Vec<Vec<u8>>,
}

/// Makes TLS with `host` over `socket`, as `plan` says. `port` only tells the session cache two
/// servers of one host apart.
///
/// The socket's own deadline bounds the handshake. With [`TlsPlan::early_data`] and a session that
/// allows it, this returns before the server has answered, and the first writes travel as early data
/// (RFC 8446 section 2.3): the caller writes only what may safely be replayed, and learns from
/// [`TlsSocket::early_data`] what became of it.
///
/// # Errors
/// A [`DialError`] in [`Phase::Tls`]: `Certificate` with the reason when the peer
/// could not be verified, `Tls` for any other failure of the protocol, `Timeout` and `Io` as the
/// socket below failed, `Config` when the plan cannot be carried out.
pub async fn connect(
    socket: Box<dyn Socket>,
    plan: &TlsPlan,
    host: &Host,
    port: u16,
) -> Result<Box<dyn Socket>, DialError> {
    let ssl = hello::configure(plan, host, port)?;
    let mut socket = TlsSocket::new(socket, ssl, plan, host, port)?;
    socket.handshake().await?;
    Ok(Box::new(socket))
}

/// What [`connect`] would send first: the TLS records of a ClientHello. What a connection draws for
/// itself (keys, GREASE values, a permutation) is drawn anew at each call.
///
/// # Errors
/// A [`DialError`] of kind `Config` when the plan cannot be carried out.
pub fn first_flight(plan: &TlsPlan, host: &Host, port: u16) -> Result<Vec<u8>, DialError> {
    let failed = || {
        let detail = "no ClientHello could be made".to_owned();
        DialError::new(Phase::Tls, DialErrorKind::Config, detail)
    };
    let ssl = hello::configure(plan, host, port)?;
    let mut machine = TlsMachine::new(ssl).map_err(|error| failed().caused_by(error))?;
    match machine.handshake() {
        Ok(_) => Ok(machine.transmit().to_vec()),
        Err(error) => Err(failed().caused_by(error)),
    }
}
