//! An HTTP proxy: CONNECT, and requests in absolute-form (RFC 9110 sections 7.6 and 9.3.6).

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::{dial, tunnel};
use crate::conn::{After, Conn};
use crate::port::Port;
use crate::request::{Body, HeadError, Request, read_head};
use crate::response::head;
use crate::serve::{refuse, seen};

/// The longest head that is taken from an upstream, in bytes.
const MAX_HEAD: usize = 2 << 20;

/// What becomes of the connection after one request.
enum Next {
    End(After),
    Tunnel(TcpStream),
}

/// Serves one client of the proxy.
pub(crate) async fn serve(mut conn: Conn) {
    let mut seq = 0;
    loop {
        let request = match timeout(conn.about.shared.limits.idle, read_head(&mut conn)).await {
            Ok(Ok(request)) => request,
            Ok(Err(HeadError::Bad(why))) => return refuse(conn, why).await,
            Ok(Err(HeadError::Gone)) => return conn.end(After::Drop).await,
            Err(_) => return conn.end(After::Close).await,
        };
        seq += 1;
        let mark = conn.about.shared.recorder.request(seen(&conn, &request, seq));
        let mut body = match Body::of(&request, mark) {
            Ok(body) => body,
            Err(why) => return refuse(conn, why).await,
        };
        match answer(&mut conn, &request, &mut body).await {
            Ok(Next::Tunnel(upstream)) => return tunnel(conn, upstream).await,
            Ok(Next::End(After::Keep)) => {}
            Ok(Next::End(after)) => return conn.end(after).await,
            Err(_) => return conn.end(After::Reset).await,
        }
    }
}

async fn answer(conn: &mut Conn, request: &Request, body: &mut Body) -> io::Result<Next> {
    match conn.about.port {
        Port::ProxyStall => {
            conn.until_gone().await;
            return Ok(Next::End(After::Drop));
        }
        Port::ProxyBroken => return say(conn, request, body, 502, &[]).await,
        Port::ProxyAuth if !is_known(conn, request) => {
            let challenge = ("proxy-authenticate".to_owned(), "Basic realm=\"proxy\"".to_owned());
            return say(conn, request, body, 407, &[challenge]).await;
        }
        _ => {}
    }
    if request.method == "CONNECT" {
        return connect(conn, request, body).await;
    }
    let target = Url::parse(&request.target).ok().filter(|url| url.scheme() == "http");
    let Some(url) = target else {
        return say(conn, request, body, 400, &[]).await;
    };
    let (host, port) = (url.host_str().unwrap_or_default(), url.port().unwrap_or(80));
    match dial(host, port).await {
        Ok(upstream) => forward(conn, request, body, upstream).await.map(Next::End),
        Err(_) => say(conn, request, body, 502, &[]).await,
    }
}

fn is_known(conn: &Conn, request: &Request) -> bool {
    let pair = format!("{}:{}", conn.about.shared.proxy_user, conn.about.shared.proxy_password);
    let want = STANDARD.encode(pair);
    let field = request.header("proxy-authorization").and_then(|field| field.split_once(' '));
    field.is_some_and(|(scheme, have)| scheme.eq_ignore_ascii_case("basic") && have == want)
}

async fn connect(conn: &mut Conn, request: &Request, body: &mut Body) -> io::Result<Next> {
    // RFC 9112 section 3.2.3: authority-form, the port required.
    let authority = request.target.rsplit_once(':');
    let Some((host, Ok(port))) = authority.map(|(host, port)| (host, port.parse::<u16>())) else {
        return say(conn, request, body, 400, &[]).await;
    };
    match dial(host, port).await {
        Ok(upstream) => {
            conn.write(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            Ok(Next::Tunnel(upstream))
        }
        Err(_) => say(conn, request, body, 502, &[]).await,
    }
}

/// An answer of the proxy's own; the connection goes on where the request lets it.
async fn say(
    conn: &mut Conn,
    request: &Request,
    body: &mut Body,
    status: u16,
    fields: &[(String, String)],
) -> io::Result<Next> {
    let keep = request.keeps_alive() && !body.waits();
    let mut whole = head(status, fields);
    if !keep {
        whole.push_str("connection: close\r\n");
    }
    whole.push_str("content-length: 0\r\nx-from: proxy\r\n\r\n");
    conn.write(whole.as_bytes()).await?;
    if keep {
        body.drain(conn).await?;
    }
    Ok(Next::End(if keep { After::Keep } else { After::Close }))
}

/// Fields that are meant for this hop only (RFC 9110 section 7.6.1), or that it answers itself.
fn is_hop_by_hop(name: &str) -> bool {
    const HOP: [&str; 6] =
        ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "expect"];
    HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop))
}

