//! Values as queries, forms and JSON.

use std::{error::Error, fmt};

use serde::Serialize;
use url::Url;

/// A value that is not a list of pairs.
#[derive(Debug)]
pub struct FormError(serde_html_form::ser::Error);

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value cannot be written as name=value pairs")
    }
}

impl Error for FormError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// `pairs` as `application/x-www-form-urlencoded`: a struct, a map, or a sequence of pairs. A field
/// that is a sequence repeats its name; `None` is left out.
///
/// # Errors
/// The value has another shape.
pub fn to_form<T: Serialize + ?Sized>(pairs: &T) -> Result<String, FormError> {
    serde_html_form::to_string(pairs).map_err(FormError)
}

/// Adds `pairs`, encoded as by [`to_form`], to the query `url` has.
///
/// # Errors
/// As for [`to_form`]; `url` is then unchanged.
pub fn append_query<T: Serialize + ?Sized>(url: &mut Url, pairs: &T) -> Result<(), FormError> {
    append_query_text(url, &to_form(pairs)?);
    Ok(())
}

/// Adds `added`, encoded already, to the query `url` has.
pub fn append_query_text(url: &mut Url, added: &str) {
    if added.is_empty() {
        return;
    }
    match url.query() {
        Some(query) if !query.is_empty() => {
            let query = format!("{query}&{added}");
            url.set_query(Some(&query));
        }
        _ => url.set_query(Some(added)),
    }
}

/// `value` as JSON.
///
/// # Errors
/// `value` refuses to be serialised, or has a map whose keys are not strings.
#[cfg(feature = "json")]
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<bytes::Bytes, serde_json::Error> {
    serde_json::to_vec(value).map(Into::into)
}

/// Reads a body as JSON. It is UTF-8 whatever the media type says; a byte order mark is skipped
/// (RFC 8259 section 8.1).
///
/// # Errors
/// The body is not JSON, or not what `T` is made from.
#[cfg(feature = "json")]
pub fn from_json<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Search<'a> {
        q: &'a str,
        tag: Vec<u8>,
        page: Option<u32>,
    }

    #[test]
    fn pairs_repeat_skip_and_escape() {
        let search = Search { q: "a b&c=ü", tag: vec![1, 2], page: None };
        assert_eq!(to_form(&search).unwrap(), "q=a+b%26c%3D%C3%BC&tag=1&tag=2");
        assert_eq!(to_form(&[("k", "v"), ("k", "w")]).unwrap(), "k=v&k=w");
        let error = to_form("alone").unwrap_err();
        assert!(!error.to_string().contains(&error.source().unwrap().to_string()));
    }

    #[test]
    fn a_query_is_added_to() {
        let query = |start: &str, pairs: &[(&str, &str)]| {
            let mut url = Url::parse(start).unwrap();
            append_query(&mut url, pairs).unwrap();
            url.to_string()
        };
        assert_eq!(query("http://h/p#f", &[("a", "1 2")]), "http://h/p?a=1+2#f");
        assert_eq!(query("http://h/p?", &[("a", "1")]), "http://h/p?a=1");
        assert_eq!(query("http://h/?x=%2B+", &[("a", "%")]), "http://h/?x=%2B+&a=%25");
        assert_eq!(query("http://h/?x", &[]), "http://h/?x");
    }

    #[cfg(feature = "json")]
    #[test]
    fn json_both_ways() {
        let bytes = to_json(&[("k", 1)]).unwrap();
        assert_eq!(&bytes[..], br#"[["k",1]]"#);
        let marked = [b"\xef\xbb\xbf", &bytes[..]].concat();
        assert_eq!(from_json::<Vec<(String, u8)>>(&marked).unwrap(), [("k".to_owned(), 1)]);
        assert!(from_json::<u8>(b"{").is_err());
    }
}
