//! Flow control (RFC 9113 section 5.2): what the server may still send, and what we may.

use super::settings::MAX_WINDOW;
use crate::PeerMisbehaved;

/// What we may send: one for each stream, one for the connection. Negative after SETTINGS lowered it
/// (RFC 9113 section 6.9.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> Self {
        Self(i64::from(size))
    }

    /// Bytes that may be sent now.
    pub(super) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Takes what a frame uses, which is at most what is available.
    pub(super) fn spend(&mut self, len: usize) {
        debug_assert!(len <= self.available());
        self.0 -= len as i64;
    }

    /// Moves the window by a WINDOW_UPDATE or a change of SETTINGS.
    pub(super) fn shift(&mut self, by: i64) -> Result<(), PeerMisbehaved> {
        // RFC 9113 sections 6.9.1 and 6.9.2.
        if self.0 + by > i64::from(MAX_WINDOW) {
            return Err(PeerMisbehaved::WindowOverflow);
        }
        self.0 += by;
        Ok(())
    }
}

/// What the server may send: one for each stream, one for the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecvWindow {
    /// What was granted and not yet used.
    available: u32,
    /// What we grant at most: the size of the window when nothing is unread.
    target: u32,
}

impl RecvWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { available: size, target: size }
    }

    pub(super) fn target(&self) -> u32 {
        self.target
    }

    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// Lets the window grow at the next grant; never shrinks it.
    pub(super) fn grow(&mut self, target: u32) {
        self.target = self.target.max(target.min(MAX_WINDOW));
    }

    /// Takes note of a DATA frame, padding included (RFC 9113 section 6.9.1).
    pub(super) fn receive(&mut self, len: u32) -> Result<(), PeerMisbehaved> {
        self.available = self.available.checked_sub(len).ok_or(PeerMisbehaved::WindowOverspent)?;
        Ok(())
    }

    /// The increment worth sending when `held` bytes of the window are not to be granted now, and never
    /// more than `most`: once it is half of that, so that a large body costs few WINDOW_UPDATE frames.
    pub(super) fn grant(&mut self, held: u64, most: u32) -> Option<u32> {
        let most = most.min(self.target);
        let wanted = u64::from(most).saturating_sub(held) as u32;
        let increment = wanted.saturating_sub(self.available);
        if increment == 0 || increment < most / 2 {
            return None;
        }
        self.available += increment;
        Some(increment)
    }
}
