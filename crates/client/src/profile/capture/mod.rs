//! A profile from a browser: the [pages](Pages) that make it show what it sends, and what
//! [a profile's file](Captured) says of it.
//!
//! The ClientHello, the opening of HTTP/2, the values of fields and the weights of requests are derived.
//! The order and spelling of fields too, where it is not that of the profile that is nearest. What did not come is that
//! profile's; [`Captured::notes`] says where that is so.

mod http;
mod order;
mod pages;
mod tls;
mod who;

use std::{collections::BTreeMap, fmt};

use mimus_net::tls::ClientHello;
use toml::{Table, Value};

pub use self::pages::Pages;
use self::{http::Request, tls::Hellos, who::Who};
use super::{Error, Profile};
use crate::fingerprint::Seen;

/// A profile that was captured.
#[derive(Debug)]
#[non_exhaustive]
pub struct Captured {
    /// The file, as [`Profile::from_toml`] reads it.
    pub toml: String,
    /// What it says.
    pub profile: Profile,
    /// The profile that is nearest, which it takes the rest from.
    pub nearest: Profile,
    /// What was seen, what was not told by it, and what cannot be said in a file. For people.
    pub notes: Vec<String>,
}

impl Captured {
    /// Derives a profile from connections of one browser. Its name is `name`, or is made of the
    /// browser's, its version and the platform.
    ///
    /// # Errors
    /// When there is no ClientHello to a host by its name, or what they say makes no profile.
    pub fn from_seen(seen: &[Seen], name: Option<&str>) -> Result<Self, CaptureError> {
        let hellos = Hellos::of(seen.iter().filter_map(|seen| seen.hello.as_ref()));
        let requests = http::requests(seen);
        let user_agent = http::user_agent(&requests).unwrap_or_default();
        let who = Who::of(user_agent, http::brands(&requests).unwrap_or_default());
        let near = nearest(seen, &hellos, &who)?;
        let mut notes = Notes::default();
        let (fresh, resuming, http1) = hellos.counts();
        notes.add(&format!(
            "{fresh} hellos without a session, {resuming} with one, {http1} for HTTP/1.1 alone; {} \
             requests of the pages",
            requests.len()
        ));
        let mut file = file(seen, &hellos, &requests, &near, &mut notes)?;
        who.describe(&mut file, &near, name);
        let toml = file.to_string();
        let profile = Profile::from_toml(&toml).map_err(CaptureError::Profile)?;
        Ok(Captured { toml, profile, nearest: near, notes: notes.0 })
    }

    /// Where it says something else than the nearest, by the place in the file: what that says, and what
    /// this says.
    #[must_use]
    pub fn differences(&self) -> Vec<(String, Option<String>, Option<String>)> {
        let (near, own) = (facts(&self.nearest), facts(&self.profile));
        let mut places: Vec<&String> = near.keys().chain(own.keys()).collect();
        places.sort();
        places.dedup();
        let both = places
            .into_iter()
            .map(|place| (place.clone(), near.get(place).cloned(), own.get(place).cloned()));
        both.filter(|(_, near, own)| near != own).collect()
    }
}

/// What a profile says of the wire: its entries, with those of TLS spelt alike whatever the file has.
fn facts(profile: &Profile) -> BTreeMap<String, String> {
    const ABOUT: [&str; 7] =
        ["name", "title", "browser", "version", "platform", "verified", "source"];
    let entries = profile.entries().into_iter();
    let entries =
        entries.filter(|(place, _)| !place.starts_with("tls.") && !ABOUT.contains(&&**place));
    let hello = profile.client_hello().map(table_of).unwrap_or_default();
    let hello = hello.iter().map(|(part, said)| (format!("tls.{part}"), said.to_string()));
    entries.chain(hello).collect()
}

/// A hello as a file has it.
fn table_of(hello: &ClientHello) -> Table {
    // Every part of one can be written.
    Table::try_from(hello).unwrap_or_default()
}

/// What there is to report.
#[derive(Debug, Default)]
struct Notes(Vec<String>);

impl Notes {
    fn add(&mut self, what: &str) {
        if !self.0.iter().any(|known| known == what) {
            self.0.push(what.to_owned());
        }
    }

