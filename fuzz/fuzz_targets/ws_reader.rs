//! Arbitrary bytes mean the same to both ends of a WebSocket however they are split, and what is
//! answered to them is not more than it is worth.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::ws::{feed, take_output};
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::ws::{Config, Connection, Keys, Limits, Masking, Unmasked};

fn read<M: Masking>(masking: impl Fn() -> M, input: &[u8], cuts: &[usize], limits: Limits) {
    let feed = |cuts: &[usize]| {
        let mut to = Connection::new(masking(), Config { limits, ..Config::default() });
        let heard = feed(&mut to, input, cuts);
        assert!(take_output(&mut to).len() <= 131 * heard.0.len() + 10);
        (heard, to.phase())
    };
    let whole = feed(&[]);
    assert_eq!(whole, feed(cuts));
    assert_eq!(whole, feed(&vec![1; input.len()]));
}

fuzz!("ws_reader", |data| {
    let mut choices = Choices::new(data);
    let limits = match choices.byte() % 2 {
        0 => Limits::default(),
        _ => Limits { message: 60, frame: 40 },
    };
    let (cuts, input) = (choices.cuts(), choices.rest());
    read(|| Unmasked, input, &cuts, limits);
    read(|| Keys::new(|bytes: &mut [u8]| bytes.fill(1)), input, &cuts, limits);
});
