//! HTTP/2, as much of RFC 9113 as a client that keeps to it can see: every frame is taken, windows are
//! kept both ways, and what many streams are answered goes out in one write. What breaks the rules ends
//! the connection, so that a measured client that does so is found.

pub(crate) mod answer;
mod frame;
mod head;
mod output;
mod stream;

use std::io;

use crate::body::{Sink, Stamps};
use crate::clock;
use crate::connection::{Shared, Wait};
use crate::input::Input;
use crate::pages::Pages;
use crate::request::{Refusal, Route};
use crate::transport::{Came, Transport, Unsent};

use answer::Status;
use frame::{Code, HEAD, Head};
use head::{Asked, Heads};
use output::Output;
use stream::{Body, Credit, Pacing, Phase, Received, Stream, Streams, WINDOW};

/// RFC 9113 section 3.4.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Streams at a time: more than any workload has.
const STREAMS_MAX: u32 = 1024;
/// The window that a client has until it says otherwise (RFC 9113 section 6.9.2).
const DEFAULT_WINDOW: i64 = 65_535;
/// The largest a window can be.
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// So much gathers before it is sent.
const GATHERED: usize = 256 * 1024;
/// So much may gather while the client does not read, before it is not read from either.
const UNSENT_MAX: usize = 1 << 20;
/// Largest body that is copied behind its head, so that both are one slice.
const COPIED: u64 = 4 * 1024;
/// The largest header block in pieces, and the largest message of gRPC.
const BLOCK_MAX: usize = 64 * 1024;
const MESSAGE_MAX: usize = 4 << 20;

/// A DATA frame whose payload is to come.
struct Payload {
    stream: u32,
    /// On the wire, for the windows.
    length: usize,
    left: usize,
    padding: usize,
    end: bool,
}

/// A header block whose CONTINUATION is to come.
struct Block {
    stream: u32,
    end: bool,
    bytes: Vec<u8>,
}

/// An answer's body, before it is known whether it can be sent at once.
#[derive(Clone, Copy)]
enum Content<'a> {
    Page(u64),
    Own(&'a [u8]),
}

/// The server's end of a connection that speaks HTTP/2.
pub(crate) struct Http2 {
    output: Output,
    heads: Heads,
    /// The preface came.
    greeted: bool,
    payload: Option<Payload>,
    block: Option<Block>,
    streams: Streams,
    /// Whose turn to send it is, by place.
    turn: usize,
    /// The latest stream of the client's.
    last: u32,
    /// What may be sent: on the connection, on a new stream, in a frame.
    window: i64,
    initial_window: i64,
    frame_max: usize,
    credit: Credit,
    /// The connection ends when all is sent.
    over: bool,
    /// When the last read returned.
    read_at: u64,
    /// A message's memory, to be used again.
    spare: Vec<u8>,
}

impl Http2 {
    pub(crate) fn new() -> Self {
        Self {
            output: Output::default(),
            heads: Heads::new(),
            greeted: false,
            payload: None,
            block: None,
            streams: Streams::default(),
            turn: 0,
            last: 0,
            window: DEFAULT_WINDOW,
            initial_window: DEFAULT_WINDOW,
            frame_max: frame::PAYLOAD_MAX,
            credit: Credit::default(),
            over: false,
            read_at: 0,
            spare: Vec::new(),
        }
    }

    /// Goes on as far as it can. `None` when the connection is over.
    pub(crate) fn drive(
        &mut self,
        transport: &mut Transport,
        shared: &mut Shared,
    ) -> io::Result<Option<Wait>> {
        loop {
            let more = self.take(&mut shared.buffers.input, &shared.pages).unwrap_or_else(|code| {
                self.fail(code);
                false
            });
            let more = self.fill(&shared.pages) || more;
            let sent = transport.send(&mut self.output, &shared.pages, &mut shared.buffers)?;
            match (sent, self.over) {
                (true, true) => return Ok(None),
                (true, false) if more || self.is_due() => continue,
                (true, false) => {}
                (false, true) => return Ok(Some(Wait::Writable)),
                (false, false) if self.output.len() >= UNSENT_MAX => {
                    return Ok(Some(Wait::Writable));
                }
                (false, false) => {}
            }
            match transport.read(&mut shared.buffers.input)? {
                Came::Bytes => self.read_at = clock::now(),
                Came::End => return Ok(None),
                // What TLS had to say to what it read may have to go out, and the client may have made room
                // since: then there is more to add, and nobody else would.
                Came::Nothing => {
                    let all =
                        transport.send(&mut self.output, &shared.pages, &mut shared.buffers)?;
                    if all && !sent {
                        continue;
                    }
                    return Ok(Some(self.wait(all)));
                }
            }
        }
    }

