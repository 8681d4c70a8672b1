//! `mimus profile`: from its words to the exit code, and the profiles that other flags name.

use std::{collections::BTreeMap, ffi::OsString, fmt::Write as _, path::Path};

use clap::error::ErrorKind;
use mimus::profile::{Profile, Verified};

use crate::{
    capture, docs,
    exit::{Exit, Failure, wrong_usage},
    flags::profile::{ProfileFlags, Wanted},
    output::{tell, to_stdout},
};

/// Does what the words behind `mimus profile` say.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let flags = match ProfileFlags::from_words(words) {
        Ok(flags) => flags,
        // The one subject with flags of its own has a help of its own.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return finish(to_stdout(error.to_string().as_bytes()));
        }
        Err(error) => return wrong_usage(&error),
    };
    finish(match docs::answer_profile(&flags.about) {
        Some(answered) => answered,
        None => show(flags.wanted.as_ref().unwrap_or(&Wanted::List)),
    })
}

fn finish(done: Result<(), Failure>) -> Exit {
    let Err(failure) = done else { return Exit::Ok };
    if !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
    failure.exit
}

fn show(wanted: &Wanted) -> Result<(), Failure> {
    let text = match wanted {
        Wanted::List => list()?,
        Wanted::Show(one) => named(&one.name)?.to_toml(),
        Wanted::Diff(two) => differences(&named(&two.one)?, &named(&two.other)?),
        Wanted::Capture(flags) => return capture::run(flags),
    };
    to_stdout(text.as_bytes())
}

/// The profile of a name; or of a file, which is told by its ending or a path's separator.
pub(crate) fn named(name: &str) -> Result<Profile, Failure> {
    let is_file = name.ends_with(".toml") || name.contains(std::path::is_separator);
    let profile = match is_file {
        true => Profile::from_file(Path::new(name)),
        false => Profile::named(name),
    };
    profile.map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Failure::new(Exit::Usage, format!("{error}{}", cause.unwrap_or_default()))
    })
}

fn list() -> Result<String, Failure> {
    let mut aliases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (alias, name) in Profile::aliases() {
        aliases.entry(name).or_default().push(alias);
    }
    let width = Profile::names().map(str::len).max().unwrap_or_default();
    let mut text = String::new();
    for name in Profile::names() {
        let profile = named(name)?;
        let verified = match profile.verified() {
            Verified::Live => "verified",
            Verified::Partly => "partly  ",
            _ => "no      ",
        };
        let _ = write!(text, "{name:width$}  {verified}  {}", profile.title());
        if let Some(aliases) = aliases.get(name) {
            let _ = write!(text, " (also: {})", aliases.join(", "));
        }
        text.push('\n');
    }
    Ok(text)
}

/// What one says and the other does not, by the place in the file.
fn differences(one: &Profile, other: &Profile) -> String {
    let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (one.entries().into_iter().collect(), other.entries().into_iter().collect());
    let mut text = String::new();
    let places: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for place in places {
        let (a, b) = (one.get(place), other.get(place));
        if a != b {
            for (mark, value) in [('-', a), ('+', b)] {
                if let Some(value) = value {
                    let _ = writeln!(text, "{mark} {place} = {value}");
                }
            }
        }
    }
    text
}
