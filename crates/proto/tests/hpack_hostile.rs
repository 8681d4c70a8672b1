//! Header blocks that a hostile peer sends, and table sizes that it asks for.

use mimus_proto::h2::hpack::{
    DEFAULT_TABLE_CAP, DEFAULT_TABLE_SIZE, Decoder, Encoder, Error, Huffman, Indexing, SizeUpdates,
};

type List = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut fields = List::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        Ok::<(), Error>(())
    })?;
    Ok(fields)
}

fn decode_one(block: &[u8]) -> Result<List, Error> {
    decode(&mut Decoder::new(DEFAULT_TABLE_SIZE), block)
}

/// A size update (RFC 7541 section 6.3) for sizes up to 16 KiB.
fn update(size: u16) -> Vec<u8> {
    match size.checked_sub(31) {
        None => vec![0x20 | size as u8],
        Some(rest) if rest < 128 => vec![0x3f, rest as u8],
        Some(rest) => vec![0x3f, rest as u8 | 0x80, (rest >> 7) as u8],
    }
}

/// A block of nothing but a name and a value, to be indexed.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    encoder.field(name, value, Indexing::Incremental, Huffman::Never, &mut block);
    block
}

#[test]
fn a_block_cut_anywhere_is_an_error() {
    let mut block = Vec::new();
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let long = "v".repeat(300);
    let mut ends = vec![0];
    let ways = [Indexing::Incremental, Indexing::Without, Indexing::Never, Indexing::Incremental];
    for (at, how) in ways.into_iter().enumerate() {
        for huffman in [Huffman::Always, Huffman::Never] {
            let name = format!("x-name-{}", at % 3);
            encoder.field(name.as_bytes(), long.as_bytes(), how, huffman, &mut block);
            ends.push(block.len());
        }
    }
    for cut in 0..block.len() {
        let decoded = decode_one(&block[..cut]);
        match ends.iter().position(|&end| end == cut) {
            Some(fields) => assert_eq!(decoded.map(|list| list.len()), Ok(fields)),
            None => assert_eq!(decoded, Err(Error::Truncated), "at {cut}"),
        }
    }
}

#[test]
fn an_index_beyond_the_tables_is_an_error() {
    // As a field, and as the name of each kind of literal.
    for block in [&[0x80][..], &[0xbe], &[0xff, 0x00], &[0x7e, 0x00], &[0x0f, 0x2f, 0x00]] {
        assert_eq!(decode_one(block), Err(Error::BadIndex), "{block:x?}");
    }
    // One entry: 62 is there, 63 is not.
    let one = literal(b"a", b"b");
    assert!(decode_one(&[&one[..], &[0xbe]].concat()).is_ok());
    assert_eq!(decode_one(&[&one[..], &[0xbf]].concat()), Err(Error::BadIndex));
    assert_eq!(decode_one(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), Err(Error::IntegerOverflow));
    assert_eq!(decode_one(&[0xff, 0x80, 0xff, 0xff, 0xff, 0x0f]), Err(Error::BadIndex));
}

#[test]
fn an_integer_without_end_is_an_error() {
    // An index, a name's index, a length, and a table size.
    let heads: [&[u8]; 5] = [&[0xff], &[0x7f], &[0x40, 0x7f], &[0x00, 0xff], &[0x3f]];
    for head in heads {
        for byte in [0x80, 0xff] {
            let block = [head, &[byte; 1000]].concat();
            assert_eq!(decode_one(&block), Err(Error::IntegerOverflow), "{head:x?}");
        }
    }
}

#[test]
fn a_length_beyond_the_block_takes_no_memory() {
    // A Huffman-coded name of nearly 4 GiB.
    let block = [0x40, 0xff, 0x80, 0xff, 0xff, 0xff, 0x0e, 0x00];
    assert_eq!(decode_one(&block), Err(Error::Truncated));
}

