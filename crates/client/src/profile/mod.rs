//! Browsers as data: what one says in TLS, HTTP/2 and the fields of each kind of request, from one file
//! for each version and platform, so that none of it contradicts the rest.
//!
//! A profile has a name, [as compiled in](Profile::names), or comes from a [file](Profile::from_file) of
//! one's own; [`ClientBuilder::profile`](crate::ClientBuilder::profile) takes either. What a request is to
//! the browser, [`RequestBuilder::kind`](crate::RequestBuilder::kind) says, and
//! [`initiator`](crate::RequestBuilder::initiator) which page asks for it.
//!
//! ```
//! use mimus::profile::{Kind, Profile};
//!
//! # let origin = mimus_testkit::Origin::start().unwrap();
//! # let page = origin.http_url("/");
//! # let url = origin.http_url("/headers");
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let profile = Profile::named("chrome-156-linux")?;
//! let client = mimus::Client::builder().profile(profile).build()?;
//! let text = client.get(url).kind(Kind::FETCH).initiator(page).send().await?.text().await?;
//! assert!(text.contains("Chrome/156"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

#[cfg(feature = "fingerprint")]
pub mod capture;
mod error;
mod hints;
mod inherit;
mod kind;
mod schema;
mod template;
mod texts;

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use mimus_net::tls::ClientHello;
use mimus_proto::h2;

use self::schema::{Apart, File};
pub use self::{
    error::Error,
    kind::{Credentials, Kind, Mode},
    schema::Verified,
};
pub(crate) use self::{
    hints::Hints,
    kind::{Ask, Asked, kind_of},
    template::{Said, Template, Way},
    texts::{hello_of, open_as},
};
use crate::{options::Transport, request::Request, route::Share};

/// A browser of one version on one platform. Clones share it.
#[derive(Clone)]
pub struct Profile(Arc<Inner>);

struct Inner {
    file: File,
    /// What the file was made of.
    table: toml::Table,
    opening: Arc<h2::Opening>,
    /// What HEADERS says of the weight of each kind, as on the wire.
    weights: [Option<u8>; Kind::NAMES.len()],
    /// By kind and [`Way`], made when one is first wanted.
    templates: [OnceLock<Template>; Kind::NAMES.len() * Way::ALL.len()],
}

/// The files in `data`, as the build script found them.
mod compiled {
    use super::{Error, inherit, unknown};

    include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

    /// The name that stands behind an alias.
    pub(super) fn of_alias(name: &str) -> Option<&'static str> {
        ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, name)| *name)
    }

    /// The table of a file that can be extended.
    pub(super) fn table_of(name: &str) -> Result<toml::Table, Error> {
        let file = PROFILES.iter().chain(BASES).find(|(known, _)| *known == name);
        let (_, text) = file.ok_or_else(|| unknown(name))?;
        inherit::parse_listed(text).map(|(table, _)| table)
    }
}

/// Profiles that were asked for by name: what is made of one is shared.
static NAMED: LazyLock<Mutex<HashMap<&'static str, Profile>>> = LazyLock::new(Mutex::default);

