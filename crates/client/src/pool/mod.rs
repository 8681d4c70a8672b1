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
//! A shared connection (HTTP/2) keeps its single unit while any number of exchanges use it. The pool
//! holds a handle of it; [`acquire`](SharedPool::acquire) reserves a place on one that has room and gives
//! out a clone. Its own [`Member`] tells the pool when a place is free again, for a waiter to have,
//! and when it takes no more exchanges. Calls whose dial may bring such a connection wait for the one
//! dial that is under way; when it brings an exclusive one, they dial for themselves.
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
pub(crate) use shared::{Acquired, Asked, DialPermit, Lease, Member, SharedPool};
