//! Waiting for the server's SETTINGS, without a stream.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use mimus_net::Phase;
use mimus_proto::h2::{Code, StreamError};

use super::{
    Link,
    state::{Leader, State, Task},
};
use crate::conn::Failure;

/// Counts among those who own a stream while it waits: a second one, and the connection's task drives.
struct Guest<'a>(&'a Arc<Link>);

impl<'a> Guest<'a> {
    fn enter(link: &'a Arc<Link>) -> Self {
        link.with(|state| state.owned += 1);
        Guest(link)
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.see_off(Instant::now()));
    }
}

impl Link {
    /// Whether the server takes extended CONNECT, once it has said so or has not (RFC 8441 section 3).
    pub(super) async fn offers_tunnels(self: &Arc<Self>) -> Result<bool, Failure> {
        let guest = Guest::enter(self);
        let offers = poll_fn(|cx| guest.0.with(|state| state.poll_greeting(cx))).await;
        drop(guest);
        offers
    }
}

impl State {
    /// Drives the connection until the server has introduced itself, or leaves that to who does already.
    fn poll_greeting(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        loop {
            if let Some(peer) = self.machine.peer_settings() {
                return Poll::Ready(Ok(peer.connect_protocol));
            }
            if self.is_over() {
                return Poll::Ready(Err(self.why_over()));
            }
            if !self.guests.iter().any(|guest| guest.will_wake(cx.waker())) {
                self.guests.push(cx.waker().clone());
            }
            let driven = match self.task {
                Task::Impossible => {
                    self.crowd.invite(cx.waker());
                    let driven = self.drive(&mut Context::from_waker(&self.crowd_waker()));
                    self.leader = if driven.is_pending() { Leader::Crowd } else { Leader::Nobody };
                    driven
                }
                _ if self.owned > 1 => {
                    self.leave_to_task();
                    return Poll::Pending;
                }
                _ => {
                    // Whoever comes next is a second one.
                    self.leader = Leader::Nobody;
                    self.drive(cx)
                }
            };
            if driven.is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn why_over(&self) -> Failure {
        match (self.io_error(), self.machine.error()) {
            (Some(io), _) => Failure::Io(Phase::Head, io),
            (None, Some(error)) => Failure::Proto(error),
            (None, None) => Failure::Stream(StreamError::NotProcessed(Code::REFUSED_STREAM)),
        }
    }

    /// A guest waits no more.
    fn see_off(&mut self, now: Instant) {
        self.owned -= 1;
        self.note_idle(now);
        self.flush();
        if matches!(self.task, Task::Impossible) && self.leader == Leader::Nobody {
            self.wake_all();
        }
    }
}
