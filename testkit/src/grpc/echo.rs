//! `mimus.test.v1.Echo`: the four kinds of call, as the request has them.

use std::io;
use std::time::Duration;

use prost::Message;
use tokio::time::timeout;

use super::call::{Call, Status, Stop, accept, binary};
use super::code;
use super::schema::{EchoReply, EchoRequest, Fail, Pair, RpcStatus};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::routes::{Route, route};

const POST: &[&str] = &["POST"];

pub(super) const ROUTES: &[Route] = &[
    route("/mimus.test.v1.Echo/Unary", POST, "gRPC: says back the message", |ex| {
        Box::pin(run(ex, Kind::Unary))
    }),
    route("/mimus.test.v1.Echo/ClientStream", POST, "gRPC: counts the messages", |ex| {
        Box::pin(run(ex, Kind::ClientStream))
    }),
    route("/mimus.test.v1.Echo/ServerStream", POST, "gRPC: says back the message often", |ex| {
        Box::pin(run(ex, Kind::ServerStream))
    }),
    route("/mimus.test.v1.Echo/BidiStream", POST, "gRPC: says back each message at once", |ex| {
        Box::pin(run(ex, Kind::BidiStream))
    }),
    route("/mimus.test.v1.Echo/*", POST, "gRPC: UNIMPLEMENTED", |ex| Box::pin(unknown(ex))),
];

/// The largest filler of a reply, in bytes.
const MAX_FILLER: u32 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unary,
    ClientStream,
    ServerStream,
    BidiStream,
}

async fn unknown(ex: &mut Exchange) -> io::Result<After> {
    match accept(ex).await? {
        Ok(call) => call.end(Status::new(code::UNIMPLEMENTED, "no such method")).await,
        Err(after) => Ok(after),
    }
}

async fn run(ex: &mut Exchange, kind: Kind) -> io::Result<After> {
    let mut call = match accept(ex).await? {
        Ok(call) => call,
        Err(after) => return Ok(after),
    };
    let done = match call.timeout() {
        None => handle(&mut call, kind).await,
        Some(time) => match timeout(time, handle(&mut call, kind)).await {
            Ok(done) => done,
            Err(_) => Err(Status::new(code::DEADLINE_EXCEEDED, "the deadline has passed").into()),
        },
    };
    call.settle(done).await
}

async fn handle(call: &mut Call<'_>, kind: Kind) -> Result<(), Stop> {
    let mut index = 0;
    match kind {
        Kind::Unary | Kind::ServerStream => {
            let asked: EchoRequest = call
                .message()
                .await?
                .ok_or_else(|| Status::new(code::INVALID_ARGUMENT, "no message"))?;
            if call.message::<EchoRequest>().await?.is_some() {
                return Err(Status::new(code::INVALID_ARGUMENT, "one message too many").into());
            }
            let times = if kind == Kind::Unary { 1 } else { asked.count };
            answer(call, &asked, times, &mut index).await?;
            if kind == Kind::ServerStream {
                // A stream of nothing still begins.
                call.begin().await?;
            }
        }
        Kind::ClientStream => {
            let mut last = EchoRequest::default();
            while let Some(asked) = call.message().await? {
                last = asked;
            }
            answer(call, &last, 1, &mut index).await?;
        }
        Kind::BidiStream => {
            call.begin().await?;
            while let Some(asked) = call.message::<EchoRequest>().await? {
                answer(call, &asked, asked.count.max(1), &mut index).await?;
            }
        }
    }
    Ok(())
}

/// Sends `times` replies, or fails between them where the request says so.
async fn answer(
    call: &mut Call<'_>,
    asked: &EchoRequest,
    times: u32,
    index: &mut u32,
) -> Result<(), Stop> {
    for sent in 0..=times {
        if let Some(fail) = asked.fail.as_ref().filter(|fail| fail.after.min(times) == sent) {
            call.ex.pause(Duration::from_millis(asked.delay_ms.into())).await?;
            return Err(failure(fail).into());
        }
        if sent == times {
            break;
        }
        call.ex.pause(Duration::from_millis(asked.delay_ms.into())).await?;
        let reply = reply(call, asked, *index);
        call.reply(&reply).await?;
        *index += 1;
    }
    Ok(())
}

fn reply(call: &Call<'_>, asked: &EchoRequest, index: u32) -> EchoReply {
    let shown = |(name, value): &(String, String)| {
        let plain = name.strip_suffix("-bin").and_then(|_| binary(value));
        let value = plain.map_or_else(|| value.clone(), |bytes| format!("{bytes:?}"));
        Pair { name: name.clone(), value }
    };
    EchoReply {
        request: Some(asked.clone()),
        index,
        received: call.received,
        bytes: call.bytes,
        metadata: call.ex.request.headers.iter().map(shown).collect(),
        timeout_ms: call.timeout().map_or(0, |time| time.as_millis() as u64),
        filler: vec![b'*'; asked.reply_bytes.min(MAX_FILLER) as usize],
        compressed: call.was_packed,
    }
}

fn failure(fail: &Fail) -> Status {
    let mut status = Status::new(fail.code, fail.message.clone());
    if fail.with_details {
        let why = Pair { name: "reason".to_owned(), value: "it was asked for".to_owned() };
        let whole = RpcStatus {
            code: fail.code,
            message: fail.message.clone(),
            details: vec![prost_types::Any {
                type_url: "type.googleapis.com/mimus.test.v1.Pair".to_owned(),
                value: why.encode_to_vec(),
            }],
        };
        status.details = Some(whole.encode_to_vec());
    }
    status
}
