//! One gRPC call: messages in, messages out, a status at the end.

use std::io::{self, Read, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::{Buf, BytesMut};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;

use super::code;
use crate::conn::After;
use crate::exchange::{Begun, Exchange};
use crate::request::Version;
use crate::response::Response;

/// The largest message, in bytes, packed and unpacked.
const MAX_MESSAGE: usize = 64 << 20;
/// What `grpc-message` escapes: all but printable ASCII, and `%` itself.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
/// Metadata that comes back in the answer's head, and in its trailers.
const ECHOED: &str = "echo-";
const ECHOED_TRAILER: &str = "echo-trailer-";

/// How a call ends.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// `google.rpc.Status`, encoded, if the error has details.
    pub(crate) details: Option<Vec<u8>>,
}

impl Status {
    pub(crate) fn ok() -> Self {
        Self::new(code::OK, "")
    }

    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// The fields that say it, in a head or in trailers.
    fn fields(&self) -> Vec<(String, String)> {
        let mut fields = vec![("grpc-status".to_owned(), self.code.to_string())];
        if !self.message.is_empty() {
            let escaped = utf8_percent_encode(&self.message, ESCAPED).to_string();
            fields.push(("grpc-message".to_owned(), escaped));
        }
        if let Some(details) = &self.details {
            // Binary metadata is base64, and may leave its padding out.
            fields.push(("grpc-status-details-bin".to_owned(), STANDARD_NO_PAD.encode(details)));
        }
        fields
    }
}

/// Why a handler stops early.
pub(crate) enum Stop {
    /// The call ends with this status.
    Status(Status),
    /// The client is not there any more.
    Gone(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Gone(error)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Stop::Status(status)
    }
}

/// A call, its exchange and how far it is.
pub(crate) struct Call<'a> {
    pub(crate) ex: &'a mut Exchange,
    inbox: BytesMut,
    out: Option<Begun>,
    pack: bool,
    /// How many messages came, whether the last one was packed, and the bytes of all, unpacked.
    pub(crate) received: u32,
    pub(crate) was_packed: bool,
    pub(crate) bytes: u64,
}

/// Answers whatever is not a gRPC request, and otherwise gives the call to go on with.
pub(crate) async fn accept(ex: &mut Exchange) -> io::Result<Result<Call<'_>, After>> {
    let kind = ex.request.header("content-type").unwrap_or_default();
    if ex.request.version != Version::Http2 {
        return ex.reply(Response::text(505, "gRPC is HTTP/2\n")).await.map(Err);
    }
    if !kind.starts_with("application/grpc") {
        return ex.reply(Response::text(415, "this is not gRPC\n")).await.map(Err);
    }
    let pack = ex.request.header("echo-compress") == Some("gzip")
        && ex.request.has_token("grpc-accept-encoding", "gzip");
    Ok(Ok(Call {
        ex,
        inbox: BytesMut::new(),
        out: None,
        pack,
        received: 0,
        was_packed: false,
        bytes: 0,
    }))
}

