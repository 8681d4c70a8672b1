//! The h2 crate alone: one connection, driven by a task of its own as its documentation shows, and a
//! stream of it for each exchange. gRPC is written by hand on top.

mod call;

use std::{future::poll_fn, pin::pin, process::ExitCode, sync::Arc};

use bytes::Bytes;
use futures_core::Stream;
use h2::{
    RecvStream, SendStream,
    client::{Builder, SendRequest},
};
use http::{Method, Request, Uri, uri::Scheme};
use mimus_bench_grpc::Codec;
use mimus_bench_kit::{
    Ask, AsyncPeer, Config, Deliver, Job, Outgoing, PeerError, Protocol, Seen, Setup, locked,
    run_async,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

const CONFIGS: &[Config] = &[
    Config {
        name: "default",
        about: "client::Builder as it comes (windows of 64 KiB), tokio's TcpStream",
    },
    Config {
        name: "best",
        about: "hyper's windows (2 MiB, 5 MiB on the connection), frames of 64 KiB, TCP_NODELAY",
    },
];

/// What `best` lets the server send unasked, and in one frame.
const WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;
const FRAME: u32 = 64 << 10;

#[derive(Clone)]
struct H2 {
    protocol: Protocol,
    best: bool,
    tls: TlsConnector,
    connection: Arc<OnceCell<SendRequest<Bytes>>>,
}

impl H2 {
    fn new(setup: &Setup) -> Result<Self, PeerError> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
            roots.add(root?)?;
        }
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self {
            protocol: setup.protocol,
            best: setup.config == "best",
            tls: Arc::new(tls).into(),
            connection: Arc::default(),
        })
    }

    /// The connection, opened by the first exchange.
    async fn connection(&self, uri: &Uri) -> Result<SendRequest<Bytes>, PeerError> {
        let connection = self.connection.get_or_try_init(|| self.connect(uri)).await?;
        Ok(connection.clone().ready().await?)
    }

    async fn connect(&self, uri: &Uri) -> Result<SendRequest<Bytes>, PeerError> {
        let authority = uri.authority().ok_or("the URL has no authority")?;
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tcp = TcpStream::connect((authority.host(), port)).await?;
        if self.best {
            tcp.set_nodelay(true)?;
        }
        if !secure {
            return self.handshake(tcp).await;
        }
        let name = ServerName::try_from(authority.host().to_owned())?;
        self.handshake(self.tls.connect(name, tcp).await?).await
    }

    async fn handshake<S>(&self, socket: S) -> Result<SendRequest<Bytes>, PeerError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new();
        if self.best {
            builder.initial_window_size(WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
            builder.max_frame_size(FRAME);
        }
        let (sender, connection) = builder.handshake(socket).await?;
        // What goes wrong in the task, the exchange gets to know as an error of its own.
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok(sender)
    }
}

impl AsyncPeer for H2 {
    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self.protocol {
            Protocol::GrpcProst => return self.call(ask, Codec::Prost, seen).await,
            Protocol::GrpcJson => return self.call(ask, Codec::Json, seen).await,
            _ => {}
        }
        let uri: Uri = ask.url.parse()?;
        let mut connection = self.connection(&uri).await?;
        let (method, end) = match &ask.upload {
            Outgoing::None => (Method::GET, true),
            Outgoing::Known(_) | Outgoing::Stream(_) => (Method::POST, false),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if let Outgoing::Known(bytes) = &ask.upload {
            request = request.header("content-length", bytes.len());
        }
        let (response, mut body) = connection.send_request(request.body(())?, end)?;
        match ask.upload {
            Outgoing::None => {}
            Outgoing::Known(bytes) => body.send_data(bytes, true)?,
            Outgoing::Stream(pieces) => {
                let mut pieces = pin!(pieces);
                while let Some(piece) = poll_fn(|cx| pieces.as_mut().poll_next(cx)).await {
                    send(&mut body, piece?).await?;
                }
                body.send_data(Bytes::new(), true)?;
            }
        }
        let response = response.await?;
        seen.status(response.status().as_u16());
        receive(response.into_body(), ask.deliver, seen).await
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        match self.protocol {
            Protocol::Http1 => Some("it speaks HTTP/2 only".to_owned()),
            _ if job.cold => Some("it is one connection".to_owned()),
            _ => None,
        }
    }
}

/// Sends `piece` as the windows permit.
async fn send(body: &mut SendStream<Bytes>, mut piece: Bytes) -> Result<(), PeerError> {
    while !piece.is_empty() {
        body.reserve_capacity(piece.len());
        let capacity = poll_fn(|cx| body.poll_capacity(cx)).await;
        let capacity = capacity.ok_or("the stream was closed within an upload")??;
        body.send_data(piece.split_to(capacity.min(piece.len())), false)?;
    }
    Ok(())
}

async fn receive(mut body: RecvStream, deliver: Deliver, seen: &mut Seen) -> Result<(), PeerError> {
    if deliver == Deliver::Bytes {
        seen.whole(&collect(&mut body).await?);
        return Ok(());
    }
    while let Some(piece) = body.data().await {
        let piece = piece?;
        seen.piece(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(())
}

/// The body in one: as it came if that was in one piece.
async fn collect(body: &mut RecvStream) -> Result<Bytes, PeerError> {
    let Some(first) = body.data().await.transpose()? else { return Ok(Bytes::new()) };
    body.flow_control().release_capacity(first.len())?;
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut all = Vec::from(first);
    while let Some(piece) = body.data().await {
        let piece = piece?;
        all.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(all.into())
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "h2");
    run_async("h2", &version, CONFIGS, H2::new)
}
