//! A body of JSON values, one a line (NDJSON, JSON Lines).

use std::{
    fmt,
    future::poll_fn,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mimus_net::{Phase, rt};
use mimus_proto::sse::{Ends, Limits, Lines};
use serde::de::DeserializeOwned;
use url::Url;

use super::too_long;
use crate::{
    Error, Incoming, Kind, Response, Result,
    client::{Async, Blocking},
};

/// The values of a body that has one a line, as they come: a [`Stream`], or an [`Iterator`] where calls
/// block.
///
/// Blank lines are passed over; the last line needs no end. Dropping it gives the connection back when the
/// rest is small and here, or about to be.
pub struct JsonLines<T, M = Async> {
    body: Incoming,
    /// Until the body is over.
    lines: Option<Lines>,
    url: Url,
    mode: PhantomData<fn() -> (T, M)>,
}

impl<M> Response<M> {
    /// The body as JSON values, one a line. Whatever the type of an answer is, it is read so; its status is
    /// for [`error_for_status`](Self::error_for_status) to look at.
    pub fn into_json_lines<T: DeserializeOwned>(self) -> JsonLines<T, M> {
        JsonLines {
            url: self.url().clone(),
            lines: Some(Lines::new(Ends::Lf, Limits::default().line)),
            body: self.into_body(),
            mode: PhantomData,
        }
    }
}

impl<T: DeserializeOwned, M> JsonLines<T, M> {
    /// Sets how many bytes a line may have: [`Limits::line`] by default. To be called before the first is
    /// read.
    #[must_use]
    pub fn line_limit(mut self, bytes: usize) -> Self {
        self.lines = Some(Lines::new(Ends::Lf, bytes));
        self
    }

    /// The next value, or `None` when the body is over.
    ///
    /// # Errors
    /// Of [`Kind::Decode`] when a line is not such JSON, behind which the next can still be read. Behind others
    /// there is nothing more: [`Kind::Limit`] when a line is longer than allowed, and those of
    /// [`Incoming::poll_data`].
    pub fn poll_value(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            let Some(lines) = &mut self.lines else { return Poll::Ready(None) };
            let error = match lines.next_line() {
                Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
                Ok(Some(line)) => return Poll::Ready(Some(read(&line, &self.url))),
                Ok(None) => match ready!(self.body.poll_data(cx)) {
                    Some(Ok(piece)) => {
                        lines.push(piece);
                        continue;
                    }
                    Some(Err(error)) => error,
                    None => {
                        let last = self.lines.take().and_then(Lines::finish);
                        let last = last.filter(|line| !line.trim_ascii().is_empty());
                        return Poll::Ready(last.map(|line| read(&line, &self.url)));
                    }
                },
                Err(cause) => too_long(cause),
            };
            self.lines = None;
            return Poll::Ready(Some(Err(error.on(&self.url))));
        }
    }

    /// The body behind it.
    pub fn get_ref(&self) -> &Incoming {
        &self.body
    }
}

fn read<T: DeserializeOwned>(line: &[u8], url: &Url) -> Result<T> {
    serde_json::from_slice(line).map_err(|cause| {
        Error::new(Kind::Decode, "a line of the body is not the JSON expected")
            .in_phase(Phase::Body)
            .after_sending(true)
            .on(url)
            .caused_by(cause)
    })
}

impl<T: DeserializeOwned> JsonLines<T, Async> {
    /// As [`poll_value`](Self::poll_value), awaited. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`poll_value`](Self::poll_value).
    pub async fn next_value(&mut self) -> Result<Option<T>> {
        poll_fn(|cx| self.poll_value(cx)).await.transpose()
    }
}

impl<T: DeserializeOwned> Stream for JsonLines<T, Async> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_value(cx)
    }
}

impl<T: DeserializeOwned> Iterator for JsonLines<T, Blocking> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        rt::Blocking::block_on(poll_fn(|cx| self.poll_value(cx)))
    }
}

impl<T, M> Drop for JsonLines<T, M> {
    fn drop(&mut self) {
        self.body.linger();
    }
}

impl<T, M> fmt::Debug for JsonLines<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("over", &self.lines.is_none()).finish_non_exhaustive()
    }
}
