//! Frames to be sent: bytes of their own, and payloads from the page that all share.

use std::collections::VecDeque;

use crate::pages::Pages;
use crate::transport::Unsent;

/// Sent bytes that are kept before the others are moved to their place.
const SENT_MAX: usize = 32 * 1024;

/// A run of own bytes, then one of the page.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    own: usize,
    page: usize,
    /// Where in the page that begins.
    at: usize,
}

/// One connection's unsent bytes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    own: Vec<u8>,
    own_sent: usize,
    parts: VecDeque<Part>,
    bytes: usize,
}

impl Output {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Adds what `write` writes.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.own.len();
        write(&mut self.own);
        let added = self.own.len() - before;
        self.bytes += added;
        match self.parts.back_mut() {
            Some(part) if part.page == 0 => part.own += added,
            _ => self.parts.push_back(Part { own: added, page: 0, at: 0 }),
        }
    }

    /// Adds the page's first `bytes`, right behind what was put last. No more than there are.
    pub(crate) fn page(&mut self, bytes: usize) {
        self.bytes += bytes;
        match self.parts.back_mut() {
            Some(part) if part.page == 0 => part.page = bytes,
            _ => self.parts.push_back(Part { own: 0, page: bytes, at: 0 }),
        }
    }
}

impl Unsent for Output {
    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn pieces<'a>(&'a self, pages: &'a Pages) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = &self.own[self.own_sent..];
        self.parts
            .iter()
            .flat_map(move |part| {
                let (own, after) = rest.split_at(part.own);
                rest = after;
                [own, &pages.payload[part.at..part.at + part.page]]
            })
            .filter(|piece| !piece.is_empty())
    }

    fn advance(&mut self, _: &Pages, mut bytes: usize) {
        self.bytes -= bytes;
        while let Some(part) = self.parts.front_mut() {
            let own = bytes.min(part.own);
            let page = (bytes - own).min(part.page);
            bytes -= own + page;
            self.own_sent += own;
            part.own -= own;
            part.page -= page;
            part.at += page;
            if part.own + part.page > 0 {
                break;
            }
            self.parts.pop_front();
        }
        if self.parts.is_empty() {
            self.own.clear();
            self.own_sent = 0;
        } else if self.own_sent > SENT_MAX {
            self.own.drain(..self.own_sent);
            self.own_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_comes_out_in_order_at_any_step() {
        let pages = Pages::new();
        for step in [1, 2, 7, 1000, 100_000] {
            let (mut output, mut due) = (Output::default(), Vec::new());
            for number in 0..50_u8 {
                output.put(|own| own.extend_from_slice(&[number; 3]));
                due.extend_from_slice(&[number; 3]);
                if number % 3 > 0 {
                    output.page(usize::from(number) * 100);
                    due.extend_from_slice(&pages.payload[..usize::from(number) * 100]);
                }
            }
            assert_eq!(output.len(), due.len());
            let (mut all, mut buffer) = (Vec::new(), vec![0; step]);
            while !output.is_empty() {
                let next = output.record(&pages, &mut buffer);
                let length = next.len();
                all.extend_from_slice(next);
                output.advance(&pages, length);
            }
            assert!(all == due, "{step}");
        }
    }
}
