//! The connection pool: which connection serves which exchange.
//!
//! [`Pool`] is a pure machine. It performs no I/O, reads no clock, wakes nobody and drops no
//! connection: each mutation returns its answer and writes the rest (which waiters to wake, which
//! connections to close) into [`Effects`], for its caller to act on after the lock is released.
//! [`SharedPool`] is that caller: the machine under a mutex, with guards that give back on drop.
//!
//! # What an exchange sees
//!
//! ```text
//! acquire ──┬─> Lease  an idle connection, newest first ──┬─> release(Reuse | Close)
//!           │                                             └─> stale ──> Lease | Dial
//!           ├─> Dial   a permit to open one ──────────────┬─> opened ─> in use, as above
//!           │                                             └─> abandon
//!           └─> Wait   a limit binds ─────────────────────┬─> claim ──> Lease | Dial
//!                                                         └─> cancel
//! ```
//!
//! A permit is one unit of the limits. It is taken by `Lease` and `Dial`, stays with an idle
//! connection, and is free again when the connection is closed.
//!
//! # Fairness
//!
//! Waiters are served strictly first come, first served among those that *can* be served: a waiter
//! whose own key is at its limit holds up nobody of another key. When the total limit binds, a
//! connection released by one key is closed if an older waiter of another key needs its unit; idle
//! connections of other keys are closed, oldest first, before anyone has to wait.
//!
//! # Connections that carry many exchanges
//!
//! Today's connections are exclusive: one exchange at a time, as in HTTP/1.1. A shared one (HTTP/2,
//! HTTP/3) slots in beside the idle stack of its key as `Shared { handle, streams, max }`: it keeps
//! its single unit while it is lent, `acquire` looks there first and hands out a clone of the
//! handle, and a released stream serves the next waiter of that key. [`Effects`] already carries
//! any number of wake-ups for the moment such a connection opens.

#![cfg_attr(not(test), expect(dead_code, reason = "no connection is shared yet"))]

mod grant;
mod idle;
mod limits;
mod machine;
mod members;
mod places;
mod shared;
mod stats;
mod waiters;

#[cfg(test)]
mod tests;

pub use limits::Limits;
pub use stats::Stats;

pub(crate) use members::{Expects, Place, Shareable};
#[expect(unused_imports, reason = "no connection is shared yet")]
pub(crate) use shared::Member;
pub(crate) use shared::{Acquired, Asked, DialPermit, Lease, SharedPool};