/// What a request in a table of 4 KiB can be made to mean: the caller counts, and nothing else grows.
#[test]
fn a_bomb_of_references_costs_what_the_caller_lets_it() {
    let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE);
    let value = vec![b'v'; 4060];
    decode(&mut decoder, &literal(b"a", &value)).unwrap();
    let bomb = [&vec![0xbe; 16_000][..], &literal(b"next", b"1")].concat();
    let (mut room, mut calls) = (65_536_usize, 0);
    let refused = decoder.decode(&bomb, |name, value| {
        calls += 1;
        room = room.checked_sub(name.len() + value.len() + 32).ok_or(Refusal::TooLarge)?;
        Ok(())
    });
    assert_eq!((refused, calls), (Err(Refusal::TooLarge), 17));
    // The rest of the block was read: its last field is the newest entry, and evicted the large one.
    let next = vec![(b"next".to_vec(), b"1".to_vec())];
    assert_eq!(decode(&mut decoder, &[0xbe]), Ok(next));
    assert_eq!(decoder.table_size(), 37);
}

#[derive(Debug, PartialEq)]
enum Refusal {
    TooLarge,
    Broken(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// The connection is lost then, whatever the caller thought of a field before.
#[test]
fn a_broken_block_outranks_a_refusal() {
    let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE);
    let broken = decoder.decode(&[0x82, 0x80], |_, _| Err(Refusal::TooLarge));
    assert_eq!(broken, Err(Refusal::Broken(Error::BadIndex)));
}

#[test]
fn an_update_stands_at_the_start_of_a_block_only() {
    let inside = Err(Error::SizeUpdateInside);
    assert_eq!(decode_one(&[&[0x82][..], &update(100)].concat()), inside);
    assert_eq!(decode_one(&[&literal(b"a", b"b")[..], &update(0), &[0x82]].concat()), inside);
    let two = [&update(0)[..], &update(4096), &[0x82]].concat();
    assert_eq!(decode_one(&two).map(|list| list.len()), Ok(1));
}

#[test]
fn an_update_beyond_what_we_allow_is_an_error() {
    assert!(decode_one(&update(4096)).is_ok());
    assert_eq!(decode_one(&update(4097)), Err(Error::SizeBeyondLimit));
    let mut larger = Decoder::new(8192);
    assert_eq!(decode(&mut larger, &update(8192)), Ok(List::new()));
    assert_eq!(decode(&mut larger, &update(8193)), Err(Error::SizeBeyondLimit));
}

/// RFC 9113 section 4.3.1.
#[test]
fn an_update_is_owed_when_we_allow_less() {
    let missing = Err(Error::SizeUpdateMissing);
    let lowered = || {
        let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE);
        decoder.set_max_size(100);
        decoder
    };
    assert_eq!(decode(&mut lowered(), &[0x82]), missing);
    assert_eq!(decode(&mut Decoder::new(0), &[0x82]), missing);
    let fine = [&update(100)[..], &[0x82]].concat();
    assert!(decode(&mut lowered(), &fine).is_ok());
    // Down and up again: the smallest has to be said (RFC 7541 section 4.2).
    let mut raised = lowered();
    raised.set_max_size(2000);
    assert_eq!(decode(&mut raised, &[&update(2000)[..], &[0x82]].concat()), missing);
    let mut raised = lowered();
    raised.set_max_size(2000);
    let both = [&update(100)[..], &update(2000), &[0x82]].concat();
    assert!(decode(&mut raised, &both).is_ok());
    // A table that is small enough owes nothing.
    let mut small = Decoder::new(DEFAULT_TABLE_SIZE);
    decode(&mut small, &update(50)).unwrap();
    small.set_max_size(100);
    assert!(decode(&mut small, &[0x82]).is_ok());
}

/// The peer's encoder starts at 4096 until it says otherwise, even where we allow more: an entry that
/// is too large for its table must not be in ours.
#[test]
fn the_table_grows_only_when_the_peer_says_so() {
    let large = vec![b'v'; 5000];
    let mut decoder = Decoder::new(65_536);
    decode(&mut decoder, &literal(b"a", b"b")).unwrap();
    // Name and length by hand: our encoder does not index what is larger than the table.
    let oversized = [&[0x40, 1, b'x', 0x7f, 0x89, 0x26][..], &large].concat();
    assert_eq!(decode(&mut decoder, &oversized).unwrap()[0].1.len(), 5000);
    assert_eq!(decoder.table_size(), 0);
    let grown = [&update(8192)[..], &oversized].concat();
    decode(&mut decoder, &grown).unwrap();
    assert_eq!(decoder.table_size(), 5033);
}

