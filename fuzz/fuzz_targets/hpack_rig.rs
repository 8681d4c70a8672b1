//! An encoder and a decoder through any sequence of table sizes and fields, however represented:
//! what arrives is what was sent, and both tables are the same.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::{Choices, fuzz};
use mimus_proto::h2::hpack::{Decoder, Encoder, Error, Huffman, Indexing};

/// Names that the static table has, with and without a value, and one that it has not.
const NAMES: [&[u8]; 6] = [b":method", b":path", b":status", b"accept-encoding", b"cookie", b"x"];
const VALUES: [&[u8]; 6] = [b"GET", b"/", b"200", b"gzip, deflate", b"a=b", b""];

fn text<'a>(known: &[&'a [u8]], choices: &mut Choices<'a>) -> Vec<u8> {
    match known.get(usize::from(choices.byte())) {
        Some(known) => known.to_vec(),
        None => {
            let times = 1 + usize::from(choices.byte() & 0x1f);
            choices.bytes().repeat(times)
        }
    }
}

fuzz!("hpack_rig", |data| {
    let mut choices = Choices::new(data);
    let size = |choices: &mut Choices<'_>| u32::from(choices.byte()) * 40;
    let (max, cap) = (size(&mut choices), size(&mut choices));
    let (mut encoder, mut decoder) = (Encoder::with_cap(max, cap), Decoder::new(max));
    while !choices.is_empty() {
        for _ in 0..choices.byte() % 4 {
            let size = size(&mut choices);
            encoder.set_max_size(size);
            decoder.set_max_size(size);
        }
        let (mut block, mut sent) = (Vec::new(), Vec::new());
        encoder.begin(&mut block);
        for _ in 0..choices.byte() % 16 {
            let (name, value) = (text(&NAMES, &mut choices), text(&VALUES, &mut choices));
            let how = choices.byte();
            let indexing = match how % 4 {
                0 | 1 => Indexing::Incremental,
                2 if how & 0x80 != 0 => Indexing::Literal,
                2 => Indexing::Without,
                _ => Indexing::Never,
            };
            let huffman = match how / 4 % 3 {
                0 => Huffman::Shorter,
                1 => Huffman::Always,
                _ => Huffman::Never,
            };
            encoder.field(&name, &value, indexing, huffman, &mut block);
            sent.push((name, value));
        }
        let mut came = Vec::new();
        let decoded = decoder.decode(&block, |name, value| {
            came.push((name.to_vec(), value.to_vec()));
            Ok::<(), Error>(())
        });
        assert_eq!((decoded, came), (Ok(()), sent));
        assert_eq!(encoder.table_size(), decoder.table_size());
        assert!(encoder.table_size() <= cap as usize);
    }
});
