//! The handle of a running origin: its thread, its ports, what it has seen.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder as RuntimeBuilder, Handle};
use tokio::sync::oneshot;

use crate::bad_h2;
use crate::listen;
use crate::port::Port;
use crate::record::{Recorder, Seen, SeenConnection};
use crate::routes::auth::Nonces;
use crate::tls::{Authority, Identity};

/// What the origin allows its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a connection may wait for its next request.
    pub(crate) idle: Duration,
    /// How long one exchange may take.
    pub(crate) exchange: Duration,
    /// How many connections may be open at once.
    pub(crate) connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(300),
            exchange: Duration::from_secs(900),
            connections: 32_768,
        }
    }
}

/// What all connections of one origin share.
pub(crate) struct Shared {
    pub(crate) recorder: Recorder,
    pub(crate) limits: Limits,
    pub(crate) authority: Authority,
    pub(crate) nonces: Nonces,
    pub(crate) proxy_user: String,
    pub(crate) proxy_password: String,
    pub(crate) open: AtomicUsize,
    pub(crate) last_conn: AtomicU64,
    accepted: Mutex<HashMap<Port, u64>>,
}

impl Shared {
    pub(crate) fn count(&self, port: Port) {
        *lock(&self.accepted).entry(port).or_default() += 1;
    }
}

/// A panic under one of these locks leaves a map that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How an [`Origin`] is to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    http: SocketAddr,
    https: SocketAddr,
    unix: Option<PathBuf>,
    proxy_user: String,
    proxy_password: String,
    limits: Limits,
}

impl Default for Builder {
    fn default() -> Self {
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Self {
            http: any,
            https: any,
            unix: None,
            proxy_user: "user".to_owned(),
            proxy_password: "secret".to_owned(),
            limits: Limits::default(),
        }
    }
}

impl Builder {
    /// Where [`Port::Http`] listens; a loopback address. Default: any port of 127.0.0.1.
    #[must_use]
    pub fn http(mut self, addr: SocketAddr) -> Self {
        self.http = addr;
        self
    }

    /// Where [`Port::Https`] listens; a loopback address. Default: any port of 127.0.0.1.
    #[must_use]
    pub fn https(mut self, addr: SocketAddr) -> Self {
        self.https = addr;
        self
    }

    /// The path of the Unix socket. Default: one in a new directory, removed at the end.
    #[must_use]
    pub fn unix(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix = Some(path.into());
        self
    }

    /// The credentials [`Port::ProxyAuth`] and [`Port::SocksAuth`] want.
    /// Default: `user` and `secret`.
    #[must_use]
    pub fn proxy_auth(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.proxy_user = user.into();
        self.proxy_password = password.into();
        self
    }

    /// How long a connection may wait for its next request. Default: 300 s.
    #[must_use]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.limits.idle = time;
        self
    }

    /// How many connections may be open at once; more wait in the listen queue.
    /// Default: 32 768.
    #[must_use]
    pub fn max_connections(mut self, count: usize) -> Self {
        self.limits.connections = count;
        self
    }

    /// Starts the origin on a thread of its own. Blocks for some milliseconds, and may be
    /// called from any thread, inside or outside of any runtime.
    ///
    /// # Errors
    /// When a port cannot be bound, an address is not a loopback one, or the thread or the
    /// certificates cannot be made.
    pub fn start(self) -> io::Result<Origin> {
        let shared = Arc::new(Shared {
            recorder: Recorder::default(),
            limits: self.limits,
            authority: Authority::new()?,
            nonces: Nonces::default(),
            proxy_user: self.proxy_user,
            proxy_password: self.proxy_password,
            open: AtomicUsize::new(0),
            last_conn: AtomicU64::new(0),
            accepted: Mutex::default(),
        });
        let (dir, unix_path) = match self.unix {
            Some(path) => (None, path),
            None => {
                let dir = tempfile::Builder::new().prefix("mimus-origin-").tempdir()?;
                let path = dir.path().join("origin.sock");
                (Some(dir), path)
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, tell) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("mimus-origin".to_owned())
            .spawn(move || run(&told, stopped))?;
        let handle = tell.recv().map_err(io::Error::other)??;
        let origin = Origin {
            shared,
            handle,
            ports: Mutex::default(),
            bad_h2: Mutex::default(),
            unix_path,
            dir,
            stop: Some(stop),
            thread: Some(thread),
        };
        origin.open(Port::Http, self.http)?;
        origin.open(Port::Https, self.https)?;
        listen::open_unix(&origin.shared, &origin.handle, &origin.unix_path)?;
        Ok(origin)
    }
}

/// The origin's thread. The runtime is made and dropped here, because neither may happen
/// inside of another one.
fn run(told: &mpsc::Sender<io::Result<Handle>>, stopped: oneshot::Receiver<()>) {
    let runtime = match RuntimeBuilder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // The starter waits for this and nothing else.
            let _ = told.send(Err(error));
            return;
        }
    };
    if told.send(Ok(runtime.handle().clone())).is_ok() {
        // An order to stop is the handle's end; either result means that.
        let _ = runtime.block_on(stopped);
    }
}

