//! A talk with a server that says back what it is told.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use mimus::ws::{CloseCode, Message, WebSocket};

use crate::{Way, open};

/// Around the sizes at which a frame's head grows, and one that no buffer holds at once.
const SIZES: [usize; 8] = [0, 1, 125, 126, 65_535, 65_536, 1 << 20, 5_000_001];
/// As much as is under way at once.
const BURST: u32 = 200;

/// With whom to talk, and how.
#[derive(Args)]
pub(crate) struct Talk {
    /// The server.
    url: String,
    #[command(flatten)]
    way: Way,
    /// The server takes the subprotocol `superchat` of those that are offered.
    #[arg(long)]
    subprotocol: bool,
}

pub(crate) async fn run(talk: &Talk) -> Result<()> {
    let client = talk.way.client()?;
    let mut builder = talk.way.socket(&client, &talk.url);
    if talk.subprotocol {
        builder = builder.subprotocols(["mqtt", "superchat"]);
    }
    let mut socket = open(builder).await.context("connect")?;
    if talk.subprotocol {
        ensure!(socket.subprotocol() == Some("superchat"), "{:?}", socket.subprotocol());
    }
    if talk.way.deflate {
        ensure!(socket.handshake().deflate().is_some(), "the server agreed to no compression");
    }
    for size in SIZES {
        sizes(&mut socket, size).await.with_context(|| format!("messages of {size} bytes"))?;
    }
    burst(&mut socket).await.context("many at once")?;
    socket.ping(b"there?").await?;
    loop {
        match socket.recv().await?.context("closed instead of a pong")? {
            Message::Pong(payload) if payload.as_ref() == b"there?" => break,
            Message::Ping(_) | Message::Pong(_) => {}
            other => bail!("{other:?} instead of a pong"),
        }
    }
    let said = socket.close(CloseCode::NORMAL, "that is all").await.context("close")?;
    let said = said.context("the server closed without a code")?;
    ensure!(said.code == CloseCode::NORMAL, "the server closed with {:?}", said.code);
    println!("echo ok");
    Ok(())
}

async fn sizes(socket: &mut WebSocket, size: usize) -> Result<()> {
    // What compresses well, and what does not.
    let text: String = "grüße, ".chars().cycle().take(size).collect();
    let mut state = size as u32 | 1;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let binary: Vec<u8> = noise.take(size).collect();
    socket.send_text(&text).await?;
    match data(socket).await? {
        Message::Text(back) => ensure!(*back == *text, "another text of {} bytes", back.len()),
        other => bail!("{other:?} instead of a text"),
    }
    socket.send_binary(&binary).await?;
    match data(socket).await? {
        Message::Binary(back) => ensure!(back == binary, "other bytes, {} of them", back.len()),
        other => bail!("{other:?} instead of bytes"),
    }
    Ok(())
}

/// Many small ones in one write, and then what is said back.
async fn burst(socket: &mut WebSocket) -> Result<()> {
    for number in 0..BURST {
        socket.feed_text(&number.to_string()).await?;
    }
    socket.flush().await?;
    for number in 0..BURST {
        let back = data(socket).await?;
        ensure!(back == Message::Text(number.to_string().into()), "{back:?} instead of {number}");
    }
    Ok(())
}

/// The next message that is no ping or pong.
async fn data(socket: &mut WebSocket) -> Result<Message> {
    loop {
        match socket.recv().await?.context("closed too early")? {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return Ok(message),
        }
    }
}
