//! From the files of profiles to the table that is compiled in.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::Deserialize;
use toml::Table;

use super::{error::Error, inherit};

/// What a file says of itself, and not of a browser.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Listing {
    /// It is there to be extended, and no browser of its own.
    base: bool,
    /// Its other names.
    aliases: Vec<String>,
}

/// A file that was read.
struct Read {
    table: Table,
    listing: Listing,
}

/// The table of `files`, which are texts by what their files are called, without `.toml`: as Rust, for
/// `profile::compiled`.
///
/// # Errors
/// What is wrong with the first that is: its file, the place in it, and why.
pub(super) fn of(files: &BTreeMap<String, String>) -> Result<String, String> {
    let mut all = BTreeMap::new();
    for (name, text) in files {
        let read = read(name, text).map_err(|why| format!("{name}.toml: {why}"))?;
        all.insert(name.as_str(), read);
    }
    let mut extended = BTreeSet::new();
    for (name, file) in all.iter().filter(|(_, file)| !file.listing.base) {
        let mut chain = vec![*name];
        check(&all, file, &mut chain).map_err(|why| {
            let chain: Vec<_> = chain.iter().map(|name| format!("{name}.toml")).collect();
            format!("{}: {why}", chain.join(", which extends "))
        })?;
        extended.extend(chain);
    }
    // Only with who extends it is a base checked.
    let bases = all.iter().filter(|(_, file)| file.listing.base);
    if let Some((name, _)) = bases.clone().find(|(name, _)| !extended.contains(**name)) {
        return Err(format!("{name}.toml: base: nothing extends it"));
    }
    let aliases = aliases(&all)?;
    let profiles = all.iter().filter(|(_, file)| !file.listing.base);
    let mut rust = String::new();
    for (list, files) in [("PROFILES", profiles.collect::<Vec<_>>()), ("BASES", bases.collect())] {
        let _ = writeln!(rust, "pub(super) const {list}: &[(&str, &str)] = &[");
        for (name, _) in files {
            let _ = writeln!(
                rust,
                "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \
                 \"/src/profile/data/{name}.toml\"))),"
            );
        }
        rust.push_str("];\n");
    }
    let _ = writeln!(rust, "pub(super) const ALIASES: &[(&str, &str)] = &{aliases:?};");
    Ok(rust)
}

fn read(name: &str, text: &str) -> Result<Read, String> {
    let (table, listing) = inherit::parse_listed(text).map_err(|error| with_cause(&error))?;
    let listing: Listing = listing.try_into().map_err(|error| inherit::one_line(&error))?;
    match table.get("name").and_then(toml::Value::as_str) {
        Some(own) if own == name => Ok(Read { table, listing }),
        own => Err(format!("name: it is {own:?}, and not what the file is called")),
    }
}

/// That a profile is whole. `chain` takes what it extends.
fn check<'a>(
    all: &BTreeMap<&'a str, Read>,
    file: &Read,
    chain: &mut Vec<&'a str>,
) -> Result<(), String> {
    let chain = std::cell::RefCell::new(chain);
    let find = |parent: &str| match all.get_key_value(parent) {
        Some((name, file)) => {
            chain.borrow_mut().push(name);
            Ok(file.table.clone())
        }
        None => Err(Error::invalid(
            inherit::name_of(&file.table),
            format!("extends: {parent:?} is no file"),
        )),
    };
    let whole = inherit::whole(file.table.clone(), find);
    whole.and_then(|(_, file)| file.check()).map_err(|error| with_cause(&error))
}

/// Other names, each once, and what they stand for.
fn aliases<'a>(all: &'a BTreeMap<&str, Read>) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut aliases = BTreeMap::new();
    for (name, file) in all {
        let wrong = |alias: &str, why: &str| Err(format!("{name}.toml: aliases: {alias:?} {why}"));
        for alias in &file.listing.aliases {
            if file.listing.base {
                return wrong(alias, "stands for a base");
            }
            if all.get(alias.as_str()).is_some_and(|other| !other.listing.base) {
                return wrong(alias, "is a profile's own name");
            }
            if let Some(other) = aliases.insert(alias.as_str(), *name) {
                return wrong(alias, &format!("is {other}'s, too"));
            }
        }
    }
    Ok(aliases.into_iter().collect())
}

/// An error's text and that of what is behind it, in one line.
fn with_cause(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    inherit::one_line(&format!("{error}{}", cause.unwrap_or_default()))
}