#[test]
fn a_peer_cannot_make_our_table_large() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    encoder.set_max_size(u32::MAX);
    let mut block = Vec::new();
    encoder.begin(&mut block);
    // Our size is what it was: there is nothing to say.
    assert!(block.is_empty());
    for number in 0..10_000 {
        let value = format!("{number:0>100}");
        let (how, huffman) = (Indexing::Incremental, Huffman::Never);
        encoder.field(b"x", value.as_bytes(), how, huffman, &mut block);
        assert!(encoder.table_size() <= DEFAULT_TABLE_CAP as usize);
    }
    assert_eq!(decode_one(&block).unwrap().len(), 10_000);
}

#[test]
fn updates_can_answer_each_setting() {
    let begun = |encoder: &mut Encoder| {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        block
    };
    let mut encoder =
        Encoder::with_cap(DEFAULT_TABLE_SIZE, 16_000).with_updates(SizeUpdates::Always);
    assert_eq!(begun(&mut encoder), [0_u8; 0]);
    encoder.set_max_size(4096);
    assert_eq!(begun(&mut encoder), update(4096));
    assert_eq!(begun(&mut encoder), [0_u8; 0]);
    // The least that was said counts, not what there was before.
    for size in [12_000, 10_000, 14_000] {
        encoder.set_max_size(size);
    }
    assert_eq!(begun(&mut encoder), [update(10_000), update(14_000)].concat());
    for size in [10, 5] {
        encoder.set_max_size(size);
    }
    assert_eq!(begun(&mut encoder), update(5));
    encoder.set_max_size(u32::MAX);
    assert_eq!(begun(&mut encoder), update(16_000));
    // The size that it begins with counts where it is the peer's.
    let mut encoder = Encoder::new(0).with_updates(SizeUpdates::Always);
    encoder.set_max_size(4096);
    assert_eq!(begun(&mut encoder), [update(0), update(4096)].concat());
}

#[test]
fn updates_say_the_smallest_and_the_last_size() {
    let begun = |encoder: &mut Encoder| {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        block
    };
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    assert_eq!(begun(&mut encoder), [0_u8; 0]);
    for size in [3000, 10, 20, 2000] {
        encoder.set_max_size(size);
    }
    assert_eq!(begun(&mut encoder), [update(10), update(2000)].concat());
    assert_eq!(begun(&mut encoder), [0_u8; 0]);
    encoder.set_max_size(1000);
    assert_eq!(begun(&mut encoder), update(1000));
    encoder.set_max_size(3000);
    assert_eq!(begun(&mut encoder), update(3000));
    encoder.set_max_size(0);
    encoder.set_max_size(3000);
    assert_eq!(begun(&mut encoder), [update(0), update(3000)].concat());
    // What is allowed went down, though not below what we use: a strict peer waits for it.
    encoder.set_max_size(10_000);
    assert_eq!(begun(&mut encoder), update(4096));
    encoder.set_max_size(5000);
    assert_eq!(begun(&mut encoder), update(4096));
    assert_eq!(begun(&mut Encoder::with_cap(10_000, 8192)), update(8192));
    assert_eq!(begun(&mut Encoder::with_cap(10_000, 0)), update(0));
}

#[test]
fn a_field_larger_than_the_table_leaves_it_as_it_is() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut block = Vec::new();
    let large = vec![b'v'; 4096];
    for value in [&b"small"[..], &large, b"small"] {
        encoder.field(b"x", value, Indexing::Incremental, Huffman::Shorter, &mut block);
    }
    assert_eq!(encoder.table_size(), 38);
    assert_eq!(block.last(), Some(&0xbe));
    assert_eq!(decode_one(&block).unwrap()[1].1, large);
}

#[test]
fn a_secret_enters_no_table() {
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let mut block = Vec::new();
    for how in [Indexing::Never, Indexing::Without] {
        for _ in 0..2 {
            encoder.field(b"authorization", b"bird", how, Huffman::Never, &mut block);
        }
    }
    let marked = b"\x1f\x08\x04bird";
    let unmarked = b"\x0f\x08\x04bird";
    assert_eq!(block, [&marked[..], marked, unmarked, unmarked].concat());
    assert_eq!(encoder.table_size(), 0);
    // Not even the static table has one.
    block.clear();
    encoder.field(b":method", b"GET", Indexing::Never, Huffman::Never, &mut block);
    assert_eq!(block, b"\x12\x03GET");
}
