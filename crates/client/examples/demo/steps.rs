//! The table of what the demo does.

mod bodies;
mod browsers;
mod events;
mod exchange;
mod faults;
mod http2;
mod policies;
mod routes;
mod runtimes;
mod ws;

use std::pin::Pin;

use crate::setup::{Demo, Result};

/// One thing that is done and checked.
pub struct Step {
    /// What, for the table.
    pub what: &'static str,
    /// Does it; gives the facts found.
    pub run: Run,
}

type Run = for<'a> fn(&'a Demo) -> Pin<Box<dyn Future<Output = Result> + 'a>>;

macro_rules! steps {
    ($($what:literal => $run:path,)*) => {
        &[$(Step { what: $what, run: |demo| Box::pin($run(demo)) },)*]
    };
}

/// Every step, by section, in the order of the run.
pub const STEPS: &[(&str, &[Step])] = &[
    (
        "Requests and responses",
        steps! {
            "GET over http and https" => exchange::get,
            "1000 GETs on one kept connection" => exchange::keep_alive,
            "500 calls at once over 6 connections" => exchange::concurrency,
            "JSON both ways, typed" => exchange::json,
            "a query and a form" => exchange::query_and_form,
            "text by charset" => exchange::charsets,
            "trailers after a chunked body" => exchange::trailers,
            "http::Request in, http::Response out" => exchange::http_types,
            "the same GET on four runtimes" => runtimes::same_get,
        },
    ),
    (
        "HTTP/2 and gRPC",
        steps! {
            "h2c by prior knowledge" => http2::prior_knowledge,
            "h2 over TLS, chosen by ALPN" => http2::alpn,
            "50 calls at once on one connection" => http2::multiplexed,
            "a gRPC call, with metadata" => http2::unary,
            "gRPC messages both ways, in turn" => http2::conversation,
            "a gRPC deadline passes" => http2::deadline,
        },
    ),
    (
        "Events",
        steps! {
            "a stream that breaks, gone on with" => events::reconnect,
            "bytes split anywhere, lines ended anyhow" => events::splits,
            "a model's answer, its connection kept" => events::model,
            "an error instead of a stream, with its body" => events::refused,
        },
    ),
    (
        "WebSocket",
        steps! {
            "10 000 messages each way over HTTP/1.1, wss" => ws::over_http1,
            "the same over HTTP/2, twice on a connection" => ws::over_http2,
            "compressed" => ws::compressed,
            "100 pings, answered" => ws::pings,
            "refused, with the response's body" => ws::refused,
            "64 MiB in a frame of 64 KiB, refused" => ws::bomb,
        },
    ),
    (
        "Browsers",
        steps! {
            "as Chromium 156" => browsers::chromium,
            "as Firefox 153" => browsers::firefox,
        },
    ),
    (
        "Bodies",
        steps! {
            "a download as a stream" => bodies::streaming,
            "64 MiB down over http, by SHA-256" => bodies::download,
            "64 MiB up over https, by SHA-256" => bodies::upload,
            "a stream of unknown length up, chunked" => bodies::chunked_upload,
            "multipart with a file" => bodies::multipart,
            "gzip, deflate, br and zstd decoded" => bodies::codings,
            "Expect: 100-continue" => bodies::expect_continue,
            "an early 413 is not lost" => bodies::early_413,
        },
    ),
    (
        "Policies",
        steps! {
            "redirects, with their history" => policies::redirects,
            "credentials stay with their origin" => policies::credentials_stay,
            "cookies kept, sent and deleted" => policies::cookies,
            "Basic and Digest" => policies::auth,
            "retry with backoff on 503" => policies::retry,
            "hooks see and change each exchange" => policies::hooks,
        },
    ),
    (
        "Ways to an origin",
        steps! {
            "an HTTP proxy that forwards" => routes::forward_proxy,
            "CONNECT through an HTTP proxy" => routes::connect_proxy,
            "SOCKS5h: the proxy resolves" => routes::socks5h,
            "a Unix socket" => routes::unix_socket,
            "a dead address passed over" => routes::dead_address,
            "a TLS session resumed" => routes::resumption,
            "a client certificate" => routes::client_certificate,
        },
    ),
    (
        "Timeouts",
        steps! {
            "head: a server that never answers" => faults::head_timeout,
            "idle: a body that stops" => faults::idle_timeout,
            "total: a body that drips" => faults::total_timeout,
            "connect: an address that is silent" => faults::connect_timeout,
        },
    ),
    (
        "Bad servers",
        steps! {
            "10 GiB of zeros as gzip refused" => faults::bomb,
            "Content-Length with chunked refused" => faults::smuggling,
            "a second answer nobody asked for ignored" => faults::second_response,
            "a body cut short is an error" => faults::truncation,
            "a head without end refused" => faults::endless_head,
            "a certificate for another name refused" => faults::wrong_name,
            "an expired certificate refused" => faults::expired,
            "a self-signed certificate refused" => faults::self_signed,
            "a connection that died idle replaced" => faults::stale_connection,
            "calls dropped half-way leak nothing" => faults::dropped_calls,
        },
    ),
];
