//! HTTP/1.1: requests in, answers out, one after the other.

use std::io;

use crate::body::{Malformed, Reader, Sink, Stamps};
use crate::clock;
use crate::connection::{Shared, Wait};
use crate::output::Output;
use crate::pages::Pages;
use crate::request::{self, Refusal, Request, Route};
use crate::transport::{Came, Transport};

/// Where the exchange stands.
enum Phase {
    /// A request is to come.
    Head,
    /// Its body is to come.
    Body { reader: Reader, sink: Sink, request: Request },
    /// Pieces are sent by the clock.
    Pacing { left: u64, size: u64, every_ns: u64, due: u64, close: bool },
    /// The connection ends when all is sent.
    Closing,
    /// Likewise, but the peer may be sending still: closing at once would reset what it is to read.
    Refused,
    /// Refused and told so: what comes is dropped until the peer closes.
    Lingering,
    /// It ends to be HTTP when all is sent.
    Upgrading,
    /// What comes is WebSocket's.
    Upgraded,
}

/// What a phase wants next.
enum Step {
    /// To be asked again.
    On,
    /// More input.
    Read,
    /// The answer to be sent first, and the time to come.
    Sleep(u64),
    /// The answer to be sent first, and then the end.
    Close,
    /// Likewise, and the end of the peer's stream.
    Linger,
    /// The answer to be sent first, and then to be no longer asked.
    Upgrade,
}

/// The server's end of a connection that speaks HTTP/1.1.
pub(crate) struct Http1 {
    output: Output,
    phase: Phase,
    /// When the last read returned.
    read_at: u64,
}

impl Http1 {
    pub(crate) fn new() -> Self {
        Self { output: Output::default(), phase: Phase::Head, read_at: 0 }
    }

    /// Goes on as far as it can. `None` when the connection is over.
    pub(crate) fn drive(
        &mut self,
        transport: &mut Transport,
        shared: &mut Shared,
    ) -> io::Result<Option<Wait>> {
        loop {
            if self.output.is_full() && !self.send(transport, shared)? {
                return Ok(Some(Wait::Writable));
            }
            let step = self.step(shared);
            if matches!(step, Step::On) {
                continue;
            }
            if !self.send(transport, shared)? {
                return Ok(Some(Wait::Writable));
            }
            match step {
                Step::On => {}
                Step::Sleep(due) => return Ok(Some(Wait::Until(due))),
                Step::Close => return Ok(None),
                Step::Upgrade => {
                    self.phase = Phase::Upgraded;
                    return Ok(Some(Wait::Readable));
                }
                Step::Linger => {
                    transport.finish()?;
                    self.phase = Phase::Lingering;
                }
                Step::Read => match self.read(transport, shared)? {
                    Came::Bytes => {}
                    Came::End => return Ok(None),
                    // What TLS had to say to what it read may have to go out.
                    Came::Nothing if self.send(transport, shared)? => {
                        return Ok(Some(Wait::Readable));
                    }
                    Came::Nothing => return Ok(Some(Wait::Writable)),
                },
            }
        }
    }

    /// Whether what comes now is WebSocket.
    pub(crate) fn is_upgraded(&self) -> bool {
        matches!(self.phase, Phase::Upgraded)
    }

    fn send(&mut self, transport: &mut Transport, shared: &mut Shared) -> io::Result<bool> {
        transport.send(&mut self.output, &shared.pages, &mut shared.buffers)
    }

    fn read(&mut self, transport: &mut Transport, shared: &mut Shared) -> io::Result<Came> {
        if let Phase::Body { reader, sink, .. } = &mut self.phase {
            let bytes = reader.forgettable(sink);
            if bytes > 0
                && let Some(forgot) = transport.forget(bytes, &mut shared.buffers)
            {
                reader.forgot(*forgot.as_ref().unwrap_or(&0) as u64);
                return crate::transport::came(forgot);
            }
        }
        let came = transport.read(&mut shared.buffers.input)?;
        self.read_at = clock::now();
        Ok(came)
    }

