//! The body of a response, as it comes.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use mimus_net::{Phase, Runtime};
use mimus_proto::{Event, Fields};

use crate::{
    Error, Kind, Result, Upgraded,
    body::{DecodeError, DecodeErrorKind, DecodeLimits, Decoder, LastWord},
    conn::{End, Exchange},
    reader::BodyReader,
};

/// The body of a response: pieces of [`Bytes`] in the order in which they come, decoded unless the
/// client was told otherwise.
///
/// It is a [`Stream`] and an [`http_body::Body`]. Reading it to the end gives the connection back to
/// the pool. Dropping it earlier gives the connection back when what is left is small and already
/// here, or when it is an event stream that has said `[DONE]`, and closes it otherwise.
pub struct Incoming {
    /// What came together with the head.
    first: Option<Bytes>,
    rest: Option<Box<Rest>>,
    decoder: Option<Box<Decoder>>,
    /// How many bytes a reader may still be given.
    allowance: Option<u64>,
    length: Option<u64>,
    // Rare, and bodies are moved about.
    trailers: Option<Box<Fields>>,
    /// What came beyond the head of an upgrade. There is no body then.
    upgraded: Option<Box<Bytes>>,
    /// The response is over, but the request is not.
    over: bool,
    ended: Option<Instant>,
    /// Bytes as they came.
    received: u64,
    last_word: LastWord,
}

/// What is needed for what is still to come.
struct Rest {
    exchange: Exchange,
    runtime: Arc<dyn Runtime>,
}

/// How a body is to be read.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    /// The fields of its head.
    pub(crate) fields: &'a Fields,
    /// Whether, and within which limits, it is decoded.
    pub(crate) decode: Option<&'a DecodeLimits>,
    /// The most bytes a reader may be given.
    pub(crate) limit: Option<u64>,
}

impl Reading<'_> {
    fn decoder(&self) -> Result<Option<Decoder>> {
        let Some(limits) = self.decode.filter(|_| self.fields.contains("content-encoding")) else {
            return Ok(None);
        };
        let values = self.fields.get_all("content-encoding");
        let tokens = values.filter_map(|value| std::str::from_utf8(value).ok());
        Decoder::for_codings(tokens, limits).map_err(undecodable)
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("length", &self.length)
            .field("ended", &self.ended.is_some())
            .finish_non_exhaustive()
    }
}

/// A body of which nothing is left.
impl Default for Incoming {
    fn default() -> Self {
        Incoming {
            first: None,
            rest: None,
            allowance: None,
            length: None,
            decoder: None,
            trailers: None,
            upgraded: None,
            over: false,
            ended: None,
            received: 0,
            last_word: LastWord::none(),
        }
    }
}

impl Incoming {
    /// The body that follows `head` on `exchange`, after what has come of it already at `now`.
    pub(crate) fn new(
        exchange: Exchange,
        reading: Reading<'_>,
        runtime: &Arc<dyn Runtime>,
        now: Instant,
    ) -> Result<Self> {
        let decoder = reading.decoder()?;
        let length = exchange.remaining_body();
        let mut incoming = Incoming::default();
        incoming.allowance = reading.limit;
        incoming.length = length.filter(|_| decoder.is_none());
        incoming.decoder = decoder.map(Box::new);
        match (incoming.length, reading.limit) {
            (Some(length), Some(limit)) if length > limit => return Err(too_long()),
            _ => {
                let rest = incoming.take_what_is_here(exchange, now);
                let keep = |exchange| Rest { exchange, runtime: Arc::clone(runtime) };
                incoming.rest = rest.map(keep).map(Box::new);
                if incoming.rest.is_some() {
                    incoming.last_word = LastWord::of(reading.fields);
                }
            }
        }
        Ok(incoming)
    }

    /// A small body comes with its head: then the exchange is over already, and the connection free
    /// for the next. Otherwise gives it back.
    fn take_what_is_here(&mut self, mut exchange: Exchange, now: Instant) -> Option<Exchange> {
        if let Some(body) = exchange.take_rest() {
            self.first = Some(body).filter(|body| !body.is_empty());
            return self.end(exchange, now);
        }
        if exchange.gathers() {
            // Left where it is, the rest can come behind it, in one piece.
            return Some(exchange);
        }
        loop {
            // The head is good, so the answer is given out. What is wrong behind it who reads on is told:
            // an exchange that failed says so again.
            let Ok(event) = exchange.buffered_event() else { break };
            match event {
                Some(Event::Data(data)) if self.first.is_none() => self.first = Some(data),
                Some(Event::Trailers(fields)) => self.trailers = Some(Box::new(fields)),
                Some(Event::End) => return self.end(exchange, now),
                Some(Event::Data(data)) => self.first = Some(join(self.first.take(), data)),
                Some(Event::Upgraded(ahead)) => {
                    self.upgraded = Some(Box::new(ahead));
                    break;
                }
                _ => break,
            }
            // Chunks that came together are joined only while that is cheap.
            let here = exchange.here();
            if self.first.as_ref().is_some_and(|first| first.len() + here > JOIN_MAX) {
                break;
            }
        }
        Some(exchange)
    }

