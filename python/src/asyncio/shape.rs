//! A body as it is iterated over: in bytes, in text, or in lines.

use bytes::Bytes;
use mimus::{LineSplitter, LineTooLong, TextDecoder};

use crate::response::Pieces;

/// What an iteration gives.
pub(super) enum Item {
    Bytes(Bytes),
    Text(String),
}

/// How what comes is cut. Take all items before pushing more.
pub(super) enum Shape {
    Bytes {
        pieces: Pieces,
        whole: Option<Bytes>,
        ended: bool,
    },
    Text {
        /// `None` once the end has come.
        decoder: Option<TextDecoder>,
        text: String,
    },
    Lines {
        decoder: Option<TextDecoder>,
        /// `None` once the last line has been given.
        lines: Option<LineSplitter>,
    },
}

impl Shape {
    /// Pieces of `size` bytes, or as they come.
    pub(super) fn bytes(size: Option<usize>) -> Self {
        Shape::Bytes { pieces: Pieces::new(size), whole: None, ended: false }
    }

    pub(super) fn text(decoder: TextDecoder) -> Self {
        Shape::Text { decoder: Some(decoder), text: String::new() }
    }

    pub(super) fn lines(decoder: TextDecoder) -> Self {
        Shape::Lines { decoder: Some(decoder), lines: Some(LineSplitter::default()) }
    }

    pub(super) fn push(&mut self, data: Bytes) {
        match self {
            Shape::Bytes { pieces, whole, .. } => *whole = pieces.push(data),
            Shape::Text { decoder: Some(decoder), text } => *text = decoder.decode(&data),
            Shape::Lines { decoder: Some(decoder), lines: Some(lines) } => {
                lines.push(&decoder.decode(&data));
            }
            Shape::Text { .. } | Shape::Lines { .. } => {}
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) {
        match self {
            Shape::Bytes { ended, .. } => *ended = true,
            Shape::Text { decoder, text } => {
                if let Some(decoder) = decoder.take() {
                    text.push_str(&decoder.finish());
                }
            }
            Shape::Lines { decoder, lines } => {
                if let (Some(decoder), Some(lines)) = (decoder.take(), lines) {
                    lines.push(&decoder.finish());
                }
            }
        }
    }

    /// The next item of what has come; none of them is empty but lines.
    pub(super) fn next(&mut self) -> Result<Option<Item>, LineTooLong> {
        match self {
            Shape::Bytes { pieces, whole, ended } => {
                let here = whole.take().filter(|whole| !whole.is_empty());
                let here = here.or_else(|| pieces.next());
                Ok(here.or_else(|| ended.then(|| pieces.rest()).flatten()).map(Item::Bytes))
            }
            Shape::Text { text, .. } => {
                let text = std::mem::take(text);
                Ok((!text.is_empty()).then_some(Item::Text(text)))
            }
            Shape::Lines { decoder, lines: place } => {
                let Some(lines) = place else { return Ok(None) };
                match (lines.next_line()?, decoder) {
                    (Some(line), _) => Ok(Some(Item::Text(line))),
                    (None, Some(_)) => Ok(None),
                    (None, None) => match place.take() {
                        Some(lines) => Ok(lines.finish()?.map(Item::Text)),
                        None => Ok(None),
                    },
                }
            }
        }
    }
}
