use std::{io, time::Instant};

use mimus_net::{BoxFuture, Runtime, Socket, dial::SocketOptions, rt::Endpoint};

/// A runtime that only knows where blocking work goes.
#[derive(Debug)]
pub(crate) enum Pool {
    /// In the caller.
    Inline,
    /// Nowhere: the caller itself may block.
    Caller,
    Thread,
    /// Nowhere: it is shutting down.
    Closed,
}

impl Runtime for Pool {
    fn connect<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        match self {
            Self::Inline => work(),
            Self::Thread => drop(std::thread::spawn(work)),
            Self::Caller | Self::Closed => drop(work),
        }
    }

    fn may_block(&self) -> bool {
        matches!(self, Self::Caller)
    }
}
