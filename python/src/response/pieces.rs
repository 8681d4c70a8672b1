//! Pieces of a body in the size that was asked for.

use bytes::{Bytes, BytesMut};

/// Cuts what comes into pieces of `size` bytes; without a size, as it comes.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    size: Option<usize>,
    here: BytesMut,
}

impl Pieces {
    /// A `size` of 0 is none.
    pub(crate) fn new(size: Option<usize>) -> Self {
        Pieces { size: size.filter(|&size| size > 0), here: BytesMut::new() }
    }

    /// Takes `data` in, and gives it back where nothing has to be cut or joined.
    pub(crate) fn push(&mut self, data: Bytes) -> Option<Bytes> {
        match self.size {
            None => Some(data),
            Some(size) if self.here.is_empty() && data.len() == size => Some(data),
            Some(_) => {
                self.here.extend_from_slice(&data);
                None
            }
        }
    }

    /// The next whole piece that is here.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let size = self.size.filter(|&size| size <= self.here.len())?;
        Some(self.here.split_to(size).freeze())
    }

    /// What is left at the end.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let rest = self.here.split().freeze();
        (!rest.is_empty()).then_some(rest)
    }
}
