//! What is measured, and the bytes it is measured with.

use std::{ops::Range, str::FromStr};

use crate::messages::{json, noise};

/// The key that masked frames are masked with.
pub const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text: JSON, in ASCII.
    Text,
    /// Bytes.
    Binary,
}

/// One kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A WebSocket message out of a buffer that holds it: `parse/text/128`, `parse/text/128/masked`.
    Parse {
        /// What it carries.
        kind: Kind,
        /// Bytes of payload.
        size: usize,
        /// From a client, so that a server reads it.
        masked: bool,
    },
    /// The same, and the frames have to be copied to that buffer first, as if one read had brought all of a
    /// batch: `receive/text/128`.
    Receive {
        /// What it carries.
        kind: Kind,
        /// Bytes of payload.
        size: usize,
        /// From a client, so that a server reads it.
        masked: bool,
    },
    /// A WebSocket message into a buffer: `encode/text/128`, `encode/text/128/masked`. The mask key is made
    /// by the codec, in its own way.
    Encode {
        /// What it carries.
        kind: Kind,
        /// Bytes of payload.
        size: usize,
        /// By a client.
        masked: bool,
    },
    /// A message encoded, copied to the reader's buffer and parsed: `round-trip/text/128`.
    RoundTrip {
        /// What it carries.
        kind: Kind,
        /// Bytes of payload.
        size: usize,
        /// From a client to a server.
        masked: bool,
    },
    /// A buffer masked in place with [`KEY`]: `mask/512`.
    Mask {
        /// Its bytes.
        size: usize,
    },
    /// ASCII text checked for being UTF-8: `utf8/512`.
    Utf8 {
        /// Its bytes.
        size: usize,
    },
    /// An event out of a stream as language models send it (an OpenAI-like and an Anthropic-like one in
    /// turn), of which so many come in a piece: `sse/1`, `sse/64`.
    Sse {
        /// Events in a piece.
        together: usize,
    },
}

impl FromStr for Row {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("no operation {name:?}");
        let parts: Vec<&str> = name.split('/').collect();
        let number = |text: &str| text.parse::<usize>().map_err(|_| unknown());
        let frame = |kind: &str, size: &str, rest: &[&str]| {
            let kind = match kind {
                "text" => Kind::Text,
                "binary" => Kind::Binary,
                _ => return Err(unknown()),
            };
            match rest {
                [] => Ok((kind, number(size)?, false)),
                ["masked"] => Ok((kind, number(size)?, true)),
                _ => Err(unknown()),
            }
        };
        match parts.as_slice() {
            ["mask", size] => Ok(Self::Mask { size: number(size)? }),
            ["utf8", size] => Ok(Self::Utf8 { size: number(size)? }),
            ["sse", together] => Ok(Self::Sse { together: number(together)?.max(1) }),
            [what, kind, size, rest @ ..] => {
                let (kind, size, masked) = frame(kind, size, rest)?;
                match *what {
                    "parse" => Ok(Self::Parse { kind, size, masked }),
                    "receive" => Ok(Self::Receive { kind, size, masked }),
                    "encode" => Ok(Self::Encode { kind, size, masked }),
                    "round-trip" => Ok(Self::RoundTrip { kind, size, masked }),
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        }
    }
}

/// The bytes that a row is measured with, the same for all.
#[derive(Debug, Clone)]
pub struct Input {
    /// What a message carries, a buffer holds or a text is; of events, the stream of a whole batch.
    pub payload: Vec<u8>,
    /// The frames of a whole batch, of a row with frames.
    pub frames: Vec<u8>,
    /// Bytes of one frame.
    pub frame: usize,
    /// Where the events of a batch lie in the payload.
    pub(super) events: Vec<Range<usize>>,
}

impl Input {
    pub(super) fn of(row: Row) -> Self {
        let (kind, size, masked) = match row {
            Row::Parse { kind, size, masked }
            | Row::Receive { kind, size, masked }
            | Row::Encode { kind, size, masked }
            | Row::RoundTrip { kind, size, masked } => (kind, size, masked),
            Row::Mask { size } => (Kind::Binary, size, false),
            Row::Utf8 { size } => (Kind::Text, size, false),
            Row::Sse { .. } => return Self::events(),
        };
        let payload = match kind {
            Kind::Text => json(1, size).into_bytes(),
            Kind::Binary => noise(1, size),
        };
        let frame = frame(kind, &payload, masked);
        Self { frames: frame.repeat(super::BATCH), frame: frame.len(), payload, events: Vec::new() }
    }

