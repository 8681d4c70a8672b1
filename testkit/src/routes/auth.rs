//! Basic, Bearer and Digest (RFC 7617, 6750, 7616).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use serde_json::json;
use sha2::{Digest, Sha256, Sha512_256};

use super::{ANY, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route("/basic-auth/{u}/{p}", ANY, "wants these Basic credentials, else 401", |ex| {
        Box::pin(basic(ex))
    }),
    route("/bearer", ANY, "wants any Bearer token, else 401", |ex| Box::pin(bearer(ex))),
    route(
        "/digest-auth/{qop}/{u}/{p}",
        ANY,
        "wants Digest with MD5; qop auth, auth-int, both or none",
        |ex| Box::pin(digest(ex)),
    ),
    route(
        "/digest-auth/{qop}/{u}/{p}/{algorithm}",
        ANY,
        "the same with MD5, SHA-256 or SHA-512-256, each also with -sess; ?stale=1 lets a nonce \
         be used once",
        |ex| Box::pin(digest(ex)),
    ),
];

/// The most nonces that are remembered; the oldest is forgotten first.
const MAX_NONCES: u64 = 4096;

/// The nonces this origin gave out, and the last count seen with each.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    counts: Mutex<HashMap<u64, u32>>,
    last: AtomicU64,
}

impl Nonces {
    fn issue(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.insert(number, 0);
        counts.remove(&number.wrapping_sub(MAX_NONCES));
        format!("{number:016x}")
    }

    /// Whether this nonce may be used with this count: counts only grow (RFC 7616 section 3.4).
    fn accept(&self, nonce: &str, count: u32, most: u32) -> bool {
        let Ok(number) = u64::from_str_radix(nonce, 16) else {
            return false;
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&number) {
            Some(last) if count > *last && count <= most => {
                *last = count;
                true
            }
            _ => false,
        }
    }
}

async fn basic(ex: &mut Exchange) -> io::Result<After> {
    let want = STANDARD.encode(format!("{}:{}", ex.param("u"), ex.param("p")));
    if credentials(ex, "basic").is_some_and(|have| have == want) {
        return welcome(ex).await;
    }
    let challenge = "Basic realm=\"origin\", charset=\"UTF-8\"";
    ex.reply(Response::text(401, "who are you?\n").header("www-authenticate", challenge)).await
}

async fn bearer(ex: &mut Exchange) -> io::Result<After> {
    if let Some(token) = credentials(ex, "bearer").map(str::to_owned) {
        let value = json!({ "authenticated": true, "token": token });
        return ex.reply(Response::json(&value)).await;
    }
    let response = Response::text(401, "who are you?\n");
    ex.reply(response.header("www-authenticate", "Bearer realm=\"origin\"")).await
}

/// What follows the scheme in Authorization.
fn credentials<'a>(ex: &'a Exchange, scheme: &str) -> Option<&'a str> {
    let (have, rest) = ex.request.header("authorization")?.split_once(' ')?;
    have.eq_ignore_ascii_case(scheme).then_some(rest.trim())
}

async fn welcome(ex: &mut Exchange) -> io::Result<After> {
    let value = json!({ "authenticated": true, "user": ex.param("u") });
    ex.reply(Response::json(&value)).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Md5,
    Sha256,
    Sha512_256,
}

impl Hash {
    fn hex(self, parts: &[&str]) -> String {
        self.hex_of(parts.join(":").as_bytes())
    }