    /// The response is over. So is the exchange, unless the server answered before it heard all.
    fn end(&mut self, exchange: Exchange, now: Instant) -> Option<Exchange> {
        if exchange.is_sending() {
            self.over = true;
            return Some(exchange);
        }
        self.ended = Some(now);
        exchange.finish(now);
        None
    }

    /// The body as an `AsyncRead`, of `futures` and, with the feature, of tokio.
    pub fn into_async_read(self) -> BodyReader {
        BodyReader::new(self)
    }

    /// Hands the rest over as it comes, in whatever coding that is. Of use before the first piece was read.
    pub fn leave_coded(&mut self) {
        self.decoder = None;
    }

    /// The length of what is still to come, if it is known: it is not for a chunked or a decoded
    /// body.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The bytes read so far as they came: before decoding, without the framing of chunks.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the response is over, though the request may not be.
    #[cfg(feature = "grpc")]
    pub(crate) fn response_ended(&self) -> bool {
        self.over
    }

    /// When the end was read.
    pub fn ended(&self) -> Option<Instant> {
        self.ended
    }

    /// The trailer section, once the end was read and if there was one.
    pub fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_deref()
    }

    /// The same, to keep.
    #[cfg(feature = "grpc")]
    pub(crate) fn into_trailers(mut self) -> Option<Fields> {
        self.trailers.take().map(|trailers| *trailers)
    }

    /// What goes by another protocol from now on, if anything does.
    pub(crate) fn into_upgraded(mut self) -> Option<Upgraded> {
        let ahead = *self.upgraded.take()?;
        let (socket, info) = self.rest.take()?.exchange.into_socket()?;
        Some(Upgraded::new(socket, info, ahead))
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// When the connection fails or ends too early, the coding is broken, or a limit is exceeded.
    /// After an error there is nothing more.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let result = match self.decoder {
            Some(_) => ready!(self.poll_decoded(cx)),
            None => ready!(self.poll_raw(cx)),
        };
        let result = result.and_then(|data| self.account(data));
        if result.is_err() {
            self.close();
        }
        Poll::Ready(result.transpose())
    }

    /// All that is left. One piece is handed on as it is; more are joined.
    ///
    /// # Errors
    /// As [`poll_data`](Self::poll_data).
    pub async fn collect(&mut self) -> Result<Bytes> {
        if self.more_may_come() {
            self.gather().await?;
        }
        let Some(first) = self.data().await? else { return Ok(Bytes::new()) };
        if !self.more_may_come() {
            return Ok(first);
        }
        let Some(second) = self.data().await? else { return Ok(first) };
        // The length comes from the peer, so it is a hint with a bound.
        let hint = self.length().unwrap_or(0).min(COLLECT_HINT_MAX) as usize;
        let hint = hint.max(self.here());
        let mut all = BytesMut::with_capacity(first.len() + second.len() + hint);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        drop((first, second));
        while let Some(data) = self.data().await? {
            all.extend_from_slice(&data);
        }
        Ok(all.freeze())
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// As [`poll_data`](Self::poll_data).
    pub async fn data(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await.transpose()
    }

    /// Waits until the next piece is all of a body whose length is known and that needs no decoding:
    /// it is read to where it will stay. Leaves other bodies as they are.
    pub(crate) async fn gather(&mut self) -> Result<()> {
        let gathered = std::future::poll_fn(|cx| match &mut self.rest {
            Some(rest) if self.decoder.is_none() && !self.over => {
                rest.exchange.poll_gather(cx, &*rest.runtime)
            }
            _ => Poll::Ready(Ok(())),
        });
        let gathered = gathered.await.map_err(|e| e.into_error(Phase::Body).after_sending(true));
        if gathered.is_err() {
            self.close();
        }
        gathered
    }

    /// How much is here and not read yet, with the framing of chunks.
    pub(crate) fn here(&mut self) -> usize {
        self.rest.as_mut().map_or(0, |rest| rest.exchange.here())
    }

    /// Whether anything can follow the piece that is here, if there is one.
    pub(crate) fn more_may_come(&self) -> bool {
        self.rest.is_some() || self.decoder.is_some()
    }

    fn account(&mut self, data: Option<Bytes>) -> Result<Option<Bytes>> {
        if let Some(data) = &data {
            let n = data.len() as u64;
            if let Some(allowance) = &mut self.allowance {
                *allowance = allowance.checked_sub(n).ok_or_else(too_long)?;
            }
            if let Some(length) = &mut self.length {
                *length = length.saturating_sub(n);
            }
            self.last_word.hear(data);
        }
        Ok(data)
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Poll::Ready(Ok(None)) };
            if let Some(data) = decoder.poll().map_err(undecodable)? {
                return Poll::Ready(Ok(Some(data)));
            }
            match ready!(self.poll_raw(cx))? {
                Some(data) => {
                    // It has room: `poll` said that it had nothing more to give.
                    if let Some(Err(_)) = self.decoder.as_mut().map(|d| d.push(data)) {
                        return Poll::Ready(Err(Error::new(Kind::Decode, "the decoder is stuck")));
                    }
                }
                None => {
                    let Some(mut decoder) = self.decoder.take() else {
                        return Poll::Ready(Ok(None));
                    };
                    return Poll::Ready(decoder.finish().map(|()| None).map_err(undecodable));
                }
            }
        }
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        if let Some(first) = self.first.take() {
            self.received += first.len() as u64;
            return Poll::Ready(Ok(Some(first)));
        }
        while let (Some(rest), None) = (&mut self.rest, &self.upgraded) {
            let Rest { exchange, runtime } = &mut **rest;
            if self.over {
                let sent = ready!(exchange.poll_rest(cx, &**runtime));
                sent.map_err(|e| e.into_error(Phase::Send).after_sending(true))?;
                self.finish();
                break;
            }
            let event = ready!(exchange.poll_event(cx, &**runtime));
            match event.map_err(|e| e.into_error(Phase::Body).after_sending(true))? {
                Event::Data(data) => {
                    self.received += data.len() as u64;
                    return Poll::Ready(Ok(Some(data)));
                }
                Event::Trailers(fields) => self.trailers = Some(Box::new(fields)),
                // The server may have answered before it heard all: it gets the rest.
                Event::End if exchange.is_sending() => self.over = true,
                Event::End => self.finish(),
                // Nothing else comes after a head that is not an upgrade's.
                _ => {}
            }
        }
        Poll::Ready(Ok(None))
    }

    fn finish(&mut self) {
        let now = Instant::now();
        self.ended = Some(now);
        if let Some(rest) = self.rest.take() {
            rest.exchange.finish(now);
        }
    }

    /// Its reader has what it wanted, and often nothing follows.
    #[cfg(feature = "sse")]
    pub(crate) fn linger(&mut self) {
        let end = if self.last_word.was_said() { End::Due } else { End::Likely };
        self.leave(Some(end));
    }

    /// Reads no more: see [`Exchange::abandon`], and [`Exchange::linger`] where the end is near.
    fn leave(&mut self, end: Option<End>) {
        if let (Some(rest), None) = (self.rest.take(), &self.upgraded) {
            match end {
                Some(end) => rest.exchange.linger(end, &rest.runtime),
                None => rest.exchange.abandon(),
            }
        }
    }

    /// Nothing of the rest can be used.
    fn close(&mut self) {
        self.first = None;
        self.rest = None;
        self.decoder = None;
    }
}

