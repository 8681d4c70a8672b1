//! The word behind which an event stream of a language model says nothing more.

use mimus_proto::Fields;

/// What OpenAI's API, and others after it, send as the data of the last event. Their readers stop there, and leave the
/// end of the body behind it unread.
const WORD: &[u8] = b"[DONE]";

/// Pieces are looked at from their ends: the word, and the ends of line behind it.
const REACH: usize = 16;

/// Whether a body that is read ends, so far, with the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastWord {
    /// It is no event stream.
    None,
    /// So many bytes of the word were heard last.
    Heard(u8),
}

impl LastWord {
    pub(crate) fn none() -> Self {
        LastWord::None
    }

    /// That of a body whose head has `fields`.
    pub(crate) fn of(fields: &Fields) -> Self {
        const EVENTS: &[u8] = b"text/event-stream";
        let media_type = fields.get("content-type").and_then(|value| value.get(..EVENTS.len()));
        match media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case(EVENTS)) {
            true => LastWord::Heard(0),
            false => LastWord::None,
        }
    }

    /// Hears the next piece of the body.
    pub(crate) fn hear(&mut self, data: &[u8]) {
        let LastWord::Heard(heard) = self else { return };
        let end = match data.len().checked_sub(REACH) {
            Some(from) if from > 0 => {
                *heard = 0;
                &data[from..]
            }
            _ => data,
        };
        for &byte in end {
            *heard = match WORD.get(usize::from(*heard)) {
                Some(&due) if due == byte => *heard + 1,
                None if matches!(byte, b'\r' | b'\n' | b' ') => *heard,
                // The word begins nowhere inside of itself.
                _ => u8::from(byte == WORD[0]),
            };
        }
    }

    /// Whether the last that was heard is the word.
    pub(crate) fn was_said(self) -> bool {
        matches!(self, LastWord::Heard(heard) if usize::from(heard) == WORD.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&str]) -> bool {
        let mut word = LastWord::Heard(0);
        pieces.iter().for_each(|piece| word.hear(piece.as_bytes()));
        word.was_said()
    }

    #[test]
    fn hears_the_word_at_the_end_however_it_is_cut() {
        let stream = "data: {\"text\": \"[DO[DONE] is a word\"}\n\ndata: [DONE]\r\n\r\n";
        assert!(said(&[stream]));
        for at in 0..stream.len() {
            assert!(said(&[&stream[..at], &stream[at..]]), "cut at {at}");
        }
        let bytes: Vec<_> = stream.split("").collect();
        assert!(said(&bytes));
    }

    #[test]
    fn hears_nothing_else() {
        for stream in
            ["", "[DONE", "data: [DONE]\n\ndata: more\n\n", "[DO\nNE]", "{\"t\": \"[DONE]\"}"]
        {
            assert!(!said(&[stream]), "{stream}");
        }
    }

    #[test]
    fn listens_to_event_streams() {
        let of = |value: &str| LastWord::of(&Fields::try_from([("content-type", value)]).unwrap());
        assert_eq!(of("Text/Event-Stream; charset=utf-8"), LastWord::Heard(0));
        assert_eq!(of("text/event"), LastWord::None);
        let mut none = of("application/json");
        none.hear(b"[DONE]\n\n");
        assert!(!none.was_said());
    }
}
