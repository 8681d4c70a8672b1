//! The calling thread as its own runtime: no reactor thread, no executor, no hidden queue.
//!
//! [`Blocking::block_on`] runs a future on the spot. Its sockets sleep inside `recv` when the caller
//! waits for nothing else ([`Wait::Alone`](super::Wait)); whatever else is pending is noted in a small
//! per-thread reactor, which the thread parks on with one `poll(2)`.

mod reactor;
mod socket;

use std::{
    convert::Infallible,
    future::Future,
    io,
    ops::ControlFlow,
    pin::{Pin, pin},
    task::{Context, Poll},
    thread,
    time::Instant,
};

use reactor::{Key, Signals, Wanted};

use super::{BoxFuture, Endpoint, Runtime, Socket};
use crate::dial::SocketOptions;

/// The blocking runtime. Usable anywhere, inside an asynchronous program too, where it blocks the
/// thread it is called on like any other call that blocks.
///
/// Its sockets and timers work only under [`Blocking::block_on`]: polled by another executor, a
/// socket fails with a plain error instead of hanging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocking;

impl Blocking {
    /// Runs `future` to its end on this thread. May be called inside itself: the inner call blocks
    /// the outer one.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use mimus_net::{Runtime, rt::Blocking};
    ///
    /// let start = Instant::now();
    /// let answer = Blocking::block_on(async {
    ///     Blocking.sleep_until(start + Duration::from_millis(5)).await;
    ///     42
    /// });
    /// assert_eq!(answer, 42);
    /// assert!(start.elapsed() >= Duration::from_millis(5));
    /// ```
    pub fn block_on<F: Future>(future: F) -> F::Output {
        let go_on = || ControlFlow::<Infallible>::Continue(());
        let ControlFlow::Continue(output) = drive(future, Signals::Ignored, go_on);
        output
    }

    /// As [`block_on`](Self::block_on), but when a signal interrupts the thread's sleep, `goes_on` is asked
    /// whether to go back to it. What it breaks with is what the call breaks with, and the future is dropped
    /// where it stood: what it was doing is cancelled.
    ///
    /// A signal whose handler restarts system calls (`SA_RESTART`) interrupts nothing.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use mimus_net::rt::Blocking;
    ///
    /// let done = Blocking::block_on_interruptible(async { 42 }, || ControlFlow::Break("Ctrl-C"));
    /// assert_eq!(done, ControlFlow::Continue(42));
    /// ```
    pub fn block_on_interruptible<F: Future, B>(
        future: F,
        goes_on: impl FnMut() -> ControlFlow<B>,
    ) -> ControlFlow<B, F::Output> {
        drive(future, Signals::Heeded, goes_on)
    }
}

impl Blocking {
    /// Polls one of several futures that the caller drives together on this thread: no read of a socket of this
    /// runtime puts the thread to sleep meanwhile, though its own future waits for nothing else
    /// ([`Wait::Alone`](super::Wait)), so that the others go on.
    ///
    /// Of use to what races or joins futures, whatever runtime they may be on; others' combinators have the sockets
    /// block one another.
    pub fn beside<T>(poll: impl FnOnce() -> T) -> T {
        let _company = reactor::Company::keep();
        poll()
    }
}

/// Polls `future` to its end, or until `goes_on` breaks.
fn drive<F: Future, B>(
    future: F,
    signals: Signals,
    mut goes_on: impl FnMut() -> ControlFlow<B>,
) -> ControlFlow<B, F::Output> {
    let mut future = pin!(future);
    let turn = reactor::Turn::begin(signals);
    let done = loop {
        turn.forget_wake();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(turn.waker())) {
            break ControlFlow::Continue(output);
        }
        if !turn.is_interrupted() {
            turn.park();
        }
        if turn.take_interrupt()
            && let ControlFlow::Break(why) = goes_on()
        {
            break ControlFlow::Break(why);
        }
    };
    turn.end();
    done
}

impl Runtime for Blocking {
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(socket::connect(self, to, options))
    }

    /// Outside of [`Blocking::block_on`] the future sleeps where it is polled.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { at, key: Key::unique() })
    }

    /// On a thread of its own, which ends with the work: it is what gives a name lookup, which cannot
    /// be interrupted, a deadline.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        // When no thread can be had the work is dropped, which is how its owner learns of it.
        let _ = thread::Builder::new().name("mimus-blocking".into()).spawn(work);
    }

    fn may_block(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Sleep {
    at: Instant,
    key: Key,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let rest = self.at.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Poll::Ready(());
        }
        let wanted = Wanted { ready: None, until: Some(self.at) };
        if reactor::want(self.key, wanted, cx.waker()).is_err() {
            thread::sleep(rest);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        reactor::forget(self.key);
    }
}
