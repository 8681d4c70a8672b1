//! Messages that are sent many times.

use std::ops::Range;

use bytes::Bytes;

use super::frame::{HEADER_MAX, Header, Opcode};

/// Messages put into frames once, to be sent to many peers or many times: one, or a batch.
///
/// A server sends the same bytes to all, shared from a few KiB on. A client writes only masking keys
/// and masked payloads anew, in one pass. They go out uncompressed, which permessage-deflate leaves
/// open for each message (RFC 7692 section 6): what is compressed depends on what was sent before.
///
/// ```
/// use mimus_proto::ws::{Prepared, Unmasked, Writer};
///
/// let prepared = Prepared::new().text("tick").binary(&[1, 2, 3]);
/// let mut peers = [Writer::new(Unmasked), Writer::new(Unmasked)];
/// for peer in &mut peers {
///     peer.send_prepared(&prepared)?;
///     assert_eq!(peer.pending(), 2 + 4 + 2 + 3);
/// }
/// # Ok::<(), mimus_proto::ApiMisuse>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    wire: Bytes,
    frames: Vec<(Header, Range<usize>)>,
}

impl Prepared {
    /// No message yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.add(Opcode::Text, text.as_bytes())
    }

    /// Adds a message of bytes.
    #[must_use]
    pub fn binary(self, bytes: &[u8]) -> Self {
        self.add(Opcode::Binary, bytes)
    }

    fn add(mut self, opcode: Opcode, payload: &[u8]) -> Self {
        // Without a copy as long as nobody else holds it.
        let mut wire = Vec::from(self.wire);
        let len = payload.len() as u64;
        let header = Header { fin: true, rsv: 0, opcode, mask: None, len };
        header.write(&mut wire);
        let start = wire.len();
        wire.extend_from_slice(payload);
        self.frames.push((header, start..wire.len()));
        self.wire = wire.into();
        self
    }

    /// All frames as a server sends them.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.wire
    }

    /// The most that all of it takes with masking keys.
    pub(super) fn masked_len(&self) -> usize {
        self.wire.len() + self.frames.len() * HEADER_MAX
    }

    /// Each header, without a mask, and payload.
    pub(super) fn frames(&self) -> impl Iterator<Item = (Header, &[u8])> {
        self.frames.iter().map(|(header, range)| (*header, &self.wire[range.clone()]))
    }
}