    fn events() -> Self {
        let (mut payload, mut events) = (Vec::new(), Vec::new());
        for number in 0..super::BATCH {
            let start = payload.len();
            payload.extend_from_slice(event(number).as_bytes());
            events.push(start..payload.len());
        }
        Self { payload, frames: Vec::new(), frame: 0, events }
    }

    /// The payload as text. Of a row without text, nothing.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.payload).unwrap_or_default()
    }

    /// The first `n` frames.
    pub fn frames(&self, n: usize) -> &[u8] {
        self.frames.get(..n * self.frame).unwrap_or(&self.frames)
    }

    /// The first `n` events in pieces of `together`.
    pub fn pieces(&self, n: usize, together: usize) -> Vec<&[u8]> {
        let events = self.events.get(..n).unwrap_or(&self.events);
        let pieces = events
            .chunks(together.max(1))
            .filter_map(|piece| self.payload.get(piece.first()?.start..piece.last()?.end));
        pieces.collect()
    }
}

/// A frame as RFC 6455 section 5.2 has it.
fn frame(kind: Kind, payload: &[u8], masked: bool) -> Vec<u8> {
    let mask_bit = if masked { 0x80 } else { 0 };
    let mut frame = vec![0x80 | opcode(kind)];
    match payload.len() {
        length @ ..126 => frame.push(mask_bit | length as u8),
        length @ ..65_536 => {
            frame.push(mask_bit | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(mask_bit | 127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    if masked {
        frame.extend_from_slice(&KEY);
        frame.extend(masked_by(payload, KEY));
    } else {
        frame.extend_from_slice(payload);
    }
    frame
}

pub(super) fn opcode(kind: Kind) -> u8 {
    match kind {
        Kind::Text => 1,
        Kind::Binary => 2,
    }
}

/// Byte by byte, so that it is certain.
pub(super) fn masked_by(payload: &[u8], key: [u8; 4]) -> impl Iterator<Item = u8> {
    payload.iter().zip(key.into_iter().cycle()).map(|(byte, key)| byte ^ key)
}

/// The tokens of the streams.
const TOKENS: [&str; 8] =
    [" the", " connection", ",", " reused", " by", "\\n\\n", " caf\u{e9}", " \\\"pool\\\""];

/// The type and the data of an event.
pub(super) fn event_parts(number: usize) -> (&'static str, String) {
    let token = TOKENS[number / 2 % TOKENS.len()];
    if number.is_multiple_of(2) {
        let data = format!(
            "{{\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":\"chat.completion.chunk\",\
             \"created\":{},\"model\":\"gpt-4.1-2025-04-14\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_07871e2ad8\",\"choices\":[{{\"index\":0,\"delta\":\
             {{\"content\":\"{token}\"}},\"logprobs\":null,\"finish_reason\":null}}]}}",
            1_741_569_952 + number
        );
        return ("message", data);
    }
    let data = format!(
        "{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\
         \"text\":\"{token}\"}}}}"
    );
    ("content_block_delta", data)
}

fn event(number: usize) -> String {
    match event_parts(number) {
        ("message", data) => format!("data: {data}\n\n"),
        (name, data) => format!("event: {name}\ndata: {data}\n\n"),
    }
}
