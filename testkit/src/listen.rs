//! Listeners: from a port of the table to connections being served.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as StdListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::bad::tcp;
use crate::bad_h2::{self, BadH2};
use crate::conn::{About, Conn, FIRST_READ, Fate};
use crate::h2;
use crate::io::Io;
use crate::origin::Shared;
use crate::port::Port;
use crate::proxy::{http as http_proxy, socks};
use crate::record::{SeenConnection, SeenTls};
use crate::serve::serve;
use crate::tls;

/// The listen queue.
const BACKLOG: i32 = 4096;
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// Opens a port of the table and serves it until the runtime ends.
pub(crate) fn open(
    shared: &Arc<Shared>,
    handle: &Handle,
    port: Port,
    addr: SocketAddr,
) -> io::Result<SocketAddr> {
    if !addr.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a loopback address"));
    }
    match port {
        Port::Refused => return tcp::refused(handle, addr),
        Port::NoAccept => return tcp::no_accept(handle, addr),
        _ => {}
    }
    let config = if port.is_tls() { Some(shared.authority.server_config(port)?) } else { None };
    let door = Door::new(shared, port, config);
    open_both(handle, addr, &door)
}

/// Opens a row of misbehaviour over HTTP/2, on any port.
pub(crate) fn open_bad_h2(
    shared: &Arc<Shared>,
    handle: &Handle,
    row: &'static BadH2,
    tls: bool,
) -> io::Result<SocketAddr> {
    let config = if tls { Some(shared.authority.server_config(Port::H2)?) } else { None };
    let mut door = Door::new(shared, Port::BadH2, config);
    door.row = Some((row, Arc::default()));
    open_both(handle, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), &door)
}

fn open_both(handle: &Handle, addr: SocketAddr, door: &Door) -> io::Result<SocketAddr> {
    let (first, second) = bind_both(addr)?;
    let bound = first.local_addr()?;
    for listener in [Some(first), second].into_iter().flatten() {
        handle.spawn(accept_tcp(door.clone(), listener));
    }
    Ok(bound)
}

/// Opens the Unix socket.
pub(crate) fn open_unix(shared: &Arc<Shared>, handle: &Handle, path: &Path) -> io::Result<()> {
    let listener = StdUnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    handle.spawn(accept_unix(Door::new(shared, Port::Unix, None), listener));
    Ok(())
}

fn bind(addr: SocketAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Binds the address and, for one of IPv4, the same port of ::1 if the machine has IPv6.
fn bind_both(addr: SocketAddr) -> io::Result<(StdListener, Option<StdListener>)> {
    const TRIES: usize = 16;
    let mut tries = 0;
    loop {
        let first = bind(addr)?;
        if addr.is_ipv6() {
            return Ok((first, None));
        }
        let twin = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), first.local_addr()?.port());
        match bind(twin) {
            Ok(second) => return Ok((first, Some(second))),
            // Someone has that port on ::1: take another one, if any will do.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tries += 1;
                if addr.port() != 0 || tries == TRIES {
                    return Err(error);
                }
            }
            Err(_) => return Ok((first, None)),
        }
    }
}

/// What an accept loop hands to each connection.
#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    port: Port,
    config: Option<Arc<ServerConfig>>,
    gate: Arc<Semaphore>,
    /// The row of [`Port::BadH2`], and how many connections it has had.
    row: Option<(&'static BadH2, Arc<AtomicU64>)>,
}

async fn accept_tcp(door: Door, listener: StdListener) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok(permit) = Arc::clone(&door.gate).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for an ACK; a gone socket is found out by reading.
                let _ = stream.set_nodelay(true);
                let open = door.admit(Some(peer), permit);
                let row = door
                    .row
                    .as_ref()
                    .map(|(row, count)| (*row, count.fetch_add(1, Ordering::Relaxed) + 1));
                tokio::spawn(attend(open, stream, door.config.clone(), row));
            }
            Err(_) => breathe().await,
        }
    }
}

async fn accept_unix(door: Door, listener: StdUnixListener) {
    let Ok(listener) = UnixListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok(permit) = Arc::clone(&door.gate).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let open = door.admit(None, permit);
                tokio::spawn(async move {
                    let conn = open.conn(Box::new(stream), None);
                    serve(conn).await;
                });
            }
            Err(_) => breathe().await,
        }
    }
}

