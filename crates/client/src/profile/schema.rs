//! What a profile file says, checked. `docs/PROFILES.md` describes it for who writes one.

use std::collections::BTreeMap;

use mimus_net::tls::ClientHello;
use mimus_proto::h2::{
    Dependency, IndexingPolicy, IndexingRule, Opening, Priority, Pseudo, SettingId,
    hpack::{Huffman, Indexing, NameIndex, SizeUpdates},
};
use serde::Deserialize;

use super::{Error, kind::Kind};

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

#[derive(Debug, Clone, Copy, Deserialize)]
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

impl File {
    /// What no type says.
    pub(super) fn check(&self) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::invalid(&self.name, what));
        for name in self.kinds.keys() {
            if !Kind::NAMES.contains(&name.as_str()) {
                return invalid(format!("there is no kind {name:?}"));
            }
        }
        if let Some(missing) = Kind::NAMES.iter().find(|name| !self.kinds.contains_key(**name)) {
            return invalid(format!("the kind {missing:?} is missing"));
        }
        for (name, kind) in &self.kinds {
            if kind.weight.is_some_and(|weight| !(1..=256).contains(&weight)) {
                return invalid(format!("the weight of {name:?} is not from 1 to 256"));
            }
            if kind.weight.is_some() != self.http2.priority.is_some() {
                return invalid(format!("{name:?} and [http2.priority] disagree on priorities"));
            }
        }
        let tables = [&self.values, &self.plain, &self.client_hints];
        let of_kinds = self.kinds.values().map(|kind| &kind.values);
        for (name, value) in tables.into_iter().chain(of_kinds).flatten() {
            if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return invalid(format!("the value of {name:?} is not named in lower case"));
            }
            if value.bytes().any(|byte| byte.is_ascii_control()) {
                return invalid(format!("the value of {name:?} has a control character"));
            }
        }
        let unique: std::collections::BTreeSet<_> =
            self.http2.settings.iter().map(|(id, _)| id).collect();
        if unique.len() != self.http2.settings.len() {
            return invalid("a setting comes twice".to_owned());
        }
        Ok(())
    }
}

impl Http2 {
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
