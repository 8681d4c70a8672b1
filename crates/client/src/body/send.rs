//! What a request carries.

use std::{
    collections::VecDeque,
    error::Error,
    fmt, fs,
    io::{self, Read},
    mem,
    ops::Range,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use mimus_net::Runtime;
use sync_wrapper::SyncWrapper;

use super::progress::{Meter, Observer};
use crate::BoxError;

mod adapt;
mod source;

#[cfg(test)]
pub(super) mod test_pool;
#[cfg(test)]
mod tests;

pub use adapt::BodyFrames;
use adapt::{ErasedFrames, erase};
use source::{FileSource, ReaderSource, Reading};

/// The most bytes read from a file or reader at a time, and the largest piece of an observed body.
const CHUNK: usize = 64 * 1024;

type BytesStream = dyn Stream<Item = Result<Bytes, BoxError>> + Send;

/// A request's body.
///
/// Made [`From`] text, bytes, a file or a multipart form, or by one of the constructors from a
/// stream, a reader or an [`http_body::Body`]. Contents that are not in memory yet are pulled piece by
/// piece while they are sent.
///
/// Memory and files can be sent again, for a redirect or a retry; streams and readers cannot: see
/// [`try_clone`](Self::try_clone).
pub struct Body {
    source: Source,
    length: Option<u64>,
    sent: u64,
    /// What a piece too large for an observer left over.
    rest: Bytes,
    state: State,
    // Both are rare, and bodies are moved about.
    trailers: Option<Box<HeaderMap>>,
    meter: Option<Box<Meter>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Started,
    Ended,
}

enum Source {
    Bytes(Bytes),
    Stream(SyncWrapper<Pin<Box<BytesStream>>>),
    Frames(SyncWrapper<Pin<Box<ErasedFrames>>>),
    File(Reading<FileSource>),
    Reader(Reading<ReaderSource>),
    /// One after another: a multipart form's delimiters and parts.
    Chain(VecDeque<Body>),
}

/// A body that came out longer or shorter than was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthMismatch {
    /// Bytes that were declared.
    pub declared: u64,
    /// Bytes that came; when too many, those counted until it was noticed.
    pub actual: u64,
}

impl fmt::Display for LengthMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { declared, actual } = self;
        write!(f, "the request body was declared as {declared} bytes but has ")?;
        match actual > declared {
            true => write!(f, "at least {actual}"),
            false => write!(f, "only {actual}"),
        }
    }
}

impl Error for LengthMismatch {}

impl Body {
    fn new(source: Source, length: Option<u64>) -> Self {
        Self {
            source,
            length,
            sent: 0,
            rest: Bytes::new(),
            state: State::Fresh,
            trailers: None,
            meter: None,
        }
    }

