//! One connection, from its first byte to its last.

use std::{
    cell::RefCell,
    io::{self, IoSlice, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use http::StatusCode;
use mimus_net::tls::listen::Acceptor;
use mimus_proto::{
    BodyLength, Event, Fields, RequestHead,
    fingerprint::{ClientHello, Frame, HelloReader, Http2Responder},
    h1::{self, NoReuse, Reuse},
};

use super::{Answer, Asked, MAX_KEPT, MAX_KEPT_BYTES, Seen, Site};

/// How long a client may say nothing, and take nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much is read at a time.
const READ: usize = 16 * 1024;

/// The type of a record that a handshake begins with (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;

/// What HTTP/2 begins with (RFC 9113 section 3.4), and no method of HTTP/1.
const PREFACE: &[u8] = b"PRI ";

/// Serves a connection to its end, and tells what was seen.
pub(super) fn watch(
    socket: TcpStream,
    peer: SocketAddr,
    number: u64,
    acceptor: &Acceptor,
    site: &impl Site,
) -> Seen {
    let mut watched = Watched { seen: Seen::new(number, peer), kept: 0, site };
    if let Err(error) = watched.serve(socket, acceptor) {
        watched.seen.error = Some(error.to_string());
    }
    watched.seen
}

/// A connection under watch.
struct Watched<'a, S> {
    seen: Seen,
    /// Bytes of frames and heads that are kept.
    kept: usize,
    site: &'a S,
}

impl<S: Site> Watched<'_, S> {
    fn serve(&mut self, socket: TcpStream, acceptor: &Acceptor) -> io::Result<()> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let begun = read_some(&socket)?;
        let socket = Begun { begun, at: 0, socket };
        if socket.begun.first() != Some(&HANDSHAKE) {
            return match socket.begun == PREFACE {
                true => self.http2(socket),
                false => self.http1(socket),
            };
        }
        let first = RefCell::new(First::default());
        let accepted = acceptor.accept(Recorder { socket, first: &first });
        // What was read of a client that failed says why, perhaps.
        let First { reader, hello } = first.take();
        self.seen.records = reader.records().to_vec();
        self.seen.hello = hello;
        let mut tls = accepted?;
        self.seen.alpn = tls.alpn().map(|name| String::from_utf8_lossy(name).into_owned());
        self.seen.resumed = tls.resumed();
        let served = match self.seen.alpn.as_deref() {
            Some("h2") => self.http2(&mut tls),
            _ => self.http1(&mut tls),
        };
        served.and_then(|()| tls.close())
    }

    fn http2(&mut self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut machine = Http2Responder::new();
        let mut buf = vec![0; READ];
        loop {
            stream.write_all(&machine.take_output())?;
            let n = stream.read(&mut buf)?;
            if n == 0 {
                return Ok(());
            }
            machine.recv(&buf[..n]);
            while let Some(frame) = machine.poll_frame().map_err(io::Error::other)? {
                if self.keeps(self.seen.frames.len(), weight(&frame)) {
                    self.seen.frames.push(frame);
                }
            }
            while let Some(request) = machine.poll_request() {
                let method = String::from_utf8_lossy(&request.method);
                let target = String::from_utf8_lossy(&request.path);
                let asked = Asked { method: &method, target: &target };
                let Answer { status, fields, body } = self.site.answer(&self.seen, &asked);
                machine.respond(request.stream, status, &fields, body);
            }
        }
    }

    fn http1(&mut self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut machine = h1::Server::new(h1::Limits::default());
        let mut asked = None;
        let mut buf = vec![0; READ];
        loop {
            while let Some(event) = machine.poll_event().map_err(io::Error::other)? {
                match event {
                    Event::Head(head) => {
                        if machine.expects_continue() {
                            let none = Fields::new();
                            let sent = machine.send_informational(StatusCode::CONTINUE, &none);
                            sent.map_err(io::Error::other)?;
                        }
                        asked = Some((head.method.clone(), head.target.clone()));
                        self.keep_head(head);
                    }
                    Event::End => {
                        let Some((method, target)) = asked.take() else { continue };
                        let asked = Asked { method: method.as_str(), target: &target };
                        let answer = self.site.answer(&self.seen, &asked);
                        respond(&mut machine, answer, method == http::Method::HEAD)?;
                        // What follows is looked at when the answer is written.
                        break;
                    }
                    _ => {}
                }
            }
            let busy = machine.has_output();
            flush(&mut machine, &mut stream)?;
            match machine.reuse() {
                Reuse::Yes | Reuse::No(NoReuse::Unfinished) => {}
                Reuse::No(_) => return Ok(()),
            }
            if busy {
                continue;
            }
            match stream.read(&mut buf)? {
                0 => return Ok(()),
                n => machine.recv(&buf[..n]),
            }
        }
    }

    fn keep_head(&mut self, head: RequestHead) {
        let weight = head.target.len()
            + head.fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        if self.keeps(self.seen.heads.len(), weight) {
            self.seen.heads.push(head);
        }
    }

    /// Whether there is room for one more beside `count` others.
    fn keeps(&mut self, count: usize, weight: usize) -> bool {
        let kept = self.kept.saturating_add(weight);
        let keeps = count < MAX_KEPT && kept <= MAX_KEPT_BYTES;
        if keeps {
            self.kept = kept;
        }
        keeps
    }
}

