//! One stream as the byte stream of another protocol (RFC 8441 section 5, RFC 9113 section 8.5).
//!
//! What ends a TCP connection has its counterpart: END_STREAM is a FIN in that direction, RST_STREAM a
//! reset.

use std::{
    any::Any,
    fmt,
    io::{self, IoSlice},
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

use bytes::{Buf, Bytes, BytesMut};
use mimus_net::{Socket, Wait, rt::Probe, tls::TlsInfo};
use mimus_proto::{
    Event,
    h2::{Code, Stream, StreamError},
};

use super::{
    Link,
    state::{Leader, State},
};
use crate::{
    halves::{Half, Halves},
    observe::ConnectionInfo,
};

/// A stream that carries bytes. Dropping it resets the stream, unless both sides had ended it.
pub(crate) struct Tunnel {
    link: Arc<Link>,
    stream: Stream,
    info: Arc<ConnectionInfo>,
    /// What came and did not fit into what was read to.
    ahead: Bytes,
    /// Whether the server has ended its side.
    ended: bool,
    /// Room for what is written.
    room: BytesMut,
    deadline: Option<Instant>,
    halves: Arc<Halves>,
    /// Wakes both.
    waker: Waker,
}

/// Room for small writes, so that not each of them is an allocation.
const ROOM: usize = 4096;

impl Tunnel {
    /// Takes over a stream that nobody else gives up.
    pub(super) fn new(link: Arc<Link>, stream: Stream, info: Arc<ConnectionInfo>) -> Self {
        let halves = Arc::<Halves>::default();
        Tunnel {
            link,
            stream,
            info,
            ahead: Bytes::new(),
            ended: false,
            room: BytesMut::new(),
            deadline: None,
            waker: Waker::from(Arc::clone(&halves)),
            halves,
        }
    }

    /// Drives the connection until `step` is done, or the deadline has passed.
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        half: Half,
        mut step: impl FnMut(&mut State, Stream) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let (stream, until) = (self.stream, self.deadline);
        // First: another thread may have news at once.
        self.halves.wait(half, cx.waker());
        let mut driver = Context::from_waker(&self.waker);
        loop {
            let polled = self.link.with(|state| {
                let mut done = step(state, stream);
                if done.is_pending() && state.is_expired(stream) {
                    done = Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                let Poll::Ready(done) = done else {
                    return state.poll_news(&mut driver, stream, until).map(|()| None);
                };
                state.flush();
                // The socket's waker was ours, and is spent: the other half may still need it.
                let lost = state.leader == Leader::Nobody || done.is_err();
                if lost {
                    state.stand_up(stream);
                }
                Poll::Ready(Some((done, lost)))
            });
            match polled {
                Poll::Pending => return Poll::Pending,
                // There is news, which may be the other half's: who drives wakes nobody of its own stream.
                Poll::Ready(None) => {
                    if let Some(other) = self.halves.take(half.other()) {
                        other.wake();
                    }
                }
                Poll::Ready(Some((done, lost))) => {
                    drop(self.halves.take(half));
                    if lost && let Some(other) = self.halves.take(half.other()) {
                        other.wake();
                    }
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        self.poll(cx, Half::Reading, |state, stream| {
            loop {
                return match state.machine.poll_event(stream) {
                    Ok(None) => Poll::Pending,
                    Ok(Some(Event::Data(data))) => Poll::Ready(Ok(Some(data))),
                    Ok(Some(Event::End)) => Poll::Ready(Ok(None)),
                    // What else a stream can say has no meaning here.
                    Ok(Some(_)) => continue,
                    Err(error) => Poll::Ready(Err(failure(state, error))),
                };
            }
        })
    }

    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, Half::Writing, |state, stream| {
            if state.machine.is_written(stream) && !state.unflushed {
                return Poll::Ready(Ok(()));
            }
            if state.is_over() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            state.await_written(stream);
            Poll::Pending
        })
    }
}

/// Why nothing more will come.
fn failure(state: &State, error: StreamError) -> io::Error {
    let kind = match (error, state.io_error()) {
        (StreamError::Connection(_), Some(error)) => return error,
        (StreamError::Failed(_) | StreamError::Misuse(_), _) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}

impl Socket for Tunnel {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        _: Wait,
    ) -> Poll<io::Result<usize>> {
        let room = buf.capacity() - buf.len();
        if room == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        if self.ahead.is_empty() && !self.ended {
            match ready!(self.poll_data(cx))? {
                Some(data) => self.ahead = data,
                None => self.ended = true,
            }
        }
        let n = room.min(self.ahead.len());
        buf.extend_from_slice(&self.ahead[..n]);
        self.ahead.advance(n);
        if self.ahead.is_empty() {
            // It may be a slice of something much larger.
            self.ahead = Bytes::new();
        }
        Poll::Ready(Ok(n))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut room = ready!(self.poll(cx, Half::Writing, |state, stream| {
            if !state.machine.wants_body(stream) {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            match state.machine.capacity(stream) {
                0 => Poll::Pending,
                room => Poll::Ready(Ok(room)),
            }
        }))?;
        let most = bufs.iter().map(|buf| buf.len()).sum::<usize>().min(room);
        if self.room.capacity() < most {
            self.room.reserve(most.max(ROOM));
        }
        for buf in bufs {
            let part = &buf[..buf.len().min(room)];
            self.room.extend_from_slice(part);
            room -= part.len();
        }
        let data = self.room.split().freeze();
        let stream = self.stream;
        self.link
            .with(|state| {
                state.machine.send_data(stream, data)?;
                state.flush();
                Ok(most)
            })
            .map_err(|misuse: mimus_proto::ApiMisuse| io::Error::other(misuse))
            .into()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.stream;
        self.link.with(|state| {
            // Neither a second time, nor when the server wants no more of it, is there anything to say.
            let _ = state.machine.send_end(stream, None);
        });
        self.poll_written(cx)
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.deadline = at;
    }

    fn is_stale(&mut self, _: Probe) -> bool {
        let stream = self.stream;
        self.ended || self.link.with(|state| state.is_over() || !state.machine.wants_body(stream))
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.info.peer
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.info.local
    }

    fn tls(&self) -> Option<&TlsInfo> {
        self.info.tls.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.link.leave(self.stream, Code::CANCEL, Instant::now());
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("stream", &self.stream).finish_non_exhaustive()
    }
}
