//! A WebSocket as both faces share it.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use mimus::{
    Error, Kind,
    ws::{self, ByteString, Close, CloseCode, Message, Receiver, Sender},
};
use mimus_net::{Runtime, rt};
use pyo3::{
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::PyDict,
};
use tokio::sync;

use super::handshake::Handshake;
use crate::{
    errors,
    session::{Owner, after, lock},
};

/// Both halves of a WebSocket, and what became of it.
///
/// Each half is locked for the time of a poll alone, so that it can be taken away from who waits for it. Whoever sends
/// or receives has his turn meanwhile.
pub(crate) struct Socket {
    inbox: Mutex<Inbox>,
    sender: Mutex<Option<Sender>>,
    /// The turns of those who receive. There are two at a time only when it is being closed.
    receiving: sync::Mutex<()>,
    /// The turns of those who send.
    sending: sync::Mutex<()>,
    /// Set by our own side.
    closing: AtomicBool,
    end: Mutex<Option<Arc<End>>>,
    runtime: &'static dyn Runtime,
    owner: Owner,
    pub(super) handshake: Py<Handshake>,
}

struct Inbox {
    receiver: Option<Receiver>,
    /// What was waited for and is not handed out yet.
    kept: VecDeque<Message>,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct End {
    /// What the server said, if it closed and said something.
    close: Option<Close>,
    /// Why it did not close in order.
    error: Option<Error>,
}

/// What receiving comes to.
#[derive(Debug)]
pub(super) enum Received {
    /// A message, which is kept for who asks for it.
    Kept,
    /// There is no more.
    Over(Arc<End>),
    /// Not in time.
    Late,
    /// Somebody else receives.
    Busy,
}

impl Socket {
    pub(super) fn new(
        socket: ws::WebSocket,
        handshake: Py<Handshake>,
        runtime: &'static dyn Runtime,
    ) -> Self {
        let (receiver, sender) = socket.split();
        Socket {
            inbox: Mutex::new(Inbox { receiver: Some(receiver), kept: VecDeque::new() }),
            sender: Mutex::new(Some(sender)),
            receiving: sync::Mutex::default(),
            sending: sync::Mutex::default(),
            closing: AtomicBool::new(false),
            end: Mutex::default(),
            runtime,
            owner: Owner::here(),
            handshake,
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    pub(super) fn end(&self) -> Option<Arc<End>> {
        lock(&self.end).clone()
    }

    /// Whether nothing more can be sent.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closing() || lock(&self.end).is_some()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The next message, if it was read already and nobody waits for it.
    pub(super) fn here(&self) -> Option<Result<Message, Arc<End>>> {
        let inbox = &mut *lock(&self.inbox);
        if let Some(message) = inbox.kept.pop_front() {
            return Some(Ok(message));
        }
        let _turn = self.receiving.try_lock().ok()?;
        let end = loop {
            match inbox.receiver.as_mut()?.try_recv() {
                Ok(Some(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    return Some(Ok(message));
                }
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => break End { close: None, error: Some(error) },
            }
        };
        inbox.receiver = None;
        Some(Err(self.ended(end)))
    }

    /// Waits for the next message, and keeps it. Dropping the future loses none.
    pub(super) async fn receive(&self, limit: Option<Duration>) -> Received {
        let _turn = match self.receiving.try_lock() {
            Ok(turn) => turn,
            // It is about to end, and this is told how.
            Err(_) if self.is_closing() => self.receiving.lock().await,
            Err(_) => return Received::Busy,
        };
        let next = poll_fn(|cx| self.poll_receive(cx));
        let next = rt::within(self.runtime, after(limit), next).await;
        match next {
            Some(Ok(message)) => {
                lock(&self.inbox).kept.push_back(message);
                Received::Kept
            }
            Some(Err(end)) => Received::Over(end),
            None => Received::Late,
        }
    }

    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<Message, Arc<End>>> {
        if let Some(end) = self.end() {
            return Poll::Ready(Err(end));
        }
        let place = &mut lock(&self.inbox).receiver;
        let end = loop {
            let Some(receiver) = place else { break End { close: None, error: None } };
            match ready!(Pin::new(&mut *receiver).poll_next(cx)) {
                Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                    return Poll::Ready(Ok(message));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    break End { close: receiver.close_reason(), error: Some(error) };
                }
                None => break End { close: receiver.close_reason(), error: None },
            }
        };
        *place = None;
        Poll::Ready(Err(self.ended(end)))
    }

    /// Keeps how it ended, and lets go of the connection.
    fn ended(&self, end: End) -> Arc<End> {
        let sender = lock(&self.sender).take();
        drop(sender);
        lock(&self.end).get_or_insert_with(|| Arc::new(end)).clone()
    }

    /// Sends a message, once those that came before are sent.
    ///
    /// # Errors
    /// How that failed; `None` if it is closed.
    pub(super) async fn send(&self, message: &Outgoing) -> Result<(), Option<Error>> {
        let _turn = self.sending.lock().await;
        poll_fn(|cx| self.poll_sender(cx, |sender, cx| pin!(message.feed(sender)).poll(cx)))
            .await?;
        poll_fn(|cx| self.poll_sender(cx, |sender, cx| pin!(sender.flush()).poll(cx))).await
    }

    fn poll_sender(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Sender, &mut Context<'_>) -> Poll<mimus::Result<()>>,
    ) -> Poll<Result<(), Option<Error>>> {
        match &mut *lock(&self.sender) {
            Some(sender) => poll(sender, cx).map_err(Some),
            None => Poll::Ready(Err(None)),
        }
    }

    /// Closes it in order: says so, and waits for the server to, for as long as that may take.
    pub(super) async fn close(&self, code: CloseCode, reason: &str) {
        self.say_goodbye(code, reason);
        // Whoever receives at the moment writes it, and hears the end. It has a time limit from now on.
        let _turn = self.receiving.lock().await;
        while poll_fn(|cx| self.poll_receive(cx)).await.is_ok() {}
    }

    /// Closes it without waiting for anything.
    pub(super) fn abandon(&self, cx: &mut Context<'_>, code: CloseCode) {
        self.say_goodbye(code, "");
        // If it cannot be said at once, it is not said.
        let _ = self.poll_sender(cx, |sender, cx| pin!(sender.flush()).poll(cx));
        self.ended(End { close: Some(ABNORMAL), error: None });
        let receiver = lock(&self.inbox).receiver.take();
        drop(receiver);
    }

    fn say_goodbye(&self, code: CloseCode, reason: &str) {
        if self.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(sender) = &mut *lock(&self.sender) {
            let close = Message::Close(Some(Close { code, reason: reason.into() }));
            // It may have been closed by the server meanwhile.
            let _ = Pin::new(sender).start_send(close);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.owner.is_here() {
            // To say goodbye is the parent's business.
            mem::forget((lock(&self.inbox).receiver.take(), lock(&self.sender).take()));
        }
    }
}

/// What is said of a connection that was given up.
const ABNORMAL: Close = Close { code: CloseCode::ABNORMAL, reason: ByteString::from_static("") };

/// What is sent.
pub(super) enum Outgoing {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    /// Memory of Python's that is no `bytes`.
    Buffer(Bytes),
    Ping(Bytes),
    Pong(Bytes),
}

impl Outgoing {
    /// Queues it. Dropped before its end, it has queued nothing.
    async fn feed(&self, sender: &mut Sender) -> mimus::Result<()> {
        match self {
            Outgoing::Text(text) => sender.feed_text(text).await,
            Outgoing::Bytes(bytes) => sender.feed_binary(bytes).await,
            Outgoing::Buffer(bytes) => sender.feed_binary(bytes).await,
            Outgoing::Ping(payload) => sender.feed(Message::Ping(payload.clone())).await,
            Outgoing::Pong(payload) => sender.feed(Message::Pong(payload.clone())).await,
        }
    }
}

impl End {
    /// The code: the server's, or one that stands for none.
    pub(super) fn code(&self) -> CloseCode {
        match (&self.close, &self.error) {
            (Some(close), _) => close.code,
            (None, None) => CloseCode::NO_STATUS,
            (None, Some(_)) => CloseCode::ABNORMAL,
        }
    }

    pub(super) fn reason(&self) -> &str {
        self.close.as_ref().map_or("", |close| &close.reason)
    }

    /// Whether it ended as connections should.
    pub(super) fn is_orderly(&self) -> bool {
        let orderly = [CloseCode::NORMAL, CloseCode::GOING_AWAY, CloseCode::NO_STATUS];
        self.error.is_none() && orderly.contains(&self.code())
    }

    /// The exception for who wants more.
    pub(super) fn raise(&self, py: Python<'_>) -> PyErr {
        match &self.error {
            Some(error) => raise(py, error, Some(self)),
            None => closed(py, Some(self)),
        }
    }
}

/// The exception for a failure; `end` is how the connection ended, if it did.
pub(super) fn raise(py: Python<'_>, error: &Error, end: Option<&End>) -> PyErr {
    let class = match error.kind() {
        Kind::Timeout => "WebSocketTimeout",
        Kind::Protocol | Kind::Decode => "WebSocketProtocolError",
        Kind::Limit => "WebSocketTooLarge",
        Kind::Request => "RequestError",
        _ => "WebSocketClosed",
    };
    let details = PyDict::new(py);
    let filled = match class {
        "WebSocketClosed" => fill(&details, end),
        _ => Ok(()),
    };
    match filled {
        Ok(()) => errors::raise_as(py, error, class, &details),
        Err(failure) => failure,
    }
}

/// The exception for who wants something of a WebSocket that is closed.
pub(super) fn closed(py: Python<'_>, end: Option<&End>) -> PyErr {
    let message = match end {
        None => "the WebSocket is closed".to_owned(),
        Some(end) if end.reason().is_empty() => format!("the WebSocket is closed: {}", end.code()),
        Some(end) => format!("the WebSocket is closed: {}: {}", end.code(), end.reason()),
    };
    let details = PyDict::new(py);
    fill(&details, end)
        .and_then(|()| errors::class(py, "WebSocketClosed")?.call((message,), Some(&details)))
        .map_or_else(|failure| failure, PyErr::from_value)
}

fn fill(details: &Bound<'_, PyDict>, end: Option<&End>) -> PyResult<()> {
    details.set_item("code", end.map_or(CloseCode::ABNORMAL, End::code).0)?;
    details.set_item("reason", end.map_or("", End::reason))
}
