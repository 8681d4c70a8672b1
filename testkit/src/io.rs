//! One byte stream over TCP, TLS or a Unix socket, with the two rude ways to end it.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// What a connection is made of, seen from the layer that serves it.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send + Sync {
    /// Makes the coming `close(2)` send an RST instead of a FIN.
    fn reset_on_close(&self);

    /// Sends a FIN from under TLS: no close_notify is written (RFC 8446 section 6.1).
    fn finish_below_tls(&self) -> io::Result<()>;
}

impl Io for TcpStream {
    fn reset_on_close(&self) {
        // Fails only on a socket that is gone, and then there is nothing left to reset.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }

    fn finish_below_tls(&self) -> io::Result<()> {
        SockRef::from(self).shutdown(Shutdown::Write)
    }
}

impl Io for UnixStream {
    fn reset_on_close(&self) {}

    fn finish_below_tls(&self) -> io::Result<()> {
        SockRef::from(self).shutdown(Shutdown::Write)
    }
}

impl<T: Io> Io for TlsStream<T> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }

    fn finish_below_tls(&self) -> io::Result<()> {
        self.get_ref().0.finish_below_tls()
    }
}
