//! What is answered, whatever its messages are: a head, messages as bytes, a status.

use std::{
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::StatusCode;
use mimus_proto::{
    Fields,
    grpc::{self, Code, Deframer, Metadata},
};

use super::{Result, Status, coding::Compression};
use crate::{Incoming, Response};

/// An answer under way.
#[derive(Debug)]
pub(super) struct Answer {
    /// Until the answer is over. Dropping it cancels the call.
    body: Option<Incoming>,
    status: StatusCode,
    head: Fields,
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
        let (status, head) = (response.status(), response.fields().clone());
        let metadata = Metadata::received(&head);
        match grpc::subtype(&head) {
            None => return Err(Status::said(grpc::Status::unsaid(status, &head), metadata)),
            Some(other) if !other.is_empty() && !other.eq_ignore_ascii_case(subtype) => {
                let message = format!("the answer is serialized as {other:?}, not as {subtype:?}");
                return Err(Status::said(
                    grpc::Status { code: Code::Internal, message, details: Bytes::new() },
                    metadata,
                ));
            }
            Some(_) => {}
        }
        Ok(Answer {
            status,
            deframer: Deframer::new(max_message),
            compression: Compression::named(head.get("grpc-encoding")),
            head,
            body: Some(response.into_body()),
            max_message,
            deadline,
            heard: false,
            metadata,
            trailers: Metadata::new(),
        })
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
            let Some(body) = &mut self.body else { return Poll::Ready(None) };
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
        let Some(body) = self.body.take() else { return Ok(()) };
        let trailers = body.trailers();
        let said = grpc::Status::of_answer(self.status, &self.head, trailers, !self.heard);
        match trailers {
            Some(trailers) => self.trailers = Metadata::received(trailers),
            // The head alone was the answer.
            None if !self.heard => self.trailers = std::mem::take(&mut self.metadata),
            None => {}
        }
        if said.code != Code::Ok {
            return Err(Status::said(said, self.trailers.clone()).after(&self.metadata));
        }
        Ok(self.deframer.finish()?)
    }
}