    /// No bytes at all.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(Bytes::new())
    }

    /// The pieces of `stream`, of unknown total length: sent chunked over HTTP/1.1.
    pub fn stream<S, T, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<T, E>> + Send + 'static,
        T: Into<Bytes> + 'static,
        E: Into<BoxError> + 'static,
    {
        let stream: Pin<Box<BytesStream>> = Box::pin(adapt::IntoPieces::new(stream));
        Self::new(Source::Stream(SyncWrapper::new(stream)), None)
    }

    /// The pieces of `stream`, which are `length` bytes in all. A stream that yields more or fewer
    /// fails the request with [`LengthMismatch`].
    pub fn sized_stream<S, T, E>(stream: S, length: u64) -> Self
    where
        S: Stream<Item = Result<T, E>> + Send + 'static,
        T: Into<Bytes> + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::stream(stream).with_length(length)
    }

    /// Everything `reader` gives, sent as it gives it.
    ///
    /// Its reads may block: a client on an asynchronous runtime makes them on that one's blocking pool,
    /// the blocking client on the calling thread, where no timeout can interrupt them.
    pub fn reader(reader: impl Read + Send + 'static) -> Self {
        Self::new(Source::Reader(Reading::idle(ReaderSource::new(reader))), None)
    }

    /// Everything `reader` gives, which is `length` bytes; it is not read further than that.
    pub fn sized_reader(reader: impl Read + Send + 'static, length: u64) -> Self {
        Self::reader(reader.take(length)).with_length(length)
    }

    /// The contents of the file at `path`, opened when they are sent. For a regular file the length
    /// is taken now; a file that has shrunk by then fails the request with [`LengthMismatch`], and
    /// one that has grown is sent up to it. A pipe or device has no length and is sent once.
    ///
    /// # Errors
    /// The file does not exist, may not be looked at, or is a directory.
    pub fn file(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match regular_length(&fs::metadata(&path)?)? {
            Some(length) => Ok(Self::file_part(FileSource::path(path, 0..length))),
            None => Ok(Self::reader(source::OpenLate::new(path))),
        }
    }

    /// The bytes of a regular file from `range.start` up to `range.end` or the end of the file,
    /// whichever comes first.
    ///
    /// # Errors
    /// As for [`file`](Self::file), and `InvalidInput` when `path` is not a regular file or the range
    /// begins past its end.
    pub fn file_range(path: impl AsRef<Path>, range: Range<u64>) -> io::Result<Self> {
        let path = path.as_ref();
        let length = regular_length(&fs::metadata(path)?)?;
        let end = length.map(|length| range.end.min(length));
        match end {
            Some(end) if range.start <= end => {
                Ok(Self::file_part(FileSource::path(path.to_owned(), range.start..end)))
            }
            Some(_) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the range begins past the end of the file",
            )),
            None => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "a range needs a regular file"))
            }
        }
    }

    /// The bytes of a regular file that is open already, from `start` to its end. The file's own position
    /// neither counts nor changes.
    ///
    /// # Errors
    /// `file` cannot be looked at, and `InvalidInput` when it is not a regular file.
    pub fn open_file(file: fs::File, start: u64) -> io::Result<Self> {
        match regular_length(&file.metadata()?)? {
            Some(length) => Ok(Self::file_part(FileSource::handle(file, start..length.max(start)))),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
        }
    }

    fn file_part(source: FileSource) -> Self {
        let length = source.remaining();
        Self::new(Source::File(Reading::idle(source)), Some(length))
    }

    /// Another library's body, with its trailers. An exact size hint is held to.
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let length = body.size_hint().exact();
        Self::new(Source::Frames(SyncWrapper::new(erase(body))), length)
    }

    pub(super) fn chain(parts: VecDeque<Self>) -> Self {
        let length = parts
            .iter()
            .try_fold(0_u64, |sum, part| part.length().and_then(|length| sum.checked_add(length)));
        Self::new(Source::Chain(parts), length)
    }

    /// Announces how many bytes there are in all, of a body that does not say. One that then gives more or
    /// fewer fails the request with [`LengthMismatch`].
    #[must_use]
    pub fn with_length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    /// Fields to send after the body, where the protocol can (RFC 9110 section 6.5).
    #[must_use]
    pub fn with_trailers(mut self, trailers: HeaderMap) -> Self {
        self.trailers = Some(Box::new(trailers));
        self
    }

    /// Whether it was given trailers.
    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// Calls `observer` after each piece, of at most 64 KiB, that the connection takes.
    #[must_use]
    pub fn with_progress(mut self, observer: Observer) -> Self {
        self.meter = Some(Box::new(Meter::new(observer, self.length)));
        self
    }

    /// How many bytes there are in all, where that is known before they are sent.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether it is known to have no bytes. (A stream may still turn out to have none.)
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == Some(0)
    }

    /// The bytes, when they are all in memory.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &self.source {
            Source::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether [`try_clone`](Self::try_clone) gives a body.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        self.state == State::Fresh
            && match &self.source {
                Source::Bytes(_) => true,
                Source::File(file) => file.source().is_some(),
                Source::Chain(parts) => parts.iter().all(Self::is_replayable),
                Source::Stream(_) | Source::Frames(_) | Source::Reader(_) => false,
            }
    }

    /// A second body with the same contents, for sending them again. `None` when they can be had only
    /// once, or when sending has begun: clone first. A clone reports to the same observer, from zero.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        if self.state != State::Fresh {
            return None;
        }
        let source = match &self.source {
            Source::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Source::File(file) => Source::File(Reading::idle(file.source()?.clone())),
            Source::Chain(parts) => {
                Source::Chain(parts.iter().map(Self::try_clone).collect::<Option<_>>()?)
            }
            Source::Stream(_) | Source::Frames(_) | Source::Reader(_) => return None,
        };
        Some(Self {
            trailers: self.trailers.clone(),
            meter: self.meter.as_ref().map(|meter| Box::new(meter.restarted())),
            ..Self::new(source, self.length)
        })
    }

    /// Whether [`poll_next`](Self::poll_next) may keep the thread for as long as a read takes.
    pub(crate) fn may_block(&self, runtime: &dyn Runtime) -> bool {
        runtime.may_block()
            && match &self.source {
                Source::File(_) | Source::Reader(_) => true,
                Source::Chain(parts) => parts.front().is_some_and(|part| part.may_block(runtime)),
                Source::Bytes(_) | Source::Stream(_) | Source::Frames(_) => false,
            }
    }

    /// The next piece, never an empty one; `None` after the last. Files and readers are read by
    /// `runtime`'s blocking pool, or on the spot where the runtime allows that.
    ///
    /// Dropping the body while a read is under way leaves that one read to finish and be forgotten.
    ///
    /// # Errors
    /// Whatever the source fails with; [`LengthMismatch`] when it does not hold to its declared
    /// length. Nothing comes after an error.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.state == State::Ended {
            return Poll::Ready(None);
        }
        self.state = State::Started;
        loop {
            let piece = match mem::take(&mut self.rest) {
                rest if rest.is_empty() => ready!(self.poll_source(cx, runtime)),
                rest => Some(Ok(rest)),
            };
            match piece.map(|piece| piece.and_then(|piece| self.account(piece))) {
                // An empty chunk would end a chunked body (RFC 9112 section 7.1).
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(piece))),
                Some(Err(error)) => {
                    self.state = State::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.state = State::Ended;
                    return Poll::Ready(self.shortfall().map(|error| Err(error.into())));
                }
            }
        }
    }

    /// The trailers to send, known once [`poll_next`](Self::poll_next) has answered `None`.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        match self.state {
            State::Ended => self.trailers.take().map(|trailers| *trailers),
            State::Fresh | State::Started => None,
        }
    }

    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        match &mut self.source {
            Source::Bytes(bytes) => {
                let bytes = mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(Ok(bytes)))
            }
            Source::Stream(stream) => stream.get_mut().as_mut().poll_next(cx),
            Source::Frames(frames) => match ready!(frames.get_mut().as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(data))),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.trailers.get_or_insert_default().extend(trailers);
                        }
                        Poll::Ready(Some(Ok(Bytes::new())))
                    }
                },
                Some(Err(error)) => Poll::Ready(Some(Err(error))),
                None => Poll::Ready(None),
            },
            Source::File(file) => file.poll_read(cx, runtime),
            Source::Reader(reader) => reader.poll_read(cx, runtime),
            Source::Chain(parts) => loop {
                let Some(part) = parts.front_mut() else {
                    return Poll::Ready(None);
                };
                match ready!(part.poll_next(cx, runtime)) {
                    Some(piece) => return Poll::Ready(Some(piece)),
                    None => drop(parts.pop_front()),
                }
            },
        }
    }

    /// Counts a piece and holds it against the declared length.
    fn account(&mut self, mut piece: Bytes) -> Result<Bytes, BoxError> {
        if self.meter.is_some() && piece.len() > CHUNK {
            self.rest = piece.split_off(CHUNK);
        }
        self.sent += piece.len() as u64;
        match self.length {
            Some(declared) if self.sent > declared => {
                Err(Box::new(LengthMismatch { declared, actual: self.sent }))
            }
            _ => {
                if let Some(meter) = &mut self.meter {
                    meter.add(piece.len());
                }
                Ok(piece)
            }
        }
    }

    fn shortfall(&self) -> Option<LengthMismatch> {
        self.length
            .filter(|&declared| self.sent < declared)
            .map(|declared| LengthMismatch { declared, actual: self.sent })
    }
}

