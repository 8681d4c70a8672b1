//! Stands in for what `tls` and `proxy` bring; goes when they come.

use std::net::IpAddr;

use super::{Host, TlsPlan};
use crate::{DialError, DialErrorKind, Phase, Socket, proxy::Proxy};

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

pub(super) mod tls {
    use super::*;

    pub(in crate::dial) async fn connect(
        _: Box<dyn Socket>,
        _: &TlsPlan,
        _: &Host,
        _: u16,
    ) -> Result<Box<dyn Socket>, DialError> {
        Err(DialError::new(
            Phase::Tls,
            DialErrorKind::Config,
            "this build has no TLS",
        ))
    }
}

pub(super) mod proxy {
    use super::*;

    pub(in crate::dial) async fn tunnel(
        _: &Proxy,
        _: Box<dyn Socket>,
        _: &Host,
        _: u16,
        _: Option<IpAddr>,
    ) -> Result<Box<dyn Socket>, DialError> {
        Err(DialError::new(
            Phase::Proxy,
            DialErrorKind::Config,
            "this build has no proxies",
        ))
    }
}
