//! To and from the ecosystem's streams and bodies.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use mimus_net::Runtime;

use super::{Body, BoxError, State};

/// Another library's body with its types erased.
pub(super) type ErasedFrames = dyn http_body::Body<Data = Bytes, Error = BoxError> + Send;

/// A caller's stream with its pieces and errors converted. Boxed before it is pinned, so that
/// pinning needs no projection.
pub(super) struct IntoPieces<S>(Pin<Box<S>>);

impl<S> IntoPieces<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Box::pin(stream))
    }
}

impl<S, T, E> Stream for IntoPieces<S>
where
    S: Stream<Item = Result<T, E>>,
    T: Into<Bytes>,
    E: Into<BoxError>,
{
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.0.as_mut().poll_next(cx));
        Poll::Ready(item.map(|piece| piece.map(Into::into).map_err(Into::into)))
    }
}

struct IntoFrames<B>(Pin<Box<B>>);

pub(super) fn erase<B>(body: B) -> Pin<Box<ErasedFrames>>
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    Box::pin(IntoFrames(Box::pin(body)))
}

impl<B> http_body::Body for IntoFrames<B>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.0.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame
                // Free when the data is `Bytes` already.
                .map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
                .map_err(Into::into)
        }))
    }
}

/// A [`Body`] as an [`http_body::Body`] and as a [`Stream`] of pieces, with the runtime that its files
/// and readers are read on.
pub struct BodyFrames {
    body: Body,
    runtime: Arc<dyn Runtime>,
}

impl Body {
    /// Hands the body to a library that takes [`http_body::Body`] or [`Stream`].
    #[must_use]
    pub fn into_frames(self, runtime: Arc<dyn Runtime>) -> BodyFrames {
        BodyFrames { body: self, runtime }
    }
}

impl http_body::Body for BodyFrames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body, runtime } = &mut *self;
        let frame = match ready!(body.poll_next(cx, &**runtime)) {
            Some(piece) => Some(piece.map(Frame::data)),
            None => body.take_trailers().map(Frame::trailers).map(Ok),
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self.body.state {
            State::Ended => self.body.trailers.is_none(),
            State::Fresh | State::Started => self.body.is_empty() && self.body.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.length {
            Some(length) => SizeHint::with_exact(length.saturating_sub(self.body.sent)),
            None => SizeHint::default(),
        }
    }
}

impl Stream for BodyFrames {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { body, runtime } = &mut *self;
        body.poll_next(cx, &**runtime)
    }
}

impl fmt::Debug for BodyFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}
