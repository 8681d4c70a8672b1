//! From messages to the body that carries them.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use mimus_proto::grpc::{FrameError, PREFIX, set_prefix};

use super::{Code, Codec, Result, Status};
use crate::{Body, Coding, body::encode};

/// Messages that are ready together share a piece of the body up to this many bytes.
const PIECE: usize = 16 * 1024;

/// How messages are framed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Framing {
    pub(super) coding: Option<Coding>,
    /// The most bytes a message may have before it is compressed.
    pub(super) limit: Option<usize>,
}

impl Framing {
    /// Appends one message as it stands in a body.
    fn append<C: Codec>(self, codec: &C, message: C::Request, to: &mut BytesMut) -> Result<()> {
        let start = to.len();
        to.extend_from_slice(&[0; PREFIX]);
        codec.encode(message, to).map_err(|error| {
            Status::new(Code::Internal, "the message cannot be serialized").caused_by(error)
        })?;
        let length = to.len() - start - PREFIX;
        if let Some(limit) = self.limit.filter(|&limit| length > limit) {
            let too_long = FrameError::TooLong { length: length as u64, limit: limit as u64 };
            return Err(too_long.into());
        }
        if let Some(coding) = self.coding {
            let compressed = encode(coding, &to[start + PREFIX..]).map_err(|error| {
                Status::new(Code::Internal, "the message cannot be compressed").caused_by(error)
            })?;
            to.truncate(start + PREFIX);
            to.extend_from_slice(&compressed);
        }
        Ok(set_prefix(&mut to[start..], self.coding.is_some())?)
    }

    /// The body of one message. It is in memory, so that it can be sent again where that is safe.
    pub(super) fn one<C: Codec>(self, codec: &C, message: C::Request) -> Result<Body> {
        let mut framed = BytesMut::new();
        self.append(codec, message, &mut framed)?;
        Ok(framed.freeze().into())
    }

    /// The body of a stream of messages, each made when there is room for it.
    pub(super) fn many<C: Codec, S>(self, codec: C, messages: S) -> Body
    where
        S: Stream<Item = C::Request> + Send + 'static,
    {
        Body::stream(Upload {
            framing: self,
            codec,
            messages: Some(Box::pin(messages)),
            failed: None,
        })
    }
}

/// A stream of messages as pieces of a body.
struct Upload<C, S> {
    framing: Framing,
    codec: C,
    /// `None` when there are no more.
    messages: Option<Pin<Box<S>>>,
    failed: Option<Status>,
}

impl<C: Codec, S: Stream<Item = C::Request>> Stream for Upload<C, S> {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        if let Some(status) = this.failed.take() {
            return Poll::Ready(Some(Err(status)));
        }
        let mut piece = BytesMut::new();
        while piece.len() < PIECE
            && let Some(messages) = &mut this.messages
        {
            match messages.as_mut().poll_next(cx) {
                Poll::Ready(Some(message)) => {
                    let whole = piece.len();
                    let appended = this.framing.append(&this.codec, message, &mut piece);
                    if let Err(status) = appended {
                        piece.truncate(whole);
                        this.messages = None;
                        this.failed = Some(status);
                    }
                }
                Poll::Ready(None) => this.messages = None,
                Poll::Pending if piece.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if !piece.is_empty() {
            return Poll::Ready(Some(Ok(piece.freeze())));
        }
        Poll::Ready(this.failed.take().map(Err))
    }
}
