//! A WebSocket that is made anew when it was lost.

use std::{
    fmt,
    time::{Duration, Instant},
};

use mimus_net::rt;

use super::{Builder, CloseCode, Message, WebSocket, connect::Attempt};
use crate::{Async, Blocking, Error, Kind, Result, policy::retry};

/// A connection that is made anew, with growing pauses, when it was lost.
///
/// What is lost with a connection is lost: whoever needs to catch up asks for it after
/// [`Event::Connected`]. It ends when the server closes with code 1000, refuses the WebSocket with a status
/// that says it always will, or too often in a row.
pub struct Reconnecting<M = Async> {
    attempt: Attempt,
    socket: Option<WebSocket<M>>,
    /// Failures since something last came.
    failures: u32,
    /// Not before this is the next one tried.
    not_before: Option<Instant>,
    base: Duration,
    max: Duration,
    max_failures: Option<u32>,
    over: bool,
}

/// What happens to a [`Reconnecting`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// There is a connection, the first or another.
    Connected,
    /// A message came.
    Message(Message),
    /// The connection was lost, or none came about; another is tried after a pause. `None`: the server
    /// closed it in order, with a code other than 1000.
    Lost(Option<Error>),
}

impl<M> fmt::Debug for Reconnecting<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnecting")
            .field("socket", &self.socket)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

impl<M> Builder<M> {
    /// A WebSocket that is made anew when it was lost. Nothing happens before it is asked for events.
    ///
    /// # Errors
    /// The first mistake made while building.
    pub fn reconnecting(self) -> Result<Reconnecting<M>> {
        Ok(Reconnecting {
            attempt: self.build()?,
            socket: None,
            failures: 0,
            not_before: None,
            base: Duration::from_millis(500),
            max: Duration::from_secs(30),
            max_failures: None,
            over: false,
        })
    }
}

impl<M> Reconnecting<M> {
    /// How long the pauses are: a random part of `base`, doubled with each failure since something last
    /// came, at most `max`. Half a second and 30 seconds unless set.
    #[must_use]
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        (self.base, self.max) = (base, max);
        self
    }

    /// After how many failures in a row it ends. Never unless set.
    #[must_use]
    pub fn max_failures(mut self, failures: impl Into<Option<u32>>) -> Self {
        self.max_failures = failures.into();
        self
    }

    /// The connection, while there is one.
    pub fn socket(&mut self) -> Option<&mut WebSocket<M>> {
        self.socket.as_mut()
    }

    /// Goes on after a failure: with a pause, or not at all.
    fn lost(&mut self, error: Option<Error>) -> Result<Option<Event>> {
        self.socket = None;
        self.failures = self.failures.saturating_add(1);
        let given_up = self.max_failures.is_some_and(|most| self.failures >= most);
        match error {
            Some(error) if given_up || is_for_good(&error) => {
                self.over = true;
                Err(error)
            }
            error => {
                self.pause();
                Ok(Some(Event::Lost(error)))
            }
        }
    }

    fn pause(&mut self) {
        let bound = retry::backoff_bound(self.base, self.max, self.failures - 1);
        // Without randomness it is the longest.
        let pause = getrandom::u64().map_or(bound, |random| retry::somewhere_within(bound, random));
        self.not_before = Instant::now().checked_add(pause);
    }

    async fn event(
        &mut self,
        connect: impl AsyncFnOnce(&Attempt) -> Result<WebSocket<M>>,
    ) -> Result<Option<Event>> {
        if self.over {
            return Ok(None);
        }
        let Some(socket) = &mut self.socket else {
            if let Some(at) = self.not_before {
                self.attempt.runtime().sleep_until(at).await;
            }
            return match connect(&self.attempt).await {
                Ok(socket) => {
                    self.socket = Some(socket);
                    Ok(Some(Event::Connected))
                }
                Err(error) => self.lost(Some(error)),
            };
        };
        match socket.receive().await {
            Ok(Some(message)) => {
                self.failures = 0;
                Ok(Some(Event::Message(message)))
            }
            Ok(None) => match socket.close_reason() {
                Some(close) if close.code == CloseCode::NORMAL => {
                    self.over = true;
                    Ok(None)
                }
                _ => self.lost(None),
            },
            Err(error) => self.lost(Some(error)),
        }
    }
}

/// Whether the next attempt would fail alike.
fn is_for_good(error: &Error) -> bool {
    match error.kind() {
        Kind::Request | Kind::Certificate | Kind::Redirect | Kind::Hook | Kind::NotOffered => true,
        Kind::Status(status) => {
            !status.is_server_error() && !matches!(status.as_u16(), 408 | 425 | 429)
        }
        _ => false,
    }
}

/// The calls, once for each mode.
macro_rules! calls {
    ($mode:ty, [$($async:tt)?], |$call:ident| $run:expr) => {
        impl Reconnecting<$mode> {
            /// What happens next; `None` at the end. Giving the call up loses nothing but an attempt to
            /// connect that was under way.
            ///
            /// # Errors
            /// The failure after which nothing more is tried.
            pub $($async)? fn next_event(&mut self) -> Result<Option<Event>> {
                let $call = self.event(async |attempt| Ok(attempt.connect::<$mode>().await?));
                $run
            }

            /// Sends a message.
            ///
            /// # Errors
            /// As for [`WebSocket::send`], and when there is no connection.
            pub $($async)? fn send(&mut self, message: impl Into<Message>) -> Result<()> {
                let socket = self.socket.as_mut();
                let socket = socket.ok_or_else(|| Error::new(Kind::Closed, "not connected"))?;
                let message = message.into();
                let $call = socket.sent(|machine| machine.send_owned(message));
                $run
            }
        }
    };
}

calls!(Async, [async], |call| call.await);
calls!(Blocking, [], |call| rt::Blocking::block_on(call));
