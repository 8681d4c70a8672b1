//! A connection with many streams at a time, without a task of its own: one of the lanes that wait reads
//! for all, and hands that on when it has its answer. What the lanes ask for goes out in one write.
//!
//! Only what is short is sent, in a frame behind its head.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use mimus_bench_kit::{Outgoing, PeerError, Seen};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_boring::SslStream;

use super::{
    request::Request,
    wire::{Event, Wire},
};

/// The longest body that is sent.
const UPLOAD_MAX: usize = 16 * 1024;

/// A socket, plain or below TLS.
pub enum Socket {
    Plain(TcpStream),
    Tls(Box<SslStream<TcpStream>>),
}

impl Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(into);
        ready!(match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, &mut into),
            Self::Tls(socket) => Pin::new(socket).poll_read(cx, &mut into),
        })?;
        Poll::Ready(Ok(into.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }
}

/// The connection.
pub struct Shared(Mutex<State>);

struct State {
    socket: Socket,
    wire: Wire,
    /// Of what is to be sent, so much is.
    sent: usize,
    lanes: Vec<Lane>,
    free: Vec<usize>,
    /// The lanes by stream, from the first on that is not answered; `None` is answered.
    streams: VecDeque<Option<usize>>,
    first: u32,
    /// The lane that reads.
    leader: Option<usize>,
    failed: bool,
}

/// A stream under way, or the memory of one.
#[derive(Default)]
struct Lane {
    body: Vec<u8>,
    done: bool,
    waker: Option<Waker>,
}

impl Shared {
    pub fn new(socket: Socket) -> Self {
        Self(Mutex::new(State {
            socket,
            wire: Wire::new(),
            sent: 0,
            lanes: Vec::new(),
            free: Vec::new(),
            streams: VecDeque::new(),
            first: 1,
            leader: None,
            failed: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn exchange(
        &self,
        request: &Request,
        upload: Outgoing,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        let (body, text) = match (&request.message, upload) {
            (Some(message), Outgoing::Known(text)) => (&message[..], Some(text)),
            (None, Outgoing::None) => (&[][..], None),
            _ => return Err("streams at a time are a GET or a call".into()),
        };
        let lane = self.lock().open(request, body)?;
        let mut waited = false;
        poll_fn(|cx| self.lock().poll(lane, &mut waited, cx)).await?;
        let mut state = self.lock();
        let answer = &state.lanes[lane].body;
        seen.status(200);
        match text {
            None => seen.whole(answer),
            Some(text) if answer == body => seen.whole(&text),
            Some(_) => return Err("the message came back as another".into()),
        }
        state.free.push(lane);
        Ok(())
    }
}

impl State {
    /// Opens a stream, and gives the lane that is to wait for it.
    fn open(&mut self, request: &Request, body: &[u8]) -> Result<usize, PeerError> {
        if body.len() > UPLOAD_MAX {
            return Err("a body too long for streams at a time".into());
        }
        let stream = self.wire.open(&request.block, body.is_empty());
        if !body.is_empty() {
            let (head, taken) = self.wire.frame(stream, body.len(), true).unwrap_or_default();
            if taken < body.len() {
                return Err("the window is shut".into());
            }
            self.wire.out.extend_from_slice(&head);
            self.wire.out.extend_from_slice(body);
        }
        let lane = self.free.pop().unwrap_or_else(|| {
            self.lanes.push(Lane::default());
            self.lanes.len() - 1
        });
        self.lanes[lane].done = false;
        self.lanes[lane].body.clear();
        self.streams.push_back(Some(lane));
        Ok(lane)
    }

    fn poll(
        &mut self,
        lane: usize,
        waited: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), PeerError>> {
        if self.failed {
            return Poll::Ready(Err("the connection failed".into()));
        }
        if self.lanes[lane].done {
            self.retire(lane);
            return Poll::Ready(Ok(()));
        }
        if *self.leader.get_or_insert(lane) != lane {
            let waker = &mut self.lanes[lane].waker;
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        // The lanes that were answered with this one have something to ask first.
        if !*waited && self.streams.len() < self.lanes.len() {
            *waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let led = self.lead(lane, cx);
        if let Poll::Ready(led) = &led {
            self.failed = led.is_err();
            self.retire(lane);
        }
        led
    }

    /// Hands the reading on, if it was this lane's.
    fn retire(&mut self, lane: usize) {
        if self.leader != Some(lane) {
            return;
        }
        self.leader = None;
        let waits = |lane: &&mut Lane| !lane.done || self.failed;
        let wakers = self.lanes.iter_mut().filter(waits).filter_map(|lane| lane.waker.take());
        let wanted = if self.failed { usize::MAX } else { 1 };
        wakers.take(wanted).for_each(Waker::wake);
    }

    /// Sends what is to be sent, and reads until this lane is answered.
    fn lead(&mut self, lane: usize, cx: &mut Context<'_>) -> Poll<Result<(), PeerError>> {
        loop {
            while self.sent < self.wire.out.len() {
                let Poll::Ready(n) = self.socket.poll_write(cx, &self.wire.out[self.sent..])?
                else {
                    break;
                };
                self.sent += n;
            }
            if self.sent == self.wire.out.len() {
                self.wire.out.clear();
                self.sent = 0;
            }
            let n = ready!(self.socket.poll_read(cx, self.wire.room()))?;
            self.wire.filled(n)?;
            self.take()?;
            if self.lanes[lane].done {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Takes all that was read.
    fn take(&mut self) -> Result<(), PeerError> {
        loop {
            let (stream, end) = match self.wire.event()? {
                Event::Head { stream, end, .. } => (stream, end),
                Event::Data { stream, at, end } => {
                    if let Some(lane) = self.lane(stream) {
                        self.lanes[lane].body.extend_from_slice(self.wire.bytes(at));
                    }
                    (stream, end)
                }
                Event::Trailers { stream } => (stream, true),
                Event::Other => continue,
                Event::More => return Ok(()),
            };
            if end {
                self.answered(stream);
            }
        }
    }

    fn place(&self, stream: u32) -> usize {
        (stream.wrapping_sub(self.first) / 2) as usize
    }

    fn lane(&self, stream: u32) -> Option<usize> {
        *self.streams.get(self.place(stream))?
    }

    fn answered(&mut self, stream: u32) {
        let place = self.place(stream);
        let Some(lane) = self.streams.get_mut(place).and_then(Option::take) else { return };
        self.lanes[lane].done = true;
        if let Some(waker) = self.lanes[lane].waker.take() {
            waker.wake();
        }
        while self.streams.front().is_some_and(Option::is_none) {
            self.streams.pop_front();
            self.first += 2;
        }
    }
}
