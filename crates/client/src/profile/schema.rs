//! What a profile file says, checked: by the build script for those that are compiled in, when it is read for
//! any other. `docs/PROFILES.md` describes it for who writes one.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
};

use mimus_proto::{
    Fields,
    h2::{
        Dependency, IndexingPolicy, IndexingRule, Opening, Priority, Pseudo, SettingId,
        hpack::{Huffman, Indexing, NameIndex, SizeUpdates},
    },
    tls::ClientHello,
};
use serde::Deserialize;

use super::error::Error;

/// The kinds of request, each of which a profile has.
pub(super) const KINDS: [&str; 14] = [
    "navigate",
    "iframe",
    "form-post",
    "fetch",
    "xhr",
    "script",
    "async-script",
    "style",
    "image",
    "favicon",
    "font",
    "beacon",
    "preflight",
    "websocket",
];

/// RFC 9113 section 6.9.1: the largest window, and the first one (section 6.9.2).
const MAX_WINDOW: u32 = (1 << 31) - 1;
const FIRST_WINDOW: u32 = 65_535;

/// A whole profile, after what it extends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) browser: String,
    pub(super) version: String,
    pub(super) platform: String,
    pub(super) verified: Verified,
    pub(super) source: Vec<String>,
    pub(super) http2: Http2,
    /// What fields hold, by name in lower case, unless the kind says otherwise.
    pub(super) values: BTreeMap<String, String>,
    /// The same where the target is not secure.
    #[serde(default)]
    pub(super) plain: BTreeMap<String, String>,
    /// What client hints hold that are sent to who asked for them.
    #[serde(default)]
    pub(super) client_hints: BTreeMap<String, String>,
    #[serde(default)]
    #[cfg_attr(not(feature = "ws-deflate"), expect(dead_code, reason = "it says so all the same"))]
    pub(super) websocket: WebSocket,
    #[serde(default)]
    pub(super) connections: Connections,
    pub(super) kinds: BTreeMap<String, KindData>,
    /// The ClientHello; Mimus's own where there is none.
    #[serde(default)]
    pub(super) tls: Option<ClientHello>,
}

/// How far a profile was compared with the browser itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verified {
    /// All that it says, against captures of this build.
    Live,
    /// Some of it; `source` says what.
    Partly,
    /// None of it.
    No,
}

