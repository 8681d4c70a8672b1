//! How a connection opens and what our heads look like, as data.

use super::hpack::{Huffman, NameIndex, SizeUpdates};
use super::indexing::IndexingPolicy;

/// Declares the settings; their names and `Debug` come from the same table.
macro_rules! settings {
    ($($(#[$meta:meta])* $value:literal $name:ident,)+) => {
        /// The identifier of a setting. Unknown values are kept, and may be sent.
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct SettingId(pub u16);

        impl SettingId {
            $($(#[$meta])* pub const $name: Self = Self($value);)+
        }

        impl std::fmt::Debug for SettingId {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.0 {
                    $($value => f.write_str(stringify!($name)),)+
                    other => write!(f, "{other:#x}"),
                }
            }
        }
    };
}

settings! {
    /// RFC 9113 section 6.5.2.
    0x1 HEADER_TABLE_SIZE,
    /// RFC 9113 section 6.5.2.
    0x2 ENABLE_PUSH,
    /// RFC 9113 section 6.5.2.
    0x3 MAX_CONCURRENT_STREAMS,
    /// RFC 9113 section 6.5.2.
    0x4 INITIAL_WINDOW_SIZE,
    /// RFC 9113 section 6.5.2.
    0x5 MAX_FRAME_SIZE,
    /// RFC 9113 section 6.5.2.
    0x6 MAX_HEADER_LIST_SIZE,
    /// RFC 8441 section 3.
    0x8 ENABLE_CONNECT_PROTOCOL,
    /// RFC 9218 section 2.1.
    0x9 NO_RFC7540_PRIORITIES,
}

/// What a PRIORITY frame says, and a HEADERS frame may (RFC 7540 section 5.3; RFC 9113 section 5.3.2
/// keeps the form and drops the meaning).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// The stream that this one depends on.
    pub depends_on: u32,
    /// Whether it alone does.
    pub exclusive: bool,
    /// The weight as on the wire: one less than what is meant.
    pub weight: u8,
}

/// On which stream a new one depends, where its HEADERS frame says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dependency {
    /// On the one that [`Opening::priority`] names.
    #[default]
    Stated,
    /// Of the open streams that weigh no less, on the newest of those that weigh least; on none (zero)
    /// when there is no such stream. So a chain of streams is in the order of their weights.
    LastOpen,
}

/// A pseudo-field of a request (RFC 9113 section 8.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pseudo {
    /// `:method`
    Method,
    /// `:authority`
    Authority,
    /// `:scheme`
    Scheme,
    /// `:path`
    Path,
}

/// How a connection opens and what our heads look like: data, so that a profile can say it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Opening {
    /// Sent in this order. What it does not say has the default of RFC 9113 section 6.5.2.
    pub settings: Vec<(SettingId, u32)>,
    /// A WINDOW_UPDATE of the connection right behind SETTINGS. Zero is not sent.
    pub window_increment: Option<u32>,
    /// The first stream's identifier. Odd: an even one is taken as the next odd one.
    pub first_stream: u32,
    /// PRIORITY frames sent with the preface, each for the stream that it names.
    pub priorities: Vec<(u32, Priority)>,
    /// The order of a request's pseudo-fields; `:protocol` follows them.
    pub pseudo: [Pseudo; 4],
    /// In each HEADERS frame that opens a stream. A request may have
    /// [its own weight](super::RequestLine::weight).
    pub priority: Option<Priority>,
    /// What becomes of the stream that `priority` names.
    pub dependency: Dependency,
    /// A WINDOW_UPDATE of a stream right behind the HEADERS frame that opens it. Zero is not sent.
    pub stream_window_increment: Option<u32>,
    /// Whether Cookie is sent as one field for each cookie (RFC 9113 section 8.2.3).
    pub cookie_crumbs: bool,
    /// How strings are coded.
    pub huffman: Huffman,
    /// Which entry of the tables stands for the name of a literal.
    pub names: NameIndex,
    /// When the size of the table is said.
    pub size_updates: SizeUpdates,
    /// How a field goes into the dynamic table.
    pub indexing: IndexingPolicy,
}

impl Default for Opening {
    /// No push, windows of 1 MiB for a stream and 4 MiB for the connection, header sections as large
    /// as the default [`Limits`](super::Limits) take.
    fn default() -> Self {
        Self {
            settings: vec![
                (SettingId::ENABLE_PUSH, 0),
                (SettingId::INITIAL_WINDOW_SIZE, 1 << 20),
                (SettingId::MAX_HEADER_LIST_SIZE, 64 * 1024),
            ],
            window_increment: Some((4 << 20) - 65_535),
            first_stream: 1,
            priorities: Vec::new(),
            pseudo: [Pseudo::Method, Pseudo::Scheme, Pseudo::Authority, Pseudo::Path],
            priority: None,
            dependency: Dependency::default(),
            stream_window_increment: None,
            cookie_crumbs: true,
            huffman: Huffman::default(),
            names: NameIndex::default(),
            size_updates: SizeUpdates::default(),
            indexing: IndexingPolicy::default(),
        }
    }
}
