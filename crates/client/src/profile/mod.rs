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
mod data;
mod hints;
mod kind;
mod schema;
mod template;
mod texts;

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use mimus_net::tls::ClientHello;
use mimus_proto::h2;

use self::schema::File;
pub(crate) use self::{
    hints::Hints,
    kind::{Ask, Asked, kind_of},
    template::{Said, Template, Way},
    texts::{hello_of, open_as},
};
pub use self::{
    kind::{Credentials, Kind, Mode},
    schema::Verified,
};
use crate::options::Transport;

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

/// Profiles that were asked for by name: what is made of one is shared.
static NAMED: LazyLock<Mutex<HashMap<&'static str, Profile>>> = LazyLock::new(Mutex::default);

impl Profile {
    /// The profile of this name, or of the alias: `chrome` is the newest Chrome.
    ///
    /// # Errors
    /// [`Error`] when there is none: it says which come near.
    pub fn named(name: &str) -> Result<Profile, Error> {
        let alias = data::ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, name)| name);
        let own = data::FILES.iter().find(|(known, _)| *known == name);
        let Some((name, text)) = own.filter(|(known, _)| !data::BASES.contains(known)) else {
            return Err(Error::unknown(name));
        };
        let known = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(profile) = known {
            return Ok(profile);
        }
        let profile = Profile::load(text)?;
        let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(name).or_insert(profile).clone())
    }

    /// A profile of one's own, which may extend one that is compiled in (`extends`). The form is described
    /// in `docs/PROFILES.md`.
    ///
    /// # Errors
    /// [`Error`] when it is not TOML, lacks something or contradicts itself.
    pub fn from_toml(text: &str) -> Result<Profile, Error> {
        let profile = Profile::load(text)?;
        // Of those that are compiled in it is known.
        for kind in Kind::ALL {
            for way in Way::ALL {
                profile.template(kind, way)?;
            }
        }
        Ok(profile)
    }

    fn load(text: &str) -> Result<Profile, Error> {
        let table = data::merged(text)?;
        let file = table.clone().try_into();
        let file: File = file.map_err(|e| Error::invalid(data::name_of(&table), e))?;
        file.check()?;
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
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error(Reason::Unreadable(path.to_owned(), e)))?;
        Profile::from_toml(&text)
    }

    /// The names of the profiles that are compiled in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = data::FILES.iter().map(|(name, _)| *name);
        names.filter(|name| !data::BASES.contains(name))
    }

    /// Other names, and what they stand for.
    pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
        data::ALIASES.iter().copied()
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

/// Why there is no such profile.
#[derive(Debug)]
pub struct Error(Reason);

#[derive(Debug)]
enum Reason {
    Unknown { name: String, near: Vec<&'static str> },
    Syntax(Box<toml::de::Error>),
    Invalid { name: String, what: String },
    Unreadable(PathBuf, std::io::Error),
}

/// How many near names are told, and how near one has to be.
const NEAR: usize = 3;
const NEAR_ENOUGH: f64 = 0.75;

impl Error {
    fn unknown(name: &str) -> Error {
        let names = Profile::names().chain(Profile::aliases().map(|(alias, _)| alias));
        let mut near: Vec<_> = names
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(nearness, _)| *nearness >= NEAR_ENOUGH)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let near = near.into_iter().map(|(_, known)| known).take(NEAR).collect();
        Error(Reason::Unknown { name: name.to_owned(), near })
    }

    fn syntax(cause: toml::de::Error) -> Error {
        Error(Reason::Syntax(Box::new(cause)))
    }

    fn invalid(name: &str, what: impl fmt::Display) -> Error {
        Error(Reason::Invalid { name: name.to_owned(), what: what.to_string() })
    }

    /// The names that come near the one that there is not, the nearest first.
    pub fn near(&self) -> &[&'static str] {
        match &self.0 {
            Reason::Unknown { near, .. } => near,
            _ => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Unknown { name, near } => {
                write!(f, "there is no profile {name:?}")?;
                match &near[..] {
                    [] => Ok(()),
                    near => write!(f, "; near to it: {}", near.join(", ")),
                }
            }
            Reason::Syntax(_) => f.write_str("the profile is not TOML"),
            Reason::Invalid { name, what } => write!(f, "the profile {name:?}: {what}"),
            Reason::Unreadable(path, _) => write!(f, "{} cannot be read", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Reason::Syntax(cause) => Some(cause),
            Reason::Unreadable(_, cause) => Some(cause),
            Reason::Unknown { .. } | Reason::Invalid { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