/// The length of a regular file; `None` for what has none (a pipe, a device).
fn regular_length(metadata: &fs::Metadata) -> io::Result<Option<u64>> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    /// Shows what kind of body it is, never its contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Bytes(_) => "bytes",
            Source::Stream(_) => "stream",
            Source::Frames(_) => "frames",
            Source::File(_) => "file",
            Source::Reader(_) => "reader",
            Source::Chain(_) => "chain",
        };
        f.debug_struct("Body")
            .field("source", &source)
            .field("length", &self.length)
            .field("sent", &self.sent)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        let length = bytes.len() as u64;
        Self::new(Source::Bytes(bytes), Some(length))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<&[u8]> for Body {
    /// Copies.
    fn from(bytes: &[u8]) -> Self {
        Bytes::copy_from_slice(bytes).into()
    }
}

impl From<fs::File> for Body {
    /// The file from its present position on. A regular file has a length and can be sent again, and
    /// its position is left as it is; anything else is read to its end, once.
    fn from(mut file: fs::File) -> Self {
        let length = file.metadata().and_then(|metadata| regular_length(&metadata));
        match (length, io::Seek::stream_position(&mut file)) {
            (Ok(Some(length)), Ok(start)) => {
                Self::file_part(FileSource::handle(file, start..length.max(start)))
            }
            // What is wrong with it, if anything, the first read tells.
            _ => Self::reader(file),
        }
    }
}
