//! The four kinds of calls.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use futures_core::Stream;
use mimus_net::rt::BoxFuture;
use mimus_proto::Fields;
use sync_wrapper::SyncWrapper;

use super::{
    Channel, Code, Codec, Metadata, Result, Status,
    answer::Answer,
    channel::{Options, call_setters},
};
use crate::{Body, call, client::Async, options::shared_setters};

/// A method of a service: its path, its codec, and what its calls have in common.
///
/// Make one, keep it, and call it as often as you like. A call does nothing until it is polled.
#[derive(Clone)]
#[must_use = "a method does nothing until it is called"]
pub struct Method<C> {
    channel: Channel,
    codec: C,
    /// What every call sends in its head, once one was made.
    head: OnceLock<Fields>,
}

impl<C: Codec> Method<C> {
    pub(super) fn new(channel: Channel, codec: C) -> Self {
        Method { channel, codec, head: OnceLock::new() }
    }

    /// The channel with this method's settings and path.
    #[cfg(feature = "tower")]
    pub(super) fn into_channel(self) -> Channel {
        self.channel
    }

    call_setters!();
    shared_setters!();

    fn options_mut(&mut self) -> &mut Options {
        self.head = OnceLock::new();
        &mut self.channel.options
    }

    /// Sends one message and waits for one.
    ///
    /// # Errors
    /// The status that the server ended the call with, or one of ours: see [`Status`]. An answer
    /// without a message, or with two, is `UNIMPLEMENTED`.
    pub async fn unary(&self, message: C::Request) -> Result<Reply<C::Reply>> {
        self.single(self.one(message)?).await
    }

    /// Sends a stream of messages and waits for one.
    ///
    /// # Errors
    /// As [`unary`](Self::unary).
    pub async fn client_streaming<S>(&self, messages: S) -> Result<Reply<C::Reply>>
    where
        S: Stream<Item = C::Request> + Send + 'static,
    {
        self.single(self.many(messages)).await
    }

    /// Sends one message and reads many. Mistakes are told by the first read.
    pub fn server_streaming(&self, message: C::Request) -> Streaming<C> {
        match self.one(message) {
            Ok(body) => Streaming::opening(self.codec.clone(), self.open(body)),
            Err(status) => Streaming::failed(self.codec.clone(), status),
        }
    }

    /// Sends a stream of messages and reads many, in any order. Both go on while the reply is read; the
    /// stream of requests may wait for what was read.
    pub fn bidi<S>(&self, messages: S) -> Streaming<C>
    where
        S: Stream<Item = C::Request> + Send + 'static,
    {
        Streaming::opening(self.codec.clone(), self.open(self.many(messages)))
    }

    fn one(&self, message: C::Request) -> Result<Body> {
        self.channel.options.framing.one(&self.codec, message)
    }

    fn many<S>(&self, messages: S) -> Body
    where
        S: Stream<Item = C::Request> + Send + 'static,
    {
        self.channel.options.framing.many(self.codec.clone(), messages)
    }

    fn head(&self) -> Result<Fields> {
        if let Some(head) = self.head.get() {
            return Ok(head.clone());
        }
        let head = self.channel.head(C::SUBTYPE)?;
        Ok(self.head.get_or_init(|| head).clone())
    }

    /// Sends the request and waits for the head of the answer.
    fn open(&self, body: Body) -> impl Future<Output = Result<Answer>> + Send + 'static {
        let request = self.head().map(|head| self.channel.request(head, body));
        let client = self.channel.client.clone();
        let max_receive = self.channel.options.max_receive;
        async move {
            let request = request?;
            let total = request.settings.timeouts.total;
            let deadline = total.and_then(|total| Instant::now().checked_add(total));
            let response = call::run::<Async>(client, Ok(Box::new(request))).await;
            let response = response.map_err(|error| Status::of_exchange(error, deadline))?;
            Answer::new(response, C::SUBTYPE, max_receive, deadline)
        }
    }

    /// The only message of the answer to `body`.
    async fn single(&self, body: Body) -> Result<Reply<C::Reply>> {
        let mut answer = self.open(body).await?;
        let Some(first) = next(&mut answer).await? else {
            return Err(Status::new(Code::Unimplemented, "the answer has no message"));
        };
        if next(&mut answer).await?.is_some() {
            return Err(Status::new(Code::Unimplemented, "the answer has more than one message"));
        }
        let message = decode(&self.codec, first)?;
        let (metadata, trailers) = answer.into_metadata();
        Ok(Reply { message, metadata, trailers })
    }
}