    fn wait(&self, sent: bool) -> Wait {
        match (sent, self.streams.due()) {
            (false, _) => Wait::Either,
            (true, Some(due)) => Wait::ReadableUntil(due),
            (true, None) => Wait::Readable,
        }
    }

    fn is_due(&self) -> bool {
        self.streams.due().is_some_and(|due| due <= clock::now())
    }

    fn fail(&mut self, code: Code) {
        self.over = true;
        let last = self.last;
        self.output.put(|out| {
            Head { length: 8, kind: frame::GOAWAY, flags: 0, stream: 0 }.write(out);
            out.extend_from_slice(&last.to_be_bytes());
            out.extend_from_slice(&(code as u32).to_be_bytes());
        });
    }

    /// Takes every frame that is there; true if some are left because too much is unsent.
    fn take(&mut self, input: &mut Input, pages: &Pages) -> Result<bool, Code> {
        while !self.over {
            if self.output.len() >= UNSENT_MAX {
                return Ok(true);
            }
            if self.payload.is_some() {
                if !self.take_payload(input, pages)? {
                    return Ok(false);
                }
                continue;
            }
            let bytes = input.bytes();
            if !self.greeted {
                let here = bytes.len().min(PREFACE.len());
                if bytes[..here] != PREFACE[..here] {
                    return Err(Code::Protocol);
                }
                if here < PREFACE.len() {
                    return Ok(false);
                }
                self.greeted = true;
                input.consume(here);
                // Not before: nothing can be sent while TLS is still shaking hands.
                self.output.put(greet);
                continue;
            }
            let Some(head) = Head::read(bytes) else { return Ok(false) };
            if head.length > frame::PAYLOAD_MAX {
                return Err(Code::FrameSize);
            }
            if head.kind == frame::DATA {
                let padded = usize::from(head.has(frame::PADDED));
                let Some(padding) = bytes.get(HEAD..HEAD + padded) else { return Ok(false) };
                self.begin_payload(head, padding.first().copied())?;
                input.consume(HEAD + padded);
                continue;
            }
            let Some(payload) = bytes.get(HEAD..HEAD + head.length) else { return Ok(false) };
            self.take_frame(head, payload, pages)?;
            input.consume(HEAD + head.length);
        }
        Ok(false)
    }

    fn begin_payload(&mut self, head: Head, padding: Option<u8>) -> Result<(), Code> {
        if head.stream == 0 || head.stream > self.last || self.block.is_some() {
            return Err(Code::Protocol);
        }
        let padding = padding.map_or(0, usize::from);
        let told = usize::from(head.has(frame::PADDED));
        let left = head.length.checked_sub(padding + told).ok_or(Code::Protocol)?;
        let (stream, end) = (head.stream, head.has(frame::END_STREAM));
        self.payload = Some(Payload { stream, length: head.length, left, padding, end });
        Ok(())
    }

    /// Takes what is there of a DATA frame; true once it is all of it.
    fn take_payload(&mut self, input: &mut Input, pages: &Pages) -> Result<bool, Code> {
        let Some(payload) = &mut self.payload else { return Ok(true) };
        let bytes = input.bytes();
        let data = payload.left.min(bytes.len());
        let padding = payload.padding.min(bytes.len() - data);
        let stream = self.streams.get(payload.stream);
        if let Some(Stream { phase: Phase::Receiving { received, .. }, .. }) = stream {
            match received {
                Received::Body(sink) => sink.take(&bytes[..data], self.read_at),
                Received::Message(message) if message.len() + data > MESSAGE_MAX => {
                    return Err(Code::EnhanceYourCalm);
                }
                Received::Message(message) => message.extend_from_slice(&bytes[..data]),
            }
        }
        input.consume(data + padding);
        payload.left -= data;
        payload.padding -= padding;
        if payload.left + payload.padding > 0 {
            return Ok(false);
        }
        let Payload { stream, length, end, .. } = *payload;
        self.payload = None;
        self.give_back(stream, length, end)?;
        if end {
            self.ended(stream, pages);
        }
        Ok(true)
    }