/// The most that is allocated on the word of a `Content-Length` alone.
const COLLECT_HINT_MAX: u64 = 16 * 1024 * 1024;

/// Pieces up to this size are worth a copy to hand the connection back at once.
const JOIN_MAX: usize = 16 * 1024;

fn join(first: Option<Bytes>, next: Bytes) -> Bytes {
    match first {
        Some(first) => [&first[..], &next[..]].concat().into(),
        None => next,
    }
}

fn too_long() -> Error {
    Error::new(Kind::Limit, "the body is longer than allowed").in_phase(Phase::Body)
}

fn undecodable(error: DecodeError) -> Error {
    use DecodeErrorKind as K;
    let kind = match error.kind() {
        K::TooLarge | K::RatioExceeded | K::TooManyCodings => Kind::Limit,
        _ => Kind::Decode,
    };
    Error::new(kind, "the body cannot be decoded").in_phase(Phase::Body).caused_by(error)
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.leave(self.last_word.was_said().then_some(End::Due));
    }
}

impl Stream for Incoming {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_data(cx)
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>>>> {
        let data = ready!(self.poll_data(cx));
        let frame = match data {
            Some(data) => Some(data.map(http_body::Frame::data)),
            None => {
                let trailers = self.trailers.take().and_then(|fields| fields.to_header_map().ok());
                trailers.map(|map| Ok(http_body::Frame::trailers(map)))
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none()
            && self.rest.is_none()
            && self.decoder.is_none()
            && self.trailers.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self.length {
            Some(length) => http_body::SizeHint::with_exact(length),
            None => http_body::SizeHint::default(),
        }
    }
}
