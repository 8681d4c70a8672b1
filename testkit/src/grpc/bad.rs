//! Calls that go wrong: one table, each row with the status a right client makes of it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use h2::Reason;

use super::call::{Call, accept, framed};
use super::code;
use crate::conn::After;
use crate::exchange::{Exchange, Wire};
use crate::response::Response;
use crate::routes::{Answer, Route, route};

/// One way in which a gRPC call goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct GrpcBad {
    /// The path of the method.
    pub path: &'static str,
    /// What the server does.
    pub what: &'static str,
    /// The status codes that a right client may make of it.
    pub codes: &'static [i32],
}

/// Makes the routes and the table from one list. All are unary methods that take any message.
macro_rules! rows {
    ($($path:literal, $what:literal, $codes:expr, $run:expr;)*) => {
        pub(super) const ROUTES: &[Route] = &[$(route($path, &["POST"], $what, $run),)*];
        const BAD: &[GrpcBad] = &[$(GrpcBad { path: $path, what: $what, codes: &$codes },)*];
    };
}

/// Every way in which a gRPC call goes wrong.
pub fn grpc_bad() -> &'static [GrpcBad] {
    BAD
}

// Where two codes are listed, the specification names none, and clients differ.
rows! {
    "/mimus.test.v1.Bad/NoTrailers", "gRPC: a message, and the end of the stream without trailers",
        [code::UNKNOWN, code::INTERNAL], |ex| said(ex, REPLY, &[]);
    "/mimus.test.v1.Bad/NoStatus", "gRPC: trailers without grpc-status",
        [code::UNKNOWN, code::INTERNAL], |ex| said(ex, REPLY, &[("x-other", "1")]);
    "/mimus.test.v1.Bad/StatusWord", "gRPC: grpc-status: fine",
        [code::UNKNOWN, code::INTERNAL], |ex| said(ex, REPLY, &[("grpc-status", "fine")]);
    "/mimus.test.v1.Bad/StatusHigh", "gRPC: grpc-status: 99, which no code has",
        [code::UNKNOWN], |ex| said(ex, REPLY, &[("grpc-status", "99")]);
    "/mimus.test.v1.Bad/NoReply", "gRPC: status OK without a message",
        [code::INTERNAL, code::UNIMPLEMENTED], |ex| said(ex, &[], OK);
    "/mimus.test.v1.Bad/TrailersOnlyOk", "gRPC: a head alone that says OK, without a message",
        [code::INTERNAL, code::UNIMPLEMENTED], |ex| Box::pin(head_alone(ex));
    "/mimus.test.v1.Bad/TwoReplies", "gRPC: two messages where one is due",
        [code::INTERNAL, code::UNIMPLEMENTED],
        |ex| said(ex, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], OK);
    "/mimus.test.v1.Bad/HalfMessage", "gRPC: the stream ends within a message, with status OK",
        [code::INTERNAL, code::UNKNOWN], |ex| said(ex, &[0, 0, 0, 0, 10, 1, 2, 3], OK);
    "/mimus.test.v1.Bad/HalfPrefix", "gRPC: the stream ends within the five bytes, with status OK",
        [code::INTERNAL, code::UNKNOWN], |ex| said(ex, &[0, 0, 0], OK);
    "/mimus.test.v1.Bad/HugeLength", "gRPC: announces a message of 4 GiB",
        [code::RESOURCE_EXHAUSTED, code::INTERNAL],
        |ex| said(ex, &[0, 255, 255, 255, 255, 1], OK);
    "/mimus.test.v1.Bad/FlagAlone", "gRPC: the compressed-flag without grpc-encoding",
        [code::INTERNAL], |ex| said(ex, &[1, 0, 0, 0, 1, 0], OK);
    "/mimus.test.v1.Bad/FlagTwo", "gRPC: a compressed-flag of 2",
        [code::INTERNAL], |ex| said(ex, &[2, 0, 0, 0, 1, 0], OK);
    "/mimus.test.v1.Bad/UnknownCoding", "gRPC: a message in a coding nobody asked for",
        [code::INTERNAL, code::UNIMPLEMENTED], |ex| coded(ex, "x-unheard-of", vec![1, 2, 3]);
    "/mimus.test.v1.Bad/NotGzip", "gRPC: a message that is said to be gzip, and is not",
        [code::INTERNAL], |ex| coded(ex, "gzip", b"this is not gzip".to_vec());
    "/mimus.test.v1.Bad/GzipBomb", "gRPC: a gzip message of 256 KiB that unpacks to 256 MiB",
        [code::RESOURCE_EXHAUSTED, code::INTERNAL], |ex| Box::pin(bomb(ex));
    "/mimus.test.v1.Bad/NotProtobuf", "gRPC: a message that does not decode",
        [code::INTERNAL], |ex| said(ex, &[0, 0, 0, 0, 2, 0x0a, 0x7f], OK);
    "/mimus.test.v1.Bad/BrokenEscape", "gRPC: INVALID_ARGUMENT with percent signs that escape nothing",
        [code::INVALID_ARGUMENT],
        |ex| said(ex, &[], &[("grpc-status", "3"), ("grpc-message", "100%zz of it%4")]);
    "/mimus.test.v1.Bad/BrokenDetails", "gRPC: INVALID_ARGUMENT with details that are not base64",
        [code::INVALID_ARGUMENT],
        |ex| said(ex, &[], &[("grpc-status", "3"), ("grpc-status-details-bin", "***")]);
    "/mimus.test.v1.Bad/Silent", "gRPC: never answers",
        [code::DEADLINE_EXCEEDED], |ex| Box::pin(silent(ex));
    "/mimus.test.v1.Bad/Stalled", "gRPC: half a message, and then nothing",
        [code::DEADLINE_EXCEEDED], |ex| Box::pin(stalled(ex));
    "/mimus.test.v1.Bad/ResetCancel", "gRPC: a message, then RST_STREAM with CANCEL",
        [1], |ex| cut(ex, Reason::CANCEL);
    "/mimus.test.v1.Bad/ResetInternal", "gRPC: a message, then RST_STREAM with INTERNAL_ERROR",
        [code::INTERNAL], |ex| cut(ex, Reason::INTERNAL_ERROR);
    "/mimus.test.v1.Bad/ResetCalm", "gRPC: a message, then RST_STREAM with ENHANCE_YOUR_CALM",
        [code::RESOURCE_EXHAUSTED], |ex| cut(ex, Reason::ENHANCE_YOUR_CALM);
    "/mimus.test.v1.Bad/ResetSecurity", "gRPC: a message, then RST_STREAM with INADEQUATE_SECURITY",
        [code::PERMISSION_DENIED], |ex| cut(ex, Reason::INADEQUATE_SECURITY);
    "/mimus.test.v1.Bad/Html", "gRPC: 200 with an HTML page",
        [code::UNKNOWN], |ex| page(ex, 200);
    "/mimus.test.v1.Bad/Http400", "gRPC: status 400 with a page", [code::INTERNAL], |ex| page(ex, 400);
    "/mimus.test.v1.Bad/Http401", "gRPC: status 401 with a page",
        [code::UNAUTHENTICATED], |ex| page(ex, 401);
    "/mimus.test.v1.Bad/Http403", "gRPC: status 403 with a page",
        [code::PERMISSION_DENIED], |ex| page(ex, 403);
    "/mimus.test.v1.Bad/Http404", "gRPC: status 404 with a page",
        [code::UNIMPLEMENTED], |ex| page(ex, 404);
    "/mimus.test.v1.Bad/Http418", "gRPC: status 418 with a page", [code::UNKNOWN], |ex| page(ex, 418);
    "/mimus.test.v1.Bad/Http429", "gRPC: status 429 with a page",
        [code::UNAVAILABLE], |ex| page(ex, 429);
    "/mimus.test.v1.Bad/Http502", "gRPC: status 502 with a page",
        [code::UNAVAILABLE], |ex| page(ex, 502);
    "/mimus.test.v1.Bad/Http503", "gRPC: status 503 with a page",
        [code::UNAVAILABLE], |ex| page(ex, 503);
    "/mimus.test.v1.Bad/Http504", "gRPC: status 504 with a page",
        [code::UNAVAILABLE], |ex| page(ex, 504);
}

