//! How a header block is written: its representations (RFC 7541 section 6) without their text.

use super::{Error, Indexing, integer};

/// How one field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Name and value by index into both tables (RFC 7541 section 6.1).
    Indexed(usize),
    /// A literal (RFC 7541 section 6.2).
    Literal {
        /// Whether it enters the dynamic table.
        indexing: Indexing,
        /// Where its name is.
        name: NameForm,
        /// Whether its value is Huffman-coded.
        huffman: bool,
    },
}

/// How a literal's name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameForm {
    /// By index.
    Index(usize),
    /// As a string.
    Text {
        /// Whether it is Huffman-coded.
        huffman: bool,
    },
}

/// The representations of a block.
#[derive(Debug)]
pub(crate) struct Forms {
    /// The table sizes that it begins with.
    pub(crate) table_sizes: Vec<usize>,
    /// One for each field.
    pub(crate) fields: Vec<Form>,
}

/// The representations of a whole block; `None` when there are more than `max`. Whether an index is
/// one that a table has is for the decoder to say.
pub(crate) fn read_forms(mut block: &[u8], max: usize) -> Result<Option<Forms>, Error> {
    let mut forms = Forms { table_sizes: Vec::new(), fields: Vec::new() };
    while let Some(&first) = block.first() {
        if forms.table_sizes.len() + forms.fields.len() == max {
            return Ok(None);
        }
        match first {
            0x80.. => forms.fields.push(Form::Indexed(integer::decode(&mut block, 7)?)),
            0x20..0x40 => forms.table_sizes.push(integer::decode(&mut block, 5)?),
            _ => forms.fields.push(literal(&mut block, first)?),
        }
    }
    Ok(Some(forms))
}

fn literal(block: &mut &[u8], first: u8) -> Result<Form, Error> {
    let (indexing, prefix) = match first {
        0x40.. => (Indexing::Incremental, 6),
        0x10.. => (Indexing::Never, 4),
        _ => (Indexing::Without, 4),
    };
    let name = match integer::decode(block, prefix)? {
        0 => NameForm::Text { huffman: string(block)? },
        index => NameForm::Index(index),
    };
    Ok(Form::Literal { indexing, name, huffman: string(block)? })
}

/// Passes a string (RFC 7541 section 5.2); whether it is Huffman-coded.
fn string(block: &mut &[u8]) -> Result<bool, Error> {
    let huffman = block.first().is_some_and(|first| first & 0x80 != 0);
    let len = integer::decode(block, 7)?;
    *block = block.get(len..).ok_or(Error::Truncated)?;
    Ok(huffman)
}