    fn step(&mut self, shared: &mut Shared) -> Step {
        match &mut self.phase {
            Phase::Head => self.head(shared),
            Phase::Body { reader, sink, .. } => {
                match reader.take(&mut shared.buffers.input, sink, self.read_at) {
                    Ok(true) => self.answer(shared),
                    Ok(false) => Step::Read,
                    Err(Malformed) => self.refuse(Refusal::BadRequest, &shared.pages),
                }
            }
            Phase::Pacing { .. } => self.pace(),
            Phase::Closing => Step::Close,
            Phase::Refused => Step::Linger,
            Phase::Upgrading | Phase::Upgraded => Step::Upgrade,
            Phase::Lingering => {
                let input = &mut shared.buffers.input;
                input.consume(input.bytes().len());
                Step::Read
            }
        }
    }

    fn head(&mut self, shared: &mut Shared) -> Step {
        let input = &mut shared.buffers.input;
        if input.is_empty() {
            return Step::Read;
        }
        let request = match request::parse(input.bytes()) {
            Ok(None) => return Step::Read,
            Ok(Some((request, length))) => {
                input.consume(length);
                request
            }
            Err(refusal) => return self.refuse(refusal, &shared.pages),
        };
        let reader = Reader::from(request.framing);
        // RFC 9110 section 10.1.1: not if the body is here already.
        if request.expects && reader != Reader::Ended && input.is_empty() {
            self.output.go_on();
        }
        let sink = match request.route {
            Route::PacedUpload { size } => Sink::Time(Stamps::new(size)),
            _ => Sink::Forget,
        };
        self.phase = Phase::Body { reader, sink, request };
        Step::On
    }

    /// The request came, all of it.
    fn answer(&mut self, shared: &mut Shared) -> Step {
        let after = std::mem::replace(&mut self.phase, Phase::Head);
        let Phase::Body { sink, request, .. } = after else { return Step::On };
        let pages = &shared.pages;
        let close = request.close;
        if close {
            self.phase = Phase::Closing;
        }
        match (request.route, sink) {
            (Route::Bytes(bytes), _) => self.output.bytes(pages, bytes, close),
            (Route::Chunks(bytes), _) => self.output.chunks(pages, bytes, close),
            (Route::Paced { pieces, size, every_ns }, _) => {
                self.output.chunked_head(pages, close);
                let due = clock::now();
                self.phase = Phase::Pacing { left: pieces, size, every_ns, due, close };
            }
            (Route::WebSocket(handshake), _) => {
                self.output.switching(&handshake);
                self.phase = Phase::Upgrading;
            }
            (_, Sink::Forget) => self.output.text(pages, "200 OK", "ok", close),
            (_, Sink::Time(stamps)) => match stamps.delays() {
                Some(delays) => {
                    let body = serde_json::json!({ "delay": delays }).to_string();
                    self.output.text(pages, "200 OK", &body, close);
                }
                None => return self.refuse(Refusal::BadRequest, pages),
            },
        }
        Step::On
    }

    /// A piece, if it is time. Called only when the one before is with the kernel, so that the stamp is
    /// made right before the write.
    fn pace(&mut self) -> Step {
        let Phase::Pacing { left, size, every_ns, due, close } = &mut self.phase else {
            return Step::On;
        };
        let now = clock::now();
        if now < *due {
            return Step::Sleep(*due);
        }
        *left -= 1;
        *due = due.saturating_add(*every_ns);
        self.output.stamped(*size, now, *left == 0);
        if *left == 0 {
            self.phase = if *close { Phase::Closing } else { Phase::Head };
        }
        Step::On
    }

    fn refuse(&mut self, refusal: Refusal, pages: &Pages) -> Step {
        let status = match refusal {
            Refusal::BadRequest => "400 Bad Request",
            Refusal::NotFound => "404 Not Found",
        };
        self.output.text(pages, status, "", true);
        self.phase = Phase::Refused;
        Step::On
    }
}
