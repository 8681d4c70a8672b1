//! What holds for any bytes, and for any order of what both sides do.

use mimus_proto::h2::{Limits, Opening};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{Model, Step};
use crate::rig::*;

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![12 => prop::sample::select(vec![1, 3, 5, 7]), 1 => prop::sample::select(vec![0, 2, 9])]
}

fn section() -> impl Strategy<Value = Vec<u8>> {
    let name =
        prop::sample::select(vec!["server", "content-length", "x-bird", "Bad", "connection"]);
    let line = (name, "[0-9]{1,2}");
    let status = prop::sample::select(vec![":status", ":status", ":status", ":path"]);
    let value = prop::sample::select(vec!["200", "204", "103", "404", "101"]);
    (prop::option::weighted(0.8, (status, value)), vec(line, 0..3)).prop_map(|(status, lines)| {
        let lines = lines.iter().map(|(name, value)| (*name, value.as_str()));
        block(&status.into_iter().chain(lines).collect::<Vec<_>>())
    })
}

/// Frames that lead the machine into every corner, valid and not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop::sample::select(vec![0, END_STREAM]);
    prop_oneof![
        6 => (id(), flags.clone(), section())
            .prop_map(|(id, flags, block)| frame(HEADERS, flags | END_HEADERS, id, &block)),
        2 => (id(), flags.clone(), section(), 0_usize..20).prop_map(|(id, flags, block, cut)| {
            let (first, rest) = block.split_at(cut.min(block.len()));
            [frame(HEADERS, flags, id, first), frame(CONTINUATION, END_HEADERS, id, rest)].concat()
        }),
        8 => (id(), flags.clone(), vec(any::<u8>(), 0..2000))
            .prop_map(|(id, flags, bytes)| data(id, flags, &bytes)),
        2 => (id(), flags, vec(any::<u8>(), 0..20), any::<u8>())
            .prop_map(|(id, flags, bytes, padding)| padded(id, flags, &bytes, padding)),
        1 => (id(), 0_u32..9).prop_map(|(id, code)| rst(id, code)),
        1 => (id(), 0_u32..9).prop_map(|(id, by)| window_update(id, by)),
        1 => (0_u16..9, 0_u32..90_000).prop_map(|(id, value)| settings(&[(id, value)])),
        1 => any::<[u8; 8]>().prop_map(|payload| ping(&payload)),
        1 => (0_u32..9, 0_u32..3).prop_map(|(last, code)| go_away(last, code)),
        1 => (any::<u8>(), any::<u8>(), id(), vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, id, payload)| frame(kind, flags, id, &payload)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn frames_mean_the_same_however_they_are_split(
        frames in vec(any_frame(), 0..12), cuts in vec(0_usize..3000, 0..12),
    ) {
        let input = frames.concat();
        prop_assert_eq!(feed(&input, &[]), feed(&input, &cuts));
    }

    #[test]
    fn frames_mean_the_same_byte_for_byte(frames in vec(any_frame(), 0..4)) {
        let input = frames.concat();
        prop_assert_eq!(feed(&input, &[]), feed(&input, &vec![1; input.len()]));
    }

    #[test]
    fn any_bytes_are_survived(input in vec(any::<u8>(), 0..300)) {
        let mut rig = Rig::with(&Opening::default(), Limits::default());
        let _ = rig.feed(&input);
        rig.frames();
        feed(&input, &[]);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0_usize..100;
    prop_oneof![
        3 => any::<bool>().prop_map(|body| Step::Open { body }),
        4 => (stream(), 0_usize..30_000).prop_map(|(stream, len)| Step::Send { stream, len }),
        1 => stream().prop_map(|stream| Step::End { stream }),
        5 => (stream(), 0_usize..4).prop_map(|(stream, events)| Step::Read { stream, events }),
        2 => stream().prop_map(|stream| Step::Gather { stream }),
        2 => stream().prop_map(|stream| Step::TakeRest { stream }),
        1 => stream().prop_map(|stream| Step::GiveUp { stream }),
        4 => Just(Step::Write),
        3 => (stream(), any::<bool>())
            .prop_map(|(stream, length)| Step::PeerHead { stream, length }),
        8 => (stream(), 0_u32..12_000, prop::option::of(any::<u8>()))
            .prop_map(|(stream, len, padding)| Step::PeerData { stream, len, padding }),
        1 => stream().prop_map(|stream| Step::PeerEnd { stream }),
        1 => stream().prop_map(|stream| Step::PeerReset { stream }),
        3 => (stream(), 1_u32..40_000).prop_map(|(stream, by)| Step::PeerGrant { stream, by }),
        2 => (1_u32..40_000).prop_map(|by| Step::PeerGrantAll { by }),
        1 => (0_u32..60_000).prop_map(|size| Step::PeerWindow { size }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn credit_is_conserved_whatever_both_sides_do(steps in vec(step(), 0..150)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
        }
        model.settle();
    }
}
