//! How other threads wake a loop, without a lock of Python's: they write to a socket that it watches.

use std::{
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::atomic::{AtomicBool, Ordering},
};

/// A pair of sockets, of which the loop watches one.
#[derive(Debug)]
pub(super) struct Bell {
    ear: UnixStream,
    hand: UnixStream,
    rings: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let (ear, hand) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        hand.set_nonblocking(true)?;
        Ok(Bell { ear, hand, rings: AtomicBool::new(false) })
    }

    /// The descriptor to be watched.
    pub(super) fn ear(&self) -> i32 {
        self.ear.as_raw_fd()
    }

    /// Once is enough until it is heard.
    pub(super) fn ring(&self) {
        if !self.rings.swap(true, Ordering::AcqRel) {
            // Full means that it rings already.
            let _ = (&self.hand).write(&[1]);
        }
    }

    /// From here on a ring is news.
    pub(super) fn silence(&self) {
        if self.rings.swap(false, Ordering::AcqRel) {
            let mut rings = [0; 16];
            while matches!((&self.ear).read(&mut rings), Ok(n) if n == rings.len()) {}
        }
    }
}
