//! How a connection opens, from the text that Akamai's papers write it down as.

use std::fmt;

use super::opening::{Opening, Priority, Pseudo, SettingId};
use super::settings::MAX_WINDOW;

/// Why a text says no [`Opening`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AkamaiError {
    part: &'static str,
    text: String,
    why: &'static str,
}

impl AkamaiError {
    /// Which part of the text it is: `form`, `settings`, `window`, `priorities` or `pseudo`.
    #[must_use]
    pub fn part(&self) -> &'static str {
        self.part
    }
}

impl fmt::Display for AkamaiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} of an Akamai fingerprint: {:?} {}", self.part, self.text, self.why)
    }
}

impl std::error::Error for AkamaiError {}

impl Opening {
    /// The opening that `SETTINGS|WINDOW_UPDATE|PRIORITY|pseudo-fields` describes, as in
    /// `1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p`. Settings may be separated by commas, too. What
    /// the text cannot say (the priority in HEADERS, HPACK's choices, the first stream) is as by default.
    ///
    /// # Errors
    /// [`AkamaiError`] with the part that cannot be read, or not be said.
    pub fn from_akamai(text: &str) -> Result<Self, AkamaiError> {
        let parts: Vec<&str> = text.trim().split('|').collect();
        let [settings, window, priorities, pseudo] = parts[..] else {
            return Err(refused("form", text, "has not four parts between three bars"));
        };
        Ok(Opening {
            settings: read_settings(settings)?,
            window_increment: read_window(window)?,
            priorities: read_priorities(priorities)?,
            pseudo: read_pseudo(pseudo)?,
            ..Opening::default()
        })
    }
}

fn refused(part: &'static str, text: &str, why: &'static str) -> AkamaiError {
    AkamaiError { part, text: text.to_owned(), why }
}

fn read_settings(text: &str) -> Result<Vec<(SettingId, u32)>, AkamaiError> {
    let mut settings: Vec<(SettingId, u32)> = Vec::new();
    for item in text.split([';', ',']).filter(|item| !item.is_empty()) {
        let pair = item.split_once(':');
        let pair = pair.and_then(|(id, value)| Some((id.parse().ok()?, value.parse().ok()?)));
        let Some((id, value)) = pair else {
            return Err(refused("settings", item, "is no pair of numbers"));
        };
        if settings.iter().any(|(known, _)| known.0 == id) {
            return Err(refused("settings", item, "is said twice"));
        }
        // RFC 9113 section 6.5.2: a server would end the connection.
        if SettingId(id) == SettingId::INITIAL_WINDOW_SIZE && value > MAX_WINDOW {
            return Err(refused("settings", item, "is a window that no server takes"));
        }
        settings.push((SettingId(id), value));
    }
    Ok(settings)
}

/// `00` is none.
fn read_window(text: &str) -> Result<Option<u32>, AkamaiError> {
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(increment @ 1..=MAX_WINDOW) => Ok(Some(increment)),
        _ => Err(refused("window", text, "is no increment of a window")),
    }
}

/// `stream:exclusive:depends on:weight` for each, or `0`.
fn read_priorities(text: &str) -> Result<Vec<(u32, Priority)>, AkamaiError> {
    if text == "0" {
        return Ok(Vec::new());
    }
    text.split(',').map(read_priority).collect()
}

fn read_priority(item: &str) -> Result<(u32, Priority), AkamaiError> {
    let numbers: Option<Vec<u32>> = item.split(':').map(|number| number.parse().ok()).collect();
    let Some([stream @ 1..=MAX_WINDOW, exclusive @ 0..=1, depends_on @ 0..=MAX_WINDOW, weight]) =
        numbers.as_deref()
    else {
        return Err(refused("priorities", item, "is no stream:exclusive:depends-on:weight"));
    };
    let weight = weight.checked_sub(1).and_then(|weight| u8::try_from(weight).ok());
    let weight = weight.ok_or_else(|| refused("priorities", item, "has no weight of 1 to 256"))?;
    // RFC 9113 section 5.3.1: a stream cannot depend on itself.
    if stream == depends_on {
        return Err(refused("priorities", item, "depends on itself"));
    }
    let priority = Priority { depends_on: *depends_on, exclusive: *exclusive == 1, weight };
    Ok((*stream, priority))
}

