//! Contents behind blocking reads, read one chunk at a time: by whoever polls where the runtime allows
//! that, else on its blocking pool.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    mem,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use mimus_net::Runtime;
use sync_wrapper::SyncWrapper;

use super::{BoxError, CHUNK};

/// Something to be read in chunks by calls that may block.
pub(super) trait Blocking: Send + 'static {
    /// The next chunk of at most [`CHUNK`] bytes, read to `block`; an empty one is the end.
    fn read_chunk(&mut self, block: &mut Block) -> io::Result<Bytes>;
}

/// A source that is here, or away being read.
pub(super) enum Reading<S> {
    Idle(Box<Supply<S>>),
    Away(Arc<Errand<S>>),
    /// A read failed, or its thread never came back.
    Lost,
}

/// A source, and where it is read to.
pub(super) struct Supply<S> {
    source: S,
    block: Block,
}

impl<S: Blocking> Supply<S> {
    fn read_chunk(&mut self) -> io::Result<Bytes> {
        self.source.read_chunk(&mut self.block)
    }
}

/// Where a blocking read leaves its result.
pub(super) struct Errand<S>(Mutex<Progress<S>>);

enum Progress<S> {
    /// With whom to wake, once somebody waits.
    Running(Option<Waker>),
    Done(Box<Supply<S>>, io::Result<Bytes>),
    /// The job was dropped unrun or panicked.
    Abandoned,
}

/// The reading side of an [`Errand`]: whatever happens to it, the waiting side is told.
struct Job<S>(Arc<Errand<S>>);

