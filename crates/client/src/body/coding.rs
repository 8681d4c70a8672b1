//! Content codings by name (RFC 9110 section 8.4.1).

use std::{fmt, sync::LazyLock};

/// A content coding that Mimus knows. Whether it can be decoded depends on the features compiled in:
/// see [`is_supported`](Self::is_supported).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// `gzip` (RFC 1952), and its old alias `x-gzip`.
    Gzip,
    /// `deflate`: zlib (RFC 1950), or the bare deflate (RFC 1951) some servers send in its place.
    Deflate,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878) with the window of RFC 9659.
    Zstd,
}

impl Coding {
    /// Every coding, in the order in which browsers list them.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd];

    /// The coding a `Content-Encoding` token names. Tokens are case-insensitive.
    #[must_use]
    pub fn from_token(token: &str) -> Option<Self> {
        // RFC 9110 section 8.4.1.3: a recipient treats "x-gzip" as "gzip".
        if token.eq_ignore_ascii_case("x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| token.eq_ignore_ascii_case(coding.token()))
    }

    /// The registered token.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Whether this build can encode and decode it.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        match self {
            Self::Gzip => cfg!(feature = "gzip"),
            Self::Deflate => cfg!(feature = "deflate"),
            Self::Brotli => cfg!(feature = "brotli"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

/// The `Accept-Encoding` value that asks for all this build can decode, in browser order:
/// `gzip, deflate, br, zstd` with the default features. Empty when no coding is compiled in; send no
/// such header then.
#[must_use]
pub fn accept_encoding() -> &'static str {
    // Every call sends it: made once.
    static VALUE: LazyLock<String> = LazyLock::new(|| {
        let supported = Coding::ALL.into_iter().filter(|coding| coding.is_supported());
        supported.map(Coding::token).collect::<Vec<_>>().join(", ")
    });
    &VALUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_case_insensitive_and_round_trip() {
        for coding in Coding::ALL {
            let upper = coding.token().to_ascii_uppercase();
            assert_eq!(Coding::from_token(&upper), Some(coding));
        }
        assert_eq!(Coding::from_token("X-GZip"), Some(Coding::Gzip));
        assert_eq!(Coding::from_token("compress"), None);
        assert_eq!(Coding::from_token(""), None);
    }

    #[cfg(all(feature = "gzip", feature = "deflate", feature = "brotli", feature = "zstd"))]
    #[test]
    fn accept_encoding_is_in_browser_order() {
        assert_eq!(accept_encoding(), "gzip, deflate, br, zstd");
    }
}
