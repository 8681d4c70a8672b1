//! The HTTP/2 loop of one connection: each stream is a task, and answers by the same routes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Stream, Tap};
use crate::conn::{About, After};
use crate::exchange::{Exchange, Wire};
use crate::io::Io;
use crate::record::Seen;
use crate::request::{Request, Version, split_target};
use crate::response::Response;
use crate::routes;

/// The most streams a client may have open.
const STREAMS: u32 = 1024;
/// The longest list of fields, in bytes.
const FIELDS: u32 = 1 << 20;
/// How many resets are forgiven: a test drops requests by the thousand.
const RESETS: usize = 100_000;

/// Serves a connection until either side ends it. Windows are those of the RFC, 65 535 bytes.
pub(crate) async fn serve(about: Arc<About>, io: Box<dyn Io>) {
    let idle = about.shared.limits.idle;
    let handshake = Builder::new()
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(FIELDS)
        .max_concurrent_reset_streams(RESETS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(None)
        .enable_connect_protocol()
        .handshake::<_, Bytes>(Tap::new(io, Arc::clone(&about)));
    let Ok(Ok(mut connection)) = timeout(idle, handshake).await else {
        return;
    };
    let closing = Arc::new(Notify::new());
    let mut seq = 0;
    let mut deadline = Instant::now() + idle;
    loop {
        tokio::select! {
            next = connection.accept() => {
                let Some(Ok((request, respond))) = next else {
                    return;
                };
                seq += 1;
                deadline = Instant::now() + idle;
                let one = attend(Arc::clone(&about), seq, request, respond, Arc::clone(&closing));
                tokio::spawn(one);
            }
            () = closing.notified() => connection.graceful_shutdown(),
            () = sleep_until(deadline) => {
                if !connection.has_streams() {
                    connection.graceful_shutdown();
                }
                deadline = Instant::now() + idle;
            }
        }
    }
}

/// Answers one request, and what is wrong with it.
async fn attend(
    about: Arc<About>,
    seq: u32,
    request: http::Request<RecvStream>,
    respond: SendResponse<Bytes>,
    closing: Arc<Notify>,
) {
    let stream = respond.stream_id().as_u32();
    let (head, body) = request.into_parts();
    let request = read(&head);
    let waits = request.has_token("expect", "100-continue");
    let mark = about.shared.recorder.request(seen(&about, &request, seq, stream));
    about.shared.recorder.body(mark, 0, body.is_end_stream());
    let limit = about.shared.limits.exchange;
    let stream = Stream::new(respond, body, waits, Arc::clone(&about), mark);
    let mut ex =
        Exchange { about, request, seq, params: Vec::new(), wire: Wire::Two(Box::new(stream)) };
    let after = match timeout(limit, answer(&mut ex)).await {
        Ok(after) => after,
        Err(late) => Err(late.into()),
    };
    let Wire::Two(stream) = &mut ex.wire else {
        return;
    };
    match after {
        Ok(After::Keep) => {}
        Ok(After::Close) => closing.notify_one(),
        Ok(After::Drop | After::Reset) => stream.reset(Reason::INTERNAL_ERROR),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            stream.reset(Reason::HTTP_1_1_REQUIRED);
        }
        // The client gave it up, or left.
        Err(_) => stream.reset(Reason::CANCEL),
    }
}

async fn answer(ex: &mut Exchange) -> io::Result<After> {
    let after = match routes::answer(ex).await {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return ex.reply(Response::text(413, "the body is too large to keep\n")).await;
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return ex.reply(Response::text(400, format!("{error}\n"))).await;
        }
        other => other?,
    };
    // As over HTTP/1, what is left of an upload is read when its answer is already out.
    if after == After::Keep && !ex.waits() {
        while ex.next_piece().await?.is_some() {}
    }
    Ok(after)
}

/// The head as routes see it; `raw` is how HTTP/1 would have written it.
fn read(head: &http::request::Parts) -> Request {
    let latin1 = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), latin1(value.as_bytes())))
        .collect();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let (path, query) = split_target(&target);
    let method = head.method.as_str().to_owned();
    let mut raw = format!("{method} {target} HTTP/2\r\n").into_bytes();
    for (name, value) in &head.headers {
        raw.extend_from_slice(name.as_str().as_bytes());
        raw.extend_from_slice(b": ");
        raw.extend_from_slice(value.as_bytes());
        raw.extend_from_slice(b"\r\n");
    }
    raw.extend_from_slice(b"\r\n");
    Request {
        method,
        target,
        path,
        query,
        version: Version::Http2,
        authority: head.uri.authority().map(|authority| authority.as_str().to_owned()),
        protocol: head.extensions.get::<h2::ext::Protocol>().map(|p| p.as_str().to_owned()),
        headers,
        raw: raw.into(),
    }
}

fn seen(about: &About, request: &Request, seq: u32, stream: u32) -> Seen {
    Seen {
        conn: about.id,
        seq,
        port: about.port,
        method: request.method.clone(),
        target: request.target.clone(),
        version: request.version.name(),
        authority: request.authority.clone(),
        stream,
        head: request.raw.clone(),
        body_len: 0,
        body_complete: false,
        tls: about.tls.clone(),
        ws: None,
    }
}
