use std::{
    io::{Seek, SeekFrom, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{future::poll_fn, stream};
use http_body_util::{BodyExt, Full, StreamBody};

use super::{test_pool::Pool, *};

fn next(body: &mut Body, pool: &Pool) -> Option<Result<Bytes, BoxError>> {
    pollster::block_on(poll_fn(|cx| body.poll_next(cx, pool)))
}

fn pieces(body: &mut Body, pool: &Pool) -> Result<Vec<Bytes>, BoxError> {
    std::iter::from_fn(|| next(body, pool)).collect()
}

fn read(body: &mut Body) -> Result<Vec<u8>, BoxError> {
    Ok(pieces(body, &Pool::Thread)?.concat())
}

fn mismatch(result: Result<Vec<u8>, BoxError>) -> LengthMismatch {
    *result.unwrap_err().downcast::<LengthMismatch>().unwrap()
}

fn stream_of(
    pieces: &[&'static str],
) -> impl Stream<Item = Result<&'static str, BoxError>> + use<> {
    stream::iter(pieces.iter().map(|&piece| Ok(piece)).collect::<Vec<_>>())
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

fn file_of(contents: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(contents).unwrap();
    file
}

#[test]
fn memory_is_one_piece_without_a_copy() {
    let bytes = Bytes::from(numbers(300_000));
    let mut body = Body::from(bytes.clone());
    assert_eq!((body.length(), body.is_empty()), (Some(300_000), false));
    let pieces = pieces(&mut body, &Pool::Inline).unwrap();
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].as_ptr(), bytes.as_ptr());
    assert!(Body::empty().is_empty() && Body::from("").is_empty());
    assert!(next(&mut Body::empty(), &Pool::Inline).is_none());
    for mut body in
        [Body::from("abc"), "abc".to_owned().into(), b"abc".to_vec().into(), b"abc"[..].into()]
    {
        assert_eq!(read(&mut body).unwrap(), b"abc");
    }
}

#[test]
fn files_are_read_in_chunks_on_any_pool() {
    let contents = numbers(3 * CHUNK + 5);
    let file = file_of(&contents);
    for pool in [Pool::Inline, Pool::Thread, Pool::Caller] {
        let mut body = Body::file(file.path()).unwrap();
        assert_eq!(body.length(), Some(contents.len() as u64));
        let pieces = pieces(&mut body, &pool).unwrap();
        assert!(pieces.iter().all(|piece| piece.len() <= CHUNK));
        assert_eq!(pieces.concat(), contents, "{pool:?}");
        assert!(next(&mut body, &pool).is_none());
    }
}

#[test]
fn a_range_of_a_file_ends_with_the_file() {
    let contents = numbers(1000);
    let file = file_of(&contents);
    let range = |range| Body::file_range(file.path(), range);
    assert_eq!(read(&mut range(10..20).unwrap()).unwrap(), contents[10..20]);
    assert_eq!(read(&mut range(990..5000).unwrap()).unwrap(), contents[990..]);
    assert!(range(1000..5000).unwrap().is_empty());
    assert_eq!(range(1001..5000).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_handle_is_read_from_its_position_and_left_there() {
    let contents = numbers(1000);
    let mut file = file_of(&contents).into_file();
    file.seek(SeekFrom::Start(400)).unwrap();
    let mut kept = file.try_clone().unwrap();
    let mut body = Body::from(file);
    assert_eq!(body.length(), Some(600));
    let mut again = body.try_clone().unwrap();
    assert_eq!(read(&mut body).unwrap(), contents[400..]);
    assert_eq!(read(&mut again).unwrap(), contents[400..]);
    assert_eq!(kept.stream_position().unwrap(), 400);
}

#[test]
fn a_missing_file_and_a_directory_are_errors_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Body::file(folder.path().join("none")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let folder = Body::file(folder.path()).unwrap_err();
    assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
}

#[test]
fn a_file_that_shrank_is_no_silent_truncation() {
    let file = file_of(&numbers(1000));
    let mut shrunk = Body::file(file.path()).unwrap();
    let mut gone = shrunk.try_clone().unwrap();
    file.as_file().set_len(300).unwrap();
    let (declared, actual) = (1000, 300);
    assert_eq!(mismatch(read(&mut shrunk)), LengthMismatch { declared, actual });
    drop(file);
    let error = read(&mut gone).unwrap_err().downcast::<io::Error>().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[cfg(unix)]
#[test]
fn a_device_has_no_length_and_goes_once() {
    let mut body = Body::file("/dev/null").unwrap();
    assert_eq!((body.length(), body.is_replayable()), (None, false));
    assert_eq!(read(&mut body).unwrap(), b"");
}

/// Gives its bytes a few at a time, interrupted by signals.
struct Dripping(Vec<u8>, bool);

impl Read for Dripping {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.0.len().min(7).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

#[test]
fn readers_are_sent_as_they_drip() {
    let contents = numbers(100);
    for pool in [Pool::Inline, Pool::Thread] {
        let mut body = Body::reader(Dripping(contents.clone(), false));
        assert_eq!(body.length(), None);
        assert_eq!(pieces(&mut body, &pool).unwrap().concat(), contents);
    }
    let mut sized = Body::sized_reader(&b"abcdef"[..], 4);
    assert_eq!(read(&mut sized).unwrap(), b"abcd");
    let (declared, actual) = (7, 6);
    let short = read(&mut Body::sized_reader(&b"abcdef"[..], 7));
    assert_eq!(mismatch(short), LengthMismatch { declared, actual });
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the drive is on fire"))
    }
}

struct Panicking;

impl Read for Panicking {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("a reader that panics, on purpose");
    }
}

#[test]
fn a_failed_abandoned_or_panicked_read_is_an_error_not_a_hang() {
    let cases = [
        (Body::reader(Failing), Pool::Inline, "on fire"),
        (Body::reader(Panicking), Pool::Thread, "abandoned"),
        (Body::reader(&b"x"[..]), Pool::Closed, "abandoned"),
    ];
    for (mut body, pool, what) in cases {
        let error = next(&mut body, &pool).unwrap().unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(next(&mut body, &pool).is_none());
    }
}

#[test]
fn streams_skip_empty_pieces_and_hold_to_their_length() {
    let stream = || stream_of(&["ab", "", "cde"]);
    let mut body = Body::stream(stream());
    assert_eq!(pieces(&mut body, &Pool::Inline).unwrap(), ["ab", "cde"]);
    assert_eq!(read(&mut Body::sized_stream(stream(), 5)).unwrap(), b"abcde");
    let long = mismatch(read(&mut Body::sized_stream(stream(), 4)));
    assert_eq!((long.declared, long.actual), (4, 5));
    let short = mismatch(read(&mut Body::sized_stream(stream(), 6)));
    assert_eq!((short.declared, short.actual), (6, 5));
}

#[test]
fn nothing_comes_after_an_error() {
    let items: Vec<Result<&str, BoxError>> = vec![Ok("a"), Err("broken".into()), Ok("b")];
    let mut body = Body::stream(stream::iter(items));
    assert_eq!(next(&mut body, &Pool::Inline).unwrap().unwrap(), "a");
    assert!(next(&mut body, &Pool::Inline).unwrap().is_err());
    assert!(next(&mut body, &Pool::Inline).is_none());
}

#[test]
fn only_fresh_memory_and_files_are_replayable() {
    let file = file_of(b"file");
    let path = Body::file(file.path()).unwrap();
    let mixed = Body::chain([Body::from("a"), path.try_clone().unwrap()].into());
    for mut body in [Body::from("a"), path, mixed] {
        assert!(body.is_replayable());
        let mut clone = body.try_clone().unwrap();
        assert_eq!(clone.length(), body.length());
        assert_eq!(read(&mut body).unwrap(), read(&mut clone).unwrap());
        assert!(!body.is_replayable() && body.try_clone().is_none());
    }
    let once = [
        Body::stream(stream_of(&["a"])),
        Body::reader(&b"a"[..]),
        Body::wrap(Full::new(Bytes::from_static(b"a"))),
        Body::chain([Body::from("a"), Body::reader(&b"a"[..])].into()),
    ];
    for body in once {
        assert!(!body.is_replayable() && body.try_clone().is_none());
    }
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"x\""))])
}

