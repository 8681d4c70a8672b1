//! Request heads: which route, how the body ends, whether the connection stays.

use std::mem::MaybeUninit;

use crate::websocket::{Fields, Handshake};

/// More header fields than any client here sends.
const MAX_FIELDS: usize = 100;
/// A head that is longer is refused.
const MAX_HEAD: usize = 64 * 1024;
/// Largest piece of a paced body, in bytes.
const MAX_PIECE: u64 = 1 << 30;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// So many bytes with Content-Length.
    Bytes(u64),
    /// So many bytes in chunks.
    Chunks(u64),
    /// Read a body, say that it came.
    Upload,
    /// A stamped piece every so often.
    Paced { pieces: u64, size: u64, every_ns: u64 },
    /// Read stamped pieces of this size, say when they came.
    PacedUpload { size: u64 },
    /// Speak WebSocket, and send back what comes. Over HTTP/1.1 only.
    WebSocket(Handshake),
}

/// How a request body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// A request without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) route: Route,
    pub(crate) framing: Framing,
    /// The client closes after this exchange.
    pub(crate) close: bool,
    /// The client waits for `100 Continue`.
    pub(crate) expects: bool,
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadRequest,
    NotFound,
}

/// The request head that `input` begins with and its length; `None` if it is not all there.
pub(crate) fn parse(input: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut []);
    let length = match head.parse_with_uninit_headers(input, &mut fields) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() < MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Refusal::BadRequest),
    };
    let mut request = Request {
        route: match (head.method, head.path) {
            (Some("GET"), Some("/ws")) => web_socket(head.headers, false)?,
            (Some("GET"), Some("/ws-deflate")) => web_socket(head.headers, true)?,
            (method, path) => route(method.unwrap_or_default(), path.unwrap_or_default())?,
        },
        framing: Framing::Length(0),
        close: head.version == Some(0),
        expects: false,
    };
    let mut framing = None;
    for field in &*head.headers {
        if field.name.eq_ignore_ascii_case("content-length") {
            frame(&mut framing, Framing::Length(number(field.value)?))?;
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::BadRequest);
            }
            frame(&mut framing, Framing::Chunked)?;
        } else if field.name.eq_ignore_ascii_case("connection") {
            request.close |= has_token(field.value, b"close");
        } else if field.name.eq_ignore_ascii_case("expect") {
            request.expects = field.value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    request.framing = framing.unwrap_or(Framing::Length(0));
    Ok(Some((request, length)))
}

/// The route of a WebSocket, if the head asks for one.
fn web_socket(head: &[httparse::Header<'_>], deflate: bool) -> Result<Route, Refusal> {
    let mut fields = Fields::default();
    for field in head {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("upgrade") {
            fields.upgrade = has_token(field.value, b"websocket");
        } else if is("sec-websocket-version") {
            fields.version = field.value == b"13";
        } else if is("sec-websocket-key") {
            fields.key = Some(field.value);
        } else if is("sec-websocket-extensions") {
            fields.extensions.push(field.value);
        }
    }
    Ok(Route::WebSocket(Handshake::new(&fields, deflate)?))
}

/// RFC 9112 section 6.3: two framings that differ are not a message.
fn frame(known: &mut Option<Framing>, seen: Framing) -> Result<(), Refusal> {
    match known.replace(seen) {
        Some(before) if before != seen => Err(Refusal::BadRequest),
        _ => Ok(()),
    }
}

/// What `method` asks of `target`.
pub(crate) fn route(method: &str, target: &str) -> Result<Route, Refusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parts = path.strip_prefix('/').ok_or(Refusal::NotFound)?.split('/');
    let parts = [(); 5].map(|()| parts.next());
    match (method, parts) {
        ("GET", [Some("b"), Some(n), None, ..]) => Ok(Route::Bytes(number(n.as_bytes())?)),
        ("GET", [Some("c"), Some(n), None, ..]) => Ok(Route::Chunks(number(n.as_bytes())?)),
        ("POST", [Some("up"), None, ..]) => Ok(Route::Upload),
        ("GET", [Some("paced"), Some(pieces), Some(size), Some(every), None]) => {
            let (pieces, every_ns) = (number(pieces.as_bytes())?, number(every.as_bytes())?);
            if pieces == 0 {
                return Err(Refusal::BadRequest);
            }
            Ok(Route::Paced { pieces, size: piece_size(size)?, every_ns })
        }
        ("POST", [Some("paced"), None, ..]) => {
            let size = query.split('&').find_map(|pair| pair.strip_prefix("size="));
            Ok(Route::PacedUpload { size: piece_size(size.ok_or(Refusal::BadRequest)?)? })
        }
        _ => Err(Refusal::NotFound),
    }
}

