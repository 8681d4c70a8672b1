//! What is answered, whatever its messages are: a head, messages as bytes, a status.

use std::{
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use mimus_proto::grpc::{self, Code, Deframer, Ending, Metadata};

use super::{Result, Status, coding::Compression};
use crate::{Incoming, Response};

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answer {
    /// Until the answer is over. Dropping it cancels the call.
    body: Option<(Incoming, Ending)>,
    deframer: Deframer,
    compression: Compression,
    max_message: usize,
    deadline: Option<Instant>,
    /// Whether a byte of the body came.
    heard: bool,
    metadata: Metadata,
    trailers: Metadata,
}

impl Answer {
    /// The answer that begins with this head.
    ///
    /// # Errors
    /// It is none of gRPC, or not in the serialization that was asked for.
    pub(super) fn new(
        response: Response,
        subtype: &str,
        max_message: usize,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let (head, body) = response.into_parts();
        let ending = Ending::of_head(head.status, &head.fields);
        let named = grpc::subtype(&head.fields);
        let other = named.filter(|named| !named.is_empty() && !named.eq_ignore_ascii_case(subtype));
        let refusal = match (named, other) {
            (None, _) => Some(ending.clone().status(None, false)),
            (_, Some(other)) => {
                let message = format!("the answer is serialized as {other:?}, not as {subtype:?}");
                Some(grpc::Status { code: Code::Internal, message, details: Bytes::new() })
            }
            _ => None,
        };
        let compression = Compression::named(head.fields.get("grpc-encoding"));
        let metadata = Metadata::received(head.fields);
        if let Some(refusal) = refusal {
            return Err(Status::said(refusal, metadata));
        }
        Ok(Answer {
            body: Some((body, ending)),
            deframer: Deframer::new(max_message),
            compression,
            max_message,
            deadline,
            heard: false,
            metadata,
            trailers: Metadata::new(),
        })
    }

    /// The metadata of the head and of the trailer section, when the answer is over.
    pub(super) fn into_metadata(self) -> (Metadata, Metadata) {
        (self.metadata, self.trailers)
    }

    /// The metadata of the head; none when the head is all there is.
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The metadata of the trailer section, once the answer is over.
    pub(super) fn trailers(&self) -> &Metadata {
        &self.trailers
    }

    /// The bytes of the next message, or `None` when the call succeeded and is over.
    pub(super) fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        loop {
            let Some((body, _)) = &mut self.body else { return Poll::Ready(None) };
            match self.deframer.poll() {
                Ok(None) => {}
                Ok(Some(frame)) => {
                    let message = match frame.compressed {
                        false => Ok(frame.message),
                        true => self.compression.inflate(frame.message, self.max_message),
                    };
                    return Poll::Ready(Some(message.or_else(|status| self.give_up(status))));
                }
                Err(error) => return Poll::Ready(Some(self.give_up(error.into()))),
            }
            match body.poll_data(cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    self.heard = true;
                    self.deframer.push(piece);
                }
                Poll::Ready(Some(Err(error))) => {
                    let status = Status::of_exchange(error, self.deadline);
                    return Poll::Ready(Some(self.give_up(status)));
                }
                Poll::Ready(None) => return Poll::Ready(self.end().err().map(Err)),
                // The server has said all, and does not want the rest of what is being sent.
                Poll::Pending if body.response_ended() => {
                    return Poll::Ready(self.end().err().map(Err));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ends the call before its answer did.
    fn give_up<T>(&mut self, status: Status) -> Result<T> {
        self.body = None;
        Err(status.after(&self.metadata))
    }

    /// What the end of the answer says.
    fn end(&mut self) -> Result<()> {
        let Some((body, ending)) = self.body.take() else { return Ok(()) };
        let trailers = body.into_trailers();
        let said = ending.status(trailers.as_ref(), !self.heard);
        match trailers {
            Some(trailers) => self.trailers = Metadata::received(trailers),
            // The head alone was the answer.
            None if !self.heard => self.trailers = std::mem::take(&mut self.metadata),
            None => {}
        }
        if said.code != Code::Ok {
            let trailers = std::mem::take(&mut self.trailers);
            return Err(Status::said(said, trailers).after(&self.metadata));
        }
        Ok(self.deframer.finish()?)
    }
}