/// An empty message, which decodes as any.
const REPLY: &[u8] = &[0, 0, 0, 0, 0];
const OK: &[(&str, &str)] = &[("grpc-status", "0")];

/// The call, once its request was read; what is no gRPC was answered already.
async fn begin(ex: &mut Exchange) -> io::Result<Result<Call<'_>, After>> {
    let mut call = match accept(ex).await? {
        Ok(call) => call,
        Err(after) => return Ok(Err(after)),
    };
    call.ex.body_bytes().await?;
    call.begin().await?;
    Ok(Ok(call))
}

fn said<'a>(
    ex: &'a mut Exchange,
    bytes: &'static [u8],
    trailers: &'static [(&'static str, &'static str)],
) -> Answer<'a> {
    Box::pin(async move {
        let mut call = match begin(ex).await? {
            Ok(call) => call,
            Err(after) => return Ok(after),
        };
        call.raw(bytes).await?;
        call.trail(trailers).await
    })
}

fn coded<'a>(ex: &'a mut Exchange, coding: &'static str, message: Vec<u8>) -> Answer<'a> {
    Box::pin(async move {
        ex.body_bytes().await?;
        let head = Response::new(200).header("content-type", "application/grpc");
        let mut out = ex.begin(head.header("grpc-encoding", coding)).await?;
        out.chunk(ex, &framed(1, &message)).await?;
        out.finish(ex, OK).await
    })
}

async fn bomb(ex: &mut Exchange) -> io::Result<After> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..256 {
        encoder.write_all(&zeros)?;
        tokio::task::yield_now().await;
    }
    let packed = encoder.finish()?;
    coded(ex, "gzip", packed).await
}

async fn head_alone(ex: &mut Exchange) -> io::Result<After> {
    ex.body_bytes().await?;
    let head = Response::new(200).header("content-type", "application/grpc");
    ex.reply_head(head.header("grpc-status", "0")).await
}

async fn silent(ex: &mut Exchange) -> io::Result<After> {
    ex.until_gone().await;
    Ok(After::Keep)
}

async fn stalled(ex: &mut Exchange) -> io::Result<After> {
    let mut call = match begin(ex).await? {
        Ok(call) => call,
        Err(after) => return Ok(after),
    };
    call.raw(&[0, 0, 0, 0, 10, 1, 2]).await?;
    silent(call.ex).await
}

fn cut(ex: &mut Exchange, reason: Reason) -> Answer<'_> {
    Box::pin(async move {
        let mut call = match begin(ex).await? {
            Ok(call) => call,
            Err(after) => return Ok(after),
        };
        call.raw(REPLY).await?;
        if let Wire::Two(stream) = &mut call.ex.wire {
            stream.reset(reason);
        }
        Ok(After::Keep)
    })
}

fn page(ex: &mut Exchange, status: u16) -> Answer<'_> {
    Box::pin(async move {
        ex.body_bytes().await?;
        let page = Response::of("text/html", "<!doctype html><title>No</title>\n");
        ex.reply(page.status(status)).await
    })
}
