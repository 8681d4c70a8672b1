//! A client and a server do arbitrary things in arbitrary order: no window is overspent, and in the
//! end each of them is what it should be.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus_fuzz::h2::model::{Model, Step};
use mimus_fuzz::{Choices, fuzz};

fn step(choices: &mut Choices<'_>) -> Step {
    let kind = choices.byte() % 13;
    let stream = usize::from(choices.byte());
    let mut number = || u32::from(choices.byte()) * 256 + u32::from(choices.byte());
    match kind {
        0 => Step::Open { body: stream % 2 == 1 },
        1 => Step::Send { stream, len: number() as usize },
        2 => Step::End { stream },
        3 => Step::Read { stream, events: number() as usize % 8 },
        4 if stream % 4 == 0 => Step::TakeRest { stream: stream / 4 },
        4 if stream % 4 == 1 => Step::Gather { stream: stream / 4 },
        4 => Step::GiveUp { stream },
        5 => Step::Write,
        6 => Step::PeerHead { stream: stream / 2, length: stream % 2 == 1 },
        7 => Step::PeerData { stream, len: number() % 16_000, padding: None },
        8 => Step::PeerData { stream, len: number() % 16_000, padding: Some(stream as u8) },
        9 => Step::PeerEnd { stream },
        10 => Step::PeerGrant { stream, by: number() + 1 },
        11 => Step::PeerGrantAll { by: number() + 1 },
        _ if stream % 4 == 0 => Step::PeerReset { stream },
        _ => Step::PeerWindow { size: number() },
    }
}

fuzz!("h2_rig", |data| {
    let mut choices = Choices::new(data);
    let mut model = Model::new();
    while !choices.is_empty() {
        model.step(&step(&mut choices));
    }
    model.settle();
});
