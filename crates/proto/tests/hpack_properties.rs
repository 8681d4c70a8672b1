//! HPACK for any fields, sizes and bytes: against itself, and against `loona-hpack` and
//! `httlib-hpack`, which share no code with it.

use mimus_proto::h2::hpack::{Decoder, Encoder, Error, Huffman, Indexing, SizeUpdates};
use proptest::collection::vec;
use proptest::prelude::*;

type Field = (Vec<u8>, Vec<u8>);
type List = Vec<Field>;

#[derive(Debug, Clone)]
enum Step {
    /// The decoder's side allows another size, and the encoder hears of it.
    Resize(u32),
    Block(Vec<(Field, Indexing, Huffman)>),
}

/// Few names and values, so that they meet again, and any bytes.
fn field() -> impl Strategy<Value = Field> {
    let known = vec![":method", ":path", ":status", "accept-encoding", "cookie", "x-a", "x-b", ""];
    let values =
        vec!["", "GET", "/", "200", "gzip, deflate", "1", "2", "a rather long value: \"{}\""];
    let name = prop_oneof![
        4 => prop::sample::select(known).prop_map(|name| name.as_bytes().to_vec()),
        2 => "[a-z-]{1,12}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ];
    let value = prop_oneof![
        4 => prop::sample::select(values).prop_map(|value| value.as_bytes().to_vec()),
        2 => "[ -~]{0,40}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..200),
        1 => (any::<u8>(), 0..3000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    (name, value)
}

fn coding() -> impl Strategy<Value = (Indexing, Huffman)> {
    let indexing = prop::sample::select(vec![
        Indexing::Incremental,
        Indexing::Incremental,
        Indexing::Without,
        Indexing::Literal,
        Indexing::Never,
    ]);
    let huffman = prop::sample::select(vec![Huffman::Shorter, Huffman::Always, Huffman::Never]);
    (indexing, huffman)
}

fn block() -> impl Strategy<Value = Vec<(Field, Indexing, Huffman)>> {
    vec((field(), coding()).prop_map(|(field, (how, huffman))| (field, how, huffman)), 0..12)
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(4096), 0..300_u32, 0..20_000_u32]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![1 => size().prop_map(Step::Resize), 2 => block().prop_map(Step::Block)];
    vec(step, 1..16)
}

fn encode(encoder: &mut Encoder, fields: &[(Field, Indexing, Huffman)]) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for ((name, value), how, huffman) in fields {
        encoder.field(name, value, *how, *huffman, &mut block);
    }
    block
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut fields = List::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        Ok::<(), Error>(())
    })?;
    Ok(fields)
}

fn plain(fields: &[(Field, Indexing, Huffman)]) -> List {
    fields.iter().map(|(field, ..)| field.clone()).collect()
}

