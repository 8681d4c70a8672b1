//! What is no HTTP/2, and what is much of it.

use mimus_proto::fingerprint::{
    Frame, Http2Error, Http2Reader, MAX_BLOCK, MAX_BLOCK_FIELDS, akamai,
};
use mimus_proto::h2::hpack::{Encoder, Form, Huffman, Indexing, NameForm};
use proptest::prelude::*;

use crate::captures::bytes;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

fn read(bytes: &[u8]) -> Result<Vec<Frame>, Http2Error> {
    read_split(bytes, &[])
}

fn read_split(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, Http2Error> {
    let mut reader = Http2Reader::new();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let (mut from, mut frames) = (0, Vec::new());
    for place in places.into_iter().chain([bytes.len()]) {
        reader.recv(&bytes[from..place]);
        while let Some(frame) = reader.poll_frame()? {
            frames.push(frame);
        }
        from = place;
    }
    Ok(frames)
}

fn read_frames(frames: &[Vec<u8>]) -> Result<Vec<Frame>, Http2Error> {
    read(&[PREFACE, &frames.concat()].concat())
}

#[test]
fn what_is_not_http2_is_refused_at_once() {
    assert_eq!(read(b"G"), Err(Http2Error::NotHttp2));
    assert_eq!(read(b"PRI * HTTP/2.0\r\n\r\nXX"), Err(Http2Error::NotHttp2));
    assert_eq!(read(b"PRI * HTTP/2.0\r\n"), Ok(vec![]));
}

#[test]
fn frames_of_a_wrong_size_are_refused() {
    for (kind, payload) in
        [(4, &[0; 5][..]), (8, &[0; 3]), (8, &[0; 5]), (2, &[0; 4]), (16, &[0; 3])]
    {
        let frames = read_frames(&[frame(kind, 0, 1, payload)]);
        assert_eq!(frames, Err(Http2Error::BadFrame), "kind {kind}");
    }
    // Padding without a length, longer than the frame; a priority cut short.
    for (flags, payload) in [(0x0c, &[][..]), (0x0c, &[3, 0x82]), (0x24, &[0; 4])] {
        assert_eq!(read_frames(&[frame(1, flags, 1, payload)]), Err(Http2Error::BadFrame));
    }
    let long = [PREFACE, &[0, 0x40, 1, 0, 0, 0, 0, 0, 1]].concat();
    assert_eq!(read(&long), Err(Http2Error::FrameTooLong));
}

#[test]
fn a_header_block_is_put_together_and_nothing_comes_between() {
    let parts = [frame(1, 1, 1, &[0x82]), frame(9, 0, 1, &[]), frame(9, 4, 1, &[0x87])];
    let frames = read_frames(&parts).expect("frames");
    let [Frame::Headers(block)] = &frames[..] else {
        panic!("not one block: {frames:?}");
    };
    assert_eq!((block.frames, block.end_stream, &block.block[..]), (3, true, &[0x82, 0x87][..]));
    assert_eq!(block.fields[1].value, "https");

    let broken = Err(Http2Error::BrokenBlock);
    assert_eq!(read_frames(&[frame(9, 4, 1, &[])]), broken);
    assert_eq!(read_frames(&[frame(1, 0, 1, &[]), frame(0, 0, 1, &[])]), broken);
    assert_eq!(read_frames(&[frame(1, 0, 1, &[]), frame(9, 4, 3, &[])]), broken);
}

#[test]
fn blocks_without_end_are_refused() {
    let mut frames = vec![frame(1, 0, 1, &[])];
    frames.extend((0..MAX_BLOCK_FIELDS).map(|_| frame(9, 0, 1, &[])));
    assert_eq!(read_frames(&frames), Err(Http2Error::BlockTooLong));

    let mut frames = vec![frame(1, 0, 1, &[])];
    frames.extend((0..=MAX_BLOCK / 16_384).map(|_| frame(9, 0, 1, &[0x82; 16_384])));
    assert_eq!(read_frames(&frames), Err(Http2Error::BlockTooLong));

    let many = frame(1, 4, 1, &[0x82; MAX_BLOCK_FIELDS + 1]);
    assert_eq!(read_frames(&[many]), Err(Http2Error::BlockTooLong));
    let fits = frame(1, 4, 1, &[0x82; MAX_BLOCK_FIELDS]);
    assert!(read_frames(&[fits]).is_ok());
}

/// CVE-2016-6581: a large entry of the table, named by one byte, often.
#[test]
fn a_small_block_that_decodes_to_much_is_refused() {
    let mut block = Vec::new();
    let mut encoder = Encoder::new(4096);
    encoder.field(b"x", &[b'a'; 4000], Indexing::Incremental, Huffman::Never, &mut block);
    block.extend_from_slice(&[0xbe; 1000]);
    assert_eq!(read_frames(&[frame(1, 4, 1, &block)]), Err(Http2Error::BlockTooLong));
}

#[test]
fn forms_are_those_that_were_written() {
    let mut block = vec![0x20, 0x3f, 0xe1, 0x1f];
    let mut encoder = Encoder::new(4096);
    let forms = [
        (&b":method"[..], &b"GET"[..], Indexing::Incremental, Huffman::Never),
        (b"cookie", b"bird=1", Indexing::Never, Huffman::Always),
        (b":path", b"/bird", Indexing::Without, Huffman::Never),
        (b"x-bird", b"1", Indexing::Incremental, Huffman::Always),
    ];
    for (name, value, indexing, huffman) in forms {
        encoder.field(name, value, indexing, huffman, &mut block);
    }
    let frames = read_frames(&[frame(1, 4, 1, &block)]).expect("a block");
    let [Frame::Headers(block)] = &frames[..] else {
        panic!("not one block: {frames:?}");
    };
    assert_eq!(block.table_sizes, [0, 4096]);
    let forms: Vec<Form> = block.fields.iter().map(|field| field.form).collect();
    let literal = |indexing, name, huffman| Form::Literal { indexing, name, huffman };
    assert_eq!(
        forms,
        [
            Form::Indexed(2),
            literal(Indexing::Never, NameForm::Index(32), true),
            literal(Indexing::Without, NameForm::Index(4), false),
            literal(Indexing::Incremental, NameForm::Text { huffman: true }, true),
        ]
    );
}

#[test]
fn priorities_and_their_absence_are_in_the_text() {
    let frames = read_frames(&[
        frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]),
        frame(2, 0, 3, &[0, 0, 0, 0, 200]),
        frame(2, 0, 5, &[0x80, 0, 0, 3, 0]),
        frame(1, 5, 7, &[0x82, 0x84, 0x87]),
    ]);
    let frames = frames.expect("frames");
    assert_eq!(akamai(&frames).raw, "3:100|00|3:0:0:201,5:1:3:1|m,p,s");
    assert_eq!(akamai(&[]).raw, "|00|0|");
}

proptest! {
    #[test]
    fn any_split_gives_the_same_frames(
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let mut stream = bytes("firefox-153-h2.bin");
        for (place, byte) in damage {
            let at = place % stream.len();
            stream[at] = byte;
        }
        prop_assert_eq!(read_split(&stream, &cuts), read(&stream));
    }

    #[test]
    fn no_bytes_panic(raw in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..18) {
        let _ = read(&[PREFACE, &raw].concat());
        let _ = read_frames(&[frame(kind, 0x2d, 1, &raw), frame(9, 4, 1, &raw)]);
        let _ = read_frames(&[frame(1, 4, 1, &raw)]);
    }
}
