//! Connections that speak HTTP.

mod answered;
mod exchange;
mod exclusive;
mod remains;
mod room;
mod shared;

use std::{sync::Arc, time::Instant};

use mimus_net::{Socket, dial::Dialed, proxy::Proxy};
use mimus_proto::h1;

pub(crate) use answered::Asking;
pub(crate) use exchange::{Exchange, Ready, Reserved};
use exclusive::Turn;
pub(crate) use exclusive::{Deadlines, Failure, Order, RequestLine};
pub(crate) use remains::End;
pub(crate) use room::Intake;
pub(crate) use shared::Shared;

use crate::observe::ConnectionInfo;

/// A connection that carries one exchange at a time (HTTP/1.1). Whoever holds it drives it: there is
/// no task behind it.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) machine: h1::Client,
    pub(crate) info: Arc<ConnectionInfo>,
    /// Early data is on its way: what TLS agreed on shows with the first answer.
    pub(crate) early: bool,
    intake: Intake,
    /// The exchange under way.
    turn: Turn,
    /// How many bytes more of a response that was left at its end may be read off, where the end did not come yet.
    owes: Option<usize>,
    /// When it was last given back.
    pub(crate) idle_since: Instant,
}

impl Conn {
    /// `proxy` is the one that `dialed` goes through; `early` says that the first request may travel
    /// as TLS early data.
    pub(crate) fn new(dialed: Dialed, proxy: Option<Arc<Proxy>>, early: bool) -> Self {
        let now = Instant::now();
        let info = ConnectionInfo::new(&dialed, proxy, now);
        Conn {
            socket: dialed.socket,
            machine: h1::Client::new(h1::Limits::default()),
            info: Arc::new(info),
            early,
            intake: Intake::new(),
            turn: Turn::none(),
            owes: None,
            idle_since: now,
        }
    }
}
