//! What runner and client say to each other: one JSON object a line, over the client's stdin and
//! stdout. All times are in nanoseconds.

use serde::{Deserialize, Serialize};

/// The client's first line: what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The peer's name, e.g. `reqwest-0.12`.
    pub name: String,
    /// The version that was built, from its own lock file.
    pub version: String,
    /// The configuration in use, e.g. `default` or `best`.
    pub config: String,
    /// What that configuration is, in a sentence.
    pub about: String,
}

/// What is spoken. A client is made for one: what it says of it stands in its configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by prior knowledge where the URL is plain, by ALPN over TLS. All exchanges under way at a
    /// time are streams of one connection.
    Http2,
    /// Unary gRPC calls over HTTP/2 whose messages are protobuf. What is uploaded is the text of the
    /// message sent, and the body that of the message that comes.
    GrpcProst,
    /// The same with messages of JSON.
    GrpcJson,
    /// WebSocket over HTTP/1.1, without extensions: an exchange sends [messages](Upload::Messages) over an
    /// open connection and has them back.
    WebSocket,
    /// The same with `permessage-deflate` (RFC 7692), as the client offers it by itself.
    WebSocketDeflate,
    /// Nothing: functions of a codec are called, in memory. See [`codec`](crate::codec).
    Codec,
    /// Nothing: what a program pays before its first exchange is measured. The URL is `import`, a fresh
    /// interpreter that loads the library, or `client`, one more client in a program that has one. Asked of
    /// clients in Python only.
    StartUp,
}

impl Protocol {
    /// The name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::GrpcProst => "grpc-prost",
            Self::GrpcJson => "grpc-json",
            Self::WebSocket => "web-socket",
            Self::WebSocketDeflate => "web-socket-deflate",
            Self::Codec => "codec",
            Self::StartUp => "start-up",
        }
    }

    /// The protocol of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::Http1,
            Self::Http2,
            Self::GrpcProst,
            Self::GrpcJson,
            Self::WebSocket,
            Self::WebSocketDeflate,
            Self::Codec,
            Self::StartUp,
        ];
        all.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Whether it is a form of gRPC.
    pub fn is_grpc(self) -> bool {
        matches!(self, Self::GrpcProst | Self::GrpcJson)
    }

    /// Whether somebody is asked: what is not asked of a server, a process does by itself.
    pub fn is_spoken(self) -> bool {
        !matches!(self, Self::Codec | Self::StartUp)
    }

    /// Whether it is a form of WebSocket.
    pub fn is_web_socket(self) -> bool {
        matches!(self, Self::WebSocket | Self::WebSocketDeflate)
    }
}

/// A block of exchanges to make and to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What to ask for. The scheme says whether TLS is measured.
    pub url: String,
    /// Exchanges in the block.
    pub ops: u64,
    /// Exchanges under way at any time.
    pub in_flight: u32,
    /// What each sends.
    pub upload: Upload,
    /// What becomes of each response body.
    pub deliver: Deliver,
    /// The length of each response body, in bytes; another length is a failure.
    pub body: u64,
    /// A connection of its own for each exchange.
    pub cold: bool,
    /// Exchanges begun each second, on a schedule that does not wait for answers; `None` is as fast as
    /// they come. Latency counts from when an exchange was due.
    pub rate: Option<f64>,
    /// Exchanges before the block that are not counted, but for their failures. No fewer than
    /// `in_flight`, so that every connection is there when the block begins.
    pub warm_up: u64,
}

/// What an exchange sends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upload {
    /// A GET without a body.
    None,
    /// A POST of so many bytes that are all there, with Content-Length.
    Known(u64),
    /// A POST streamed from an iterator of 64 KiB pieces: over HTTP/1.1 chunked.
    Chunked(u64),
    /// A streamed POST of `pieces` pieces of `size` bytes, one every `every_ns`, each beginning with the
    /// time it was handed over: nanoseconds of CLOCK_MONOTONIC, little endian.
    Paced {
        /// How many pieces.
        pieces: u32,
        /// Bytes in each.
        size: u32,
        /// Nanoseconds from one to the next; the first is due at once.
        every_ns: u64,
    },
    /// WebSocket messages, all of them sent before the first is received: what comes back is the body.
    Messages {
        /// How many.
        count: u32,
        /// Bytes in each.
        size: u32,
        /// Whether they are text.
        text: bool,
    },
}

/// What becomes of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deliver {
    /// Collected into one `Bytes` (or what the client calls it).
    Bytes,
    /// Read piece by piece and forgotten.
    Sink,
    /// Read piece by piece; the stamps at the server's piece boundaries tell the delay of each.
    Paced {
        /// Bytes in each piece of the server's; each begins with its stamp as in [`Upload::Paced`].
        size: u32,
    },
}

/// What a block cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From the first exchange's beginning to the last one's end.
    pub wall: u64,
    /// CPU time of the whole process over the block.
    pub cpu: u64,
    /// Exchanges that went well.
    pub ops: u64,
    /// Body bytes received and sent.
    pub bytes: u64,
    /// Of each exchange: from its beginning (or when it was due) to its end. Of a [`codec`](crate::codec):
    /// of each batch, what one operation took, in hundredths of a cycle.
    pub latency: Vec<u64>,
    /// Of each exchange that streams: until the first piece of the body was delivered. Of a paced
    /// upload: until the server had its first piece.
    pub first_byte: Vec<u64>,
    /// Of each paced piece: from the sender's stamp to the receiver's hands.
    pub delay: Vec<u64>,
    /// Heap allocations and bytes over the block, if the counter is loaded.
    pub allocations: Option<Allocations>,
    /// The process's largest resident set so far, in bytes.
    pub peak_rss: u64,
    /// Exchanges that failed: each message once, with its count. Any makes the row fail.
    pub failures: Vec<(String, u64)>,
}

/// What the heap was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocations {
    /// Calls that allocate (malloc, calloc, realloc, aligned forms).
    pub calls: u64,
    /// Bytes they asked for.
    pub bytes: u64,
}

/// The client's answer to a [`Job`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Sample(Box<Sample>),
    /// This client has no way to do it, and why.
    Unsupported(String),
}
