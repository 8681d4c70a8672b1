//! What every fuzz target shares: an entry point that works with and without libFuzzer, and a way
//! to take structured choices off arbitrary bytes.

/// The test rig of `mimus-proto`: the fuzz targets compare the same flattened events.
#[path = "../../crates/proto/tests/rig/mod.rs"]
pub mod rig;

/// The server's side of HTTP/2, frame by frame, and a server that keeps count of every window.
#[path = "../../crates/proto/tests/h2"]
pub mod h2 {
    pub mod model;
    pub mod rig;
}

/// Both ends of a WebSocket, fed in pieces.
#[path = "../../crates/proto/tests/ws/rig.rs"]
pub mod ws;

#[cfg(feature = "libfuzzer")]
#[doc(hidden)]
pub use libfuzzer_sys;

/// Event streams: one reader by the letter of the standard, and the one under test.
#[path = "../../crates/proto/tests/sse/rig.rs"]
pub mod sse;

/// Defines the target: `fuzz!(name, |data| { ... })`, where `name` is its directory under `seeds/`.
///
/// With the feature `libfuzzer` this is libFuzzer's entry point. Without it, a `main` that replays
/// the files given (or all seeds) and then mutates them for `-max_total_time=SECONDS` or
/// `-runs=COUNT`.
#[macro_export]
macro_rules! fuzz {
    ($name:literal, |$data:ident| $body:block) => {
        fn target($data: &[u8]) {
            $body
        }

        #[cfg(feature = "libfuzzer")]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| target(data));

        #[cfg(not(feature = "libfuzzer"))]
        fn main() -> std::process::ExitCode {
            $crate::replay::main($name, target)
        }
    };
}

#[cfg(not(feature = "libfuzzer"))]
pub mod replay;

/// Splits arbitrary input at its first bytes: choices first, then the rest.
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// All of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// One byte; 0 when there is none.
    pub fn byte(&mut self) -> u8 {
        match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                *first
            }
            [] => 0,
        }
    }

    /// As many bytes as the next byte says, or all that are left.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte()).min(self.rest.len());
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        bytes
    }

    /// Such bytes as text, what is not UTF-8 replaced.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Where to cut an input: up to eight places.
    pub fn cuts(&mut self) -> Vec<usize> {
        let count = self.byte() % 8;
        (0..count).map(|_| usize::from(self.byte())).collect()
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