/// The bytes that a frame holds, about.
fn weight(frame: &Frame) -> usize {
    match frame {
        Frame::Headers(block) => {
            let fields = block.fields.iter().map(|field| field.name.len() + field.value.len());
            block.block.len() + fields.sum::<usize>()
        }
        Frame::Settings { settings, .. } => size_of_val(&settings[..]),
        Frame::PriorityUpdate { value, .. } => value.len(),
        Frame::Other { payload, .. } => payload.len(),
        _ => 0,
    }
}

fn respond(machine: &mut h1::Server, answer: Answer, silent: bool) -> io::Result<()> {
    let length = BodyLength::Known(answer.body.len() as u64);
    machine.send_head(answer.status, &answer.fields, length).map_err(io::Error::other)?;
    if !silent && !answer.body.is_empty() {
        machine.send_data(answer.body).map_err(io::Error::other)?;
    }
    Ok(())
}

fn flush(machine: &mut h1::Server, stream: &mut impl Write) -> io::Result<()> {
    while machine.has_output() {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = machine.poll_transmit(&mut slices);
        let n = stream.write_vectored(&slices[..filled])?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        machine.transmitted(n);
    }
    Ok(())
}

/// What a connection begins with.
#[derive(Debug, Default)]
struct First {
    reader: HelloReader,
    hello: Option<ClientHello>,
}

/// What the connection begins with, as far as it tells the protocols apart.
fn read_some(mut socket: &TcpStream) -> io::Result<Vec<u8>> {
    let mut begun = Vec::new();
    // Behind a letter of the preface there are as many as it has, whatever the protocol is.
    while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
        let mut byte = [0];
        if socket.read(&mut byte)? == 0 {
            break;
        }
        begun.extend(byte);
    }
    Ok(begun)
}

/// A socket that was read from before.
struct Begun {
    begun: Vec<u8>,
    /// How much of it was read again.
    at: usize,
    socket: TcpStream,
}

impl Read for Begun {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut left = &self.begun[self.at..];
        if left.is_empty() {
            return self.socket.read(buf);
        }
        let n = left.read(buf)?;
        self.at += n;
        Ok(n)
    }
}

impl Write for Begun {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.socket.write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_vectored(bufs)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A socket that shows what is read from it to the reader of the ClientHello.
struct Recorder<'a> {
    socket: Begun,
    first: &'a RefCell<First>,
}

impl Read for Recorder<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.socket.read(buf)?;
        let mut first = self.first.borrow_mut();
        if first.hello.is_none() {
            // What is no ClientHello is for the TLS stack to complain of.
            if let Ok(Some(hello)) = first.reader.recv(&buf[..n]) {
                first.hello = Some(hello);
            }
        }
        Ok(n)
    }
}

impl Write for Recorder<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.socket.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
