//! The messages that WebSocket exchanges send, the same for all clients.

use std::sync::Arc;

use bytes::Bytes;

/// Messages that differ, at least: with `permessage-deflate` one that was sent a moment ago would be
/// found again in the window, and nothing would be compressed.
const DIFFERENT: usize = 64;
/// And no more bytes of them than a cache of the second level takes, which is more than that window.
const DIFFERENT_BYTES: usize = 256 * 1024;

/// A message as its sender has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text: JSON, in ASCII.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

impl Message {
    /// Its payload.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// The messages of one exchange, out of those that were made before.
#[derive(Debug, Clone)]
pub struct Messages {
    made: Arc<[Message]>,
    first: usize,
    count: u32,
}

impl Messages {
    /// `count` messages of `size` bytes.
    pub(crate) fn new(count: u32, size: u32, text: bool) -> Self {
        let size = size as usize;
        let different = DIFFERENT.min(DIFFERENT_BYTES / size.max(1)).max(1);
        let made = (0..different as u64).map(|number| match text {
            true => Message::Text(json(number, size)),
            false => Message::Binary(noise(number, size).into()),
        });
        Self { made: made.collect(), first: 0, count }
    }

    /// Goes on to the messages of the next exchange.
    pub(crate) fn advance(&mut self) {
        self.first = (self.first + self.count as usize) % self.made.len();
    }

    /// Goes where `other` is, among the same that were made.
    pub(crate) fn go_to(&mut self, other: &Self) {
        (self.first, self.count) = (other.first, other.count);
    }

    /// Where they begin among those that were made: the same messages for the same place and count.
    pub fn place(&self) -> usize {
        self.first
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The message at `place`.
    pub fn get(&self, place: u32) -> Option<&Message> {
        let at = (self.first + place as usize) % self.made.len();
        if place < self.count { self.made.get(at) } else { None }
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        (0..self.count).filter_map(|place| self.get(place))
    }
}

/// Pseudo-random numbers (Knuth's MMIX constants): reproducible, and good enough not to compress.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

pub(crate) fn noise(number: u64, size: usize) -> Vec<u8> {
    let mut noise = Noise(number);
    (0..size).map(|_| noise.next() as u8).collect()
}

/// Of `size` bytes: records as an API sends them, keys that repeat and values that do not.
pub(crate) fn json(number: u64, size: usize) -> String {
    const WORDS: [&str; 8] =
        ["limit", "market", "stop", "open", "filled", "pending", "EUR", "queue"];
    let mut noise = Noise(number);
    let mut text = String::with_capacity(size + 128);
    text.push('[');
    while text.len() < size {
        let (id, price, many) = (noise.next(), noise.next() % 1_000_000, noise.next() % 1_000);
        let word = WORDS[noise.next() as usize % WORDS.len()];
        text.push_str(&format!(
            "{{\"id\":{id},\"price\":\"{}.{:02}\",\"quantity\":{many},\"state\":\"{word}\"}},",
            price / 100,
            price % 100
        ));
    }
    text.truncate(size.saturating_sub(1));
    if size > 0 {
        text.push(']');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_are_told_to_be() {
        for size in [0_u32, 1, 2, 40, 128, 1024, 1 << 20] {
            for text in [true, false] {
                let messages = Messages::new(3, size, text);
                assert_eq!(messages.iter().count(), 3);
                assert!(messages.iter().all(|one| one.as_bytes().len() == size as usize));
                assert!(messages.get(3).is_none());
            }
        }
    }

    #[test]
    fn the_next_exchange_has_other_messages() {
        let mut messages = Messages::new(2, 128, true);
        let first: Vec<Message> = messages.iter().cloned().collect();
        messages.advance();
        assert!(messages.iter().all(|one| !first.contains(one)));
        assert_eq!(Messages::new(2, 128, true).get(1), first.get(1));
    }
}
