//! Arbitrary bytes behind the preface are frames or an error, the same in any split, within the bounds
//! that are promised.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::{Choices, fuzz};
use mimus_proto::fingerprint::{
    Frame, Http2Error, Http2Reader, MAX_BLOCK_FIELDS, MAX_BLOCK_TEXT, akamai,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn read(bytes: &[u8], cuts: &[usize]) -> (Vec<Frame>, Option<Http2Error>) {
    let (mut reader, mut rest, mut frames) = (Http2Reader::new(), bytes, Vec::new());
    reader.recv(PREFACE);
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, behind) = rest.split_at(cut.min(rest.len()));
        reader.recv(piece);
        rest = behind;
        loop {
            match reader.poll_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fuzz!("client_frames", |data| {
    let mut choices = Choices::new(data);
    let cuts = choices.cuts();
    let bytes = choices.rest();
    let (frames, end) = read(bytes, &[]);
    assert_eq!(read(bytes, &cuts), (frames.clone(), end));
    for frame in &frames {
        if let Frame::Headers(block) = frame {
            assert!(block.fields.len() <= MAX_BLOCK_FIELDS);
            let text = block.fields.iter().map(|field| field.name.len() + field.value.len());
            assert!(text.sum::<usize>() <= MAX_BLOCK_TEXT);
        }
    }
    assert_eq!(akamai(&frames).hash.len(), 32);
});
