//! The files that are compiled in, and how one extends another.

use toml::{Table, Value};

use super::{Error, kind::Kind};

macro_rules! files {
    ($($name:literal,)+) => {
        /// Every file: its name and text. Those of [`BASES`] are there to be extended only.
        pub(super) const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("data/", $name, ".toml"))),)+];
    };
}

files! {
    "chromium",
    "chromium-156-linux",
    "chrome-156-linux",
    "firefox",
    "firefox-153-linux",
}

/// Files that are no browser of their own.
pub(super) const BASES: &[&str] = &["chromium", "firefox"];

/// Other names: the newest of each browser, and those without a platform.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("chrome", "chrome-156-linux"),
    ("chromium", "chromium-156-linux"),
    ("firefox", "firefox-153-linux"),
];

/// How deep files may extend each other.
const DEPTH: usize = 8;

/// A file with all that it extends.
pub(super) fn merged(text: &str) -> Result<Table, Error> {
    let mut table = parse(text)?;
    for _ in 0..DEPTH {
        let Some(parent) = table.remove("extends") else {
            resolve_kinds(&mut table)?;
            return Ok(table);
        };
        let name = parent.as_str().unwrap_or_default();
        let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) else {
            return Err(Error::unknown(name));
        };
        let mut merged = parse(text)?;
        overlay(&mut merged, table);
        table = merged;
    }
    Err(Error::invalid(name_of(&table), "files extend each other too deeply"))
}

fn parse(text: &str) -> Result<Table, Error> {
    text.parse().map_err(Error::syntax)
}

pub(super) fn name_of(table: &Table) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or("?")
}

/// Tables are joined, anything else replaces what was there.
fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Gives each kind that is `like` another what it does not say itself.
fn resolve_kinds(table: &mut Table) -> Result<(), Error> {
    let name = name_of(table).to_owned();
    let Some(Value::Table(kinds)) = table.get_mut("kinds") else {
        return Ok(());
    };
    for _ in 0..Kind::NAMES.len() {
        let waiting = |kind: &Value| kind.get("like").is_some();
        let ready: Vec<String> = kinds
            .iter()
            .filter(|(_, kind)| {
                let like = kind.get("like").and_then(Value::as_str);
                like.is_some_and(|like| kinds.get(like).is_some_and(|model| !waiting(model)))
            })
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in ready {
            let Some(Value::Table(mut own)) = kinds.remove(&kind) else { continue };
            let like = own.remove("like");
            let model = like.as_ref().and_then(Value::as_str).and_then(|like| kinds.get(like));
            let mut whole = model.and_then(Value::as_table).cloned().unwrap_or_default();
            overlay(&mut whole, own);
            kinds.insert(kind, Value::Table(whole));
        }
    }
    match kinds.iter().find(|(_, kind)| kind.get("like").is_some()) {
        None => Ok(()),
        Some((kind, _)) => {
            Err(Error::invalid(&name, format!("the kind {kind:?} is like one that is not there")))
        }
    }
}