    /// Counts what came against the client's windows, and opens them again.
    fn give_back(&mut self, id: u32, length: usize, end: bool) -> Result<(), Code> {
        if let Some(credit) = self.credit.take(length)? {
            self.output.put(|out| frame::write_number(frame::WINDOW_UPDATE, 0, credit, out));
        }
        let stream = self.streams.get(id);
        if let Some(Stream { phase: Phase::Receiving { credit, .. }, .. }) = stream
            && let Some(credit) = credit.take(length)?
            && !end
        {
            self.output.put(|out| frame::write_number(frame::WINDOW_UPDATE, id, credit, out));
        }
        Ok(())
    }

    fn take_frame(&mut self, head: Head, payload: &[u8], pages: &Pages) -> Result<(), Code> {
        // RFC 9113 section 6.10: nothing comes between.
        if self.block.is_some() && head.kind != frame::CONTINUATION {
            return Err(Code::Protocol);
        }
        match head.kind {
            frame::HEADERS => self.headers(head, payload, pages),
            frame::CONTINUATION => self.continuation(head, payload, pages),
            frame::RST_STREAM => {
                self.streams.remove(head.stream);
                Ok(())
            }
            frame::SETTINGS if head.has(frame::ACK) => Ok(()),
            frame::SETTINGS => self.settings(payload),
            frame::PING if payload.len() != 8 => Err(Code::FrameSize),
            frame::PING if head.has(frame::ACK) => Ok(()),
            frame::PING => {
                self.output.put(|out| {
                    Head { flags: frame::ACK, ..head }.write(out);
                    out.extend_from_slice(payload);
                });
                Ok(())
            }
            frame::WINDOW_UPDATE => self.window_update(head.stream, payload),
            frame::PUSH_PROMISE => Err(Code::Protocol),
            _ => Ok(()),
        }
    }

    fn headers(&mut self, head: Head, payload: &[u8], pages: &Pages) -> Result<(), Code> {
        if head.stream.is_multiple_of(2) {
            return Err(Code::Protocol);
        }
        let mut block = frame::unpadded(head, payload)?;
        if head.has(frame::PRIORITY) {
            block = block.get(5..).ok_or(Code::FrameSize)?;
        }
        let (stream, end) = (head.stream, head.has(frame::END_STREAM));
        if head.has(frame::END_HEADERS) {
            return self.asked(stream, end, block, pages);
        }
        self.block = Some(Block { stream, end, bytes: block.to_vec() });
        Ok(())
    }

    fn continuation(&mut self, head: Head, payload: &[u8], pages: &Pages) -> Result<(), Code> {
        let mut block = self.block.take().ok_or(Code::Protocol)?;
        if block.stream != head.stream {
            return Err(Code::Protocol);
        }
        if block.bytes.len() + payload.len() > BLOCK_MAX {
            return Err(Code::EnhanceYourCalm);
        }
        block.bytes.extend_from_slice(payload);
        if head.has(frame::END_HEADERS) {
            return self.asked(block.stream, block.end, &block.bytes, pages);
        }
        self.block = Some(block);
        Ok(())
    }

