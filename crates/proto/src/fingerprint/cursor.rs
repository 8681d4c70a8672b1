//! Reading the vectors of TLS (RFC 8446 section 3.4). `None` is: there is not so much.

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A vector whose length is one byte.
    pub(super) fn short(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(len.into())
    }

    /// A vector whose length is two bytes.
    pub(super) fn long(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(len.into())
    }

    /// What `read` makes of all that is left, item by item.
    pub(super) fn items<T>(mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(read(&mut self)?);
        }
        Some(items)
    }

    /// All that is left as 16-bit numbers; `None` for an odd number of bytes.
    pub(super) fn numbers(self) -> Option<Vec<u16>> {
        self.items(Self::u16)
    }
}
