//! Where masking keys come from (RFC 6455 section 5.3): nothing here draws randomness of its own.

use std::fmt;

use super::Role;

/// How what is sent is masked.
pub trait Masking {
    /// Who masks like that.
    const ROLE: Role;

    /// The key of the next frame; none for a server.
    ///
    /// A client's must be unpredictable to whoever chose the payload (RFC 6455 section 10.3): from a
    /// cryptographic source, and never the same one again on purpose.
    fn key(&mut self) -> Option<[u8; 4]>;
}

/// A server's: no frame is masked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unmasked;

impl Masking for Unmasked {
    const ROLE: Role = Role::Server;

    #[inline]
    fn key(&mut self) -> Option<[u8; 4]> {
        None
    }
}

/// How many random bytes are drawn at once: 64 keys.
const BATCH: usize = 256;

/// A client's: keys from a source of random bytes, drawn 64 at a time.
///
/// ```
/// use mimus_proto::ws::{Keys, Masking};
///
/// // A real one fills the slice from the operating system, or from a generator seeded by it.
/// let mut keys = Keys::new(|bytes: &mut [u8]| bytes.fill(7));
/// assert_eq!(keys.key(), Some([7; 4]));
/// ```
pub struct Keys<F> {
    fill: F,
    batch: [u8; BATCH],
    used: usize,
}

impl<F: FnMut(&mut [u8])> Keys<F> {
    /// `fill` overwrites all of the slice it is given with random bytes from a cryptographic source.
    #[must_use]
    pub fn new(fill: F) -> Self {
        Self { fill, batch: [0; BATCH], used: BATCH }
    }

    #[cold]
    fn draw(&mut self) -> [u8; 4] {
        (self.fill)(&mut self.batch);
        self.used = 4;
        let [a, b, c, d, ..] = self.batch;
        [a, b, c, d]
    }
}

impl<F: FnMut(&mut [u8])> Masking for Keys<F> {
    const ROLE: Role = Role::Client;

    #[inline]
    fn key(&mut self) -> Option<[u8; 4]> {
        Some(match self.batch.get(self.used..self.used + 4) {
            Some(&[a, b, c, d]) => {
                self.used += 4;
                [a, b, c, d]
            }
            _ => self.draw(),
        })
    }
}

impl<F> fmt::Debug for Keys<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys that are still to be used would let others choose what stands on the wire.
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