    fn asked(&mut self, id: u32, end: bool, block: &[u8], pages: &Pages) -> Result<(), Code> {
        let asked = self.heads.read(block)?;
        if id <= self.last {
            // Trailers, which end the stream (RFC 9113 section 8.1).
            if !end {
                return Err(Code::Protocol);
            }
            self.ended(id, pages);
            return Ok(());
        }
        self.last = id;
        if self.streams.len() >= STREAMS_MAX as usize {
            return Err(Code::EnhanceYourCalm);
        }
        let received = match asked {
            Asked::Route(Route::PacedUpload { size }) => {
                Received::Body(Sink::Time(Stamps::new(size)))
            }
            Asked::Unary { .. } => Received::Message(std::mem::take(&mut self.spare)),
            _ => Received::Body(Sink::Forget),
        };
        let window = self.initial_window;
        if end {
            self.answer(id, window, asked, received, pages);
        } else {
            let phase = Phase::Receiving { asked, received, credit: Credit::default() };
            self.streams.add(Stream { id, window, phase });
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), Code> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Code::FrameSize);
        }
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                frame::SETTINGS_INITIAL_WINDOW_SIZE => {
                    let value = i64::from(value);
                    if value > WINDOW_MAX {
                        return Err(Code::FlowControl);
                    }
                    let change = value - self.initial_window;
                    self.initial_window = value;
                    self.streams.iter_mut().for_each(|stream| stream.window += change);
                }
                frame::SETTINGS_MAX_FRAME_SIZE => {
                    if !(1 << 14..1 << 24).contains(&value) {
                        return Err(Code::Protocol);
                    }
                    self.frame_max = value as usize;
                }
                // Our encoder has no dynamic table, and we push nothing.
                _ => {}
            }
        }
        self.output.put(|out| {
            Head { length: 0, kind: frame::SETTINGS, flags: frame::ACK, stream: 0 }.write(out);
        });
        Ok(())
    }

    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<(), Code> {
        let increment: [u8; 4] = payload.try_into().map_err(|_| Code::FrameSize)?;
        let increment = i64::from(u32::from_be_bytes(increment) & 0x7fff_ffff);
        if increment == 0 {
            return Err(Code::Protocol);
        }
        let window = match id {
            0 => &mut self.window,
            _ => match self.streams.get(id) {
                Some(stream) => &mut stream.window,
                // It is answered, or was never asked: the client may not know yet.
                None => return Ok(()),
            },
        };
        *window += increment;
        if *window > WINDOW_MAX { Err(Code::FlowControl) } else { Ok(()) }
    }

    /// The request of a stream came, all of it.
    fn ended(&mut self, id: u32, pages: &Pages) {
        match self.streams.remove(id) {
            Some(Stream { window, phase: Phase::Receiving { asked, received, .. }, .. }) => {
                self.answer(id, window, asked, received, pages);
            }
            Some(other) => self.streams.add(other),
            // It was reset.
            None => {}
        }
    }

    fn answer(&mut self, id: u32, window: i64, asked: Asked, received: Received, pages: &Pages) {
        match (asked, received) {
            (Asked::Route(Route::Bytes(bytes)), _) => {
                self.head(id, Status::Ok, Some(bytes), bytes == 0, pages);
                self.body(id, window, Content::Page(bytes), false, pages);
            }
            (Asked::Route(Route::Chunks(bytes)), _) => {
                self.head(id, Status::Ok, None, bytes == 0, pages);
                self.body(id, window, Content::Page(bytes), false, pages);
            }
            (Asked::Route(Route::Paced { pieces, size, every_ns }), _) => {
                self.head(id, Status::Ok, None, false, pages);
                let due = clock::now();
                let pacing = Pacing { left: pieces, size, every_ns, due, rest: 0 };
                self.streams.add(Stream { id, window, phase: Phase::Pacing(pacing) });
            }
            (Asked::Route(Route::Upload), _) => self.text(id, window, b"ok", pages),
            (Asked::Route(Route::PacedUpload { .. }), Received::Body(Sink::Time(stamps))) => {
                match stamps.delays() {
                    Some(delays) => {
                        let body = serde_json::json!({ "delay": delays }).to_string();
                        self.text(id, window, body.as_bytes(), pages);
                    }
                    None => self.head(id, Status::BadRequest, None, true, pages),
                }
            }
            (Asked::Unary { json }, Received::Message(message)) => {
                self.echo(id, window, json, message, pages);
            }
            (Asked::Refused(Refusal::NotFound), _) => {
                self.head(id, Status::NotFound, None, true, pages);
            }
            (Asked::Refused(Refusal::BadRequest) | Asked::Route(_) | Asked::Unary { .. }, _) => {
                self.head(id, Status::BadRequest, None, true, pages);
            }
        }
    }

    fn head(&mut self, id: u32, status: Status, length: Option<u64>, end: bool, pages: &Pages) {
        self.output.put(|out| pages.answers.head(id, status, length, end, out));
    }

    fn text(&mut self, id: u32, window: i64, text: &[u8], pages: &Pages) {
        self.head(id, Status::Ok, Some(text.len() as u64), false, pages);
        self.body(id, window, Content::Own(text), false, pages);
    }

    /// Sends a message back as it came: one, behind its five bytes of prefix, not compressed.
    fn echo(&mut self, id: u32, window: i64, json: bool, mut message: Vec<u8>, pages: &Pages) {
        let whole = message.split_first_chunk::<5>().is_some_and(|(prefix, rest)| {
            let [compressed, length @ ..] = *prefix;
            compressed == 0 && u32::from_be_bytes(length) as usize == rest.len()
        });
        if whole {
            self.head(id, Status::Message { json }, None, false, pages);
            self.body(id, window, Content::Own(&message), true, pages);
        } else {
            self.head(id, Status::BadRequest, None, true, pages);
        }
        message.clear();
        self.spare = message;
    }

    /// Sends a body: at once if it is short and the windows are open, else in turn with the others.
    fn body(&mut self, id: u32, window: i64, body: Content<'_>, trailers: bool, pages: &Pages) {
        let length = match body {
            Content::Page(0) => return,
            Content::Page(bytes) => bytes,
            Content::Own(bytes) => bytes.len() as u64,
        };
        let open = window.min(self.window).min(self.frame_max as i64).max(0) as u64;
        if length > COPIED || length > open {
            let body = match body {
                Content::Page(bytes) => Body::Page(bytes),
                Content::Own(bytes) => Body::Own { bytes: bytes.to_vec(), sent: 0 },
            };
            self.streams.add(Stream { id, window, phase: Phase::Sending { body, trailers } });
            return;
        }
        self.window -= length as i64;
        let bytes = match body {
            Content::Page(_) => &pages.payload[..length as usize],
            Content::Own(bytes) => bytes,
        };
        self.output.put(|out| {
            answer::data(id, bytes.len(), !trailers, out);
            out.extend_from_slice(bytes);
            if trailers {
                pages.answers.trailers(id, out);
            }
        });
    }

    /// Lets each stream in turn add a frame, as long as windows permit; true if there may be more.
    fn fill(&mut self, pages: &Pages) -> bool {
        // Only when all else is with the kernel, so that a piece is stamped right before its write.
        if self.output.is_empty() && self.streams.due().is_some() {
            let now = clock::now();
            for stream in self.streams.iter_mut() {
                if let Phase::Pacing(pacing) = &mut stream.phase {
                    pacing.begin(now);
                }
            }
        }
        let mut silent = 0;
        while silent < self.streams.len() && self.output.len() < GATHERED && !self.over {
            if self.turn >= self.streams.len() {
                self.turn = 0;
            }
            match self.add_frame(pages) {
                Added::Nothing => {
                    silent += 1;
                    self.turn += 1;
                }
                Added::Frame => {
                    silent = 0;
                    self.turn += 1;
                }
                Added::Last(id) => {
                    silent = 0;
                    self.streams.remove(id);
                }
            }
        }
        self.output.len() >= GATHERED
    }

    /// Adds a DATA frame of the stream whose turn it is.
    fn add_frame(&mut self, pages: &Pages) -> Added {
        let Some(stream) = self.streams.at(self.turn) else { return Added::Nothing };
        let most = self.frame_max.min(pages.payload.len()) as i64;
        let open = stream.window.min(self.window).min(most).max(0) as u64;
        let (id, output) = (stream.id, &mut self.output);
        let (length, last) = match &mut stream.phase {
            Phase::Receiving { .. } => return Added::Nothing,
            Phase::Sending { body, trailers } => {
                let length = body.left().min(open) as usize;
                if length == 0 {
                    return Added::Nothing;
                }
                let last = length as u64 == body.left();
                output.put(|out| answer::data(id, length, last && !*trailers, out));
                match body {
                    Body::Page(left) => {
                        *left -= length as u64;
                        output.page(length);
                    }
                    Body::Own { bytes, sent } => {
                        output.put(|out| out.extend_from_slice(&bytes[*sent..*sent + length]));
                        *sent += length;
                    }
                }
                if last && *trailers {
                    output.put(|out| pages.answers.trailers(id, out));
                }
                (length, last)
            }
            Phase::Pacing(pacing) => {
                let begins = pacing.rest == pacing.size;
                let stamp = if begins { clock::STAMP } else { 0 };
                let length = pacing.rest.min(open) as usize;
                // A stamp is not cut.
                if length == 0 || length < stamp {
                    return Added::Nothing;
                }
                pacing.rest -= length as u64;
                let last = pacing.left == 0 && pacing.rest == 0;
                output.put(|out| {
                    answer::data(id, length, last, out);
                    if begins {
                        out.extend_from_slice(&clock::now().to_le_bytes());
                    }
                });
                output.page(length - stamp);
                (length, last)
            }
        };
        self.window -= length as i64;
        stream.window -= length as i64;
        if last { Added::Last(id) } else { Added::Frame }
    }
}

/// What a stream did with its turn.
enum Added {
    Nothing,
    Frame,
    /// The stream is answered.
    Last(u32),
}

/// Our settings, and a connection window to match.
fn greet(out: &mut Vec<u8>) {
    let settings = [
        (frame::SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX),
        (frame::SETTINGS_INITIAL_WINDOW_SIZE, WINDOW),
    ];
    let length = settings.len() * 6;
    Head { length, kind: frame::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    frame::write_number(frame::WINDOW_UPDATE, 0, WINDOW - DEFAULT_WINDOW as u32, out);
}
