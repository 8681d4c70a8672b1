//! `client::conn::http1`: a connection for each exchange under way.

use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    client::conn::http1::{self, SendRequest},
    header::HOST,
    http::uri::{Authority, Scheme},
};
use hyper_util::rt::TokioIo;
use mimus_bench_kit::{Ask, Outgoing, PeerError, Seen};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Dialer, Socket, Upload, receive};

#[derive(Clone)]
pub struct Http1 {
    dialer: Dialer,
    cold: bool,
    idle: Arc<Mutex<Vec<Lane>>>,
}

/// A connection, and where it leads.
struct Lane {
    secure: bool,
    authority: Authority,
    sender: SendRequest<Upload>,
}

impl Http1 {
    pub fn new(dialer: Dialer, cold: bool) -> Self {
        Self { dialer, cold, idle: Arc::default() }
    }

    fn take(&self, uri: &Uri) -> Option<Lane> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(lane) = idle.pop() {
            if lane.leads_to(uri) && !lane.sender.is_closed() {
                return Some(lane);
            }
        }
        None
    }

    fn keep(&self, lane: Lane) {
        if !self.cold {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Lane, PeerError> {
        let authority = uri.authority().ok_or("the URL has no authority")?.clone();
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let sender = match self.dialer.connect(uri).await? {
            Socket::Plain(socket) => handshake(socket).await?,
            Socket::Tls(socket) => handshake(*socket).await?,
        };
        Ok(Lane { secure, authority, sender })
    }

    pub async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let uri: Uri = ask.url.parse()?;
        let mut lane = match self.take(&uri) {
            Some(lane) => lane,
            None => self.connect(&uri).await?,
        };
        let (method, body) = match ask.upload {
            Outgoing::None => (Method::GET, Upload::Left(Full::default())),
            Outgoing::Known(bytes) => (Method::POST, Upload::Left(Full::new(bytes))),
            Outgoing::Stream(pieces) => (Method::POST, Upload::Right(pieces)),
        };
        let request = Request::builder()
            .method(method)
            .uri(uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from))
            .header(HOST, lane.authority.as_str())
            .body(body)?;
        lane.sender.ready().await?;
        let response = lane.sender.send_request(request).await?;
        seen.status(response.status().as_u16());
        receive(response.into_body(), ask.deliver, seen).await?;
        self.keep(lane);
        Ok(())
    }
}

async fn handshake<S>(socket: S) -> Result<SendRequest<Upload>, PeerError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // What goes wrong in the task, the exchange gets to know as an error of its own.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}

impl Lane {
    fn leads_to(&self, uri: &Uri) -> bool {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        self.secure == secure && uri.authority() == Some(&self.authority)
    }
}
