//! Arbitrary bytes from a client mean the same however they are split.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::rig::feed;
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::h1::{Limits, Server};

fuzz!("h1_request", |data| {
    let mut choices = Choices::new(data);
    let (cuts, input) = (choices.cuts(), choices.rest());
    let whole = feed(&mut Server::new(Limits::default()), input, &[]);
    let split = feed(&mut Server::new(Limits::default()), input, &cuts);
    assert_eq!(whole, split);
    let dripped = feed(&mut Server::new(Limits::default()), input, &vec![1; input.len()]);
    assert_eq!(whole, dripped);
});
