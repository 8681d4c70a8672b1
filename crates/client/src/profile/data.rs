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
    "chromium-131",
    "chromium-147",
    "chromium-149",
    "chromium-150",
    "chromium-153",
    "chromium-156",
    "firefox",
    "chromium-150-linux",
    "chromium-156-linux",
    "chrome-131-linux",
    "chrome-131-windows",
    "chrome-131-macos",
    "chrome-131-android",
    "chrome-147-linux",
    "chrome-147-windows",
    "chrome-147-macos",
    "chrome-147-android",
    "chrome-149-linux",
    "chrome-149-windows",
    "chrome-149-macos",
    "chrome-149-android",
    "chrome-150-linux",
    "chrome-150-windows",
    "chrome-150-macos",
    "chrome-150-android",
    "chrome-153-linux",
    "chrome-153-windows",
    "chrome-153-macos",
    "chrome-153-android",
    "chrome-156-linux",
    "chrome-156-windows",
    "chrome-156-macos",
    "chrome-156-android",
    "edge-156-linux",
    "edge-156-windows",
    "edge-156-macos",
    "edge-156-android",
    "firefox-140",
    "firefox-140-linux",
    "firefox-140-windows",
    "firefox-140-macos",
    "firefox-153",
    "firefox-153-linux",
    "firefox-153-windows",
    "firefox-153-macos",
    "firefox-159",
    "firefox-159-linux",
    "firefox-159-windows",
    "firefox-159-macos",
    "safari",
    "safari-18",
    "safari-18-macos",
    "safari-18-ios",
    "safari-26",
    "safari-26-macos",
    "safari-26-ios",
}

/// Files that are no browser of their own.
pub(super) const BASES: &[&str] = &[
    "chromium",
    "chromium-131",
    "chromium-147",
    "chromium-149",
    "chromium-150",
    "chromium-153",
    "chromium-156",
    "firefox",
    "firefox-140",
    "firefox-153",
    "firefox-159",
    "safari",
    "safari-18",
    "safari-26",
];

/// Other names: the newest of each browser, and those without a platform.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("chrome", "chrome-156-linux"),
    ("chromium", "chromium-156-linux"),
    ("edge", "edge-156-windows"),
    ("firefox", "firefox-159-linux"),
    ("firefox-esr", "firefox-153-linux"),
    ("safari", "safari-26-macos"),
    ("safari-ios", "safari-26-ios"),
    ("chrome-131", "chrome-131-linux"),
    ("chrome-147", "chrome-147-linux"),
    ("chrome-149", "chrome-149-linux"),
    ("chrome-150", "chrome-150-linux"),
    ("chrome-153", "chrome-153-linux"),
    ("chrome-156", "chrome-156-linux"),
    ("firefox-140", "firefox-140-linux"),
    ("firefox-153", "firefox-153-linux"),
    ("firefox-159", "firefox-159-linux"),
    ("chrome-linux", "chrome-156-linux"),
    ("chrome-windows", "chrome-156-windows"),
    ("chrome-macos", "chrome-156-macos"),
    ("chrome-android", "chrome-156-android"),
    ("firefox-linux", "firefox-159-linux"),
    ("firefox-windows", "firefox-159-windows"),
    ("firefox-macos", "firefox-159-macos"),
    ("edge-156", "edge-156-windows"),
    ("edge-android", "edge-156-android"),
    ("safari-18", "safari-18-macos"),
    ("safari-26", "safari-26-macos"),
    ("safari-macos", "safari-26-macos"),
    ("chromium-150", "chromium-150-linux"),
    ("chromium-156", "chromium-156-linux"),
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
pub(super) fn overlay(below: &mut Table, above: Table) {
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
