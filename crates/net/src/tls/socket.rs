//! A [`Socket`] that speaks TLS over another [`Socket`].

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    io::{self, IoSlice},
    net::SocketAddr,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

use boring::ssl::Ssl;
use bytes::BytesMut;

use super::{
    EarlyData, TlsConfig, TlsError, TlsInfo, early,
    error::dial_error,
    hello,
    machine::{Handshake, Plaintext, TlsMachine},
    session::SessionKey,
    shape,
};
use crate::{
    DialError, DialErrorKind, Phase, Socket, Wait,
    dial::{Host, TlsPlan},
    rt::Probe,
};

/// Early data kept for sending again, and so the most that is sent. A request that may be replayed is
/// small, and servers that refuse early data skip little of it: rustls 16 KiB, counting a record
/// again at each read until the next one is there.
const MAX_EARLY: usize = 4 * 1024;
/// Unsent records at which a write waits for the socket below.
const BACKLOG: usize = 16 * 1024;
/// How much an idle connection is read for signs of its death. Tickets are a few hundred bytes each;
/// a peer that sends more than this unasked is not worth keeping.
const MAX_PROBE: usize = 64 * 1024;

/// A TLS connection over any socket.
pub struct TlsSocket {
    inner: Box<dyn Socket>,
    machine: TlsMachine,
    stage: Stage,
    input: Input,
    close_sent: bool,
    early_data: EarlyData,
    info: Option<TlsInfo>,
    config: TlsConfig,
    session: SessionKey,
    /// Who is at the other end, for error messages.
    peer: String,
}

/// How far the handshake is.
#[derive(Debug)]
enum Stage {
    /// Nothing may be written.
    Handshake,
    /// The server has not answered; what is written goes as early data, and a copy is kept.
    Early { written: Vec<u8> },
    /// Done.
    Open,
    /// Given up.
    Failed,
}

/// Whether anything of use can still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    Ended,
}

impl TlsSocket {
    pub(super) fn new(
        inner: Box<dyn Socket>,
        ssl: Ssl,
        plan: &TlsPlan,
        host: &Host,
        port: u16,
    ) -> Result<Self, DialError> {
        let session = hello::session_key(host, port)?;
        let peer = format!("{host}:{port}");
        let machine = TlsMachine::new(ssl).map_err(|error| {
            DialError::new(Phase::Tls, DialErrorKind::Tls, format!("with {peer}")).caused_by(error)
        })?;
        Ok(TlsSocket {
            inner,
            machine,
            stage: Stage::Handshake,
            input: Input::Open,
            close_sent: false,
            early_data: EarlyData::NotOffered,
            info: None,
            config: plan.config.clone(),
            session,
            peer,
        })
    }

    /// What became of early data on this connection.
    pub fn early_data(&self) -> EarlyData {
        self.early_data
    }