fn read_pseudo(text: &str) -> Result<[Pseudo; 4], AkamaiError> {
    let wrong = || refused("pseudo", text, "is not m, a, s and p in some order");
    let letters: Vec<Pseudo> = text
        .split(',')
        .map(|letter| match letter {
            "m" => Ok(Pseudo::Method),
            "a" => Ok(Pseudo::Authority),
            "s" => Ok(Pseudo::Scheme),
            "p" => Ok(Pseudo::Path),
            _ => Err(wrong()),
        })
        .collect::<Result<_, _>>()?;
    let order: [Pseudo; 4] = letters.try_into().map_err(|_| wrong())?;
    let twice = (1..4).any(|at| order[..at].contains(&order[at]));
    if twice { Err(wrong()) } else { Ok(order) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(text: &str) -> Opening {
        Opening::from_akamai(text).expect("an opening")
    }

    #[test]
    fn chromium_and_firefox_are_read() {
        let chromium = opening("1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p");
        let settings: Vec<_> = chromium.settings.iter().map(|(id, to)| (id.0, *to)).collect();
        assert_eq!(settings, [(1, 65536), (2, 0), (4, 6_291_456), (6, 262_144)]);
        assert_eq!(chromium.window_increment, Some(15_663_105));
        assert!(chromium.priorities.is_empty());
        let order = [Pseudo::Method, Pseudo::Authority, Pseudo::Scheme, Pseudo::Path];
        assert_eq!(chromium.pseudo, order);

        // An older Firefox, which built a tree of idle streams.
        let text = "1:65536,4:131072,5:16384|12517377|3:0:0:201,5:0:0:101,9:1:7:1|m,p,a,s";
        let firefox = opening(text);
        let last = Priority { depends_on: 7, exclusive: true, weight: 0 };
        assert_eq!(firefox.priorities.len(), 3);
        assert_eq!(firefox.priorities[2], (9, last));
        assert_eq!(firefox.pseudo[1], Pseudo::Path);
    }

    #[test]
    fn nothing_is_said_by_nothing() {
        let none = opening("|00|0|m,a,s,p");
        assert_eq!((none.settings.len(), none.window_increment), (0, None));
    }

    #[test]
    fn an_error_names_the_part() {
        for (text, part) in [
            ("", "form"),
            ("1:1|0|0|m,a,s,p|", "form"),
            ("1|0|0|m,a,s,p", "settings"),
            ("1:1;1:2|0|0|m,a,s,p", "settings"),
            ("70000:1|0|0|m,a,s,p", "settings"),
            ("4:2147483648|0|0|m,a,s,p", "settings"),
            ("|x|0|m,a,s,p", "window"),
            ("|2147483648|0|m,a,s,p", "window"),
            ("|0||m,a,s,p", "priorities"),
            ("|0|3:0:0|m,a,s,p", "priorities"),
            ("|0|3:2:0:9|m,a,s,p", "priorities"),
            ("|0|3:0:0:0|m,a,s,p", "priorities"),
            ("|0|3:0:0:257|m,a,s,p", "priorities"),
            ("|0|3:0:3:9|m,a,s,p", "priorities"),
            ("|0|0|m,a,s", "pseudo"),
            ("|0|0|m,a,s,s", "pseudo"),
            ("|0|0|m,a,s,x", "pseudo"),
        ] {
            let error = Opening::from_akamai(text).expect_err(text);
            assert_eq!(error.part(), part, "{text}: {error}");
        }
    }
}
