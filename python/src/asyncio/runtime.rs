//! The event loop as a runtime of Mimus's.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use mimus_net::{
    BoxFuture, Runtime, Socket,
    dial::SocketOptions,
    rt::{
        Blocking, Endpoint, Tokio,
        evented::{self, Timer},
    },
};

use super::{hub, source::Watched, timers::Alarm};

/// The event loop in whose turn a call is polled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asyncio;

struct Sleep(Alarm);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_fired(cx)
    }
}

/// The runtime of the thread for loops that cannot watch sockets, if this is it.
fn elsewhere() -> io::Result<Tokio> {
    Tokio::current().map_err(|_| io::Error::other("no asyncio event loop runs this call"))
}

impl Runtime for Asyncio {
    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        options: &'a SocketOptions,
    ) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            match hub::here() {
                Some(hub) => {
                    evented::connect(self, to, options, |fd| Ok(Watched::new(hub, fd))).await
                }
                None => elsewhere()?.connect(to, options).await,
            }
        })
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        match (hub::here(), elsewhere()) {
            (Some(hub), _) => Box::pin(Sleep(Alarm::new(hub, at))),
            (None, Ok(elsewhere)) => elsewhere.sleep_until(at),
            // Without a loop there is nothing to wait for: `check` has said so before.
            (None, Err(_)) => Box::pin(std::future::ready(())),
        }
    }

    /// On a thread of its own: the idle ones of a pool would be missing in a fork, without its knowing.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        Blocking.spawn_blocking(work);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        match (hub::here(), elsewhere()) {
            (Some(hub), _) => {
                hub.spawn(task);
                Ok(())
            }
            (None, Ok(elsewhere)) => elsewhere.spawn(task),
            (None, Err(_)) => Err(task),
        }
    }

    fn realm(&self) -> u64 {
        hub::here().map_or(0, |hub| hub.id())
    }

    fn check(&self) -> io::Result<()> {
        match hub::here() {
            Some(_) => Ok(()),
            None => elsewhere().map(drop),
        }
    }
}
