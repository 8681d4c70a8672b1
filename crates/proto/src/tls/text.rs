//! How a hello is read from and written to text formats.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::de::{Error, Unexpected, Visitor};

use super::codes::UnknownName;

/// A code point as its name or `0x1234` in a string, or as a number.
pub(super) struct NameOrNumber<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<T> NameOrNumber<T> {
    pub(super) fn new(what: &'static str) -> Self {
        NameOrNumber { what, of: PhantomData }
    }
}

impl<T: FromStr<Err = UnknownName> + From<u16>> Visitor<'_> for NameOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by name or by number", self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, code: u64) -> Result<T, E> {
        let code = u16::try_from(code);
        code.map(T::from).map_err(|_| E::custom("a code point has 16 bits"))
    }

    fn visit_i64<E: Error>(self, code: i64) -> Result<T, E> {
        match u64::try_from(code) {
            Ok(code) => self.visit_u64(code),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(code), &self)),
        }
    }
}

/// Through [`FromStr`] and [`Display`](fmt::Display).
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_text!(super::TrustAnchor, super::Settings);
