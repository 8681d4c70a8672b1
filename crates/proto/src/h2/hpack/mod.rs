//! HPACK, the header compression of HTTP/2 (RFC 7541).
//!
//! An [`Encoder`] and the peer's decoder, a [`Decoder`] and the peer's encoder each keep the same
//! table of fields seen lately. One block out of step and all later ones are wrong, so every
//! [`Error`] is one of the connection (RFC 9113 section 4.3: COMPRESSION_ERROR).
//!
//! Names are written as they are given: that they are in lower case (RFC 9113 section 8.2), and
//! whether what was decoded is a valid field, is for the caller to see to.
//!
//! ```
//! use mimus_proto::h2::hpack::{Decoder, Encoder, Error, Huffman, Indexing, DEFAULT_TABLE_SIZE};
//!
//! let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
//! let mut block = Vec::new();
//! encoder.begin(&mut block);
//! encoder.field(b":method", b"GET", Indexing::Incremental, Huffman::Shorter, &mut block);
//! encoder.field(b"cookie", b"bird=1", Indexing::Never, Huffman::Shorter, &mut block);
//!
//! let mut fields = Vec::new();
//! Decoder::new(DEFAULT_TABLE_SIZE).decode(&block, |name, value| {
//!     fields.push((name.to_vec(), value.to_vec()));
//!     Ok::<(), Error>(())
//! })?;
//! assert_eq!(fields[1], (b"cookie".to_vec(), b"bird=1".to_vec()));
//! # Ok::<(), Error>(())
//! ```

mod decoder;
mod encoder;
#[cfg(feature = "fingerprint")]
mod forms;
mod hash;
mod huffman;
mod integer;
mod static_table;
mod table;

pub use decoder::Decoder;
pub use encoder::{DEFAULT_TABLE_CAP, Encoder};
#[cfg(feature = "fingerprint")]
pub use forms::{Form, NameForm};
#[cfg(feature = "fingerprint")]
pub(crate) use forms::{Forms, read_forms};

/// What the dynamic tables of both directions begin with, in bytes as RFC 7541 section 4.1 counts
/// them: the initial SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2).
pub const DEFAULT_TABLE_SIZE: u32 = 4096;

/// How a field is represented, and so whether it enters the dynamic table (RFC 7541 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Indexing {
    /// As an index when either table has the field; else as a literal that enters the dynamic
    /// table (sections 6.1 and 6.2.1), unless it is larger than all of it.
    #[default]
    Incremental,
    /// As an index when the static table has the field; else as a literal that enters no table
    /// (section 6.2.2).
    Without,
    /// As a literal that enters no table, even when the static table has the field.
    Literal,
    /// Always as a literal, marked so that no intermediary may put it into a table either
    /// (section 6.2.3): for secrets. The name may still be an index.
    Never,
}

/// Which entry stands for the name of a literal, of those that have it (RFC 7541 section 6.2 leaves the
/// choice).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NameIndex {
    /// The one with the lowest index: the first of the static table, else the newest.
    #[default]
    First,
    /// The one that a search from index 1 upwards, which ends at a field that is wholly the same, came
    /// upon last: the oldest of the dynamic table, else the last of the static one.
    Last,
}

/// When a block begins with an update of the table's size (RFC 7541 section 4.2, which says when it has to).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SizeUpdates {
    /// When the table gets another size, and when what is allowed went down.
    #[default]
    Needed,
    /// Behind each SETTINGS_HEADER_TABLE_SIZE, even one that changes nothing: the least that was allowed
    /// since the last block, unless it is the last, and the last.
    Always,
}

/// Whether the strings of a literal are Huffman-coded (RFC 7541 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Huffman {
    /// Each string when that makes it shorter.
    #[default]
    Shorter,
    /// Every string, even when it gets longer.
    Always,
    /// No string.
    Never,
}

reasons! {
    /// Why a header block cannot be decoded. The connection is lost after any of these: the tables of
    /// both ends may differ.
    Error {
        /// RFC 7541 section 5.
        Truncated = "the header block ends inside a field",
        /// RFC 7541 section 5.1.
        IntegerOverflow = "an integer in the header block is beyond any use",
        /// RFC 7541 section 6.1 for zero, section 2.3.3 for one beyond the tables.
        BadIndex = "an index that no table has",
        /// RFC 7541 section 5.2: only ones, and fewer than eight.
        BadPadding = "a Huffman-coded string is not padded with up to seven ones",
        /// RFC 7541 section 5.2.
        EosInString = "the end-of-string symbol inside of a string",
        /// RFC 7541 section 6.3.
        SizeBeyondLimit = "a table size above what SETTINGS_HEADER_TABLE_SIZE allows",
        /// RFC 7541 section 4.2.
        SizeUpdateInside = "a table size update behind the start of a block",
        /// RFC 9113 section 4.3.1.
        SizeUpdateMissing = "no table size update after the allowed size went down",
    }
}

#[cfg(test)]
mod tests;
