//! Arbitrary header blocks decode or fail within bounds; what was decoded can be encoded, and means
//! the same; and a caller's refusal leaves the table as it is without one.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::{Choices, fuzz};
use mimus_proto::h2::hpack::{Decoder, Encoder, Error, Huffman, Indexing};

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut fields = List::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        Ok::<(), Error>(())
    })?;
    Ok(fields)
}

/// A refusal that is told apart from the errors of a block.
#[derive(Debug, PartialEq)]
enum Refusal {
    Unwanted,
    Broken(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

fuzz!("hpack_decode", |data| {
    let mut choices = Choices::new(data);
    let max = u32::from(choices.byte()) * 64;
    let (mut decoder, mut refusing) = (Decoder::new(max), Decoder::new(max));
    let (mut encoder, mut reader) = (Encoder::new(4096), Decoder::new(4096));
    while !choices.is_empty() {
        let block = choices.bytes();
        let decoded = decode(&mut decoder, block);
        assert!(decoder.table_size() <= max.max(4096) as usize);
        let refused = refusing.decode(block, |_, _| Err(Refusal::Unwanted));
        assert_eq!(decoder.table_size(), refusing.table_size());
        let list = match decoded {
            Ok(list) => list,
            Err(error) => return assert_eq!(refused, Err(Refusal::Broken(error))),
        };
        assert_eq!(refused.is_err(), !list.is_empty());
        let mut again = Vec::new();
        encoder.begin(&mut again);
        for (name, value) in &list {
            encoder.field(name, value, Indexing::Incremental, Huffman::Shorter, &mut again);
        }
        assert_eq!(decode(&mut reader, &again), Ok(list));
    }
});
