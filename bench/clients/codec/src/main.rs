//! Mimus's codecs, by themselves: `mimus_proto::ws` and `mimus_proto::sse` as their users have them.

mod events;
mod frames;

use std::process::ExitCode;

use mimus_bench_kit::{
    Config, PeerError,
    codec::{Bench, Codec, Row, run_codec},
};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "messages are lent" },
    Config { name: "owned", about: "messages are Bytes, cut off the buffer" },
];

fn main() -> ExitCode {
    run_codec("mimus", env!("CARGO_PKG_VERSION"), CONFIGS, |setup| {
        Ok(Mimus { owned: setup.config == "owned" })
    })
}

struct Mimus {
    owned: bool,
}

impl Codec for Mimus {
    fn run(&mut self, row: Row, bench: &mut Bench) -> Result<(), PeerError> {
        match row {
            Row::Parse { masked, .. } => frames::parse(masked, self.owned, bench),
            Row::Receive { masked, .. } => frames::receive(masked, self.owned, bench),
            Row::Encode { kind, masked, .. } => frames::encode(kind, masked, bench),
            Row::RoundTrip { kind, masked, .. } => {
                frames::round_trip(kind, masked, self.owned, bench)
            }
            Row::Mask { .. } => frames::mask(bench),
            Row::Utf8 { .. } => frames::utf8(bench),
            Row::Sse { together } => events::parse(together, bench),
        }
    }
}