/// A running origin. Dropping it ends its thread, its ports and its connections.
pub struct Origin {
    shared: Arc<Shared>,
    handle: Handle,
    ports: Mutex<HashMap<Port, SocketAddr>>,
    /// The rows of misbehaviour over HTTP/2 that are open, without and with TLS.
    bad_h2: Mutex<HashMap<(&'static str, bool), SocketAddr>>,
    unix_path: PathBuf,
    /// Holds the directory of the Unix socket until the end.
    dir: Option<tempfile::TempDir>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Origin").field("ports", &*lock(&self.ports)).finish_non_exhaustive()
    }
}

impl Origin {
    /// How an origin is to be started; every choice has a default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts an origin with the defaults.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub fn start() -> io::Result<Self> {
        Builder::default().start()
    }

    fn open(&self, port: Port, addr: SocketAddr) -> io::Result<SocketAddr> {
        let mut ports = lock(&self.ports);
        if let Some(&addr) = ports.get(&port) {
            return Ok(addr);
        }
        let addr = listen::open(&self.shared, &self.handle, port, addr)?;
        ports.insert(port, addr);
        Ok(addr)
    }

    /// The address of a port, which is opened if it is not yet. The same port number is
    /// open on 127.0.0.1 and, where the machine has it, on ::1.
    ///
    /// # Errors
    /// When it cannot be opened; [`io::ErrorKind::Unsupported`] for [`Port::Unix`] and
    /// [`Port::BadH2`].
    pub fn addr(&self, port: Port) -> io::Result<SocketAddr> {
        if matches!(port, Port::Unix | Port::BadH2) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.open(port, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
    }

    /// Where a row of [`bad_h2`](crate::bad_h2) listens, with TLS (ALPN h2) or, by prior knowledge,
    /// without; opened if it is not yet. Its connections are counted as those of [`Port::BadH2`].
    ///
    /// # Errors
    /// When it cannot be opened; [`io::ErrorKind::NotFound`] when there is no such row.
    pub fn bad_h2(&self, name: &str, tls: bool) -> io::Result<SocketAddr> {
        let row = bad_h2::find(name).ok_or(io::ErrorKind::NotFound)?;
        let mut rows = lock(&self.bad_h2);
        if let Some(&addr) = rows.get(&(row.name.as_str(), tls)) {
            return Ok(addr);
        }
        let addr = listen::open_bad_h2(&self.shared, &self.handle, row, tls)?;
        rows.insert((&row.name, tls), addr);
        Ok(addr)
    }

    /// The URL of a row of [`bad_h2`](crate::bad_h2).
    ///
    /// # Errors
    /// As [`Origin::bad_h2`].
    pub fn bad_h2_url(&self, name: &str, tls: bool) -> io::Result<String> {
        let at = self.bad_h2(name, tls)?;
        Ok(if tls { format!("https://localhost:{}/", at.port()) } else { format!("http://{at}/") })
    }

    /// The URL of `path` on a port: `http://127.0.0.1:…` or, with TLS, `https://localhost:…`,
    /// so that a server name is sent.
    ///
    /// # Errors
    /// As [`Origin::addr`].
    pub fn url(&self, port: Port, path: &str) -> io::Result<String> {
        let at = self.addr(port)?;
        Ok(if port.is_tls() {
            format!("https://localhost:{}{path}", at.port())
        } else {
            format!("http://{at}{path}")
        })
    }

    fn opened_at(&self, port: Port) -> u16 {
        // `start` opens the two it is used for, or fails.
        lock(&self.ports).get(&port).map_or(0, SocketAddr::port)
    }

    /// The URL of `path` over TCP without TLS.
    pub fn http_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.opened_at(Port::Http))
    }

    /// The URL of `path` over TLS with the right certificate.
    pub fn https_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.opened_at(Port::Https))
    }

    /// Where the Unix socket is.
    pub fn unix_path(&self) -> &Path {
        &self.unix_path
    }

    /// The certificate authority that signed the certificates, PEM.
    pub fn ca_pem(&self) -> String {
        self.shared.authority.ca_pem()
    }

    /// A client certificate that [`Port::TlsClientCert`] accepts.
    pub fn client_identity(&self) -> &Identity {
        self.shared.authority.client()
    }

    /// Every connection since the start or the last reset, oldest first.
    pub fn connections(&self) -> Vec<SeenConnection> {
        self.shared.recorder.connections()
    }

    /// Every request since the start or the last reset, in the order its head was complete.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.recorder.requests()
    }

    /// How many connections are open now, from accept to close.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::Acquire)
    }

    /// How many connections a port has accepted since the start or the last reset.
    pub fn accepted(&self, port: Port) -> u64 {
        lock(&self.shared.accepted).get(&port).copied().unwrap_or(0)
    }

    /// Forgets everything seen. Open connections stay open, and keep their numbers.
    pub fn reset(&self) {
        self.shared.recorder.reset();
        lock(&self.shared.accepted).clear();
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has already been printed by its own thread.
            let _ = thread.join();
        }
        if self.dir.is_none() {
            // Someone else may have removed it already.
            let _ = std::fs::remove_file(&self.unix_path);
        }
    }
}
