//! A gRPC body means the same however it is split, never gives out more than came in, and what its
//! fields say is read without a panic and written back as it was.

#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use http::StatusCode;
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::Fields;
use mimus_proto::grpc::{
    Deframer, Ending, FrameError, Metadata, PREFIX, decode_message, encode_message, encode_timeout,
    parse_timeout,
};

type Messages = (Vec<(bool, Bytes)>, Result<(), FrameError>);

/// What comes of a body in pieces that end at these places, each counted from the last.
fn read(limit: usize, body: &Bytes, cuts: &[usize]) -> Messages {
    let (mut deframer, mut out, mut rest) = (Deframer::new(limit), Vec::new(), body.clone());
    for &cut in cuts.iter().chain([&usize::MAX]) {
        deframer.push(rest.split_to(cut.min(rest.len())));
        loop {
            match deframer.poll() {
                Ok(Some(frame)) => out.push((frame.compressed, frame.message)),
                Ok(None) => break,
                Err(error) => return (out, Err(error)),
            }
        }
    }
    (out, deframer.finish())
}

fn fields(name: &str, value: &[u8]) {
    let mut fields = Fields::new();
    if fields.append(name, value).is_err() || fields.append("grpc-status", value).is_err() {
        return;
    }
    let metadata = Metadata::received(fields.clone());
    for value in metadata.get_all_bin(name) {
        let mut again = Metadata::new();
        again.append_bin("x-bin", &value).expect("any bytes are a value");
        assert_eq!(again.get_bin("x-bin"), Some(value));
    }
    let said = Ending::of_head(StatusCode::OK, &fields).status(None, true);
    let trailing = Ending::of_head(StatusCode::OK, &Fields::new()).status(Some(&fields), false);
    assert_eq!(said, trailing);
}

fuzz!("grpc", |data| {
    let mut choices = Choices::new(data);
    let limit = usize::from(choices.byte());
    let (name, value) = (choices.text(), choices.bytes());
    fields(&name, value);
    let text = decode_message(value);
    assert_eq!(decode_message(encode_message(&text).as_bytes()), text);
    if let Some(timeout) = parse_timeout(value) {
        let again = parse_timeout(encode_timeout(timeout).as_bytes());
        assert!(again.is_some_and(|again| again >= timeout));
    }
    let (cuts, body) = (choices.cuts(), Bytes::copy_from_slice(choices.rest()));
    let whole = read(limit, &body, &[]);
    assert_eq!(whole, read(limit, &body, &cuts));
    assert_eq!(whole, read(limit, &body, &vec![1; body.len()]));
    let given: usize = whole.0.iter().map(|(_, message)| message.len() + PREFIX).sum();
    assert!(given <= body.len());
    assert!(whole.0.iter().all(|(_, message)| message.len() <= limit));
});
