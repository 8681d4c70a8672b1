//! Which fields enter the dynamic table.

use std::sync::Arc;

use super::hpack::Indexing;

/// How a field goes into the dynamic table, given its name in lower case and its value.
#[derive(Debug, Clone)]
pub enum IndexingPolicy {
    /// What a function says.
    Function(fn(&[u8], &[u8]) -> Indexing),
    /// What the first rule for the name says; [`Indexing::Incremental`] without one.
    Rules(Arc<[IndexingRule]>),
}

/// What is done with the fields of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexingRule {
    /// The name, in lower case.
    pub name: Box<str>,
    /// Only of values below this length, in bytes.
    pub below: Option<usize>,
    /// What is done.
    pub indexing: Indexing,
}

impl Default for IndexingPolicy {
    fn default() -> Self {
        Self::Function(default_indexing)
    }
}

impl IndexingPolicy {
    pub(super) fn of(&self, name: &[u8], value: &[u8]) -> Indexing {
        match self {
            Self::Function(of) => of(name, value),
            Self::Rules(rules) => {
                let fits = |rule: &&IndexingRule| {
                    rule.name.as_bytes() == name
                        && rule.below.is_none_or(|below| value.len() < below)
                };
                rules.iter().find(fits).map_or(Indexing::Incremental, |rule| rule.indexing)
            }
        }
    }
}

/// Never what is secret, because a table entry can be probed for (RFC 7541 section 7.1); not what
/// differs from request to request, because it would only push useful entries out.
#[must_use]
pub fn default_indexing(name: &[u8], _value: &[u8]) -> Indexing {
    match name {
        b"authorization" | b"proxy-authorization" | b"cookie" => Indexing::Never,
        b":path" | b"content-length" | b"if-none-match" | b"if-modified-since" | b"if-match"
        | b"if-range" | b"range" | b"date" | b"etag" | b"grpc-timeout" | b"traceparent" => {
            Indexing::Without
        }
        _ => Indexing::Incremental,
    }
}
