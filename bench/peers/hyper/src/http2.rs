//! `client::conn::http2`: one connection, whose sender is cloned for each exchange.

use std::sync::Arc;

use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mimus_bench_kit::{Ask, Outgoing, PeerError, Seen};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::OnceCell,
};

use crate::{Dialer, Socket, Upload, receive};

/// What `best` lets the server send in one frame over HTTP/2.
const FRAME: u32 = 64 << 10;

#[derive(Clone)]
pub struct Http2 {
    dialer: Dialer,
    connection: Arc<OnceCell<SendRequest<Upload>>>,
}

impl Http2 {
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer, connection: Arc::default() }
    }

    async fn connect(&self, uri: &Uri) -> Result<SendRequest<Upload>, PeerError> {
        match self.dialer.connect(uri).await? {
            Socket::Plain(socket) => self.handshake(socket).await,
            Socket::Tls(socket) => self.handshake(*socket).await,
        }
    }

    async fn handshake<S>(&self, socket: S) -> Result<SendRequest<Upload>, PeerError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new(TokioExecutor::new());
        if self.dialer.best {
            builder.max_frame_size(FRAME);
        }
        let (sender, connection) = builder.handshake(TokioIo::new(socket)).await?;
        // What goes wrong in the task, the exchange gets to know as an error of its own.
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok(sender)
    }

    pub async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let uri: Uri = ask.url.parse()?;
        let connect = || self.connect(&uri);
        let mut connection = self.connection.get_or_try_init(connect).await?.clone();
        let (method, body) = match ask.upload {
            Outgoing::None => (Method::GET, Upload::Left(Full::default())),
            Outgoing::Known(bytes) => (Method::POST, Upload::Left(Full::new(bytes))),
            Outgoing::Stream(pieces) => (Method::POST, Upload::Right(pieces)),
        };
        let request = Request::builder().method(method).uri(uri).body(body)?;
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        seen.status(response.status().as_u16());
        receive(response.into_body(), ask.deliver, seen).await
    }
}
