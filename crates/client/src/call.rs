//! One call, from request to answer. Read it from the top: [`run`] is the whole of it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use http::StatusCode;
use mimus_net::{
    BoxFuture, Phase, Probe, Runtime,
    dial::{DialTimeouts, Dialer},
};
use mimus_proto::{Event, ResponseHead};

use crate::{
    Body, Error, Incoming, Kind, Result,
    client::Inner,
    conn::{Conn, Deadlines, Exchange, Failure, RequestLine},
    observe::{Observation, Outgoing, tell},
    pool::{Acquired, Lease},
    request::Request,
    response::{Answer, Hop},
    route::{Route, RouteRef},
    verdict::{Next, Verdicts},
    wire,
};

/// Makes the call: exchange after exchange, until one of them is the answer.
pub(crate) async fn run(client: &Arc<Inner>, request: Request) -> Result<Answer> {
    let mut call = Call::new(client, request);
    loop {
        let outcome = call.attempt().await;
        match call.judge(outcome).await {
            Next::Done(exchange, head) => return call.answer(exchange, head),
            Next::Again => {}
            Next::Fail(error) => return Err(call.fail(error)),
        }
    }
}

/// How one exchange went.
pub(crate) struct Outcome {
    /// How much of the request the server may have seen.
    pub(crate) sent: Sent,
    /// Whether the connection had served before.
    pub(crate) reused: bool,
    /// Whether a byte of a response came.
    pub(crate) heard: bool,
    pub(crate) result: Result<(Box<Exchange>, ResponseHead)>,
}

/// How much of a request went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Not a byte.
    Nothing,
    /// Some of it.
    Part,
    /// All of it.
    All,
}

/// A call under way.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Arc<Inner>,
    pub(crate) request: Request,
    pub(crate) verdicts: Verdicts,
    pub(crate) started: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) history: Vec<Hop>,
    /// Exchanges begun so far.
    pub(crate) attempts: u32,
    head_at: Instant,
}
