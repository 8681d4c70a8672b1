//! A chunked body under small limits means the same however it is split, and never gives out more
//! than came in.

#![cfg_attr(feature = "libfuzzer", no_main)]

use http::Method;
use mimus_fuzz::rig::{body, feed, written};
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::h1::{Client, Limits};
use mimus_proto::{BodyLength, Fields};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn client(limits: Limits) -> Client {
    let mut client = Client::new(limits);
    client
        .send_head(&Method::GET, "/", &Fields::new(), BodyLength::None)
        .expect("a fresh connection");
    written(&mut client, 4);
    client.recv(HEAD);
    client
}

fuzz!("h1_chunked", |data| {
    let mut choices = Choices::new(data);
    let mut limits = Limits::default();
    limits.chunk_line = 3 + usize::from(choices.byte());
    limits.chunk_extensions = usize::from(choices.byte());
    let (cuts, input) = (choices.cuts(), choices.rest());
    let whole = feed(&mut client(limits), input, &[]);
    let split = feed(&mut client(limits), input, &cuts);
    assert_eq!(whole, split);
    let dripped = feed(&mut client(limits), input, &vec![1; input.len()]);
    assert_eq!(whole, dripped);
    assert!(body(&whole).len() <= input.len());
});
