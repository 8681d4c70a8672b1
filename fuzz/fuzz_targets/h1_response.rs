//! Arbitrary bytes from a server mean the same however they are split.

#![cfg_attr(feature = "libfuzzer", no_main)]

use http::Method;
use mimus_fuzz::rig::{asked_with, feed, fields};
use mimus_fuzz::{Choices, fuzz};

fuzz!("h1_response", |data| {
    let mut choices = Choices::new(data);
    let method = match choices.byte() % 4 {
        0 => Method::HEAD,
        1 => Method::CONNECT,
        _ => Method::GET,
    };
    let request = match choices.byte() % 2 {
        0 => fields([("Host", "h"), ("Upgrade", "x")]),
        _ => fields([("Host", "h")]),
    };
    let (cuts, input) = (choices.cuts(), choices.rest());
    let whole = feed(&mut asked_with(&method, &request), input, &[]);
    let split = feed(&mut asked_with(&method, &request), input, &cuts);
    assert_eq!(whole, split);
    let dripped = feed(&mut asked_with(&method, &request), input, &vec![1; input.len()]);
    assert_eq!(whole, dripped);
});
