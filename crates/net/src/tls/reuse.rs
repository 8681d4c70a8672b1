//! Whether a connection that stands may serve another host than the one it was made for.

use boring::{
    error::ErrorStack,
    stack::Stack,
    x509::{X509, X509StoreContext, X509StoreContextRef},
};
use foreign_types::ForeignTypeRef as _;

use super::{
    TlsConfig, TlsInfo,
    hello::{Peer, expect_peer},
};
use crate::dial::Host;

impl TlsConfig {
    /// Whether its connections may serve several hosts at all: it verifies who is at the other end, and does
    /// not say who we are, which each host may have its own wish about.
    pub fn may_span_hosts(&self) -> bool {
        let settings = self.settings();
        settings.verify_certificate && settings.verify_hostname && settings.identity.is_none()
    }

    /// Whether the certificates that a connection made with this configuration came with would be accepted
    /// on a new one to `host`. They are verified anew: name, chain and time (RFC 9113 section 9.1.1 asks
    /// for every check that a new connection makes). Never, unless it [may](Self::may_span_hosts).
    pub fn accepts_for(&self, host: &Host, shown: &TlsInfo) -> bool {
        let Ok(peer) = Peer::of(host) else { return false };
        self.may_span_hosts() && self.verifies(&peer, shown).unwrap_or(false)
    }

    fn verifies(&self, peer: &Peer, shown: &TlsInfo) -> Result<bool, ErrorStack> {
        let context = self.context(&[]).map_err(Clone::clone)?;
        let mut certificates = shown.certificates.iter().map(|der| X509::from_der(der));
        let Some(leaf) = certificates.next().transpose()? else { return Ok(false) };
        let mut issuers = Stack::new()?;
        for issuer in certificates {
            issuers.push(issuer?)?;
        }
        X509StoreContext::new()?.init(context.cert_store(), &leaf, &issuers, |verifying| {
            as_server(verifying)?;
            expect_peer(verifying.verify_param_mut(), peer)?;
            verifying.verify_cert()
        })
    }
}

/// Asks for what a handshake asks of a server's certificate: the safe wrapper has no call for it.
fn as_server(verifying: &mut X509StoreContextRef) -> Result<(), ErrorStack> {
    // SAFETY: `verifying` is a live context that was initialised and that we hold exclusively; the name is
    // a constant that ends in NUL, and is only read.
    let known = unsafe {
        boring_sys::X509_STORE_CTX_set_default(verifying.as_ptr(), c"ssl_server".as_ptr())
    };
    if known == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}
