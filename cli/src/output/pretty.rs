//! Heads and JSON for people: indented, and coloured.

use anstyle::{AnsiColor, Style};

/// The colours of one output, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    name: Style,
    text: Style,
    number: Style,
    word: Style,
    good: Style,
    moved: Style,
    bad: Style,
    quiet: Style,
}

impl Palette {
    /// Plain text.
    pub(crate) const NONE: Palette = Palette {
        name: Style::new(),
        text: Style::new(),
        number: Style::new(),
        word: Style::new(),
        good: Style::new(),
        moved: Style::new(),
        bad: Style::new(),
        quiet: Style::new(),
    };

    /// The colours of a terminal, which the user chose there.
    pub(crate) const ANSI: Palette = Palette {
        name: AnsiColor::Blue.on_default().bold(),
        text: AnsiColor::Green.on_default(),
        number: AnsiColor::Cyan.on_default(),
        word: AnsiColor::Magenta.on_default(),
        good: AnsiColor::Green.on_default().bold(),
        moved: AnsiColor::Yellow.on_default().bold(),
        bad: AnsiColor::Red.on_default().bold(),
        quiet: Style::new().dimmed(),
    };

    /// Picks one of the two.
    pub(crate) fn when(coloured: bool) -> Palette {
        if coloured { Palette::ANSI } else { Palette::NONE }
    }

    /// A remark between the lines.
    pub(crate) fn quiet(&self, text: &str) -> String {
        painted(self.quiet, text)
    }

    /// One line of a head. The start line of a response is coloured by its status.
    pub(crate) fn start_line(&self, line: &str, status: Option<u16>) -> String {
        painted(
            match status {
                None => self.name,
                Some(..300) => self.good,
                Some(300..400) => self.moved,
                Some(400..) => self.bad,
            },
            line,
        )
    }

    /// One field of a head.
    pub(crate) fn field(&self, name: &str, value: &str) -> String {
        format!("{}: {value}", painted(self.name, name))
    }
}

fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Indents and colours JSON. The tokens stay exactly as they came: no number is rounded, no member
/// reordered or dropped. `None` when it is not JSON.
pub(crate) fn json(text: &[u8], palette: &Palette) -> Option<String> {
    // Only what is known to be valid is taken apart below.
    serde_json::from_slice::<serde::de::IgnoredAny>(text).ok()?;
    let text = std::str::from_utf8(text).ok()?;
    let mut printer = Printer { out: String::with_capacity(text.len() * 2), depth: 0, palette };
    let mut rest = text.trim_start();
    while let Some(length) = token_length(rest) {
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        printer.token(token, rest);
    }
    printer.out.push('\n');
    Some(printer.out)
}

struct Printer<'a> {
    out: String,
    depth: usize,
    palette: &'a Palette,
}

impl Printer<'_> {
    fn token(&mut self, token: &str, next: &str) {
        match token.as_bytes()[0] {
            b'{' | b'[' => {
                self.out.push_str(token);
                // An empty one stays on its line.
                if !next.starts_with(['}', ']']) {
                    self.depth += 1;
                    self.line();
                }
            }
            b'}' | b']' => {
                if !self.out.ends_with(['{', '[']) {
                    self.depth -= 1;
                    self.line();
                }
                self.out.push_str(token);
            }
            b',' => {
                self.out.push(',');
                self.line();
            }
            b':' => self.out.push_str(": "),
            first => {
                let style = match first {
                    b'"' if next.starts_with(':') => self.palette.name,
                    b'"' => self.palette.text,
                    b't' | b'f' | b'n' => self.palette.word,
                    _ => self.palette.number,
                };
                self.out.push_str(&painted(style, token));
            }
        }
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }
}

