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
//! acquire ──┬─> Shared a place on a connection that many share ──> freed, when it ends
//!           ├─> Lease  an idle connection, newest first ──┬─> release(Reuse | Close)
//!           │                                             └─> stale ──> Lease | Dial
//!           ├─> Dial   a permit to open one ──────────────┬─> opened ─> in use, as above
//!           │                                             ├─> shared ─> kept, until it is gone
//!           │                                             ├─> join ──> a place on another key's
//!           │                                             └─> abandon
//!           └─> Wait   a limit binds, or somebody dials ──┬─> claim ──> Shared | Lease | Dial
//!                                                         └─> cancel
//! ```
//!
//! A permit is one unit of the limits. It is taken by `Lease` and `Dial`, stays with an idle
//! connection, and is free again when the connection is closed. A shared connection has one while
//! the pool keeps it, however many exchanges it carries.
//!
//! # Fairness
//!
//! Waiters are served strictly first come, first served among those that *can* be served: a waiter
//! whose own key is at its limit holds up nobody of another key. When the total limit binds, a
//! connection released by one key is closed if an older waiter of another key needs its unit; idle
//! connections of other keys are closed, oldest first, before anyone has to wait. The same holds
//! within a key for a waiter who cannot use the kind of connection that is there.
//!
//! A shared connection has a unit to give only once nothing uses it: exchanges that keep one busy
//! take nothing from a waiter for a unit, and end his wait no sooner. What bounds it then is
//! [`Limits::max_lifetime`], and the waiter's own deadline.
//!
//! # Connections that carry many exchanges
//!
//! An exclusive connection (HTTP/1.1) carries one exchange at a time, and is the exchange's own for
//! that long. A shared one (HTTP/2, HTTP/3) drives itself: the pool keeps a handle, a [`Shareable`],
//! and gives out clones of it with a place [reserved](Shareable::reserve). The connection counts its
//! places. Through its [`Member`] it says when one is free, which costs a load when nobody
//! waits, and when it takes no more exchanges.
//!
//! What a call [`Expects`] decides what it may get; a shared connection is preferred. As a dial may
//! turn out either way, it makes the others wait:
//!
//! - While a dial that may bring a shared connection is under way, other calls of the key that could
//!   use one wait for its outcome: cold calls that come together make one connection.
//! - It brought a shared one: all who wait get places, as far as they go. One of the rest dials.
//! - It brought an exclusive one: all who wait dial, as far as the limits go, and so does everyone
//!   who comes later, for as long as the key is known.
//! - It failed, or its caller lost interest: the first who waits dials.
//!
//! # Connections that serve several keys
//!
//! A shared connection may serve other keys than the one it was opened for, where its caller knows that it
//! can (RFC 9113 section 9.1.1). Whoever has a permit to dial, and knows the addresses to dial, asks for
//! connections [standing at](machine::Pool::standing_at) one of them, and if one serves his key too he
//! [joins](machine::Pool::join) it, which gives the permit back. From then on the key's calls get places on it like on
//! one of their own. Its unit counts for the key that it was opened for, and when it leaves, it leaves all
//! of them. A key can [part](machine::Pool::part) again from what is not its own.
//!
//! Who asks has a permit already, because only a dial resolves names: under a limit that binds, the first
//! call of a key waits for room, though another's connection would have served it.
//!
//! # Connections that nobody asked for yet
//!
//! [`ahead`](machine::Pool::ahead) gives permits for connections that are to be there before they are needed. Such a
//! connection [stands](machine::Pool::stand) from its dial on, for who waits or who comes. For one of several dials
//! ahead, or for the call beside whose own they are made, others wait as for any dial that may turn out shared; the
//! rest are spare, and one that brings a second shared connection [gives way](machine::Pool::stand_shared).
//!
//! Nobody tells the pool when a shared connection becomes idle while nobody waits: it asks when it
//! matters, for statistics, expiry or room.

mod ahead;
mod aliases;
mod grant;
mod idle;
mod limits;
mod machine;
mod members;
mod places;
mod resting;
mod shared;
mod stats;
mod waiters;

#[cfg(test)]
mod tests;

pub use limits::Limits;
pub use stats::Stats;

pub(crate) use members::{Expects, Place, Shareable};
pub(crate) use shared::{Acquired, Asked, DialPermit, Lease, Member, SharedPool};
