//! Ports that misbehave before HTTP begins.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::conn::After;
use crate::io::Io;
use crate::listen::Open;
use crate::port::Port;
use crate::serve::serve;

/// How long a silent port holds a connection whose client does not leave.
const HOLD: Duration = Duration::from_secs(900);
/// How long [`Port::SlowAccept`] lets a connection wait.
const SLOW: Duration = Duration::from_millis(500);

/// Whether the port misbehaves below HTTP.
pub(crate) fn is_faulty(port: Port) -> bool {
    matches!(
        port,
        Port::TlsReset
            | Port::TlsClose
            | Port::TlsGarbage
            | Port::TlsStall
            | Port::SlowAccept
            | Port::NeverRead
            | Port::ResetOnAccept
            | Port::CloseOnAccept
            | Port::SpeaksFirst
    )
}

/// Keeps sockets that are never served until the runtime ends.
fn keep(handle: &Handle, sockets: Vec<Socket>) {
    handle.spawn(async move {
        std::future::pending::<()>().await;
        drop(sockets);
    });
}

/// A port that is taken, so that nobody else gets it, and does not listen.
pub(crate) fn refused(handle: &Handle, addr: SocketAddr) -> io::Result<SocketAddr> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.bind(&addr.into())?;
    let bound = local(&socket)?;
    keep(handle, vec![socket]);
    Ok(bound)
}

/// A port whose listen queue is full: the kernel drops each further SYN.
pub(crate) fn no_accept(handle: &Handle, addr: SocketAddr) -> io::Result<SocketAddr> {
    // A queue of length 0 holds one connection; the rest make sure that it is full.
    const FILL: usize = 3;
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    socket.bind(&addr.into())?;
    socket.listen(0)?;
    let bound = local(&socket)?;
    let mut sockets = vec![socket];
    for _ in 0..FILL {
        let filler = Socket::new(Domain::for_address(bound), Type::STREAM, None)?;
        filler.set_nonblocking(true)?;
        // In progress for ever is what it is for.
        let _ = filler.connect(&bound.into());
        sockets.push(filler);
    }
    keep(handle, sockets);
    Ok(bound)
}

fn local(socket: &Socket) -> io::Result<SocketAddr> {
    let addr = socket.local_addr()?;
    addr.as_socket().ok_or_else(|| io::Error::other("not an address of the internet"))
}

/// Does to one connection what its port is for.
pub(crate) async fn misbehave(open: &Open, mut stream: TcpStream) {
    match open.port {
        Port::ResetOnAccept => stream.reset_on_close(),
        Port::NeverRead => never_read(&stream).await,
        Port::SlowAccept => {
            sleep(SLOW).await;
            serve(open.conn(Box::new(stream), None)).await;
        }
        Port::SpeaksFirst => {
            let early = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nx-early: 1\r\n\r\ntoo early";
            if stream.write_all(early).await.is_ok() {
                serve(open.conn(Box::new(stream), None)).await;
            }
        }
        Port::CloseOnAccept => open.conn(Box::new(stream), None).end(After::Close).await,
        port => in_handshake(port, stream).await,
    }
}

/// Holds the connection without a read until the client leaves, which epoll tells.
async fn never_read(stream: &TcpStream) {
    let left = async {
        while let Ok(ready) = stream.ready(Interest::READABLE).await {
            if ready.is_read_closed() {
                return;
            }
            // Unread bytes keep it ready: look again now and then.
            sleep(Duration::from_millis(20)).await;
        }
    };
    // Either end is an end.
    let _ = tokio::time::timeout(HOLD, left).await;
}

/// Reads the ClientHello, or what stands for it, and then does not shake hands.
async fn in_handshake(port: Port, mut stream: TcpStream) {
    let mut hello = [0; 16 * 1024];
    if !matches!(stream.read(&mut hello).await, Ok(1..)) {
        return;
    }
    match port {
        Port::TlsReset => stream.reset_on_close(),
        Port::TlsGarbage => {
            // The client is expected to break off, so failing to write or close is its answer.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nthis is not TLS\n").await;
            let _ = stream.shutdown().await;
            let _ = tokio::time::timeout(SLOW, stream.read(&mut hello)).await;
        }
        Port::TlsStall => {
            // Ends early when the client gives up.
            let _ = tokio::time::timeout(HOLD, async {
                while matches!(stream.read(&mut hello).await, Ok(1..)) {}
            })
            .await;
        }
        _ => {
            let _ = stream.shutdown().await;
        }
    }
}
