//! What the tests and the fuzz target share: events in a plain shape, and a second reader of the grammar.

use bytes::Bytes;
use mimus_proto::sse::{Limits, Parser, TooLong};

/// An event's type, data and ID.
pub type Plain = (String, String, String);

/// What a stream says: its events, what ended it, and what a request to go on would say.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub events: Vec<Plain>,
    pub end: Result<(), TooLong>,
    pub last_event_id: String,
    pub retry_ms: Option<u128>,
}

/// Reads a stream in pieces that end at these places, each counted from the last.
pub fn read(limits: Limits, stream: &Bytes, cuts: &[usize]) -> Said {
    let (mut parser, mut events, mut rest) = (Parser::new(limits), Vec::new(), stream.clone());
    let mut end = Ok(());
    'pieces: for &cut in cuts.iter().chain([&usize::MAX]) {
        parser.push(rest.split_to(cut.min(rest.len())));
        loop {
            match parser.next_event() {
                Ok(Some(event)) => {
                    let owned = event.to_owned();
                    let seen = (event.event(), event.data(), event.id());
                    assert_eq!(
                        (&*owned.event, &*owned.data, &*owned.id),
                        (&*seen.0, &*seen.1, &*seen.2)
                    );
                    events.push((seen.0.into(), seen.1.into(), seen.2.into()));
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(parser.next_event().err(), Some(error), "it fails for good");
                    end = Err(error);
                    break 'pieces;
                }
            }
        }
    }
    let retry_ms = parser.retry().map(|time| time.as_millis());
    Said { events, end, last_event_id: parser.last_event_id().into(), retry_ms }
}

/// The whole stream, in one piece.
pub fn read_whole(stream: impl Into<Bytes>) -> Said {
    read(Limits::default(), &stream.into(), &[])
}

/// The standard's sections 9.2.5 and 9.2.6 to the letter, with no thought of speed: decode all of it,
/// split it into lines, and keep the three buffers.
pub fn by_the_letter(stream: &[u8]) -> Said {
    let text = String::from_utf8_lossy(stream);
    let text =
        text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut data, mut kind, mut id) = (String::new(), String::new(), String::new());
    let mut said =
        Said { events: Vec::new(), end: Ok(()), last_event_id: String::new(), retry_ms: None };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    for line in whole.split_terminator('\n') {
        if line.is_empty() {
            said.last_event_id.clone_from(&id);
            let kind = std::mem::take(&mut kind);
            let mut data = std::mem::take(&mut data);
            if data.pop().is_some() {
                let kind = if kind.is_empty() { "message".to_owned() } else { kind };
                said.events.push((kind, data, id.clone()));
            }
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut kind),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                said.retry_ms = Some(value.parse::<u64>().unwrap_or(u64::MAX).into());
            }
            _ => {}
        }
    }
    said
}
