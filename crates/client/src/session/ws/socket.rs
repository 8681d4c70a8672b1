//! A WebSocket, whole.

use std::{
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_sink::Sink;
use mimus_net::{Wait, rt};

use super::{
    Close, CloseCode, Handshake, Message, MessageRef, Prepared, Receiver, Sender, halves,
    link::{Link, Machine},
    sending::sending_calls,
};
use crate::{Async, Blocking, Error, Result};

/// A WebSocket: messages both ways.
///
/// It is a [`Stream`] of [`Message`]s and a [`Sink`] for them where calls are awaited. Dropping it closes
/// the connection without a word; [`close`](Self::close) says goodbye.
pub struct WebSocket<M = Async> {
    link: Box<Link>,
    handshake: Box<Handshake>,
    mode: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for WebSocket<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket")
            .field("link", &self.link)
            .field("subprotocol", &self.handshake.subprotocol())
            .finish_non_exhaustive()
    }
}

impl<M> WebSocket<M> {
    pub(super) fn new(link: Link, handshake: Handshake) -> Self {
        WebSocket { link: Box::new(link), handshake: Box::new(handshake), mode: PhantomData }
    }

    /// What both ends agreed on, and how the server said so.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The subprotocol that the server chose, if any.
    pub fn subprotocol(&self) -> Option<&str> {
        self.handshake.subprotocol()
    }

    /// What the server said when it closed, if it has closed and said something.
    pub fn close_reason(&self) -> Option<Close> {
        self.link.peer_close()
    }

    /// A half that receives and a half that sends, for two tasks or threads. While one of them waits, it
    /// does what the other needs: pings are answered while a message is being sent.
    pub fn split(self) -> (Receiver<M>, Sender<M>) {
        halves::split(self.link)
    }

    async fn look(&mut self) -> Result<bool> {
        poll_fn(|cx| self.link.poll_look(cx, Wait::Alone)).await
    }

    pub(super) async fn receive(&mut self) -> Result<Option<Message>> {
        match self.look().await? {
            true => self.link.take(),
            false => Ok(None),
        }
    }

    async fn written(&mut self) -> Result<()> {
        poll_fn(|cx| self.link.poll_write(cx)).await
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    /// Waits until little enough waits to be written.
    async fn room(&mut self) -> Result<()> {
        poll_fn(|cx| self.link.poll_ready(cx)).await
    }

    fn queue(
        &mut self,
        queue: impl FnOnce(&mut Machine) -> Result<(), mimus_proto::ApiMisuse>,
    ) -> Result<()> {
        self.link.queue(queue)
    }

    pub(super) async fn sent(
        &mut self,
        queue: impl FnOnce(&mut Machine) -> Result<(), mimus_proto::ApiMisuse>,
    ) -> Result<()> {
        self.room().await?;
        self.queue(queue)?;
        self.written().await
    }

    async fn closed(&mut self, code: CloseCode, reason: &str) -> Result<Option<Close>> {
        self.link.begin_close(code, reason)?;
        poll_fn(|cx| self.link.poll_closed(cx, Wait::Alone)).await?;
        Ok(self.link.peer_close())
    }
}

/// The calls, once for each mode.
macro_rules! calls {
    ($mode:ty, [$($async:tt)?], |$call:ident| $run:expr) => {
        impl WebSocket<$mode> {
            /// The next message, to keep; `None` once the connection is closed in order. Pings are answered,
            /// and given out like pongs and the server's close.
            ///
            /// What it gives keeps what was read together with it alive: copy small messages that are kept
            /// for long.
            ///
            /// # Errors
            /// When the connection fails or ends without a close, the server breaks the protocol, or a
            /// limit or timeout is exceeded. There is nothing more then.
            pub $($async)? fn recv(&mut self) -> Result<Option<Message>> {
                if !self.link.is_here() {
                    let $call = self.look();
                    if !$run? {
                        return Ok(None);
                    }
                }
                self.link.take()
            }

            /// The same, lent from where it was read to.
            ///
            /// # Errors
            /// As for [`recv`](Self::recv).
            pub $($async)? fn recv_ref(&mut self) -> Result<Option<MessageRef<'_>>> {
                if !self.link.is_here() {
                    let $call = self.look();
                    if !$run? {
                        return Ok(None);
                    }
                }
                self.link.take_ref()
            }

            /// Closes the connection in order (RFC 6455 section 7): says so, and waits until the server has,
            /// at most for the close timeout. What it sends until then is dropped; to receive it, send a
            /// [`Message::Close`] and receive until `None`. Gives what the server said.
            ///
            /// # Errors
            /// When it does not come to that in time, or the code is not one to be sent.
            pub $($async)? fn close(&mut self, code: CloseCode, reason: &str) -> Result<Option<Close>> {
                let $call = self.closed(code, reason);
                $run
            }
        }
    };
}

calls!(Async, [async], |call| call.await);
calls!(Blocking, [], |call| rt::Blocking::block_on(call));
sending_calls!(WebSocket);

impl Stream for WebSocket {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.link.poll_look(cx, Wait::Alone)) {
            Ok(true) => self.link.take().transpose(),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

impl Sink<Message> for WebSocket {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_ready(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.link.queue(|machine| machine.send_owned(message))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_write(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.begin_close(CloseCode::NORMAL, "")?;
        self.link.poll_closed(cx, Wait::Alone)
    }
}

impl Iterator for WebSocket<Blocking> {
    type Item = Result<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        self.recv().transpose()
    }
}