/// A piece has room for its stamp.
fn piece_size(text: &str) -> Result<u64, Refusal> {
    let size = number(text.as_bytes())?;
    if (8..=MAX_PIECE).contains(&size) { Ok(size) } else { Err(Refusal::BadRequest) }
}

/// Digits and nothing else: `str::parse` would take a sign too.
fn number(text: &[u8]) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Err(Refusal::BadRequest);
    }
    text.iter()
        .try_fold(0u64, |sum, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        })
        .ok_or(Refusal::BadRequest)
}

fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn a_head_is_whole_or_not_there() {
        let text = b"GET /b/12 HTTP/1.1\r\nHost: a\r\n\r\nGET";
        for end in 0..text.len() - 3 {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        let (request, length) = parse(text).unwrap().unwrap();
        assert_eq!((request.route, length), (Route::Bytes(12), text.len() - 3));
        assert!(!request.close);
    }

    #[test]
    fn routes_have_their_numbers() {
        let get = |path: &str| parse(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        let paced = Route::Paced { pieces: 5, size: 16384, every_ns: 1_000_000 };
        assert_eq!(get("/paced/5/16384/1000000").unwrap().unwrap().0.route, paced);
        assert_eq!(get("/c/7?x=y").unwrap().unwrap().0.route, Route::Chunks(7));
        for bad in
            ["/b/", "/b/+1", "/b/-1", "/b/99999999999999999999", "/paced/1/7/0", "/paced/0/8/0"]
        {
            assert_eq!(get(bad), Err(Refusal::BadRequest), "{bad}");
        }
        for unknown in ["/", "/b", "/b/1/2", "/up", "*", "/paced/1/2", "/paced/1/8/0/0"] {
            assert_eq!(get(unknown), Err(Refusal::NotFound), "{unknown}");
        }
        let paced = request("POST /paced?size=100 HTTP/1.1\r\n\r\n");
        assert_eq!(paced.route, Route::PacedUpload { size: 100 });
    }

    #[test]
    fn framing_is_one_or_refused() {
        let post = |fields: &str| {
            parse(format!("POST /up HTTP/1.1\r\n{fields}\r\n").as_bytes())
                .map(|whole| whole.unwrap().0.framing)
        };
        assert_eq!(post(""), Ok(Framing::Length(0)));
        assert_eq!(post("content-length: 3\r\nContent-Length: 3\r\n"), Ok(Framing::Length(3)));
        assert_eq!(post("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        for bad in [
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Content-Length: 3, 3\r\n",
        ] {
            assert_eq!(post(bad), Err(Refusal::BadRequest), "{bad}");
        }
    }

    #[test]
    fn a_client_may_close_and_may_wait() {
        assert!(request("GET /b/1 HTTP/1.0\r\n\r\n").close);
        assert!(request("GET /b/1 HTTP/1.1\r\nConnection: x, Close\r\n\r\n").close);
        assert!(!request("GET /b/1 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n").close);
        assert!(request("POST /up HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").expects);
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let endless = [b"GET /b/1 HTTP/1.1\r\nA: ".as_slice(), &[b'x'; MAX_HEAD]].concat();
        assert_eq!(parse(&endless), Err(Refusal::BadRequest));
    }
}