    /// Drives the handshake until data may be written.
    pub(super) async fn handshake(&mut self) -> Result<(), DialError> {
        let done = poll_fn(|cx| self.poll_handshake(cx, Wait::Alone)).await;
        done.map_err(|error| dial_error(&self.peer, error))
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<io::Result<()>> {
        let done = ready!(self.drive_handshake(cx, wait));
        let failed = |error: &io::Error| error.kind() != io::ErrorKind::TimedOut;
        if done.as_ref().is_err_and(failed) {
            self.stage = Stage::Failed;
            self.config.sessions().forget(&self.session);
            // The alert is a courtesy: whether it leaves changes nothing.
            let _ = self.poll_transmit(cx);
        }
        Poll::Ready(done)
    }

    fn drive_handshake(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<io::Result<()>> {
        loop {
            match self.machine.handshake() {
                Ok(Handshake::Ready) if early::in_progress(self.machine.ssl()) => {
                    if matches!(self.stage, Stage::Handshake) {
                        // The hello waits for the first write, to leave together with it.
                        self.stage = Stage::Early { written: Vec::new() };
                        self.early_data = EarlyData::Pending;
                        self.info = Some(self.negotiated());
                        return Poll::Ready(Ok(()));
                    }
                }
                Ok(Handshake::Ready) => {
                    self.finish_handshake()?;
                    return self.poll_transmit(cx);
                }
                Ok(Handshake::WantRead) => {
                    ready!(self.poll_transmit(cx))?;
                    if ready!(self.poll_fill(cx, wait))? == 0 {
                        return Poll::Ready(Err(hung_up("before the handshake was done")));
                    }
                }
                Ok(Handshake::EarlyDataRejected) => {
                    self.early_data = EarlyData::Rejected;
                    self.machine.restart_after_rejection();
                }
                Err(error) => {
                    let error = TlsError::handshake(&self.peer, self.machine.ssl(), &error);
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// The handshake is complete: learns what was agreed, and sends rejected early data again.
    fn finish_handshake(&mut self) -> io::Result<()> {
        let info = self.negotiated();
        let stage = std::mem::replace(&mut self.stage, Stage::Open);
        if self.early_data == EarlyData::Pending {
            self.early_data = EarlyData::Accepted;
        }
        if let (EarlyData::Rejected, Stage::Early { written }) = (self.early_data, stage) {
            // RFC 8446 section 4.2.10: after a rejection the server may choose another protocol, for
            // which what was written means nothing.
            if self.info.as_ref().is_some_and(|early| early.alpn != info.alpn) {
                return Err(TlsError::alpn_changed(&self.peer).into());
            }
            self.write_all(&written)?;
        }
        self.info = Some(info);
        Ok(())
    }

    /// Encrypts all of `bytes`; only for what is already bounded.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = self.encrypt(&[IoSlice::new(bytes)], usize::MAX)?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[n..];
        }
        Ok(())
    }

    fn negotiated(&self) -> TlsInfo {
        let ssl = self.machine.ssl();
        let cipher = ssl.current_cipher();
        let chain = ssl.peer_cert_chain().into_iter().flatten();
        TlsInfo {
            version: ssl.version_str(),
            cipher: cipher.and_then(|c| c.standard_name()).unwrap_or_default().to_owned(),
            group: ssl.curve_name(),
            signature: ssl.peer_signature_algorithm().and_then(|algorithm| algorithm.name()),
            alpn: ssl.selected_alpn_protocol().map(<[u8]>::to_vec),
            ech_accepted: ssl.ech_accepted(),
            application_settings: shape::peer_settings(ssl),
            resumed: ssl.session_reused(),
            early_data: early::accepted(ssl) && !early::in_progress(ssl),
            certificates: chain.filter_map(|certificate| certificate.to_der().ok()).collect(),
        }
    }

    /// Sends what the machine has to send.
    #[inline]
    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.machine.has_output() { self.poll_send(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let bytes = self.machine.transmit();
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.inner.poll_write(cx, &[IoSlice::new(bytes)]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.machine.transmitted(n),
            }
        }
    }

    /// One read of the socket below into the machine; 0 is its end.
    fn poll_fill(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<io::Result<usize>> {
        let read = self.inner.poll_read(cx, self.machine.feed(), wait);
        match &read {
            Poll::Ready(Ok(1..)) => return read,
            Poll::Ready(Ok(0)) => self.input = Input::Ended,
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        self.machine.release();
        read
    }

    fn encrypt(&mut self, bufs: &[IoSlice<'_>], limit: usize) -> io::Result<usize> {
        self.machine.write(bufs, limit).map_err(|e| TlsError::of_stack(&self.peer, &e).into())
    }

    /// Writes as early data as far as that goes; 0 is the end of it.
    fn write_early(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let Stage::Early { written } = &self.stage else { return Ok(0) };
        let limit = MAX_EARLY - written.len();
        let n = self.encrypt(bufs, limit)?;
        if let Stage::Early { written } = &mut self.stage {
            let mut left = n;
            for buf in bufs {
                let part = left.min(buf.len());
                written.extend_from_slice(&buf[..part]);
                left -= part;
            }
        }
        Ok(n)
    }

    /// Finishes what [`connect`](super::connect) left open for the sake of early data.
    fn poll_open(&mut self, cx: &mut Context<'_>, wait: Wait) -> Poll<io::Result<()>> {
        match self.stage {
            Stage::Open => Poll::Ready(Ok(())),
            Stage::Failed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Stage::Handshake | Stage::Early { .. } => self.poll_handshake(cx, wait),
        }
    }

    /// Whether what has come, and if `fetch`, what waits below, ends this idle connection.
    fn probe(&mut self, fetch: bool) -> bool {
        let ended = self.find_end(fetch);
        if ended {
            // What was read to find out cannot be given back.
            self.stage = Stage::Failed;
        }
        ended
    }

    fn find_end(&mut self, fetch: bool) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let mut fetched = 0;
        loop {
            let mut unasked = BytesMut::with_capacity(1);
            match self.machine.read(&mut unasked) {
                Ok(Plaintext::WantRead) => {}
                Ok(Plaintext::Data(_) | Plaintext::Closed) | Err(_) => return true,
            }
            if !fetch {
                return false;
            }
            match self.poll_fill(&mut cx, Wait::Beside) {
                Poll::Ready(Ok(0)) => return true,
                Poll::Ready(Ok(n)) => fetched += n,
                // An old deadline says nothing about the connection.
                Poll::Ready(Err(error)) => return error.kind() != io::ErrorKind::TimedOut,
                Poll::Pending => return false,
            }
            if fetched > MAX_PROBE {
                return true;
            }
        }
    }
}

/// RFC 8446 section 6.1: an end without `close_notify` may be an attacker's.
fn hung_up(when: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the peer closed the connection {when}"))
}

impl Socket for TlsSocket {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        if buf.capacity() == buf.len() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        ready!(self.poll_open(cx, wait))?;
        loop {
            match self.machine.read(buf) {
                Ok(Plaintext::Data(n)) => return Poll::Ready(Ok(n)),
                Ok(Plaintext::Closed) => {
                    self.input = Input::Ended;
                    return Poll::Ready(Ok(0));
                }
                Ok(Plaintext::WantRead) => {}
                Err(error) => {
                    self.input = Input::Ended;
                    let error = TlsError::of_stack(&self.peer, &error);
                    let _ = self.poll_transmit(cx);
                    return Poll::Ready(Err(error.into()));
                }
            }
            if self.input == Input::Ended {
                return Poll::Ready(Err(hung_up(
                    "without close_notify: what came may be truncated",
                )));
            }
            // Whoever waits for an answer wants the question sent; an answer may come all the same.
            let wait = match self.poll_transmit(cx) {
                Poll::Ready(Ok(())) => wait,
                // A peer that resets the way in may have answered before.
                Poll::Ready(Err(error)) => match ready!(self.poll_fill(cx, Wait::Beside)) {
                    Ok(n) if n > 0 => continue,
                    _ => return Poll::Ready(Err(error)),
                },
                // Asleep in a read, the thread could not send the rest.
                Poll::Pending if wait == Wait::Alone => Wait::Beside,
                Poll::Pending => wait,
            };
            ready!(self.poll_fill(cx, wait))?;
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        if self.machine.has_output() && self.machine.transmit().len() >= BACKLOG {
            ready!(self.poll_transmit(cx))?;
        }
        let mut n = self.write_early(bufs)?;
        if n == 0 {
            ready!(self.poll_open(cx, Wait::Beside))?;
            n = self.encrypt(bufs, usize::MAX)?;
        }
        match self.poll_transmit(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(n)),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_transmit(cx))?;
        self.inner.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.close_sent && matches!(self.stage, Stage::Open) {
            self.close_sent = true;
            // A connection that has failed has nothing to say goodbye to.
            let _ = self.machine.close_notify();
        }
        ready!(self.poll_transmit(cx))?;
        self.inner.poll_close(cx)
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.inner.set_deadline(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        match self.stage {
            // What comes now is the server's part of the handshake.
            Stage::Handshake | Stage::Early { .. } => false,
            Stage::Failed => true,
            Stage::Open if self.input == Input::Ended || self.close_sent => true,
            Stage::Open => match probe {
                // Bytes below may be tickets only: ask the machine before giving up.
                Probe::Free => {
                    let suspect = self.inner.is_stale(Probe::Free);
                    (suspect || self.machine.has_input()) && self.probe(suspect)
                }
                Probe::Thorough => self.probe(true),
            },
        }
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.inner.peer_addr()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.inner.local_addr()
    }

    fn tls(&self) -> Option<&TlsInfo> {
        self.info.as_ref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for TlsSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Handshake => "handshake",
            Stage::Early { .. } => "early data",
            Stage::Open => "open",
            Stage::Failed => "failed",
        };
        f.debug_struct("TlsSocket")
            .field("peer", &self.peer)
            .field("stage", &stage)
            .field("early_data", &self.early_data)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