/// The judge leaves updates at the end of a block out of what it accepts.
fn judge_skips(error: &str) -> bool {
    error.contains("SizeUpdateAtEnd")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_encoded_is_decoded(
        max in size(), cap in size(), always in any::<bool>(), steps in steps()
    ) {
        let updates = if always { SizeUpdates::Always } else { SizeUpdates::Needed };
        let mut encoder = Encoder::with_cap(max, cap).with_updates(updates);
        let mut decoder = Decoder::new(max);
        let mut allowed = max;
        for step in steps {
            match step {
                Step::Resize(size) => {
                    encoder.set_max_size(size);
                    decoder.set_max_size(size);
                    allowed = size;
                }
                Step::Block(fields) => {
                    let block = encode(&mut encoder, &fields);
                    prop_assert_eq!(decode(&mut decoder, &block), Ok(plain(&fields)));
                    prop_assert_eq!(encoder.table_size(), decoder.table_size());
                    prop_assert!(encoder.table_size() <= allowed.min(cap) as usize);
                }
            }
        }
    }

    /// A refusal changes nothing for the blocks that follow.
    #[test]
    fn a_refusal_leaves_the_table_right(
        first in block(), second in block(), taken in 0..12_usize,
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
        let (one, two) = (encode(&mut encoder, &first), encode(&mut encoder, &second));
        let mut left = taken;
        let refused = decoder.decode(&one, |_, _| match left.checked_sub(1) {
            Some(rest) => { left = rest; Ok(()) }
            // Any error will do: the block has none of its own.
            None => Err(Error::Truncated),
        });
        prop_assert_eq!(refused.is_err(), first.len() > taken);
        prop_assert_eq!(decode(&mut decoder, &two), Ok(plain(&second)));
    }

    #[test]
    fn the_judges_decode_what_we_encode(blocks in vec(block(), 1..8), max in size()) {
        let mut encoder = Encoder::with_cap(max, 65_536);
        let mut loona = loona_hpack::Decoder::new();
        let mut httlib = httlib_hpack::Decoder::with_dynamic_size(4096);
        for fields in blocks.iter().filter(|fields| !fields.is_empty()) {
            let block = encode(&mut encoder, fields);
            let list = loona.decode(&block).map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
            prop_assert_eq!(list, plain(fields));
            if max >= 4096 {
                continue;
            }
            let mut list = Vec::new();
            httlib.decode(&mut block.clone(), &mut list)
                .map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
            let list: List = list.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(list, plain(fields));
        }
    }

    #[test]
    fn we_decode_what_the_judges_encode(blocks in vec(vec((field(), any::<u8>()), 1..12), 1..8)) {
        let (mut ours, mut also_ours) = (Decoder::new(4096), Decoder::new(4096));
        let mut httlib = httlib_hpack::Encoder::with_dynamic_size(4096);
        let mut loona = loona_hpack::Encoder::new();
        for fields in blocks {
            let list: List = fields.iter().map(|(field, _)| field.clone()).collect();
            let mut block = Vec::new();
            for ((name, value), flags) in fields {
                // Its flags: 1 and 2 code name and value, 4 indexes, 8 never does, 16 looks it up.
                let flags = if flags & 4 != 0 { flags & !8 } else { flags } & 0x1f;
                let encoded = httlib.encode((name, value, flags), &mut block);
                encoded.map_err(|e| TestCaseError::fail(format!("{e:?}")))?;
            }
            prop_assert_eq!(decode(&mut ours, &block), Ok(list.clone()));
            let pairs = list.iter().map(|(name, value)| (&name[..], &value[..]));
            let block = loona.encode(pairs);
            prop_assert_eq!(decode(&mut also_ours, &block), Ok(list));
        }
    }

    #[test]
    fn any_bytes_decode_within_bounds(blocks in vec(vec(any::<u8>(), 0..200), 1..6), max in size()) {
        let mut decoder = Decoder::new(max);
        for block in blocks {
            let decoded = decode(&mut decoder, &block);
            prop_assert!(decoder.table_size() <= max.max(4096) as usize);
            if decoded.is_err() {
                break;
            }
        }
    }

    /// Blocks of ours with a few bytes changed: both find the same fields, or both an error.
    #[test]
    fn a_judge_agrees_about_mangled_blocks(
        fields in block(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut block = encode(&mut Encoder::new(4096), &fields);
        if !block.is_empty() {
            for (at, byte) in changes {
                let at = at.index(block.len());
                block[at] = byte;
            }
        }
        let mut loona = loona_hpack::Decoder::new();
        loona.set_max_allowed_table_size(4096);
        let judged = loona.decode(&block).map_err(|e| format!("{e:?}"));
        match (decode(&mut Decoder::new(4096), &block), judged) {
            (Ok(list), Ok(same)) => prop_assert_eq!(list, same),
            (Ok(list), Err(error)) => prop_assert!(judge_skips(&error), "{error} for {list:?}"),
            // Where it lets through what the RFC forbids, or reads on where we stop.
            (Err(Error::SizeUpdateInside | Error::IntegerOverflow), _) | (Err(_), Err(_)) => {}
            (Err(error), Ok(list)) => prop_assert!(false, "{error} for {list:?}"),
        }
    }
}
