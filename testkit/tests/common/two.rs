//! A client of HTTP/2 out of the crate `h2`, each call on a connection of its own or on one that is kept.
#![allow(dead_code, reason = "each test file uses a part")]

use std::future::{Future, poll_fn};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use mimus_testkit::{Origin, Port};
use tokio::net::TcpStream;

use super::PATIENCE;

/// Runs a test to its end, or fails it when it takes too long.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("in time") })
}

/// A new connection to the plain port.
pub(crate) async fn connect(origin: &Origin) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(origin.addr(Port::H2c).unwrap()).await.unwrap();
    over(stream).await
}

pub(crate) async fn over<T>(stream: T) -> SendRequest<Bytes>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    // Its end is seen by the streams on it.
    tokio::spawn(async move { drop(connection.await) });
    send.ready().await.unwrap()
}

pub(crate) fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("http://origin.test{path}")).body(()).unwrap()
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) head: Response<()>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
}

impl Whole {
    pub(crate) fn status(&self) -> u16 {
        self.head.status().as_u16()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name).map(|value| value.to_str().expect("text"))
    }

    /// A trailer, or a field of the head where there are no trailers.
    pub(crate) fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name).map(|value| value.to_str().expect("text"))
    }
}

pub(crate) async fn collect(response: Response<RecvStream>) -> Result<Whole, h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await?.unwrap_or_default();
    Ok(Whole { head: Response::from_parts(parts, ()), body, trailers })
}

/// One exchange; the body, if any, goes out as the windows allow.
pub(crate) async fn ask(
    send: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: &[u8],
) -> Result<Whole, h2::Error> {
    poll_fn(|cx| send.poll_ready(cx)).await?;
    let (response, mut out) = send.send_request(request, body.is_empty())?;
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        out.reserve_capacity(rest.len());
        let Some(room) = poll_fn(|cx| out.poll_capacity(cx)).await else {
            break;
        };
        let piece = rest.split_to(room?.min(rest.len()));
        out.send_data(piece, rest.is_empty())?;
    }
    collect(response.await?).await
}

pub(crate) async fn get(send: &mut SendRequest<Bytes>, path: &str) -> Result<Whole, h2::Error> {
    ask(send, request("GET", path), &[]).await
}

pub(crate) fn reason(error: &h2::Error) -> Option<Reason> {
    error.reason()
}
