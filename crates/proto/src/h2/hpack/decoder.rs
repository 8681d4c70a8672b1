//! Header blocks in.

use super::table::{Name, Table};
use super::{DEFAULT_TABLE_SIZE, Error, huffman, integer, static_table};

/// Room for decoded strings above this is given back behind the block that needed it.
const KEPT_ROOM: usize = 8 * 1024;

/// Decodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table<()>,
    /// The largest size of the table that we allow the peer's encoder.
    limit: usize,
    /// The least that was allowed since the last block, when the table was larger: the next block must
    /// begin with a size that is no larger.
    owed: Option<usize>,
    /// Where Huffman-coded strings of one field are decoded to. Grows only.
    room: Vec<u8>,
}

/// A string of a literal.
#[derive(Clone, Copy)]
enum Text<'a> {
    Plain(&'a [u8]),
    /// Decoded, from and to these places of the room.
    Decoded(usize, usize),
}

impl<'a> Text<'a> {
    fn bytes(self, room: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Decoded(start, end) => &room[start..end],
        }
    }
}

/// Where a literal has its name.
enum NameFrom<'a> {
    Static(&'static [u8]),
    /// The entry of this age, which there is.
    Entry(usize),
    Literal(Text<'a>),
}

impl Decoder {
    /// A decoder for a connection whose SETTINGS_HEADER_TABLE_SIZE is `max_size`, in bytes as RFC 7541
    /// section 4.1 counts. The table begins with [`DEFAULT_TABLE_SIZE`] whatever we allow: with less,
    /// the peer's first block says so (section 4.2); with more, it may say so at any block.
    #[must_use]
    pub fn new(max_size: u32) -> Self {
        let mut decoder = Self {
            table: Table::new(DEFAULT_TABLE_SIZE),
            limit: DEFAULT_TABLE_SIZE as usize,
            owed: None,
            room: Vec::new(),
        };
        decoder.set_max_size(max_size);
        decoder
    }

    /// What SETTINGS_HEADER_TABLE_SIZE allows from the next block on: to be called when the peer has
    /// acknowledged it (RFC 9113 section 4.3.1).
    pub fn set_max_size(&mut self, size: u32) {
        self.limit = size as usize;
        // It may go up again before the next block: the smallest size is owed all the same, or our
        // table would keep what the peer's has evicted (RFC 7541 section 4.2).
        if self.limit < self.owed.unwrap_or(self.table.max_size()) {
            self.owed = Some(self.limit);
        }
    }

    /// How much of the dynamic table is in use, in bytes as RFC 7541 section 4.1 counts.
    #[must_use]
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Decodes one whole header block, and calls `field` with each name and value, in order.
    ///
    /// Once `field` refuses, it is not called again; but the block is read to its end, so that the
    /// table is right for the blocks that follow. No memory is taken for a field, so what bounds a
    /// list is that `field` counts and refuses.
    ///
    /// # Errors
    /// [`Error`] when the block is malformed, even if a field was refused before: the connection is
    /// lost then. Else the refusal.
    pub fn decode<E: From<Error>>(
        &mut self,
        block: &[u8],
        mut field: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut input = self.size_updates(block)?;
        let mut taken = Ok(());
        while let Some(&first) = input.first() {
            let mut give = |name: &[u8], value: &[u8]| {
                if taken.is_ok() {
                    taken = field(name, value);
                }
            };
            if first & 0x80 != 0 {
                // RFC 7541 section 6.1.
                let (name, value) = self.get(integer::decode(&mut input, 7)?)?;
                give(name, value);
            } else {
                self.literal(&mut input, first, give)?;
            }
        }
        if self.room.len() > KEPT_ROOM {
            self.room = Vec::new();
        }
        taken
    }

    /// RFC 7541 sections 4.2 and 6.3.
    fn size_updates<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Error> {
        let mut input = block;
        while let Some(0x20..=0x3f) = input.first() {
            let size = integer::decode(&mut input, 5)?;
            if size > self.limit {
                return Err(Error::SizeBeyondLimit);
            }
            if self.owed.take().is_some_and(|least| size > least) {
                return Err(Error::SizeUpdateMissing);
            }
            self.table.set_max_size(size);
        }
        if self.owed.is_some() {
            return Err(Error::SizeUpdateMissing);
        }
        Ok(input)
    }

    /// The field of an index over both tables (RFC 7541 section 2.3.3).
    #[inline]
    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Error> {
        match static_table::get(index) {
            Some(field) => Ok(field),
            None => self.table.get(age(index)).ok_or(Error::BadIndex),
        }
    }

    /// A literal (RFC 7541 section 6.2) whose first byte is `first`.
    fn literal(
        &mut self,
        input: &mut &[u8],
        first: u8,
        mut give: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let (indexed, prefix) = match first {
            0x40.. => (true, 6),
            // RFC 7541 section 4.2.
            0x20.. => return Err(Error::SizeUpdateInside),
            _ => (false, 4),
        };
        let name = match integer::decode(input, prefix)? {
            0 => NameFrom::Literal(self.string(input, 0)?),
            index => self.name(index)?,
        };
        let used = match name {
            NameFrom::Literal(Text::Decoded(_, end)) => end,
            _ => 0,
        };
        let value = self.string(input, used)?.bytes(&self.room);
        // The table has it last: its entry of the name may be the one that has to go.
        let name = match name {
            NameFrom::Entry(age) => {
                give(self.table.get(age).ok_or(Error::BadIndex)?.0, value);
                Name::OfEntry(age)
            }
            NameFrom::Static(name) => {
                give(name, value);
                Name::Text(name)
            }
            NameFrom::Literal(text) => {
                let name = text.bytes(&self.room);
                give(name, value);
                Name::Text(name)
            }
        };
        if indexed {
            self.table.insert(name, value, ());
        }
        Ok(())
    }

    fn name<'a>(&self, index: usize) -> Result<NameFrom<'a>, Error> {
        match static_table::get(index) {
            Some((name, _)) => Ok(NameFrom::Static(name)),
            None if age(index) < self.table.len() => Ok(NameFrom::Entry(age(index))),
            None => Err(Error::BadIndex),
        }
    }

    /// A string (RFC 7541 section 5.2); the room is in use up to `used`.
    fn string<'a>(&mut self, input: &mut &'a [u8], used: usize) -> Result<Text<'a>, Error> {
        let coded = input.first().is_some_and(|first| first & 0x80 != 0);
        let len = integer::decode(input, 7)?;
        let (text, rest) = input.split_at_checked(len).ok_or(Error::Truncated)?;
        *input = rest;
        if !coded {
            return Ok(Text::Plain(text));
        }
        let needed = used + huffman::decoded_max(len);
        if self.room.len() < needed {
            self.room.resize(needed, 0);
        }
        let filled = huffman::decode(text, &mut self.room[used..])?;
        Ok(Text::Decoded(used, used + filled))
    }
}

/// The age of the dynamic entry at an index; beyond any table for a static one.
fn age(index: usize) -> usize {
    index.wrapping_sub(static_table::LEN + 1)
}
