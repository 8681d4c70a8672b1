//! The socket, its threads, and their end.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use mimus_net::tls::listen::{Acceptor, Authority};

use super::{Site, conn};

/// Connections at a time. More are closed at once.
const MAX_CONNECTIONS: usize = 256;

/// The wait after an error of `accept`, which comes when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// A bound socket, and who it is.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    local: SocketAddr,
    authority: Arc<Authority>,
    acceptor: Acceptor,
}

impl Listener {
    /// Listens at `addr`, as the server of `names` (hosts or addresses).
    ///
    /// # Errors
    /// When the address cannot be listened at, or a name cannot stand in a certificate.
    pub fn bind(addr: impl ToSocketAddrs, names: &[&str]) -> io::Result<Self> {
        Self::bind_with(addr, names, &["h2", "http/1.1"])
    }

    /// The same with these protocols of ALPN, the preferred one first.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_with(
        addr: impl ToSocketAddrs,
        names: &[&str],
        protocols: &[&str],
    ) -> io::Result<Self> {
        Self::bind_by(Arc::new(Authority::throwaway()?), addr, names, protocols)
    }

    /// Another one, whose certificate comes from the same authority.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn beside(
        &self,
        addr: impl ToSocketAddrs,
        names: &[&str],
        protocols: &[&str],
    ) -> io::Result<Self> {
        Self::bind_by(Arc::clone(&self.authority), addr, names, protocols)
    }

    fn bind_by(
        authority: Arc<Authority>,
        addr: impl ToSocketAddrs,
        names: &[&str],
        protocols: &[&str],
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(addr)?;
        let local = socket.local_addr()?;
        let acceptor = Acceptor::new(&authority, names, protocols)?;
        Ok(Listener { socket, local, authority, acceptor })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The certificate that clients have to trust, in PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &[u8] {
        self.authority.pem()
    }

    /// The SHA-256 of the server's public key, for Chromium's `--ignore-certificate-errors-spki-list`.
    #[must_use]
    pub fn spki_sha256(&self) -> [u8; 32] {
        self.acceptor.spki_sha256()
    }

    /// Serves `site` from threads of its own until the answer is dropped.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn serve(self, site: impl Site) -> io::Result<Serving> {
        let (local, site) = (self.local, Arc::new(site));
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let thread = thread::Builder::new().name("mimus-fingerprint".to_owned());
        let thread = thread.spawn(move || self.accept_all(&site, &flag))?;
        Ok(Serving { local, stopped, thread: Some(thread) })
    }

    fn accept_all(self, site: &Arc<impl Site>, stopped: &AtomicBool) {
        let acceptor = Arc::new(self.acceptor);
        let running = Arc::new(AtomicUsize::new(0));
        let mut number = 0;
        loop {
            let accepted = self.socket.accept();
            if stopped.load(Ordering::Acquire) {
                return;
            }
            let Ok((socket, peer)) = accepted else {
                thread::sleep(PAUSE);
                continue;
            };
            if running.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                continue;
            }
            let place = Place::take(&running);
            let (acceptor, site) = (acceptor.clone(), site.clone());
            // Without a thread the connection is closed, which is all that can be said.
            let _ = thread::Builder::new().spawn(move || {
                let seen = conn::watch(socket, peer, number, &acceptor, &*site);
                site.left(&seen);
                drop(place);
            });
            number += 1;
        }
    }
}

/// One of the connections at a time.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        Place(running.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listener at work. Dropping it closes the socket; connections that are open go on until their
/// clients leave.
#[derive(Debug)]
pub struct Serving {
    local: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves for as long as the process lives.
    pub fn forever(mut self) {
        if let Some(thread) = self.thread.take() {
            // It ends in no other way.
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        // What wakes a thread that accepts is a connection.
        let mut local = self.local;
        if local.ip().is_unspecified() {
            local.set_ip(match local {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            });
        }
        if TcpStream::connect_timeout(&local, Duration::from_secs(1)).is_ok() {
            let _ = thread.join();
        }
    }
}
