//! One value from wherever it is made to the future that waits for it, on any runtime.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Sent(T),
    /// One end is gone, or the value has been taken.
    Over,
}

type Shared<T> = Arc<Mutex<State<T>>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, State<T>> {
    // Nothing below can panic while it holds the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two ends of one slot.
pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Mutex::new(State::Waiting(None)));
    (Sender(shared.clone()), Receiver(shared))
}

/// Dropped without [`Sender::send`], it ends the wait with `None`.
#[derive(Debug)]
pub(super) struct Sender<T>(Shared<T>);

impl<T> Sender<T> {
    pub(super) fn send(self, value: T) {
        self.finish(State::Sent(value));
    }

    fn finish(&self, last: State<T>) {
        let mut state = lock(&self.0);
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = last;
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.finish(State::Over);
    }
}

/// The value, or `None` when the sender went away without one.
#[derive(Debug)]
pub(super) struct Receiver<T>(Shared<T>);

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, State::Over) {
            State::Waiting(_) => {
                *state = State::Waiting(Some(cx.waker().clone()));
                Poll::Pending
            }
            State::Sent(value) => Poll::Ready(Some(value)),
            State::Over => Poll::Ready(None),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // The waker, and a value nobody will read, go now and not when the sender gets to it.
        let unread = std::mem::replace(&mut *lock(&self.0), State::Over);
        drop(unread);
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, thread, time::Duration};

    use super::*;
    use crate::rt::Blocking;

    #[test]
    fn delivers_across_threads() {
        let (sender, receiver) = channel();
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            sender.send(7);
        });
        assert_eq!(Blocking::block_on(receiver), Some(7));
        sending.join().unwrap();
    }

    #[test]
    fn a_dropped_sender_ends_the_wait() {
        let (sender, receiver) = channel::<u8>();
        drop(sender);
        assert_eq!(Blocking::block_on(receiver), None);
    }

    #[test]
    fn a_dropped_receiver_frees_the_value() {
        let (sender, receiver) = channel();
        let value = Arc::new(());
        sender.send(value.clone());
        drop(receiver);
        assert_eq!(Arc::strong_count(&value), 1);

        let (sender, receiver) = channel();
        let mut receiver = Box::pin(receiver);
        let waiting = pin!(&mut receiver).poll(&mut Context::from_waker(Waker::noop()));
        assert!(waiting.is_pending());
        drop(receiver);
        sender.send(value.clone());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
