//! What was read and not yet used.

/// A buffer that the loop lends to the connection at hand, so that a connection at rest holds none.
#[derive(Debug, Default)]
pub(crate) struct Input {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { buffer: vec![0; bytes].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Begins with what a connection had left over.
    pub(crate) fn load(&mut self, rest: &mut Vec<u8>) {
        self.start = 0;
        self.end = rest.len();
        self.buffer[..rest.len()].copy_from_slice(rest);
        rest.clear();
    }

    /// Ends with what the connection has left over now.
    pub(crate) fn save(&mut self, rest: &mut Vec<u8>) {
        rest.extend_from_slice(self.bytes());
        self.start = 0;
        self.end = 0;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Where to read to: all the room there is, empty only if the peer filled the whole buffer with
    /// something that has no end.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were read into [`Self::room`].
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_over_comes_back_first() {
        let (mut input, mut rest) = (Input::with_capacity(8), Vec::new());
        input.load(&mut rest);
        input.room()[..4].copy_from_slice(b"abcd");
        input.filled(4);
        input.consume(3);
        input.save(&mut rest);
        assert_eq!(rest, b"d");
        input.load(&mut rest);
        assert!(rest.is_empty());
        input.room()[..1].copy_from_slice(b"e");
        input.filled(1);
        assert_eq!(input.bytes(), b"de");
        input.consume(1);
        assert_eq!(input.room().len(), 7);
        assert_eq!(input.bytes(), b"e");
    }
}