impl<S> Errand<S> {
    fn lock(&self) -> MutexGuard<'_, Progress<S>> {
        // A waker's panic leaves the state whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves `outcome` unless there is one already, and wakes whoever waits.
    fn settle(&self, outcome: Progress<S>) {
        let mut progress = self.lock();
        if !matches!(*progress, Progress::Running(_)) {
            return;
        }
        let before = mem::replace(&mut *progress, outcome);
        drop(progress);
        if let Progress::Running(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<S> Drop for Job<S> {
    fn drop(&mut self) {
        self.0.settle(Progress::Abandoned);
    }
}

impl<S: Blocking> Reading<S> {
    pub(super) fn idle(source: S) -> Self {
        Self::Idle(Box::new(Supply { source, block: Block::default() }))
    }

    /// The source, unless it is being read.
    pub(super) fn source(&self) -> Option<&S> {
        match self {
            Self::Idle(supply) => Some(&supply.source),
            Self::Away(_) | Self::Lost => None,
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        runtime: &dyn Runtime,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let errand = match mem::replace(self, Self::Lost) {
            Self::Idle(mut supply) if runtime.may_block() => {
                let chunk = supply.read_chunk();
                return Poll::Ready(self.settle(supply, chunk));
            }
            Self::Idle(supply) => dispatch(supply, runtime),
            Self::Away(errand) => errand,
            Self::Lost => return Poll::Ready(None),
        };
        // The job may have run inside `spawn_blocking`, so look before waiting.
        let mut progress = errand.lock();
        let outcome = match &mut *progress {
            Progress::Running(waker) => {
                *waker = Some(cx.waker().clone());
                drop(progress);
                *self = Self::Away(errand);
                return Poll::Pending;
            }
            settled => mem::replace(settled, Progress::Abandoned),
        };
        drop(progress);
        match outcome {
            Progress::Done(supply, chunk) => Poll::Ready(self.settle(supply, chunk)),
            Progress::Running(_) | Progress::Abandoned => Poll::Ready(Some(Err(io::Error::other(
                "reading the request body was abandoned by the runtime",
            )
            .into()))),
        }
    }

    /// What a read came to; the source is here again unless it failed.
    fn settle(
        &mut self,
        supply: Box<Supply<S>>,
        chunk: io::Result<Bytes>,
    ) -> Option<Result<Bytes, BoxError>> {
        match chunk {
            Ok(chunk) => {
                *self = Self::Idle(supply);
                (!chunk.is_empty()).then_some(Ok(chunk))
            }
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// Sends `supply` off to be read once.
fn dispatch<S: Blocking>(mut supply: Box<Supply<S>>, runtime: &dyn Runtime) -> Arc<Errand<S>> {
    let errand = Arc::new(Errand(Mutex::new(Progress::Running(None))));
    let job = Job(Arc::clone(&errand));
    runtime.spawn_blocking(Box::new(move || {
        let chunk = supply.read_chunk();
        job.0.settle(Progress::Done(supply, chunk));
    }));
    errand
}

/// Chunks smaller than this are copied, so that one that waits to be sent does not hold a whole block.
const COPY_BELOW: usize = CHUNK / 4;

thread_local! {
    /// The block of the last body that ended on this thread.
    static SPARE: Cell<Bytes> = const { Cell::new(Bytes::new()) };
}

/// [`CHUNK`] bytes to read to, the same again for each chunk once nobody holds the last one, and from
/// one body of a thread to the next. Never zeroed twice.
#[derive(Default)]
pub(super) struct Block(Bytes);

impl Block {
    /// One `read` of at most `room` bytes, retried when a signal interrupts it.
    fn fill(
        &mut self,
        room: usize,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Bytes> {
        let mut block = self.take();
        let room = room.min(block.len());
        let count = loop {
            match read(&mut block[..room]) {
                // Who says that it read more than it was asked for is not believed.
                Ok(count) => break count.min(room),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.0 = block.freeze();
        Ok(match count < COPY_BELOW {
            true => Bytes::copy_from_slice(&self.0[..count]),
            false => self.0.slice(..count),
        })
    }

    fn take(&mut self) -> BytesMut {
        let mut block = mem::take(&mut self.0);
        if block.is_empty() {
            block = SPARE.try_with(Cell::take).unwrap_or_default();
        }
        match block.try_into_mut() {
            Ok(block) => block,
            Err(_) => BytesMut::zeroed(CHUNK),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // A thread that ends needs none.
            let _ = SPARE.try_with(|spare| spare.set(mem::take(&mut self.0)));
        }
    }
}

/// A caller's reader.
pub(super) struct ReaderSource(SyncWrapper<Box<dyn Read + Send>>);

impl ReaderSource {
    pub(super) fn new(reader: impl Read + Send + 'static) -> Self {
        Self(SyncWrapper::new(Box::new(reader)))
    }
}

impl Blocking for ReaderSource {
    fn read_chunk(&mut self, block: &mut Block) -> io::Result<Bytes> {
        block.fill(CHUNK, |buffer| self.0.get_mut().read(buffer))
    }
}

/// Part of a regular file, read at its own offset: clones share a handle without disturbing each
/// other.
#[derive(Clone)]
pub(super) struct FileSource {
    handle: Handle,
    range: Range<u64>,
}

#[derive(Clone)]
enum Handle {
    /// Not opened yet.
    Path(PathBuf),
    Open(Arc<File>),
}

impl FileSource {
    pub(super) fn path(path: PathBuf, range: Range<u64>) -> Self {
        let handle = Handle::Path(path);
        Self { handle, range }
    }

    pub(super) fn handle(file: File, range: Range<u64>) -> Self {
        let handle = Handle::Open(Arc::new(file));
        Self { handle, range }
    }

    pub(super) fn remaining(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn open(&mut self) -> io::Result<Arc<File>> {
        match &self.handle {
            Handle::Open(file) => Ok(Arc::clone(file)),
            Handle::Path(path) => {
                let file = Arc::new(File::open(path)?);
                self.handle = Handle::Open(Arc::clone(&file));
                Ok(file)
            }
        }
    }
}

impl Blocking for FileSource {
    fn read_chunk(&mut self, block: &mut Block) -> io::Result<Bytes> {
        let room = usize::try_from(self.remaining()).map_or(CHUNK, |left| left.min(CHUNK));
        if room == 0 {
            return Ok(Bytes::new());
        }
        let file = self.open()?;
        let chunk = block.fill(room, |buffer| read_at(&file, buffer, self.range.start))?;
        self.range.start += chunk.len() as u64;
        Ok(chunk)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// A pipe or device, opened by its first read: opening a pipe waits for its writer.
pub(super) struct OpenLate {
    path: PathBuf,
    file: Option<File>,
}

impl OpenLate {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }
}

impl Read for OpenLate {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            closed => closed.insert(File::open(&self.path)?),
        };
        file.read(buffer)
    }
}
