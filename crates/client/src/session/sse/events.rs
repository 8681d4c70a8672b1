//! The events of one response.

use std::{
    borrow::Cow,
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use mimus_net::rt;
use mimus_proto::sse::{Event, Limits, Parser, Refused, is_event_stream};
use url::Url;

use super::{NotEvents, too_long};
use crate::{
    Incoming, Response, Result,
    client::{Async, Blocking},
};

/// The events of one response, as they come: a [`Stream`], or an [`Iterator`] where calls block.
///
/// It never connects again; [`EventSource`](super::EventSource) does. Dropping it gives the connection back
/// when the rest is small and here, or about to be.
pub struct Events<M = Async> {
    body: Incoming,
    parser: Parser,
    url: Option<Url>,
    over: bool,
    mode: PhantomData<fn() -> M>,
}

impl<M> Response<M> {
    /// The body as an event stream.
    ///
    /// # Errors
    /// The status is no success, or `Content-Type` not `text/event-stream`. The error has the response, with
    /// its body to be read; as an [`Error`](crate::Error) it is of [`Kind::Status`](crate::Kind::Status) or
    /// [`Kind::Protocol`](crate::Kind::Protocol). What a server calls otherwise is read all the same by
    /// [`Incoming::into_events`].
    pub fn into_events(self) -> Result<Events<M>, NotEvents<M>> {
        let why = match self.header("content-type").is_some_and(is_event_stream) {
            _ if !self.status().is_success() => Refused::Status(self.status()),
            false => Refused::ContentType,
            true => {
                let url = self.url().clone();
                return Ok(Events::new(self.into_body(), Some(url)));
            }
        };
        Err(NotEvents::new(why, self))
    }
}

impl Incoming {
    /// The body as an event stream, whatever its head says.
    pub fn into_events<M>(self) -> Events<M> {
        Events::new(self, None)
    }
}

impl<M> Events<M> {
    fn new(body: Incoming, url: Option<Url>) -> Self {
        let parser = Parser::new(Limits::default());
        Events { body, parser, url, over: false, mode: PhantomData }
    }

    /// Sets what the server may make us hold. To be called before the first event is read.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.parser = Parser::new(limits);
        self
    }

    /// The next event, or `None` when the stream is over. After an error there is nothing more.
    ///
    /// # Errors
    /// As [`Incoming::poll_data`]; and of [`Kind::Limit`](crate::Kind::Limit) when a line or an event is longer
    /// than allowed.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        while !self.over {
            let error = match self.parser.next_event() {
                Ok(Some(event)) => return Poll::Ready(Some(Ok(event.to_owned()))),
                Ok(None) => match ready!(self.body.poll_data(cx)) {
                    Some(Ok(piece)) => {
                        self.parser.push(piece);
                        continue;
                    }
                    Some(Err(error)) => error,
                    None => {
                        self.over = true;
                        break;
                    }
                },
                Err(cause) => too_long(cause),
            };
            self.over = true;
            return Poll::Ready(Some(Err(match &self.url {
                Some(url) => error.on(url),
                None => error,
            })));
        }
        Poll::Ready(None)
    }

    /// The last event ID: that of the last event that had one. Empty when there is none.
    pub fn last_event_id(&self) -> Cow<'_, str> {
        self.parser.last_event_id()
    }

    /// The time after which the server wants a client to connect again, if it named one.
    pub fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }

    /// The body behind it.
    pub fn get_ref(&self) -> &Incoming {
        &self.body
    }
}

impl Events<Async> {
    /// As [`poll_event`](Self::poll_event), awaited. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`poll_event`](Self::poll_event).
    pub async fn next_event(&mut self) -> Result<Option<Event>> {
        poll_fn(|cx| self.poll_event(cx)).await.transpose()
    }
}

impl Stream for Events<Async> {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl Iterator for Events<Blocking> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        rt::Blocking::block_on(poll_fn(|cx| self.poll_event(cx)))
    }
}

impl<M> Drop for Events<M> {
    fn drop(&mut self) {
        self.body.linger();
    }
}

impl<M> fmt::Debug for Events<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("last_event_id", &self.last_event_id())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