/// How many connections there are, and which requests have their own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Connections {
    /// The most to one origin at a time.
    #[serde(default)]
    pub(super) per_host: Option<NonZeroUsize>,
    /// How many are open once a navigation opens one, to a host that is not known to speak HTTP/2. None: that one.
    #[serde(default)]
    pub(super) navigation: Option<NonZeroUsize>,
    /// Which requests share no connection with the rest.
    #[serde(default)]
    pub(super) apart: Vec<Apart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Apart {
    /// Those without credentials (fetch standard, section 2.2.5).
    Anonymous,
    /// The same, where the host is known to speak HTTP/1.1.
    AnonymousHttp1,
    /// The beginnings of WebSockets over HTTP/1.1.
    Websocket,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSocket {
    /// Whether a host without a connection is offered HTTP/2 as well, which then carries it, or is left.
    #[serde(default)]
    #[cfg_attr(not(feature = "ws"), expect(dead_code, reason = "it says so all the same"))]
    pub(super) offer_http2: bool,
    /// Whether compression is offered, and whether with `client_max_window_bits`.
    #[serde(default)]
    #[cfg_attr(not(feature = "ws-deflate"), expect(dead_code, reason = "it says so all the same"))]
    pub(super) deflate: Option<DeflateOffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DeflateOffer {
    Plain,
    ClientMaxWindowBits,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Http2 {
    settings: Vec<(u16, u32)>,
    window_increment: u32,
    #[serde(default)]
    stream_window_increment: u32,
    first_stream: u32,
    pseudo: [PseudoName; 4],
    #[serde(default)]
    priority: Option<PriorityData>,
    split_cookies: bool,
    /// Whether one connection serves several hosts (RFC 9113 section 9.1.1).
    pub(super) coalesce: bool,
    hpack: Hpack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PseudoName {
    Method,
    Authority,
    Scheme,
    Path,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorityData {
    exclusive: bool,
    depends_on: DependsOn,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DependsOn {
    Root,
    LastOpen,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hpack {
    huffman: HuffmanData,
    names: NamesData,
    /// The most that the encoder's table uses, in bytes.
    table: u32,
    #[serde(default)]
    size_updates: SizeUpdatesData,
    #[serde(default)]
    rules: Vec<HpackRule>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum HuffmanData {
    Shorter,
    Always,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NamesData {
    First,
    Last,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SizeUpdatesData {
    #[default]
    Needed,
    Always,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HpackRule {
    name: String,
    #[serde(default)]
    below: Option<usize>,
    indexing: IndexingData,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum IndexingData {
    Incremental,
    Without,
    Literal,
    Never,
}

/// One kind of request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindData {
    /// What HTTP/2 says in HEADERS, from 1 to 256.
    #[serde(default)]
    pub(super) weight: Option<u16>,
    /// Fields in their order, spelt as HTTP/1.1 spells them.
    pub(super) order: Vec<String>,
    /// The same where the target is not secure, if it is not just what is left.
    #[serde(default)]
    pub(super) plain_order: Option<Vec<String>>,
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
}

/// What is wrong, behind the place in the file where it is.
type Checked = Result<(), String>;

impl File {
    /// What no type says.
    pub(super) fn check(&self) -> Result<(), Error> {
        let checked = self
            .check_kinds()
            .and_then(|()| self.check_names())
            .and_then(|()| self.check_values())
            .and_then(|()| self.http2.check());
        checked.map_err(|what| Error::invalid(&self.name, what))?;
        // What a build of BoringSSL lacks is only told to who connects with it.
        let hello = self.tls.as_ref().map_or(Ok(()), ClientHello::check);
        hello.map_err(|error| Error::invalid(&self.name, format!("tls: {error}")))
    }

    fn check_kinds(&self) -> Checked {
        for name in self.kinds.keys() {
            if !KINDS.contains(&name.as_str()) {
                return Err(format!("kinds.{name}: there is no kind {name:?}"));
            }
        }
        if let Some(missing) = KINDS.iter().find(|name| !self.kinds.contains_key(**name)) {
            return Err(format!("kinds.{missing}: it is missing"));
        }
        for (name, kind) in &self.kinds {
            if kind.weight.is_some_and(|weight| !(1..=256).contains(&weight)) {
                return Err(format!("kinds.{name}.weight: it is not from 1 to 256"));
            }
            if kind.weight.is_some() != self.http2.priority.is_some() {
                return Err(format!("kinds.{name}.weight: it is there with http2.priority only"));
            }
        }
        Ok(())
    }

    /// That each field can be written.
    fn check_names(&self) -> Checked {
        let mut probe = Fields::new();
        for (name, kind) in &self.kinds {
            let plain = kind.plain_order.as_ref().map(|order| ("plain_order", order));
            for (key, order) in [("order", &kind.order)].into_iter().chain(plain) {
                for field in order.iter().map(|entry| field_of(entry)).filter(|name| *name != "*") {
                    let written = probe.append(field, "");
                    written.map_err(|error| format!("kinds.{name}.{key}: {field:?}: {error}"))?;
                    probe.clear();
                }
            }
        }
        Ok(())
    }

    /// That each value can be written, and will be.
    fn check_values(&self) -> Checked {
        let kinds = self.kinds.values();
        let orders = kinds.flat_map(|kind| [Some(&kind.order), kind.plain_order.as_ref()]);
        let entries = orders.flatten().flatten();
        let placed: BTreeSet<String> =
            entries.map(|entry| field_of(entry).to_ascii_lowercase()).collect();
        let tables = [("values", &self.values), ("plain", &self.plain)]
            .map(|(key, table)| (key.to_owned(), table))
            .into_iter()
            .chain([("client_hints".to_owned(), &self.client_hints)]);
        let of_kinds =
            self.kinds.iter().map(|(name, kind)| (format!("kinds.{name}.values"), &kind.values));
        for (key, table) in tables.chain(of_kinds) {
            for (name, value) in table {
                if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    return Err(format!("{key}.{name}: it is not named in lower case"));
                }
                if value.bytes().any(|byte| byte.is_ascii_control()) {
                    return Err(format!("{key}.{name}: it has a control character"));
                }
                if !placed.contains(name) {
                    return Err(format!("{key}.{name}: no kind of request has this field"));
                }
            }
        }
        Ok(())
    }
}

/// The field's name in an entry of an order.
fn field_of(entry: &str) -> &str {
    match entry.split_once(':') {
        Some(("h1" | "h2" | "user", name)) => name,
        _ => entry,
    }
}

impl Http2 {
    fn check(&self) -> Checked {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let settings: BTreeSet<_> = self.settings.iter().map(|(id, _)| id).collect();
        ensure(settings.len() == self.settings.len(), "http2.settings: one comes twice")?;
        // RFC 9113 section 6.5.2: a server ends the connection of who says more.
        let initial = SettingId::INITIAL_WINDOW_SIZE;
        let most = |id: u16| if SettingId(id) == initial { MAX_WINDOW } else { u32::MAX };
        let fits = self.settings.iter().all(|(id, to)| *to <= most(*id));
        ensure(fits, "http2.settings: the initial window is larger than windows are")?;
        let room = MAX_WINDOW - FIRST_WINDOW;
        ensure(self.window_increment <= room, "http2.window_increment: no window is as large")?;
        let of_stream = self.settings.iter().find(|(id, _)| SettingId(*id) == initial);
        let room = MAX_WINDOW - of_stream.map_or(FIRST_WINDOW, |(_, to)| *to);
        let fits = self.stream_window_increment <= room;
        ensure(fits, "http2.stream_window_increment: no window is as large")?;
        // RFC 9113 section 5.1.1.
        let odd = self.first_stream % 2 == 1 && self.first_stream <= MAX_WINDOW;
        ensure(odd, "http2.first_stream: a client's streams are odd numbers below 2^31")?;
        let pseudo = BTreeSet::from(self.pseudo);
        ensure(pseudo.len() == self.pseudo.len(), "http2.pseudo: one comes twice")
    }

    /// How connections open.
    pub(super) fn opening(&self) -> Opening {
        let mut opening = Opening::default();
        opening.settings = self.settings.iter().map(|&(id, to)| (SettingId(id), to)).collect();
        opening.window_increment = Some(self.window_increment);
        opening.stream_window_increment = Some(self.stream_window_increment);
        opening.first_stream = self.first_stream;
        opening.pseudo = self.pseudo.map(|name| match name {
            PseudoName::Method => Pseudo::Method,
            PseudoName::Authority => Pseudo::Authority,
            PseudoName::Scheme => Pseudo::Scheme,
            PseudoName::Path => Pseudo::Path,
        });
        if let Some(priority) = &self.priority {
            opening.priority =
                Some(Priority { depends_on: 0, exclusive: priority.exclusive, weight: 15 });
            opening.dependency = match priority.depends_on {
                DependsOn::Root => Dependency::Stated,
                DependsOn::LastOpen => Dependency::LastOpen,
            };
        }
        opening.cookie_crumbs = self.split_cookies;
        opening.huffman = match self.hpack.huffman {
            HuffmanData::Shorter => Huffman::Shorter,
            HuffmanData::Always => Huffman::Always,
        };
        opening.names = match self.hpack.names {
            NamesData::First => NameIndex::First,
            NamesData::Last => NameIndex::Last,
        };
        opening.size_updates = match self.hpack.size_updates {
            SizeUpdatesData::Needed => SizeUpdates::Needed,
            SizeUpdatesData::Always => SizeUpdates::Always,
        };
        opening.indexing = IndexingPolicy::Rules(self.hpack.rules());
        opening
    }

    /// The most that the encoder's table uses, in bytes.
    pub(super) fn encoder_table(&self) -> u32 {
        self.hpack.table
    }
}

impl Hpack {
    fn rules(&self) -> std::sync::Arc<[IndexingRule]> {
        let rules = self.rules.iter().map(|rule| IndexingRule {
            name: rule.name.as_str().into(),
            below: rule.below,
            indexing: match rule.indexing {
                IndexingData::Incremental => Indexing::Incremental,
                IndexingData::Without => Indexing::Without,
                IndexingData::Literal => Indexing::Literal,
                IndexingData::Never => Indexing::Never,
            },
        });
        rules.collect()
    }
}