#[test]
fn wrapped_bodies_keep_their_length_and_trailers() {
    let full = Body::wrap(Full::new(Bytes::from_static(b"full")));
    assert_eq!(full.length(), Some(4));
    let frames = [
        Ok::<_, BoxError>(http_body::Frame::data(Bytes::from_static(b"data"))),
        Ok(http_body::Frame::trailers(trailers())),
    ];
    let mut body = Body::wrap(StreamBody::new(stream::iter(frames)));
    assert_eq!(next(&mut body, &Pool::Inline).unwrap().unwrap(), "data");
    assert_eq!(body.take_trailers(), None);
    assert!(next(&mut body, &Pool::Inline).is_none());
    assert_eq!(body.take_trailers(), Some(trailers()));
}

#[test]
fn a_body_is_an_http_body() {
    let file = file_of(&numbers(100_000));
    let body = Body::file(file.path()).unwrap().with_trailers(trailers());
    let frames = body.into_frames(Arc::new(Pool::Thread));
    assert_eq!(http_body::Body::size_hint(&frames).exact(), Some(100_000));
    assert!(!http_body::Body::is_end_stream(&frames));
    let collected = pollster::block_on(frames.collect()).unwrap();
    assert_eq!(collected.trailers(), Some(&trailers()));
    assert_eq!(collected.to_bytes(), numbers(100_000));
}