/// The length of the token at the start of valid JSON; `None` at its end.
fn token_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let length = match bytes.first()? {
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        b'"' => {
            let mut at = 1;
            while *bytes.get(at)? != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        }
        _ => text
            .find(|c: char| matches!(c, ',' | '}' | ']' | ':') || c.is_ascii_whitespace())
            .unwrap_or(text.len()),
    };
    Some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_is_indented_and_its_tokens_are_kept() {
        let text = r#" {"b":1e400,"a":[{},[ ],{"x" :null}],"a":"\"}é,","n":-0.10} "#;
        let expected = "{\n  \"b\": 1e400,\n  \"a\": [\n    {},\n    [],\n    {\n      \"x\": null\n    }\n  ],\n  \"a\": \"\\\"}é,\",\n  \"n\": -0.10\n}\n";
        assert_eq!(json(text.as_bytes(), &Palette::NONE).unwrap(), expected);
        for scalar in ["1", "\"x\"", "true", "[]"] {
            assert_eq!(json(scalar.as_bytes(), &Palette::NONE).unwrap(), format!("{scalar}\n"));
        }
    }

    /// JSON as people and programs write it.
    fn any_json() -> impl Strategy<Value = String> {
        let space = || "[ \t\r\n]{0,2}";
        let leaf = prop_oneof![
            "(true|false|null)",
            "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?",
            "\"([a-zé\\[\\]{},: ]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9]{2}){0,8}\"",
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            let member = ("\"[a-z:\\[]{0,4}\"", space(), inner.clone())
                .prop_map(|(name, space, value)| format!("{name}{space}:{value}"));
            let list = |item: BoxedStrategy<String>, open, close| {
                (prop::collection::vec(item, 0..5), space()).prop_map(move |(items, space)| {
                    format!("{open}{space}{}{space}{close}", items.join(&format!("{space},")))
                })
            };
            prop_oneof![list(inner.boxed(), '[', ']'), list(member.boxed(), '{', '}')]
        })
    }

    /// The tokens, as a judge that shares nothing with the printer sees them.
    fn tokens(text: &str) -> String {
        let mut quoted = false;
        let mut escaped = false;
        let keep = |c: &char| {
            let space = !quoted && c.is_ascii_whitespace();
            quoted ^= *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            !space
        };
        text.chars().filter(keep).collect()
    }

    proptest! {
        #[test]
        fn no_token_is_changed(text in any_json()) {
            let shown = json(text.as_bytes(), &Palette::NONE).expect("valid");
            prop_assert_eq!(tokens(&shown), tokens(&text));
            prop_assert_eq!(json(shown.as_bytes(), &Palette::NONE).expect("valid"), shown);
        }

        #[test]
        fn anything_is_survived(text in "[\\[\\]{},:\"\\\\ a1é.-]{0,40}") {
            let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(json(text.as_bytes(), &Palette::ANSI).is_some(), valid);
        }
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for text in ["", "{", "{}x", "{\"a\":1}{\"a\":2}", "nul", "[1,]"] {
            assert_eq!(json(text.as_bytes(), &Palette::NONE), None, "{text}");
        }
        assert_eq!(json(b"\"\xff\"", &Palette::NONE), None);
        // Deeper than the parser goes.
        assert_eq!(json("[".repeat(100_000).as_bytes(), &Palette::NONE), None);
    }

    #[test]
    fn members_values_and_words_differ_in_colour() {
        let shown = json(br#"{"a":"b","c":[true,1]}"#, &Palette::ANSI).unwrap();
        let name = format!("{}\"a\"", AnsiColor::Blue.on_default().bold());
        let text = format!("{}\"b\"", AnsiColor::Green.on_default());
        assert!(shown.contains(&name) && shown.contains(&text), "{shown:?}");
        let plain = Palette::NONE.start_line("HTTP/1.1 404 Not Found", Some(404));
        assert_eq!(plain, "HTTP/1.1 404 Not Found");
        assert!(Palette::ANSI.start_line("x", Some(404)).contains("\u{1b}[31m"));
    }
}
