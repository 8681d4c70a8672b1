//! The bytes of a request, made once.

use std::{
    io::{self, IoSlice},
    net::{SocketAddr, ToSocketAddrs},
};

use http::Uri;
use mimus_bench_kit::{Outgoing, PeerError};

/// The end of a chunked body (RFC 9112 section 7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How the body of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Length(usize),
    Chunked,
}

impl Kind {
    fn of(upload: &Outgoing) -> Self {
        match upload {
            Outgoing::None => Self::Get,
            Outgoing::Known(body) => Self::Length(body.len()),
            Outgoing::Stream(_) => Self::Chunked,
        }
    }
}

/// A request for one URL: where it goes, and the bytes of its head.
#[derive(Debug)]
pub struct Request {
    url: String,
    kind: Kind,
    pub host: String,
    pub addresses: Vec<SocketAddr>,
    pub tls: bool,
    pub head: Vec<u8>,
}

impl Request {
    /// Whether these are the bytes to ask for `url` with.
    pub fn is_for(&self, url: &str, upload: &Outgoing) -> bool {
        self.kind == Kind::of(upload) && self.url == url
    }

    /// The handshake for a WebSocket at `url` (RFC 6455 section 4.1), whose scheme is `ws` or `wss`. The key
    /// is the example of the RFC.
    pub fn web_socket(url: &str) -> Result<Self, PeerError> {
        let rest = url.strip_prefix("ws").ok_or("not the URL of a WebSocket")?;
        let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        Self::with(&format!("http{rest}"), Kind::Get, fields)
    }

    pub fn new(url: &str, upload: &Outgoing) -> Result<Self, PeerError> {
        Self::with(url, Kind::of(upload), "")
    }

    fn with(url: &str, kind: Kind, fields: &str) -> Result<Self, PeerError> {
        let uri: Uri = url.parse()?;
        let authority = uri.authority().ok_or("the URL names no host")?;
        let tls = uri.scheme_str() == Some("https");
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let (method, framing) = match kind {
            Kind::Get => ("GET", String::new()),
            Kind::Length(length) => ("POST", format!("Content-Length: {length}\r\n")),
            Kind::Chunked => ("POST", "Transfer-Encoding: chunked\r\n".to_owned()),
        };
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\n{framing}{fields}\r\n");
        Ok(Self {
            url: url.to_owned(),
            kind,
            addresses: (host.as_str(), port).to_socket_addrs()?.collect(),
            host,
            tls,
            head: head.into_bytes(),
        })
    }
}

/// The line before a chunk.
pub fn chunk_size(length: usize) -> ([u8; 18], usize) {
    let mut line = [0; 18];
    let room = line.len();
    let mut rest = &mut line[..];
    // 16 digits and the line's end fit.
    let _ = io::Write::write_fmt(&mut rest, format_args!("{length:x}\r\n"));
    let left = rest.len();
    (line, room - left)
}

/// Over TLS, parts up to this size together go out joined, so that small ones make no record of their
/// own.
pub const JOIN_MAX: usize = 128 * 1024;

/// The parts as one, in a buffer that is used again; `None` if they are too large for that.
pub fn joined<'a>(parts: &[IoSlice<'_>], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.clear();
    if parts.iter().map(|part| part.len()).sum::<usize>() > JOIN_MAX {
        return None;
    }
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_one_url_and_kind_of_body() {
        let url = "http://127.0.0.1:1/b/2?x";
        let get = Request::new(url, &Outgoing::None).unwrap();
        assert_eq!(get.head, b"GET /b/2?x HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
        let body = Outgoing::Known(bytes::Bytes::from_static(b"abc"));
        assert!(get.is_for(url, &Outgoing::None) && !get.is_for(url, &body));
        assert!(!get.is_for("http://127.0.0.1:1/b/3", &Outgoing::None));
        let post = Request::new(url, &body).unwrap();
        assert!(post.head.starts_with(b"POST "));
        assert!(post.head.ends_with(b"\r\nContent-Length: 3\r\n\r\n"));
    }

    #[test]
    fn chunk_sizes_are_hexadecimal_lines() {
        for (length, expected) in
            [(1, "1\r\n"), (65_536, "10000\r\n"), (usize::MAX, "ffffffffffffffff\r\n")]
        {
            let (line, n) = chunk_size(length);
            assert_eq!(&line[..n], expected.as_bytes());
        }
    }
}
