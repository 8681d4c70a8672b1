//! The floor of HTTP/2 and gRPC: the preface once, the same header block for each request with the next
//! stream's number, and frames until one ends the stream.

mod alone;
mod block;
mod request;
mod shared;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};

use boring::ssl::{SslConnector, SslStream};
use mimus_bench_kit::{Ask, AsyncPeer, BlockingPeer, Job, PeerError, Protocol, Seen, Upload};
use tokio::{net::TcpStream, sync::OnceCell};

use alone::Alone;
use request::Request;
use shared::Shared;

use crate::socket::{Tls, at_once};

/// What is asked for, and over what: a connection that blocks.
pub struct Blocking {
    tls: Option<SslConnector>,
    protocol: Protocol,
    request: Option<Request>,
    connection: Option<BlockingConnection>,
}

enum BlockingConnection {
    Plain(Alone<std::net::TcpStream>),
    Tls(Box<Alone<Tls<SslStream<std::net::TcpStream>>>>),
}

impl Blocking {
    pub fn new(tls: Option<SslConnector>, protocol: Protocol) -> Self {
        Self { tls, protocol, request: None, connection: None }
    }

    fn connect(&self, request: &Request) -> Result<BlockingConnection, PeerError> {
        let plain = std::net::TcpStream::connect(&request.addresses[..])?;
        plain.set_nodelay(true)?;
        match (request.tls, &self.tls) {
            (false, _) => Ok(BlockingConnection::Plain(Alone::new(plain))),
            (true, Some(tls)) => {
                let socket = tls.connect(&request.host, plain).map_err(|e| e.to_string())?;
                Ok(BlockingConnection::Tls(Box::new(Alone::new(Tls::new(socket)))))
            }
            (true, None) => Err("https without --ca".into()),
        }
    }
}

impl BlockingPeer for Blocking {
    fn exchange(&mut self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let kept = self.request.take().filter(|request| request.is_for(ask.url, &ask.upload));
        let connection = if kept.is_some() { self.connection.take() } else { None };
        let request = match kept {
            Some(request) => request,
            None => Request::new(ask.url, &ask.upload, self.protocol)?,
        };
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.connect(&request)?,
        };
        match &mut connection {
            BlockingConnection::Plain(wire) => {
                at_once(wire.exchange(&request, ask.upload, ask.deliver, seen))?;
            }
            BlockingConnection::Tls(wire) => {
                at_once(wire.exchange(&request, ask.upload, ask.deliver, seen))?;
            }
        }
        self.request = Some(request);
        self.connection = Some(connection);
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        job.cold.then(|| "it is one connection".to_owned())
    }
}

/// On tokio: a connection of its own for one stream at a time, else one that all share.
#[derive(Clone)]
pub struct Awaited {
    tls: Option<SslConnector>,
    protocol: Protocol,
    alone: Arc<Mutex<Option<Box<Kept>>>>,
    together: Arc<OnceCell<(Request, Shared)>>,
}

/// What stays from one exchange to the next.
struct Kept {
    request: Request,
    connection: Connection,
}

enum Connection {
    Plain(Alone<TcpStream>),
    Tls(Alone<Tls<tokio_boring::SslStream<TcpStream>>>),
}

impl Awaited {
    pub fn new(tls: Option<SslConnector>, protocol: Protocol) -> Self {
        Self { tls, protocol, alone: Arc::default(), together: Arc::default() }
    }

    async fn connect(&self, request: &Request) -> Result<shared::Socket, PeerError> {
        let plain = TcpStream::connect(&request.addresses[..]).await?;
        plain.set_nodelay(true)?;
        match (request.tls, &self.tls) {
            (false, _) => Ok(shared::Socket::Plain(plain)),
            (true, Some(tls)) => {
                let socket = tokio_boring::connect(tls.configure()?, &request.host, plain);
                let socket = socket.await.map_err(|e| e.to_string())?;
                Ok(shared::Socket::Tls(Box::new(socket)))
            }
            (true, None) => Err("https without --ca".into()),
        }
    }

    async fn alone(&self, ask: &Ask<'_>) -> Result<Box<Kept>, PeerError> {
        let kept = self.alone.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(kept) = kept.filter(|kept| kept.request.is_for(ask.url, &ask.upload)) {
            return Ok(kept);
        }
        let request = Request::new(ask.url, &ask.upload, self.protocol)?;
        let connection = match self.connect(&request).await? {
            shared::Socket::Plain(socket) => Connection::Plain(Alone::new(socket)),
            shared::Socket::Tls(socket) => Connection::Tls(Alone::new(Tls::new(*socket))),
        };
        Ok(Box::new(Kept { request, connection }))
    }

    async fn together(&self, ask: &Ask<'_>) -> Result<(Request, Shared), PeerError> {
        let request = Request::new(ask.url, &ask.upload, self.protocol)?;
        let shared = Shared::new(self.connect(&request).await?);
        Ok((request, shared))
    }
}

impl AsyncPeer for Awaited {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        if ask.in_flight > 1 {
            let (request, shared) = self.together.get_or_try_init(|| self.together(&ask)).await?;
            if !request.is_for(ask.url, &ask.upload) {
                return Err("streams at a time all ask for the same".into());
            }
            return shared.exchange(request, ask.upload, seen).await;
        }
        let mut kept = self.alone(&ask).await?;
        let Kept { request, connection } = &mut *kept;
        match connection {
            Connection::Plain(wire) => {
                wire.exchange(request, ask.upload, ask.deliver, seen).await?;
            }
            Connection::Tls(wire) => {
                wire.exchange(request, ask.upload, ask.deliver, seen).await?;
            }
        }
        *self.alone.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        let sends = !matches!(job.upload, Upload::None) && !self.protocol.is_grpc();
        let long = sends || job.body > wire::READ as u64;
        match (job.cold, job.in_flight > 1 && long) {
            (true, _) => Some("it is one connection".to_owned()),
            (_, true) => Some("streams at a time are short ones".to_owned()),
            _ => None,
        }
    }
}
