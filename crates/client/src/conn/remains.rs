//! What is left of a response that nobody wants: read off where it is little, so that its connection serves again.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use mimus_net::{BoxFuture, Runtime, Wait};
use mimus_proto::{Event, h1::Reuse};

use super::{Conn, Exchange, exchange::ConnLease};
use crate::policy::retry::Sent;

/// The most of an unwanted body that is read off to save its connection. What costs more to read
/// than a new connection does is not worth it.
const READ_OFF_MAX: usize = 64 * 1024;

/// How long an end that is on its way is awaited, for nobody waits for it: a server that means to go on is
/// told soon that it need not.
const LINGER: Duration = Duration::from_millis(200);

/// What the reader of a response knows of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// He has what he wanted, and often there is no more.
    #[cfg(feature = "sse")]
    Likely,
    /// He has heard the last word, behind which nothing but the end comes.
    Due,
}

/// The rest of a response that did not come yet, and the connection that it keeps busy.
pub(super) struct Remains {
    lease: ConnLease,
    /// How many bytes more of it may be read off.
    left: usize,
}

/// Reads off what is here. Nothing remains if that was all, or if the connection is not worth more, which closes it.
pub(super) fn read_off(mut lease: ConnLease) -> Option<Remains> {
    let mut left = READ_OFF_MAX;
    match lease.poll_read_off(&mut left, &mut unheard(), Wait::Never) {
        Poll::Ready(true) => {
            Exchange::Exclusive(lease).finish(Instant::now());
            None
        }
        Poll::Ready(false) => None,
        Poll::Pending => Some(Remains { lease, left }),
    }
}

/// For polls whose outcome nobody is told later.
fn unheard() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Remains {
    /// Awaits the end for a moment where the runtime drives tasks. Where it drives none, as when calls block, a
    /// connection whose end is due goes back to the pool all the same, and owes it to the next call.
    pub(super) fn wait(mut self, end: End, runtime: &Arc<dyn Runtime>) {
        self.lease.unlimit();
        let timer = runtime.sleep_until(Instant::now() + LINGER);
        // One that is refused is dropped.
        drop(runtime.spawn(Box::pin(Lingering { remains: Some(self), end, timer })));
    }

    /// Gives the connection back with what remains.
    fn owe(mut self) {
        let now = Instant::now();
        self.lease.owes = Some(self.left);
        self.lease.idle_since = now;
        self.lease.release(now);
    }
}

/// Waits for the end of a response.
struct Lingering {
    remains: Option<Remains>,
    end: End,
    timer: BoxFuture<'static, ()>,
}

impl Future for Lingering {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(Remains { lease, left }) = &mut this.remains else { return Poll::Ready(()) };
        let read_off = match lease.poll_read_off(left, cx, Wait::Beside) {
            Poll::Ready(whole) => whole,
            Poll::Pending => {
                ready!(this.timer.as_mut().poll(cx));
                false
            }
        };
        if let Some(remains) = this.remains.take()
            && read_off
        {
            Exchange::Exclusive(remains.lease).finish(Instant::now());
        }
        Poll::Ready(())
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let (Some(remains), End::Due) = (self.remains.take(), self.end) {
            remains.owe();
        }
    }
}

impl Conn {
    /// Whether nothing is left of the response before, of which the end may have been due: it is read off now. It
    /// is not waited for, so that a server that owes it delays nobody; and a connection on which more came than the
    /// end is not used again.
    pub(crate) fn is_clear(&mut self) -> bool {
        let Some(mut left) = self.owes.take() else { return true };
        let read_off = self.poll_read_off(&mut left, &mut unheard(), Wait::Never);
        if read_off != Poll::Ready(true) || self.machine.reuse() != Reuse::Yes {
            return false;
        }
        self.rest(self.idle_since);
        true
    }

    /// Reads off the rest of a response, up to `left` bytes more of it. Ready with whether its end was read.
    fn poll_read_off(&mut self, left: &mut usize, cx: &mut Context<'_>, wait: Wait) -> Poll<bool> {
        let long = self.machine.remaining_body().is_some_and(|rest| rest > *left as u64);
        if long || self.sent() != Sent::Whole {
            return Poll::Ready(false);
        }
        loop {
            match self.buffered_event() {
                Ok(Some(Event::Data(data))) if data.len() <= *left => *left -= data.len(),
                Ok(Some(Event::Trailers(_))) => {}
                Ok(Some(Event::End)) => return Poll::Ready(true),
                Ok(None) => match ready!(self.poll_fill(cx, wait)) {
                    Ok(()) => {}
                    Err(_) => return Poll::Ready(false),
                },
                _ => return Poll::Ready(false),
            }
        }
    }
}
