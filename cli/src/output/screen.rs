//! What a person sees: coloured heads, formatted JSON, long text in pages, and no binary.

use super::{HeadText, harmless, pager, pretty, pretty::Palette, to_stdout};
use crate::exit::{Exit, Failure};

/// The most of a body that waits to be formatted or paged; a longer one is passed on as it comes.
const GATHER_MAX: usize = 4 * 1024 * 1024;

/// When text goes through a pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paging {
    /// Never.
    Never,
    /// When it is longer than the screen.
    WhenLong,
    /// Always.
    Always,
}

/// How things look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) palette: Palette,
    /// Indent JSON.
    pub(crate) pretty: bool,
    pub(crate) paging: Paging,
    /// Pass every piece on when it comes.
    pub(crate) immediate: bool,
    /// Refuse what is not text.
    pub(crate) text_only: bool,
}

/// A response on its way to a person.
#[derive(Debug)]
pub(crate) struct Screen {
    look: Look,
    /// Heads that wait.
    front: String,
    /// What waits of the body.
    body: Vec<u8>,
    is_json: bool,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Everything waits for the end.
    Gathering,
    /// Everything is passed on. `fresh` until the first byte of the body.
    Passing { fresh: bool },
}

impl Screen {
    /// A screen with nothing on it.
    pub(crate) fn new(look: Look) -> Self {
        let waits = !look.immediate && (look.pretty || look.paging != Paging::Never);
        let state = if waits { State::Gathering } else { State::Passing { fresh: true } };
        Screen { look, front: String::new(), body: Vec::new(), is_json: false, state }
    }

    /// One head.
    pub(crate) fn head(&mut self, head: &HeadText) -> Result<(), Failure> {
        let palette = self.look.palette;
        let line = harmless(head.start_line.as_bytes());
        let mut text = palette.start_line(&line, Some(head.status)) + "\n";
        for (name, value) in &head.fields {
            text += &palette.field(name, &harmless(value));
            text.push('\n');
        }
        text.push('\n');
        match self.state {
            State::Gathering => {
                self.front += &text;
                Ok(())
            }
            State::Passing { .. } => to_stdout(text.as_bytes()),
        }
    }

    /// What the body will be. Only what comes whole in short time is worth waiting for: JSON, and
    /// text of a known and modest length.
    pub(crate) fn begin(&mut self, content_type: Option<&str>, length: Option<u64>) {
        let media_type = content_type.map(essence).unwrap_or_default();
        self.is_json = media_type == "application/json" || media_type.ends_with("+json");
        let formatted = self.is_json && self.look.pretty;
        let paged = self.look.paging != Paging::Never
            && length.is_some_and(|length| length <= GATHER_MAX as u64);
        if self.state == State::Gathering && !formatted && !paged {
            self.state = State::Passing { fresh: true };
        }
    }

    /// One piece of the body.
    pub(crate) fn body(&mut self, piece: &[u8]) -> Result<(), Failure> {
        match self.state {
            State::Gathering => {
                self.body.extend_from_slice(piece);
                match self.body.len() > GATHER_MAX {
                    true => self.pass_on(),
                    false => Ok(()),
                }
            }
            State::Passing { fresh } => {
                self.state = State::Passing { fresh: false };
                self.show_front()?;
                if fresh {
                    self.check_text(piece)?;
                }
                to_stdout(piece)
            }
        }
    }

    /// The end.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.state != State::Gathering {
            return self.show_front();
        }
        self.state = State::Passing { fresh: false };
        let body = std::mem::take(&mut self.body);
        if let Err(failure) = self.check_text(&body) {
            self.show_front()?;
            return Err(failure);
        }
        let formatted = match self.is_json && self.look.pretty {
            true => pretty::json(&body, &self.look.palette),
            false => None,
        };
        let front = std::mem::take(&mut self.front).into_bytes();
        let text = [front, formatted.map_or(body, String::into_bytes)].concat();
        if pager::wants(self.look.paging, &text) && pager::show(&text) {
            return Ok(());
        }
        to_stdout(&text)
    }

    /// Gives up waiting.
    fn pass_on(&mut self) -> Result<(), Failure> {
        self.state = State::Passing { fresh: false };
        self.show_front()?;
        let body = std::mem::take(&mut self.body);
        self.check_text(&body)?;
        to_stdout(&body)
    }

    fn show_front(&mut self) -> Result<(), Failure> {
        match self.front.is_empty() {
            true => Ok(()),
            false => to_stdout(std::mem::take(&mut self.front).as_bytes()),
        }
    }

    fn check_text(&self, piece: &[u8]) -> Result<(), Failure> {
        if !self.look.text_only || !piece.contains(&0) {
            return Ok(());
        }
        let hint = "the body is binary, which a terminal does not take well; \
                    save it with -o FILE, or force it with -o -";
        Err(Failure::new(Exit::Write, hint))
    }
}

/// The media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look {
        palette: Palette::NONE,
        pretty: true,
        paging: Paging::WhenLong,
        immediate: false,
        text_only: true,
    };

    fn state_for(look: Look, content_type: &str, length: Option<u64>) -> State {
        let mut screen = Screen::new(look);
        screen.begin(Some(content_type), length);
        screen.state
    }

    #[test]
    fn only_what_comes_whole_soon_is_waited_for() {
        let passing = State::Passing { fresh: true };
        assert_eq!(state_for(LOOK, "application/json; charset=utf-8", None), State::Gathering);
        assert_eq!(state_for(LOOK, "Application/Problem+JSON", None), State::Gathering);
        assert_eq!(state_for(LOOK, "text/html", Some(100)), State::Gathering);
        assert_eq!(state_for(LOOK, "text/html", None), passing);
        assert_eq!(state_for(LOOK, "text/event-stream", None), passing);
        assert_eq!(state_for(LOOK, "text/html", Some(1 << 30)), passing);
        let immediate = Look { immediate: true, ..LOOK };
        assert_eq!(state_for(immediate, "application/json", Some(1)), passing);
        let plain = Look { pretty: false, paging: Paging::Never, ..LOOK };
        assert_eq!(state_for(plain, "application/json", Some(1)), passing);
    }

    #[test]
    fn binary_is_refused_with_a_hint() {
        let mut screen = Screen::new(LOOK);
        screen.begin(Some("application/octet-stream"), Some(4));
        screen.body(b"PK\0\0").unwrap();
        let failure = screen.finish().unwrap_err();
        assert_eq!(failure.exit, Exit::Write);
        assert!(failure.message.contains("-o"));
    }
}