#[test]
fn progress_is_told_a_piece_at_a_time() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let observer: Observer = Arc::new(move |progress| log.lock().unwrap().push(progress));
    let total = 2 * CHUNK + 1;
    let chain = Body::chain([Body::from(numbers(total - 1)), Body::from("x")].into());
    let mut body = chain.with_progress(observer);
    let mut clone = body.try_clone().unwrap();
    assert_eq!(read(&mut body).unwrap().len(), total);
    let transferred = |seen: &Mutex<Vec<_>>| {
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let of_total = |progress: &super::super::Progress| progress.total == Some(total as u64);
        assert!(seen.iter().all(of_total));
        seen.iter().map(|progress| progress.transferred).collect::<Vec<_>>()
    };
    let expected = [CHUNK, 2 * CHUNK, total].map(|n| n as u64);
    assert_eq!(transferred(&seen), expected);
    assert_eq!(read(&mut clone).unwrap().len(), total);
    assert_eq!(transferred(&seen), expected);
}

#[test]
fn an_observed_stream_passes_pieces_on() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let observer: Observer = Arc::new(move |progress| {
        counter.store(progress.transferred as usize, Ordering::Relaxed);
    });
    let items = [Ok::<_, BoxError>(Bytes::from_static(b"abc")), Err("late".into())];
    let mut observed = crate::Observed::new(stream::iter(items), observer, None);
    let mut next = || pollster::block_on(poll_fn(|cx| Pin::new(&mut observed).poll_next(cx)));
    assert_eq!(next().unwrap().unwrap(), "abc");
    assert!(next().unwrap().is_err());
    assert!(next().is_none());
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn a_body_crosses_threads_and_shows_no_contents() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Body>();
    assert_send_sync::<BodyFrames>();
    assert!(!format!("{:?}", Body::from("hunter2")).contains("hunter2"));
}

#[test]
fn a_caller_that_may_block_reads_itself_into_one_block() {
    struct Here(std::thread::ThreadId, usize);
    impl Read for Here {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(std::thread::current().id(), self.0);
            let count = self.1.min(buffer.len());
            buffer[..count].fill(self.1 as u8);
            self.1 -= count;
            Ok(count)
        }
    }
    let read_all = || {
        let mut body = Body::reader(Here(std::thread::current().id(), 3 * CHUNK));
        assert!(body.may_block(&Pool::Caller) && !body.may_block(&Pool::Thread));
        let mut piece = || next(&mut body, &Pool::Caller).map(|piece| piece.unwrap());
        let first = piece().unwrap().as_ptr();
        let held = piece().unwrap();
        assert_eq!(held.as_ptr(), first, "the first was dropped");
        let other = piece().unwrap();
        assert_ne!(other.as_ptr(), held.as_ptr(), "the second is still there");
        let last = other.as_ptr();
        drop(other);
        assert!(piece().is_none());
        (first, last)
    };
    let (_, last) = read_all();
    assert_eq!(read_all().0, last, "the next body reads to where the last one did");
}

#[test]
fn small_pieces_do_not_hold_the_block() {
    let mut body = Body::reader(Dripping(numbers(14), false));
    let first = next(&mut body, &Pool::Caller).unwrap().unwrap();
    let second = next(&mut body, &Pool::Caller).unwrap().unwrap();
    assert_eq!([first, second].concat(), numbers(14));
}

#[test]
fn a_reader_that_claims_more_than_it_was_asked_for_is_not_believed() {
    struct Boaster;
    impl Read for Boaster {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len() + 1)
        }
    }
    let piece = next(&mut Body::reader(Boaster), &Pool::Caller).unwrap().unwrap();
    assert_eq!(piece.len(), CHUNK);
}
