//! A client of WebSocket out of the crate `tungstenite`, over HTTP/1.1 and, through a stream of the crate
//! `h2`, over HTTP/2.
#![allow(dead_code, reason = "each test file uses a part")]

use std::future::poll_fn;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use h2::ext::Protocol;
use mimus_testkit::{Origin, Port, Seen, SeenWs};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// What is taken of one message: as the table of misbehaviour has it.
pub(crate) const LIMIT: usize = 1 << 20;

pub(crate) fn limits() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(LIMIT)).max_frame_size(Some(LIMIT))
}

/// The opening request for a path, with these fields more.
pub(crate) fn asking(origin: &Origin, path: &str, fields: &[(&'static str, &str)]) -> Request {
    let addr = origin.addr(Port::Http).unwrap();
    let mut request = format!("ws://{addr}{path}").into_client_request().unwrap();
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

pub(crate) async fn open(
    origin: &Origin,
    path: &str,
    fields: &[(&'static str, &str)],
) -> Result<(WebSocketStream<TcpStream>, Response), Error> {
    let stream = TcpStream::connect(origin.addr(Port::Http).unwrap()).await.unwrap();
    client_async_with_config(asking(origin, path, fields), stream, Some(limits())).await
}

/// Extended CONNECT (RFC 8441); the status when it is refused.
pub(crate) async fn open_h2(
    origin: &Origin,
    path: &str,
    fields: &[(&'static str, &str)],
) -> Result<WebSocketStream<DuplexStream>, u16> {
    let mut send = super::two::connect(origin).await;
    let mut request = http::Request::builder()
        .method("CONNECT")
        .uri(format!("http://origin.test{path}"))
        .header("sec-websocket-version", "13")
        .extension(Protocol::from_static("websocket"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    poll_fn(|cx| send.poll_ready(cx)).await.unwrap();
    let (response, mut out) = send.send_request(request.body(()).unwrap(), false).unwrap();
    let response = response.await.unwrap();
    if response.status() != 200 {
        return Err(response.status().as_u16());
    }
    let mut body = response.into_body();
    let (near, far) = duplex(1 << 16);
    let (mut read, mut write) = split(far);
    tokio::spawn(async move {
        // Whatever ends one direction ends it for the socket too, which the test sees.
        while let Some(Ok(piece)) = body.data().await {
            body.flow_control().release_capacity(piece.len()).unwrap();
            if write.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = write.shutdown().await;
    });
    tokio::spawn(async move {
        let mut piece = vec![0; 1 << 14];
        while let Ok(len @ 1..) = read.read(&mut piece).await {
            let mut rest = Bytes::copy_from_slice(&piece[..len]);
            while !rest.is_empty() {
                out.reserve_capacity(rest.len());
                let Some(Ok(room)) = poll_fn(|cx| out.poll_capacity(cx)).await else {
                    return;
                };
                if out.send_data(rest.split_to(room.min(rest.len())), false).is_err() {
                    return;
                }
            }
        }
        let _ = out.send_data(Bytes::new(), true);
        drop(send);
    });
    Ok(WebSocketStream::from_raw_socket(near, Role::Client, Some(limits())).await)
}

/// Says it, and returns the next message that is no ping or pong.
pub(crate) async fn exchange<S>(socket: &mut WebSocketStream<S>, message: Message) -> Message
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    socket.send(message).await.unwrap();
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

/// What came over the last socket.
pub(crate) fn seen(origin: &Origin) -> SeenWs {
    let all: Vec<Seen> = origin.requests();
    all.iter().rev().find_map(|seen| seen.ws.clone()).expect("a socket was opened")
}