/// Accept fails when descriptors run out: wait for some to be freed instead of spinning.
async fn breathe() {
    sleep(Duration::from_millis(20)).await;
}

/// An accepted connection in the gauge and the record; its end is written on drop.
pub(crate) struct Open {
    pub(crate) shared: Arc<Shared>,
    pub(crate) port: Port,
    pub(crate) id: u64,
    peer: Option<SocketAddr>,
    _permit: OwnedSemaphorePermit,
}

impl Door {
    fn new(shared: &Arc<Shared>, port: Port, config: Option<Arc<ServerConfig>>) -> Self {
        let gate = Arc::new(Semaphore::new(shared.limits.connections));
        Self { shared: Arc::clone(shared), port, config, gate, row: None }
    }

    fn admit(&self, peer: Option<SocketAddr>, permit: OwnedSemaphorePermit) -> Open {
        let id = self.shared.last_conn.fetch_add(1, Ordering::Relaxed) + 1;
        self.shared.open.fetch_add(1, Ordering::AcqRel);
        self.shared.count(self.port);
        let seen =
            SeenConnection { conn: id, port: self.port, peer, tls: None, h2: None, closed: false };
        self.shared.recorder.opened(seen);
        Open { shared: Arc::clone(&self.shared), port: self.port, id, peer, _permit: permit }
    }
}

impl Open {
    pub(crate) fn about(&self, tls: Option<SeenTls>) -> Arc<About> {
        let shared = Arc::clone(&self.shared);
        Arc::new(About { id: self.id, port: self.port, peer: self.peer, tls, shared })
    }

    pub(crate) fn conn(&self, io: Box<dyn Io>, tls: Option<SeenTls>) -> Conn {
        let about = self.about(tls);
        Conn { io, inbox: BytesMut::new(), room: FIRST_READ, about, fate: Fate::Ordinary }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.recorder.update(self.id, |seen| seen.closed = true);
        self.shared.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What the port is for, done to one connection.
async fn attend(
    open: Open,
    stream: TcpStream,
    config: Option<Arc<ServerConfig>>,
    row: Option<(&'static BadH2, u64)>,
) {
    if tcp::is_faulty(open.port) {
        return tcp::misbehave(&open, stream).await;
    }
    let Some(conn) = ready(&open, stream, config).await else {
        return;
    };
    if let Some((row, nth)) = row {
        return bad_h2::serve(row, nth, conn.about, conn.io).await;
    }
    match open.port {
        Port::Proxy | Port::ProxyAuth | Port::ProxyTls | Port::ProxyStall | Port::ProxyBroken => {
            http_proxy::serve(conn).await;
        }
        Port::Socks | Port::SocksAuth | Port::SocksStall => socks::serve(conn).await,
        // With TLS it is the client's choice, where the port offers one (RFC 7301).
        Port::H2c => h2::serve(conn.about, conn.io).await,
        _ if chose_h2(&conn) => h2::serve(conn.about, conn.io).await,
        _ => serve(conn).await,
    }
}

fn chose_h2(conn: &Conn) -> bool {
    conn.about.tls.as_ref().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"))
}

/// The connection once its TLS handshake, if it has one, ended well.
async fn ready(open: &Open, stream: TcpStream, config: Option<Arc<ServerConfig>>) -> Option<Conn> {
    let Some(config) = config else {
        return Some(open.conn(Box::new(stream), None));
    };
    let accept = TlsAcceptor::from(config).accept(stream);
    let mut stream = timeout(HANDSHAKE, accept).await.ok()?.ok()?;
    let mut early = Vec::new();
    if let Some(mut data) = stream.get_mut().1.early_data() {
        // Bounded by the config's max_early_data_size; it lies in memory, so it cannot block.
        io::Read::read_to_end(&mut data, &mut early).ok()?;
    }
    let seen = tls::seen(stream.get_ref().1, early.len());
    open.shared.recorder.update(open.id, |conn| conn.tls = Some(seen.clone()));
    let mut conn = open.conn(Box::new(stream), Some(seen));
    conn.inbox.extend_from_slice(&early);
    Some(conn)
}