impl Profile {
    /// The profile of this name, or of the alias: `chrome` is the newest Chrome.
    ///
    /// # Errors
    /// [`Error`] when there is none: it says which come near.
    pub fn named(name: &str) -> Result<Profile, Error> {
        let name = compiled::of_alias(name).unwrap_or(name);
        let Some((name, text)) = compiled::PROFILES.iter().find(|(known, _)| *known == name) else {
            return Err(unknown(name));
        };
        let known = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(profile) = known {
            return Ok(profile);
        }
        // The build script has checked it.
        let (table, _) = inherit::parse_listed(text)?;
        let profile = Profile::of(table)?;
        let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(name).or_insert(profile).clone())
    }

    /// A profile of one's own, which may extend one that is compiled in (`extends`). The form is described
    /// in `docs/PROFILES.md`.
    ///
    /// # Errors
    /// [`Error`] when it is not TOML, lacks something or contradicts itself.
    pub fn from_toml(text: &str) -> Result<Profile, Error> {
        let mut table = inherit::parse(text)?;
        // Between themselves those that are compiled in extend each other by what their files are called.
        if let Some(toml::Value::String(parent)) = table.get_mut("extends")
            && let Some(name) = compiled::of_alias(parent)
        {
            *parent = name.to_owned();
        }
        let profile = Profile::of(table)?;
        profile.0.file.check()?;
        Ok(profile)
    }

    fn of(table: toml::Table) -> Result<Profile, Error> {
        let (table, file) = inherit::whole(table, compiled::table_of)?;
        let opening = Arc::new(file.http2.opening());
        let weights = Kind::NAMES.map(|kind| {
            let weight = file.kinds.get(kind)?.weight?;
            u8::try_from(weight.saturating_sub(1)).ok()
        });
        let templates = std::array::from_fn(|_| OnceLock::new());
        Ok(Profile(Arc::new(Inner { file, table, opening, weights, templates })))
    }

    /// The same from a file.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), and when the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Profile, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|e| Error::unreadable(path, e))?;
        Profile::from_toml(&text)
    }

    /// The names of the profiles that are compiled in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        compiled::PROFILES.iter().map(|(name, _)| *name)
    }

    /// Other names, and what they stand for.
    pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
        compiled::ALIASES.iter().copied()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.file.name
    }

    /// What it is, for people.
    pub fn title(&self) -> &str {
        &self.0.file.title
    }

    /// The browser: `chrome`, `firefox`...
    pub fn browser(&self) -> &str {
        &self.0.file.browser
    }

    /// The browser's version.
    pub fn version(&self) -> &str {
        &self.0.file.version
    }

    /// The platform: `linux`, `windows`...
    pub fn platform(&self) -> &str {
        &self.0.file.platform
    }

    /// Where what it says comes from.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.0.file.source.iter().map(String::as_str)
    }

    /// How far it was compared with the browser itself.
    pub fn verified(&self) -> Verified {
        self.0.file.verified
    }

    /// All that it says, as TOML, with what it extends.
    pub fn to_toml(&self) -> String {
        self.0.table.to_string()
    }

    /// Each value that it says and its place in the file, in the order of the places.
    pub fn entries(&self) -> Vec<(String, String)> {
        fn collect(table: &toml::Table, at: &str, into: &mut Vec<(String, String)>) {
            for (key, value) in table {
                let place = format!("{at}{key}");
                match value {
                    toml::Value::Table(table) => collect(table, &format!("{place}."), into),
                    value => into.push((place, value.to_string())),
                }
            }
        }
        let mut entries = Vec::new();
        collect(&self.0.table, "", &mut entries);
        entries
    }

    /// What its ClientHello says. None: it does not say.
    pub fn client_hello(&self) -> Option<&ClientHello> {
        self.0.file.tls.as_ref()
    }

    /// How its HTTP/2 connections open.
    pub fn http2_opening(&self) -> &Arc<h2::Opening> {
        &self.0.opening
    }

    /// The codings that its requests ask for (RFC 9110 section 12.5.3).
    pub(crate) fn codings(&self) -> impl Iterator<Item = &str> {
        let file = &self.0.file;
        let of_kinds = file.kinds.values().map(|kind| &kind.values);
        let tables = of_kinds.chain([&file.values, &file.plain]);
        let lists = tables.filter_map(|values| values.get("accept-encoding"));
        lists.flat_map(|list| list.split(',')).map(str::trim).filter(|coding| !coding.is_empty())
    }

    /// The most connections to one origin at a time.
    pub(crate) fn connections_per_host(&self) -> Option<NonZeroUsize> {
        self.0.file.connections.per_host
    }

    /// How many connections are open once `request` opens one, if it opens more than that one.
    pub(crate) fn navigation_opens(&self, request: &Request) -> Option<usize> {
        let open = self.0.file.connections.navigation?;
        matches!(kind_of(request), Kind::Navigate | Kind::FormPost).then_some(open.get())
    }

    /// With which others `request` shares connections.
    pub(crate) fn share(&self, request: &Request, is_http1: impl FnOnce() -> bool) -> Share {
        let apart = |what| self.0.file.connections.apart.contains(&what);
        let kind = kind_of(request);
        if kind == Kind::WebSocket {
            let left = request.ask.as_ref().is_some_and(|ask| ask.takes_left);
            let own = request.protocol.is_none() && !left && apart(Apart::Websocket);
            return if own { Share::WebSocket } else { Share::All };
        }
        let own = kind.may_omit_credentials()
            && (apart(Apart::Anonymous) || apart(Apart::AnonymousHttp1) && is_http1())
            && !Asked::new(request, |name| request.fields.get(name)).takes_cookies();
        if own { Share::Anonymous } else { Share::All }
    }

    /// Whether WebSockets to a host without a connection offer it HTTP/2 as well.
    #[cfg(feature = "ws")]
    pub(crate) fn web_socket_offers_http2(&self) -> bool {
        self.0.file.websocket.offer_http2
    }

    /// Whether WebSockets offer compression, and whether with `client_max_window_bits`.
    #[cfg(feature = "ws-deflate")]
    pub(crate) fn web_socket_deflate(&self) -> Option<bool> {
        let offer = self.0.file.websocket.deflate?;
        Some(offer == schema::DeflateOffer::ClientMaxWindowBits)
    }

    /// The fields of a kind of request.
    pub(crate) fn template(&self, kind: Kind, way: Way) -> Result<&Template, Error> {
        let place = kind.index() * Way::ALL.len() + way.index();
        let slot = &self.0.templates[place];
        match slot.get() {
            Some(template) => Ok(template),
            None => {
                let template = Template::of(&self.0.file, kind, way)?;
                Ok(slot.get_or_init(|| template))
            }
        }
    }

    /// What HEADERS says of the weight of a kind, as on the wire.
    pub(crate) fn weight(&self, kind: Kind) -> Option<u8> {
        self.0.weights[kind.index()]
    }

    /// Has connections open as the browser's. Its windows stay as they are announced.
    pub(crate) fn apply(&self, transport: &mut Transport) {
        let file = &self.0.file.http2;
        transport.coalesce = file.coalesce;
        let http2 = &mut transport.http2;
        http2.opening = Arc::clone(&self.0.opening);
        texts::keep_to(&self.0.opening, &mut http2.limits);
        http2.limits.encoder_table = file.encoder_table();
    }
}

