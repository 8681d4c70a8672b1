//! Whatever a server sends behind its SETTINGS means the same however it is split, and no more is
//! written for it than it is worth.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::h2::rig::feed;
use mimus_fuzz::{Choices, fuzz};

fuzz!("h2_frames", |data| {
    let mut choices = Choices::new(data);
    let (cuts, input) = (choices.cuts(), choices.rest());
    let whole = feed(input, &[]);
    assert_eq!(whole, feed(input, &cuts));
    assert_eq!(whole, feed(input, &vec![1; input.len()]));
});
