//! WebSockets: over HTTP/1.1 and over HTTP/2, with compression, refused, and closed.

use std::time::Instant;

use mimus::{
    Version,
    ws::{Builder, CloseCode, DeflateOffer, Message, WebSocket},
};
use mimus_testkit::Port;

use crate::setup::{Demo, Result, ensure, ms};

/// How many messages go each way.
const COUNT: u32 = 10_000;

/// What is wrong, without the response that came: this table has no room for one.
async fn open(socket: Builder) -> Result<WebSocket> {
    Ok(socket.connect().await.map_err(|error| error.into_error())?)
}

pub async fn over_http1(demo: &Demo) -> Result {
    let url = demo.https("/ws/echo").replace("https:", "wss:");
    let socket = open(demo.client()?.websocket(url).subprotocols(["chirp"])).await?;
    ensure!(socket.subprotocol() == Some("chirp"), "{:?}", socket.subprotocol());
    talk(socket, Version::HTTP_11).await
}

pub async fn over_http2(demo: &Demo) -> Result {
    let client = demo.client()?;
    let before = demo.origin.accepted(Port::H2);
    let url = demo.at(Port::H2, "/ws/echo")?;
    let first = open(client.websocket(&url).version(Version::HTTP_2)).await?;
    let second = open(client.websocket(&url).version(Version::HTTP_2)).await?;
    let told = talk(first, Version::HTTP_2).await?;
    talk(second, Version::HTTP_2).await?;
    let opened = demo.origin.accepted(Port::H2) - before;
    ensure!(opened == 1, "{opened} connections");
    Ok(format!("{told}; twice on one connection"))
}

/// Thousands of messages in as few writes as they fit into, back in order, and a close.
async fn talk(socket: WebSocket, version: Version) -> Result {
    ensure!(socket.handshake().version() == version, "{:?}", socket.handshake().version());
    let started = Instant::now();
    let (mut receiver, mut sender) = socket.split();
    let writer = async {
        for number in 0..COUNT {
            sender.feed(Message::Text(number.to_string().into())).await?;
        }
        sender.close(CloseCode::NORMAL, "enough").await
    };
    let reader = async {
        let mut next = 0;
        while let Some(message) = receiver.recv().await? {
            match message {
                Message::Text(text) if *text == *next.to_string() => next += 1,
                Message::Close(_) => {}
                other => return Ok(Err(format!("{other:?} instead of {next}"))),
            }
        }
        Ok::<_, mimus::Error>(Ok(next))
    };
    let (wrote, read) = futures_util::future::join(writer, reader).await;
    wrote?;
    let count = read??;
    ensure!(count == COUNT, "{count} messages came back");
    let close = receiver.close_reason().ok_or("the origin did not say why it closed")?;
    ensure!(close.code == CloseCode::NORMAL, "{close:?}");
    Ok(format!("{count} messages each way in {}, closed with 1000", ms(started.elapsed())))
}

pub async fn compressed(demo: &Demo) -> Result {
    let url = demo.http("/ws/echo?deflate=yes");
    let mut socket = open(demo.client()?.websocket(url).deflate(DeflateOffer::default())).await?;
    ensure!(socket.handshake().deflate().is_some(), "no compression was agreed on");
    let text = "the mockingbird repeats what it hears, ".repeat(2000);
    socket.send_text(&text).await?;
    let back = socket.recv().await?;
    ensure!(back == Some(Message::Text(text.as_str().into())), "another text came back");
    let seen = demo.last_request()?.ws.ok_or("the origin saw no WebSocket")?;
    ensure!(seen.compressed == 1 && seen.bytes < text.len() as u64 / 50, "{seen:?}");
    Ok(format!("{} bytes as {}", text.len(), seen.bytes))
}

pub async fn pings(demo: &Demo) -> Result {
    let mut socket = open(demo.client()?.websocket(demo.http("/ws/ping?n=100"))).await?;
    let mut said = String::new();
    while let Some(message) = socket.recv().await? {
        if let Message::Text(text) = message {
            said = text.to_string();
        }
    }
    ensure!(said == "100 pongs", "{said:?}");
    Ok(format!("the origin got {said}"))
}

pub async fn refused(demo: &Demo) -> Result {
    let socket = demo.client()?.websocket(demo.http("/ws/refuse?status=403")).connect().await;
    let Some(response) = socket.err().and_then(mimus::ws::ConnectError::into_http) else {
        return Err("no response was kept".into());
    };
    let status = response.status();
    let body = response.text().await?;
    ensure!(status == 403 && body == "no socket here\n", "{status} {body:?}");
    Ok(format!("{status}, {:?}", body.trim()))
}

pub async fn bomb(demo: &Demo) -> Result {
    let url = demo.http("/bad-ws/deflate-bomb");
    let socket =
        demo.client()?.websocket(url).max_message(1 << 20).deflate(DeflateOffer::default());
    let error = match open(socket).await?.recv().await {
        Err(error) => error,
        Ok(message) => return Err(format!("it was taken: {message:?}").into()),
    };
    ensure!(error.kind() == mimus::Kind::Limit, "{error:#}");
    let seen = demo.last_request()?.ws.ok_or("the origin saw no WebSocket")?;
    Ok(format!("{error}, told with {:?}", seen.close.and_then(|(code, _)| code)))
}