impl PartialEq for Profile {
    /// Whether they are the same one.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Profile").field(&self.name()).finish()
    }
}

/// What can be given where a profile is wanted: one, or the name of one.
pub trait IntoProfile {
    /// The profile.
    ///
    /// # Errors
    /// [`Error`] for a name that is not one's.
    fn into_profile(self) -> Result<Profile, Error>;
}

impl IntoProfile for Profile {
    fn into_profile(self) -> Result<Profile, Error> {
        Ok(self)
    }
}

impl IntoProfile for &Profile {
    fn into_profile(self) -> Result<Profile, Error> {
        Ok(self.clone())
    }
}

impl IntoProfile for &str {
    fn into_profile(self) -> Result<Profile, Error> {
        Profile::named(self)
    }
}

impl IntoProfile for String {
    fn into_profile(self) -> Result<Profile, Error> {
        Profile::named(&self)
    }
}

/// How many near names are told, and how near one has to be.
const NEAR: usize = 3;
const NEAR_ENOUGH: f64 = 0.75;

/// There is no profile of this name, but perhaps some that come near.
fn unknown(name: &str) -> Error {
    let names = Profile::names().chain(Profile::aliases().map(|(alias, _)| alias));
    let mut near: Vec<_> = names
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(nearness, _)| *nearness >= NEAR_ENOUGH)
        .collect();
    near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Error::unknown(name, near.into_iter().map(|(_, known)| known).take(NEAR).collect())
}

/// What the build script makes of the files.
#[cfg(test)]
#[path = "../../build/table.rs"]
mod table;
#[cfg(test)]
mod tests;