    /// It was taken from the nearest.
    fn inherited(&mut self, what: &str) {
        self.add(&format!("from the nearest: {what}"));
    }

    /// A profile cannot say it.
    fn lost(&mut self, what: &str) {
        self.add(&format!("cannot be said: {what}"));
    }
}

/// The profile that says the most of the same.
fn nearest(seen: &[Seen], hellos: &Hellos<'_>, who: &Who) -> Result<Profile, CaptureError> {
    let mut all = Vec::new();
    for name in Profile::names() {
        let profile = Profile::named(name).map_err(CaptureError::Profile)?;
        let Some(hello) = profile.client_hello() else { continue };
        let silent = &mut Notes::default();
        let Some(said) = hellos.derive(hello, silent) else { return Err(CaptureError::NoHello) };
        let mut differing = unlike(&table_of(&said), &table_of(hello));
        if let Some(opening) = http::opening(seen, &profile, silent) {
            let near = profile.0.table.get("http2").and_then(Value::as_table);
            differing += near.map_or(0, |near| unlike(&opening, near));
        }
        all.push((differing, who.distance(&profile), profile));
    }
    let nearest = all.into_iter().min_by_key(|(differing, who, _)| (*differing, *who));
    nearest.map(|(_, _, profile)| profile).ok_or(CaptureError::NoHello)
}

/// How many parts are not the same.
fn unlike(one: &Table, other: &Table) -> usize {
    let of_one = one.iter().filter(|(key, value)| other.get(*key) != Some(*value)).count();
    of_one + other.keys().filter(|key| !one.contains_key(*key)).count()
}

/// What the file says, but for what it is called.
fn file(
    seen: &[Seen],
    hellos: &Hellos<'_>,
    requests: &[Request],
    near: &Profile,
    notes: &mut Notes,
) -> Result<Table, CaptureError> {
    let hello = near.client_hello().and_then(|hello| hellos.derive(hello, notes));
    let hello = hello.ok_or(CaptureError::NoHello)?;
    hello.check().map_err(|error| CaptureError::Hello(error.to_string()))?;
    let hello = table_of(&hello);
    let opening = http::opening(seen, near, notes);
    if opening.is_none() {
        notes.inherited("http2: nothing was asked for over it");
    }
    let (its_hello, its_opening) = (near.0.table.get("tls"), near.0.table.get("http2"));
    let keeps = |its: Option<&Value>, own: &Table| {
        its.and_then(Value::as_table).is_none_or(|its| its.keys().all(|key| own.contains_key(key)))
    };
    let within = keeps(its_hello, &hello)
        && opening.as_ref().is_none_or(|opening| keeps(its_opening, opening));
    let mut file = match within {
        true => Table::from_iter([("extends".to_owned(), Value::String(near.name().to_owned()))]),
        // What a file extends says remains said; so this one repeats the rest of it.
        false => near.0.table.clone(),
    };
    let weightless = opening.as_ref().is_some_and(|opening| !opening.contains_key("priority"));
    file.insert("tls".to_owned(), Value::Table(hello));
    if let Some(opening) = opening {
        file.insert("http2".to_owned(), Value::Table(opening));
    }
    let data = &near.0.file;
    let said = [
        ("values", http::values(requests, data, notes)),
        ("kinds", http::kinds(requests, data, notes)),
    ];
    for (key, table) in said {
        if !table.is_empty() {
            super::inherit::overlay(&mut file, Table::from_iter([(key.to_owned(), table.into())]));
        }
    }
    if weightless && let Some(Value::Table(kinds)) = file.get_mut("kinds") {
        for kind in kinds.iter_mut().filter_map(|(_, kind)| kind.as_table_mut()) {
            kind.remove("weight");
        }
    }
    Ok(file)
}

/// Why there is no profile.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureError {
    /// There was no ClientHello that names a host.
    NoHello,
    /// The ClientHello has what a profile cannot say.
    Hello(String),
    /// What was derived is no profile.
    Profile(Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::NoHello => f.write_str("no ClientHello came that names a host"),
            CaptureError::Hello(what) => write!(f, "what came makes no profile: {what}"),
            CaptureError::Profile(_) => f.write_str("what came makes no profile"),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CaptureError::Profile(cause) => Some(cause),
            CaptureError::NoHello | CaptureError::Hello(_) => None,
        }
    }
}
