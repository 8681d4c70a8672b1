//! A [`Socket`]'s verbs as futures.
//!
//! `read`, `flush` and `close` may be dropped and begun again at any time. `write_all` may not: what
//! it had written is forgotten with it.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
};

use bytes::BytesMut;

use super::{Socket, Wait};

/// Appends what has come to the spare capacity of `buf`; 0 is the end of the stream.
///
/// # Errors
/// As [`Socket::poll_read`].
pub async fn read(socket: &mut dyn Socket, buf: &mut BytesMut, wait: Wait) -> io::Result<usize> {
    poll_fn(|cx| socket.poll_read(cx, buf, wait)).await
}

/// Writes all of `bytes`. A layer may still hold some of them: [`flush`].
///
/// # Errors
/// As [`Socket::poll_write`]; `WriteZero` when the socket takes nothing more.
pub async fn write_all(socket: &mut dyn Socket, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match poll_fn(|cx| socket.poll_write(cx, &[IoSlice::new(bytes)])).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => bytes = &bytes[n..],
        }
    }
    Ok(())
}

/// Moves whatever a layer took but has not yet handed on.
///
/// # Errors
/// As [`Socket::poll_flush`].
pub async fn flush(socket: &mut dyn Socket) -> io::Result<()> {
    poll_fn(|cx| socket.poll_flush(cx)).await
}

/// Says goodbye in this direction.
///
/// # Errors
/// As [`Socket::poll_close`].
pub async fn close(socket: &mut dyn Socket) -> io::Result<()> {
    poll_fn(|cx| socket.poll_close(cx)).await
}