async fn next(answer: &mut Answer) -> Result<Option<Bytes>> {
    poll_fn(|cx| answer.poll_message(cx)).await.transpose()
}

fn decode<C: Codec>(codec: &C, bytes: Bytes) -> Result<C::Reply> {
    codec.decode(bytes).map_err(|error| {
        Status::new(Code::Internal, "a message of the answer cannot be read").caused_by(error)
    })
}

impl<C> fmt::Debug for Method<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Method").field(&self.channel).finish()
    }
}

/// The only message of an answer, with its metadata.
#[derive(Debug, Clone)]
pub struct Reply<T> {
    message: T,
    metadata: Metadata,
    trailers: Metadata,
}

impl<T> Reply<T> {
    /// The message.
    pub fn message(&self) -> &T {
        &self.message
    }

    /// The message.
    pub fn into_message(self) -> T {
        self.message
    }

    /// The metadata that came before the message.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata that came with the status.
    pub fn trailers(&self) -> &Metadata {
        &self.trailers
    }
}

/// The messages of an answer as they come: a `Stream`, and [`message`](Self::message).
///
/// Dropping it cancels the call.
#[must_use = "a call does nothing until its answer is read"]
pub struct Streaming<C: Codec> {
    codec: C,
    state: State,
}

enum State {
    Opening(SyncWrapper<BoxFuture<'static, Result<Answer>>>),
    Open(Box<Answer>),
    Failed(Status),
    Over,
}

impl<C: Codec> Streaming<C> {
    fn opening(codec: C, open: impl Future<Output = Result<Answer>> + Send + 'static) -> Self {
        Streaming { codec, state: State::Opening(SyncWrapper::new(Box::pin(open))) }
    }

    fn failed(codec: C, status: Status) -> Self {
        Streaming { codec, state: State::Failed(status) }
    }

    /// Ready when the answer's head is here, or never will be.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let State::Opening(opening) = &mut self.state {
            self.state = match ready!(opening.get_mut().as_mut().poll(cx)) {
                Ok(answer) => State::Open(Box::new(answer)),
                Err(status) => State::Failed(status),
            };
        }
        Poll::Ready(())
    }

    /// Waits for the head of the answer, and gives its metadata. Servers may hold it back until they
    /// have a message. `None` when the call failed, which [`message`](Self::message) tells.
    pub async fn metadata(&mut self) -> Option<&Metadata> {
        poll_fn(|cx| self.poll_head(cx)).await;
        self.head()
    }

    /// The metadata of the answer's head, if it is here; [`metadata`](Self::metadata) waits for it.
    pub fn head(&self) -> Option<&Metadata> {
        match &self.state {
            State::Open(answer) => Some(answer.metadata()),
            _ => None,
        }
    }

    /// The metadata that came with the status, once [`message`](Self::message) has answered `None`.
    /// That of a failure is in the [`Status`].
    pub fn trailers(&self) -> Option<&Metadata> {
        match &self.state {
            State::Open(answer) => Some(answer.trailers()),
            _ => None,
        }
    }

    /// The next message, or `None` when the call is over and succeeded. After an error there is nothing
    /// more.
    ///
    /// # Errors
    /// The status that the server ended the call with, or one of ours: see [`Status`].
    pub async fn message(&mut self) -> Result<Option<C::Reply>> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// As [`message`](Self::message), to be polled.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<C::Reply>>> {
        ready!(self.poll_head(cx));
        if let State::Open(answer) = &mut self.state {
            let bytes = ready!(answer.poll_message(cx));
            let message = bytes.map(|bytes| decode(&self.codec, bytes?));
            if let Some(Err(_)) = message {
                self.state = State::Over;
            }
            return Poll::Ready(message);
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Failed(status) => Poll::Ready(Some(Err(status))),
            _ => Poll::Ready(None),
        }
    }
}

impl<C: Codec> Stream for Streaming<C> {
    type Item = Result<C::Reply>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl<C: Codec> fmt::Debug for Streaming<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Streaming(..)")
    }
}
