//! From a URL as a person types it to one that a request can be made of. Text in, text out: whether
//! it is a valid URL is for the library to say.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::exit::{Exit, Failure};

/// Everything but the unreserved characters of RFC 3986 section 2.3.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes all that is not unreserved.
pub(crate) fn escape(bytes: &[u8]) -> String {
    percent_encode(bytes, ESCAPED).to_string()
}

/// Adds the scheme that nobody types.
///
/// # Errors
/// When there is a scheme that is not http or https.
pub(crate) fn complete(text: &str) -> Result<String, Failure> {
    complete_as(text, &["http", "https"])
}

/// The same for a WebSocket.
///
/// # Errors
/// When there is a scheme that no WebSocket has.
pub(crate) fn complete_socket(text: &str) -> Result<String, Failure> {
    complete_as(text, &["ws", "wss", "http", "https"])
}

/// The first of the schemes is the one that nobody types.
fn complete_as(text: &str, schemes: &[&str]) -> Result<String, Failure> {
    let text = text.trim();
    match text.split_once("://") {
        // A query may hold another URL; it is not the scheme.
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
            if schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
                return Ok(text.to_owned());
            }
            let (last, others) = schemes.split_last().unwrap_or((&"", &[]));
            let what = format!("the scheme {scheme:?} is not {} or {last}", others.join(", "));
            Err(Failure::new(Exit::Scheme, what))
        }
        _ => Ok(format!("{}://{text}", schemes.first().unwrap_or(&""))),
    }
}

/// Appends to the query.
pub(crate) fn with_query(url: &str, query: &str) -> String {
    if query.is_empty() {
        return url.to_owned();
    }
    let (front, fragment) = match url.find('#') {
        Some(at) => url.split_at(at),
        None => (url, ""),
    };
    let glue = match front.find('?') {
        None => "?",
        Some(at) if at + 1 == front.len() || front.ends_with('&') => "",
        Some(_) => "&",
    };
    [front, glue, query, fragment].concat()
}

/// The last segment of the path; `None` when the path ends with '/' or there is none.
pub(crate) fn last_segment(url: &str) -> Option<&str> {
    let path = path(url);
    let (_, name) = path.rsplit_once('/')?;
    // A name that would leave the directory, or hide a drive on Windows, is none.
    let usable = !matches!(name, "" | "." | "..") && !name.contains(['\\', ':', '\0']);
    usable.then_some(name)
}

/// Appends a file's name to a URL whose path ends with '/' or is empty.
pub(crate) fn with_file_name(url: &str, name: &[u8]) -> String {
    let path = path(url);
    if !path.is_empty() && !path.ends_with('/') {
        return url.to_owned();
    }
    let end = path.as_ptr() as usize - url.as_ptr() as usize + path.len();
    let slash = if path.is_empty() { "/" } else { "" };
    [&url[..end], slash, &escape(name), &url[end..]].concat()
}

/// The path, from its first '/'; empty when there is none.
fn path(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    &rest[rest.find('/').unwrap_or(rest.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_scheme_is_http() {
        let table = [
            ("localhost:8080/x", "http://localhost:8080/x"),
            ("HTTPS://a/", "HTTPS://a/"),
            (" http://a/ ", "http://a/"),
            ("a/?u=ftp://b/", "http://a/?u=ftp://b/"),
            ("[::1]:80", "http://[::1]:80"),
        ];
        for (text, expected) in table {
            assert_eq!(complete(text).unwrap(), expected);
        }
        assert_eq!(complete("ftp://a/").unwrap_err().exit, Exit::Scheme);
    }

    #[test]
    fn a_query_goes_before_the_fragment() {
        let table = [
            ("http://a/", "q=1", "http://a/?q=1"),
            ("http://a/?", "q=1", "http://a/?q=1"),
            ("http://a/?p=0#f?", "q=1", "http://a/?p=0&q=1#f?"),
            ("http://a/#f", "", "http://a/#f"),
        ];
        for (url, query, expected) in table {
            assert_eq!(with_query(url, query), expected);
        }
    }

    #[test]
    fn a_download_is_named_after_the_last_segment() {
        let table = [
            ("http://a/b/c.txt?x=/y#/z", Some("c.txt")),
            ("http://a/b/", None),
            ("http://a", None),
            ("http://a/b/..", None),
            ("http://a/..\\evil", None),
            ("http://a/?/name", None),
        ];
        for (url, expected) in table {
            assert_eq!(last_segment(url), expected, "{url}");
        }
    }

    #[test]
    fn an_upload_is_named_after_its_file() {
        let table = [
            ("http://a", "http://a/n%20%C3%A9"),
            ("http://a/b/?q#f", "http://a/b/n%20%C3%A9?q#f"),
            ("http://a/b?q", "http://a/b?q"),
            ("http://a?q=/", "http://a/n%20%C3%A9?q=/"),
        ];
        for (url, expected) in table {
            assert_eq!(with_file_name(url, "n é".as_bytes()), expected);
        }
    }
}
