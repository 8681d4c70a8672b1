//! A request, made once: where it goes, and its header block.

use std::net::{SocketAddr, ToSocketAddrs};

use bytes::Bytes;
use http::Uri;
use mimus_bench_grpc::{Codec, Echo};
use mimus_bench_kit::{Outgoing, PeerError, Protocol};

use super::block;

/// How the body of a request is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Get,
    Length(usize),
    Stream,
}

impl Kind {
    fn of(upload: &Outgoing) -> Self {
        match upload {
            Outgoing::None => Self::Get,
            Outgoing::Known(body) => Self::Length(body.len()),
            Outgoing::Stream(_) => Self::Stream,
        }
    }
}

/// A request for one URL.
#[derive(Debug)]
pub struct Request {
    url: String,
    kind: Kind,
    pub host: String,
    pub addresses: Vec<SocketAddr>,
    pub tls: bool,
    /// The header block.
    pub block: Vec<u8>,
    /// Of a call, its message behind the prefix.
    pub message: Option<Bytes>,
}

impl Request {
    /// Whether these are the bytes to ask for `url` with.
    pub fn is_for(&self, url: &str, upload: &Outgoing) -> bool {
        self.kind == Kind::of(upload) && self.url == url
    }

    pub fn new(url: &str, upload: &Outgoing, protocol: Protocol) -> Result<Self, PeerError> {
        let kind = Kind::of(upload);
        let uri: Uri = url.parse()?;
        let authority = uri.authority().ok_or("the URL names no host")?;
        let tls = uri.scheme_str() == Some("https");
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let method = if kind == Kind::Get { block::GET } else { block::POST };
        let mut fields = vec![method, if tls { block::HTTPS } else { block::HTTP }];
        block::put(block::AUTHORITY, authority.as_str().as_bytes(), &mut fields);
        block::put(block::PATH, target.as_bytes(), &mut fields);
        let message = match (codec(protocol), upload) {
            (None, _) => None,
            (Some(codec), Outgoing::Known(text)) => {
                block::put(block::CONTENT_TYPE, codec.content_type().as_bytes(), &mut fields);
                block::put_named(b"te", b"trailers", &mut fields);
                Some(codec.frame(&Echo::of(text)?)?)
            }
            (Some(_), _) => return Err("a call sends one text".into()),
        };
        if let (Kind::Length(length), None) = (&kind, &message) {
            block::put(block::CONTENT_LENGTH, length.to_string().as_bytes(), &mut fields);
        }
        Ok(Self {
            url: url.to_owned(),
            kind,
            addresses: (host.as_str(), port).to_socket_addrs()?.collect(),
            host,
            tls,
            block: fields,
            message,
        })
    }
}

fn codec(protocol: Protocol) -> Option<Codec> {
    match protocol {
        Protocol::GrpcProst => Some(Codec::Prost),
        Protocol::GrpcJson => Some(Codec::Json),
        _ => None,
    }
}