/// `grpc-timeout`: at most 8 digits and a unit.
pub(crate) fn timeout_of(text: &str) -> Option<Duration> {
    let (unit, digits) = (text.chars().next_back()?, text.get(..text.len() - 1)?);
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| plain)?;
    Some(match unit {
        'H' => Duration::from_secs(count * 3600),
        'M' => Duration::from_secs(count * 60),
        'S' => Duration::from_secs(count),
        'm' => Duration::from_millis(count),
        'u' => Duration::from_micros(count),
        'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

impl Call<'_> {
    /// The deadline the client told, as the time that was left when it sent its head.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.ex.request.header("grpc-timeout").and_then(timeout_of)
    }

    /// The next message; `None` once the client is done.
    pub(crate) async fn message<M: Message + Default>(&mut self) -> Result<Option<M>, Stop> {
        const HEAD: usize = 5;
        loop {
            if let Some(&[packed, a, b, c, d]) = self.inbox.first_chunk::<HEAD>() {
                let len = u32::from_be_bytes([a, b, c, d]) as usize;
                if len > MAX_MESSAGE {
                    return Err(Status::new(code::RESOURCE_EXHAUSTED, "message too large").into());
                }
                if self.inbox.len() >= HEAD + len {
                    self.inbox.advance(HEAD);
                    let bytes = self.inbox.split_to(len);
                    return self.unpack(packed, &bytes).map(Some);
                }
            }
            match self.ex.next_piece().await? {
                Some(piece) => self.inbox.extend_from_slice(&piece),
                None if self.inbox.is_empty() => return Ok(None),
                None => return Err(Status::new(code::INTERNAL, "half a message").into()),
            }
        }
    }

    fn unpack<M: Message + Default>(&mut self, packed: u8, bytes: &[u8]) -> Result<M, Stop> {
        self.was_packed = packed == 1;
        let mut plain = Vec::new();
        let bytes = match (packed, self.ex.request.header("grpc-encoding")) {
            (0, _) => bytes,
            (1, Some("gzip")) => {
                let mut reader = GzDecoder::new(bytes).take(MAX_MESSAGE as u64);
                reader
                    .read_to_end(&mut plain)
                    .map_err(|_| Status::new(code::INTERNAL, "the message is not gzip"))?;
                &plain
            }
            (1, Some(other)) => {
                let why = format!("no such encoding: {other}");
                return Err(Status::new(code::UNIMPLEMENTED, why).into());
            }
            _ => {
                return Err(
                    Status::new(code::INTERNAL, "a compressed-flag without a coding").into()
                );
            }
        };
        self.received += 1;
        self.bytes += bytes.len() as u64;
        M::decode(bytes).map_err(|why| Status::new(code::INTERNAL, why.to_string()).into())
    }

    fn head(&self) -> Response {
        let mut head = Response::new(200).header("content-type", "application/grpc");
        if self.pack {
            head = head.header("grpc-encoding", "gzip");
        }
        for (name, value) in self.echoed(ECHOED) {
            head = head.header(&name, value);
        }
        head
    }

    fn echoed(&self, prefix: &str) -> Vec<(String, String)> {
        let trailer = prefix == ECHOED_TRAILER;
        let lines = self.ex.request.headers.iter();
        lines
            .filter(|(name, _)| name.starts_with(prefix))
            .filter(|(name, _)| name.starts_with(ECHOED_TRAILER) == trailer)
            .cloned()
            .collect()
    }

    /// Sends one message, behind the head if it is the first.
    pub(crate) async fn reply(&mut self, message: &impl Message) -> io::Result<()> {
        self.begin().await?;
        let mut bytes = message.encode_to_vec();
        if self.pack {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes)?;
            bytes = encoder.finish()?;
        }
        self.raw(&framed(u8::from(self.pack), &bytes)).await
    }

    /// Sends the head, if it has not left yet.
    pub(crate) async fn begin(&mut self) -> io::Result<()> {
        if self.out.is_none() {
            let head = self.head();
            self.out = Some(self.ex.begin(head).await?);
        }
        Ok(())
    }

    /// Sends these bytes as they are.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.out {
            Some(out) => out.chunk(self.ex, bytes).await,
            None => Err(io::Error::other("a call that has not begun")),
        }
    }

    /// Ends the call with these trailers.
    pub(crate) async fn trail(self, trailers: &[(&str, &str)]) -> io::Result<After> {
        match self.out {
            Some(out) => out.finish(self.ex, trailers).await,
            None => Err(io::Error::other("a call that has not begun")),
        }
    }

    /// Ends the call; when nothing was sent yet, with a head alone ("Trailers-Only").
    pub(crate) async fn end(self, status: Status) -> io::Result<After> {
        let mut fields = status.fields();
        fields.extend(self.echoed(ECHOED_TRAILER));
        if self.out.is_none() {
            let mut head = Response::new(200).header("content-type", "application/grpc");
            head.headers.extend(fields);
            return self.ex.reply_head(head).await;
        }
        let borrowed: Vec<_> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.trail(&borrowed).await
    }

    /// Ends the call as its handler has it.
    pub(crate) async fn settle(self, done: Result<(), Stop>) -> io::Result<After> {
        match done {
            Ok(()) => self.end(Status::ok()).await,
            Err(Stop::Status(status)) => self.end(status).await,
            Err(Stop::Gone(error)) => Err(error),
        }
    }
}

/// A message behind its five bytes.
pub(crate) fn framed(packed: u8, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![packed];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// A value of binary metadata, decoded; both forms of base64 are taken.
pub(crate) fn binary(value: &str) -> Option<Vec<u8>> {
    STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        assert_eq!(timeout_of("20m"), Some(Duration::from_millis(20)));
        assert_eq!(timeout_of("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(timeout_of("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "m", "5", "123456789S", "-1S", "1s", "1.5S"] {
            assert_eq!(timeout_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn messages_are_escaped_as_the_specification_has_it() {
        let fields = Status::new(2, "no bird: 100% ü\n").fields();
        assert_eq!(fields[1].1, "no bird: 100%25 %C3%BC%0A");
    }
}
