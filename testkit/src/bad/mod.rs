//! Misbehaviour on command: every way to be wrong that a route can show.
//!
//! Unless a row says how its connection ends, the connection stays open afterwards (or ends in
//! order when the client asked for that): it is for the client to see that it cannot be reused.

mod bomb;
mod chunked;
mod connection;
mod end;
mod framing;
mod head;
pub(crate) mod tcp;
mod upload;

use std::io;
use std::time::Duration;

use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::Route;

/// The rows, in the order of `--list`.
pub(crate) const TABLES: &[&[Route]] = &[
    head::ROUTES,
    framing::ROUTES,
    chunked::ROUTES,
    end::ROUTES,
    connection::ROUTES,
    upload::ROUTES,
    bomb::ROUTES,
];

/// Writes these bytes as they are.
async fn say(ex: &mut Exchange, bytes: impl AsRef<[u8]>) -> io::Result<After> {
    ex.write(bytes).await?;
    Ok(ex.after())
}

/// Does nothing more until the client leaves.
async fn stall(ex: &mut Exchange) -> io::Result<After> {
    ex.until_gone().await;
    Ok(After::Drop)
}

/// Writes byte by byte, each in a packet of its own, `gap` apart.
async fn drip(ex: &mut Exchange, bytes: &[u8], gap: Duration) -> io::Result<()> {
    for byte in bytes {
        ex.write([*byte]).await?;
        ex.pause(gap).await?;
    }
    Ok(())
}

/// Writes the same piece until `total` bytes are out; for ever without a total.
async fn flood(ex: &mut Exchange, piece: &[u8], total: Option<u64>) -> io::Result<()> {
    let mut left = total.unwrap_or(u64::MAX);
    while left > 0 {
        let len = left.min(piece.len() as u64);
        ex.write(&piece[..len as usize]).await?;
        if total.is_some() {
            left -= len;
        }
        // A fast reader would else keep this task from ever letting others run.
        tokio::task::yield_now().await;
    }
    Ok(())
}
