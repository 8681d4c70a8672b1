//! What a client looks like on the wire: a [`Listener`] that watches whoever connects.
//!
//! It is a small server of HTTP/1.1 and HTTP/2, with and without TLS, whose certificate comes from an
//! authority that lives in memory. Of each connection it keeps what was [`Seen`]: the ClientHello, and
//! then the frames or the heads, read by [`mimus_proto::fingerprint`]. A [`Site`] answers the requests.
//!
//! ```
//! use mimus::fingerprint::{Answer, Asked, Listener, Seen};
//!
//! let listener = Listener::bind("127.0.0.1:0", &["localhost"])?;
//! let tls = mimus::TlsConfig::builder().roots(mimus::tls::Roots::None);
//! let tls = tls.add_ca(listener.authority_pem()).build()?;
//! let url = format!("https://localhost:{}/", listener.local_addr().port());
//! let _serving = listener.serve(|seen: &Seen, _: &Asked<'_>| Answer::json(&seen.describe()));
//!
//! let client = mimus::blocking::Client::builder().tls(tls).build()?;
//! let text = client.get(url).send()?.text()?;
//! assert!(text.contains("t13d"), "no JA4 in {text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conn;
mod listener;

use std::net::SocketAddr;

use bytes::Bytes;
use http::StatusCode;
pub use mimus_proto::fingerprint::{
    ClientHello, Content, Extension, ExtensionId, FieldLine, Fingerprint, Frame, HeaderBlock,
    HelloReader, Http2Reader, Ja4, Record, Transport, akamai, describe_frames, describe_hello,
    is_grease,
};
use mimus_proto::{Fields, RequestHead};
use serde_json::{Value, json};

pub use listener::{Listener, Serving};

/// Frames and heads of one connection beyond this many are answered, but not kept.
pub const MAX_KEPT: usize = 4096;

/// Frames and heads of one connection are kept up to this many bytes, all together.
pub const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// What was seen of a connection so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Seen {
    /// How many connections came before this one.
    pub number: u64,
    /// From where it comes.
    pub peer: SocketAddr,
    /// Its ClientHello; none without TLS.
    pub hello: Option<ClientHello>,
    /// The records that the ClientHello came in.
    pub records: Vec<Record>,
    /// What ALPN chose.
    pub alpn: Option<String>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// What it sent on HTTP/2.
    pub frames: Vec<Frame>,
    /// What it sent on HTTP/1.1.
    pub heads: Vec<RequestHead>,
    /// Why the connection ended, when it did not end in order.
    pub error: Option<String>,
}

impl Seen {
    fn new(number: u64, peer: SocketAddr) -> Self {
        Seen {
            number,
            peer,
            hello: None,
            records: Vec::new(),
            alpn: None,
            resumed: false,
            frames: Vec::new(),
            heads: Vec::new(),
            error: None,
        }
    }

    /// Everything, as JSON: `tls` as [`describe_hello`] has it, `http2` as [`describe_frames`], and
    /// `http1`, a list of heads.
    #[must_use]
    pub fn describe(&self) -> Value {
        let mut all = json!({"number": self.number, "peer": self.peer.to_string()});
        if let Some(hello) = &self.hello {
            let mut tls = describe_hello(hello, &self.records, Transport::Tcp);
            tls["alpn"] = self.alpn.clone().into();
            tls["resumed"] = self.resumed.into();
            all["tls"] = tls;
        }
        if !self.frames.is_empty() {
            all["http2"] = describe_frames(&self.frames);
        }
        if !self.heads.is_empty() {
            all["http1"] = self.heads.iter().map(describe_head).collect();
        }
        if let Some(error) = &self.error {
            all["error"] = error.as_str().into();
        }
        all
    }
}

fn describe_head(head: &RequestHead) -> Value {
    let fields: Vec<Value> = (head.fields.iter())
        .map(|(name, value)| json!([name, String::from_utf8_lossy(value)]))
        .collect();
    json!({"method": head.method.as_str(), "target": head.target,
        "version": format!("{:?}", head.version), "headers": fields})
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a str,
    /// The path with its query; in HTTP/1.1 the target as sent.
    pub target: &'a str,
}

/// What is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status; no informational one.
    pub status: StatusCode,
    /// The fields, but for the body's length.
    pub fields: Fields,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// An answer of this media type.
    #[must_use]
    pub fn new(media_type: &str, body: impl Into<Bytes>) -> Self {
        let mut fields = Fields::new();
        // A media type that is no field value is left out.
        let _ = fields.append("Content-Type", media_type);
        Answer { status: StatusCode::OK, fields, body: body.into() }
    }

    /// An answer in JSON, for people to read.
    #[must_use]
    pub fn json(value: &Value) -> Self {
        Answer::new("application/json", format!("{value:#}\n"))
    }
}

/// What answers, and is told. A function of [`Seen`] and [`Asked`] is one.
pub trait Site: Send + Sync + 'static {
    /// Answers a request that is whole. It runs on the connection's own thread.
    fn answer(&self, seen: &Seen, asked: &Asked<'_>) -> Answer;

    /// A connection is over.
    fn left(&self, seen: &Seen) {
        let _ = seen;
    }
}

impl<F: Fn(&Seen, &Asked<'_>) -> Answer + Send + Sync + 'static> Site for F {
    fn answer(&self, seen: &Seen, asked: &Asked<'_>) -> Answer {
        self(seen, asked)
    }
}
