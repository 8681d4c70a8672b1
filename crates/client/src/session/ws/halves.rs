//! A WebSocket in two halves.

use std::{
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker, ready},
};

use futures_core::Stream;
use futures_sink::Sink;
use mimus_net::{Wait, rt};

use super::{
    Close, CloseCode, CloseRef, Message, MessageRef, Prepared,
    link::{Link, Machine},
    sending::sending_calls,
};
use crate::{
    Async, Blocking, Error, Result,
    halves::{Half, Halves},
};

/// What the halves share. The socket has one waker for both: each may have to do what the other needs.
struct Shared {
    link: Mutex<Box<Link>>,
    halves: Arc<Halves>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Box<Link>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the link for one of the halves.
    fn poll<T>(
        &self,
        half: Half,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Link, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Before: the other half may be woken for it at once.
        self.halves.wait(half, cx.waker());
        let waker = Waker::from(Arc::clone(&self.halves));
        let polled = self.change(|link| poll(link, &mut Context::from_waker(&waker)));
        if polled.is_ready() {
            drop(self.halves.take(half));
        }
        polled
    }

    /// Changes the link. When that ends its life, or gives the end a time, the other half has to know.
    fn change<T>(&self, change: impl FnOnce(&mut Link) -> T) -> T {
        let mut link = self.lock();
        let before = link.stage();
        let changed = change(&mut link);
        let news = link.stage() != before;
        drop(link);
        if news {
            Arc::clone(&self.halves).wake();
        }
        changed
    }
}

/// The half of a [`WebSocket`](super::WebSocket) that receives.
///
/// Dropping it leaves the other half to send; pings are answered only while something is sent then.
pub struct Receiver<M = Async> {
    shared: Arc<Shared>,
    mode: PhantomData<fn() -> M>,
}

/// The half of a [`WebSocket`](super::WebSocket) that sends.
pub struct Sender<M = Async> {
    shared: Arc<Shared>,
    mode: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for Receiver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for Sender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

pub(super) fn split<M>(link: Box<Link>) -> (Receiver<M>, Sender<M>) {
    let shared = Arc::new(Shared { link: Mutex::new(link), halves: Arc::default() });
    let receiver = Receiver { shared: Arc::clone(&shared), mode: PhantomData };
    (receiver, Sender { shared, mode: PhantomData })
}

impl<M> Receiver<M> {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        self.shared.poll(Half::Reading, cx, |link, cx| {
            let here = ready!(link.poll_look(cx, Wait::Beside))?;
            Poll::Ready(if here { link.take() } else { Ok(None) })
        })
    }

    /// The next message if it was read already, without asking the socket: for messages that came together.
    /// `None` says nothing about the end, which [`recv`](Receiver::recv) tells.
    ///
    /// # Errors
    /// As for [`WebSocket::recv`](super::WebSocket::recv).
    pub fn try_recv(&mut self) -> Result<Option<Message>> {
        self.shared.change(|link| if link.is_here() { link.take() } else { Ok(None) })
    }

    /// What the server said when it closed, if it has closed and said something.
    pub fn close_reason(&self) -> Option<Close> {
        self.shared.lock().peer_close()
    }
}

impl Receiver {
    /// The next message: see [`WebSocket::recv`](super::WebSocket::recv).
    ///
    /// # Errors
    /// As there.
    pub async fn recv(&mut self) -> Result<Option<Message>> {
        poll_fn(|cx| self.poll_message(cx)).await
    }
}

impl Receiver<Blocking> {
    /// The next message: see [`WebSocket::recv`](super::WebSocket::recv).
    ///
    /// # Errors
    /// As there.
    pub fn recv(&mut self) -> Result<Option<Message>> {
        rt::Blocking::block_on(poll_fn(|cx| self.poll_message(cx)))
    }
}

impl Stream for Receiver {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx).map(Result::transpose)
    }
}

impl Iterator for Receiver<Blocking> {
    type Item = Result<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        self.recv().transpose()
    }
}

impl<M> Sender<M> {
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.shared.poll(Half::Writing, cx, Link::poll_ready)
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.shared.poll(Half::Writing, cx, Link::poll_write)
    }

    fn queue(
        &self,
        queue: impl FnOnce(&mut Machine) -> Result<(), mimus_proto::ApiMisuse>,
    ) -> Result<()> {
        self.shared.change(|link| link.queue(queue))
    }

    fn has_room(&self) -> bool {
        self.shared.lock().has_room()
    }

    /// Waits until little enough waits to be written.
    async fn room(&mut self) -> Result<()> {
        poll_fn(|cx| self.poll_ready(cx)).await
    }

    async fn sent(
        &mut self,
        queue: impl FnOnce(&mut Machine) -> Result<(), mimus_proto::ApiMisuse>,
    ) -> Result<()> {
        self.room().await?;
        self.queue(queue)?;
        self.written().await
    }

    async fn written(&mut self) -> Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }
}

/// The calls, once for each mode.
macro_rules! calls {
    ($mode:ty, [$($async:tt)?], |$call:ident| $run:expr) => {
        impl Sender<$mode> {
            /// Says that the connection is to be closed. The receiver then gives what still comes, the
            /// server's close, and `None`.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn close(&mut self, code: CloseCode, reason: &str) -> Result<()> {
                let close = Some(CloseRef { code, reason });
                let $call = self.sent(|machine| machine.send(MessageRef::Close(close)));
                $run
            }
        }
    };
}

calls!(Async, [async], |call| call.await);
calls!(Blocking, [], |call| rt::Blocking::block_on(call));
sending_calls!(Sender);

impl Sink<Message> for Sender {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Sender::poll_ready(&self, cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.queue(|machine| machine.send_owned(message))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Sender::poll_flush(&self, cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.shared.change(|link| link.begin_close(CloseCode::NORMAL, ""))?;
        Sender::poll_flush(&self, cx)
    }
}