async fn forward(
    conn: &mut Conn,
    request: &Request,
    body: &mut Body,
    mut upstream: TcpStream,
) -> io::Result<After> {
    upstream.write_all(upstream_head(request).as_bytes()).await?;
    let sent = send_body(conn, request, body, &mut upstream).await;
    let after = relay(conn, request, &mut upstream).await?;
    // An upload that broke off leaves its rest in the way of the next request.
    Ok(if sent.is_ok() && after == After::Keep { After::Keep } else { After::Close })
}

fn upstream_head(request: &Request) -> String {
    let after_scheme = request.target.split_once("://").map_or("", |(_, rest)| rest);
    let path = after_scheme.find(['/', '?']).map_or("/", |at| &after_scheme[at..]);
    let slash = if path.starts_with('?') { "/" } else { "" };
    let mut head = format!("{} {slash}{path} HTTP/1.1\r\n", request.method);
    for (name, value) in request.headers.iter().filter(|(name, _)| !is_hop_by_hop(name)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // One upstream connection a request: its end is the answer's end.
    head.push_str("via: 1.1 mimus-origin\r\nconnection: close\r\n\r\n");
    head
}

async fn send_body(
    conn: &mut Conn,
    request: &Request,
    body: &mut Body,
    upstream: &mut TcpStream,
) -> io::Result<()> {
    let chunked = request.header("transfer-encoding").is_some();
    while let Some(piece) = body.next(conn).await? {
        if chunked {
            upstream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        }
        upstream.write_all(&piece).await?;
        if chunked {
            upstream.write_all(b"\r\n").await?;
        }
    }
    if chunked {
        let trailers: String = body.trailers.iter().map(|line| format!("{line}\r\n")).collect();
        upstream.write_all(format!("0\r\n{trailers}\r\n").as_bytes()).await?;
    }
    Ok(())
}

/// Passes the answer on, but for what was said about the upstream connection.
async fn relay(conn: &mut Conn, request: &Request, upstream: &mut TcpStream) -> io::Result<After> {
    let mut inbox = BytesMut::new();
    let (status, framing) = loop {
        let Some(raw) = upstream_answer(upstream, &mut inbox).await? else {
            // Whatever it was, it was no head: pass it on as it is.
            conn.write(&inbox).await?;
            return Ok(After::Close);
        };
        let (status, text, framing) = rewrite(&raw);
        conn.write(&text).await?;
        if status >= 200 {
            break (status, framing);
        }
    };
    let mut count = 0u64;
    let mut tail = [0; 4];
    loop {
        if inbox.is_empty() && upstream.read_buf(&mut inbox).await? == 0 {
            break;
        }
        count += inbox.len() as u64;
        for &byte in inbox.iter().rev().take(4).rev() {
            tail = [tail[1], tail[2], tail[3], byte];
        }
        conn.write(&inbox).await?;
        inbox.clear();
    }
    let whole = match framing {
        _ if request.method == "HEAD" || matches!(status, 204 | 304) => count == 0,
        Framing::Length(len) => count == len,
        Framing::Chunked => tail == *b"\r\n\r\n",
        Framing::UntilClose => false,
    };
    Ok(if whole && request.keeps_alive() { After::Keep } else { After::Close })
}

#[derive(Clone, Copy)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// One head off the upstream; `None` when what came does not end as a head does.
async fn upstream_answer(
    upstream: &mut TcpStream,
    inbox: &mut BytesMut,
) -> io::Result<Option<BytesMut>> {
    loop {
        if let Some(at) = inbox.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return Ok(Some(inbox.split_to(at + 4)));
        }
        if inbox.len() > MAX_HEAD || upstream.read_buf(inbox).await? == 0 {
            return Ok(None);
        }
    }
}

/// The status of a head, the head without its hop-by-hop lines, and how its body is framed.
fn rewrite(raw: &[u8]) -> (u16, Vec<u8>, Framing) {
    let mut out = Vec::with_capacity(raw.len());
    let mut framing = Framing::UntilClose;
    let mut status = 0;
    for (at, line) in raw.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        if at == 0 {
            status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
        }
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        if at > 0 && ["connection", "keep-alive"].iter().any(|hop| name.eq_ignore_ascii_case(hop)) {
            continue;
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length")
            && !matches!(framing, Framing::Chunked)
        {
            framing = value.trim().parse().map_or(Framing::UntilClose, Framing::Length);
        }
        out.extend_from_slice(line);
    }
    (status, out, framing)
}