    fn hex_of(self, bytes: &[u8]) -> String {
        match self {
            Hash::Md5 => hex(&Md5::digest(bytes)),
            Hash::Sha256 => hex(&Sha256::digest(bytes)),
            Hash::Sha512_256 => hex(&Sha512_256::digest(bytes)),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The hash of an algorithm name, and whether it is a session one.
fn algorithm(name: &str) -> Option<(Hash, bool)> {
    let upper = name.to_ascii_uppercase();
    let (base, session) = match upper.strip_suffix("-SESS") {
        Some(base) => (base, true),
        None => (upper.as_str(), false),
    };
    let hash = match base {
        "" | "MD5" => Hash::Md5,
        "SHA-256" => Hash::Sha256,
        "SHA-512-256" => Hash::Sha512_256,
        _ => return None,
    };
    Some((hash, session))
}

/// Why Digest credentials were not taken.
enum Denied {
    Wrong,
    /// Right but for the nonce (RFC 7616 section 3.3, `stale`).
    Stale,
}

async fn digest(ex: &mut Exchange) -> io::Result<After> {
    let body = ex.body_bytes().await?;
    let qop = match ex.param("qop") {
        "none" => "",
        "both" => "auth,auth-int",
        other => other,
    };
    let qop = qop.to_owned();
    let name = match ex.param("algorithm") {
        "" => "MD5".to_owned(),
        name => name.to_owned(),
    };
    if algorithm(&name).is_none()
        || !matches!(qop.as_str(), "" | "auth" | "auth-int" | "auth,auth-int")
    {
        return ex.reply(Response::text(400, "no such algorithm or qop\n")).await;
    }
    let stale = match credentials(ex, "digest").map(|text| verify(ex, text, &qop, &name, &body)) {
        Some(Ok(())) => return welcome(ex).await,
        Some(Err(Denied::Stale)) => ", stale=true",
        Some(Err(Denied::Wrong)) | None => "",
    };
    let nonce = ex.about.shared.nonces.issue();
    let qop = if qop.is_empty() { qop } else { format!(", qop=\"{qop}\"") };
    let challenge = format!(
        "Digest realm=\"origin\", nonce=\"{nonce}\", algorithm={name}{qop}, opaque=\"mimus\"{stale}"
    );
    ex.reply(Response::text(401, "who are you?\n").header("www-authenticate", challenge)).await
}

/// RFC 7616 section 3.4.
fn verify(ex: &Exchange, text: &str, qop: &str, name: &str, body: &[u8]) -> Result<(), Denied> {
    let fields = fields(text);
    let field = |name: &str| fields.get(name).map_or("", String::as_str);
    let (hash, session) = algorithm(name).ok_or(Denied::Wrong)?;
    let same_algorithm = algorithm(field("algorithm")) == Some((hash, session));
    let chosen = field("qop");
    let qop_offered =
        if qop.is_empty() { chosen.is_empty() } else { qop.split(',').any(|one| one == chosen) };
    let about_this = field("uri") == ex.request.target
        && field("username") == ex.param("u")
        && field("realm") == "origin"
        && field("opaque") == "mimus";
    if !same_algorithm || !qop_offered || !about_this {
        return Err(Denied::Wrong);
    }
    let (nonce, count, cnonce) = (field("nonce"), field("nc"), field("cnonce"));
    let mut a1 = hash.hex(&[ex.param("u"), "origin", ex.param("p")]);
    if session {
        a1 = hash.hex(&[&a1, nonce, cnonce]);
    }
    let a2 = match chosen {
        "auth-int" => hash.hex(&[&ex.request.method, field("uri"), &hash.hex_of(body)]),
        _ => hash.hex(&[&ex.request.method, field("uri")]),
    };
    let want = match chosen {
        "" => hash.hex(&[&a1, nonce, &a2]),
        _ => hash.hex(&[&a1, nonce, count, cnonce, chosen, &a2]),
    };
    let counted = match chosen {
        "" => Some(1),
        // RFC 7616 section 3.4: nc is 8 hex digits, cnonce is required.
        _ if count.len() == 8 && !cnonce.is_empty() => u32::from_str_radix(count, 16).ok(),
        _ => None,
    };
    let count = counted.ok_or(Denied::Wrong)?;
    if field("response") != want {
        return Err(Denied::Wrong);
    }
    let most = if ex.query("stale").is_some() { 1 } else { u32::MAX };
    if ex.about.shared.nonces.accept(nonce, count, most) { Ok(()) } else { Err(Denied::Stale) }
}

/// `name=value, name="quoted value"` as a map.
fn fields(text: &str) -> HashMap<String, String> {
    let mut map = HashMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (value, next) = after.split_once(',').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        map.insert(name.trim_matches([',', ' ', '\t']).to_ascii_lowercase(), value);
        rest = next;
    }
    map
}

/// A quoted-string without its first quote (RFC 9110 section 5.6.4), and what follows it.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &text[at + 1..]),
            _ => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7616_verifies() {
        // Section 3.9.1, both algorithms.
        let user = ["Mufasa", "http-auth@example.org", "Circle of Life"];
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let answer = |hash: Hash| {
            let (a1, a2) = (hash.hex(&user), hash.hex(&["GET", "/dir/index.html"]));
            hash.hex(&[&a1, nonce, "00000001", cnonce, "auth", &a2])
        };
        assert_eq!(answer(Hash::Md5), "8ca523f5e9506fed4657c9700eebdbec");
        assert_eq!(
            answer(Hash::Sha256),
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        );
    }

    #[test]
    fn fields_take_quotes_and_escapes() {
        let map = fields(r#"a="x, \"y\"", B=2 ,c="" "#);
        assert_eq!(map["a"], "x, \"y\"");
        assert_eq!(map["b"], "2");
        assert_eq!(map["c"], "");
    }
}
