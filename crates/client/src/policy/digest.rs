//! Digest authentication (RFC 7616): the client's half.

use super::auth::{AuthError, Challenge, Secret, info_param, refuse_controls, sensitive};
use http::{HeaderValue, Method};
use md5::Md5;
use sha2::{Digest, Sha256, Sha512_256};
use std::fmt::Write;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// How many challenges in a row one request answers while the server calls its own nonces stale.
const MOST_ANSWERS: u32 = 3;

/// A user at one protection space: answers its challenges, and then, without being asked again,
/// each further request to it.
///
/// The user name and password are taken as UTF-8 whether or not the server announces it, as
/// browsers do. The `domain` parameter is not followed: a session serves the origin (or proxy) it
/// was challenged by.
#[derive(Debug, Clone)]
pub struct DigestSession {
    user: String,
    password: Secret,
    space: Option<Space>,
}

/// What the server's last challenge established.
#[derive(Debug, Clone)]
struct Space {
    algorithm: Algorithm,
    /// The algorithm's name as the server spelt it, if it named one.
    algorithm_name: Option<String>,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    qop: Qop,
    utf8: bool,
    userhash: bool,
    /// One for all requests, so that a `-sess` key means the same to servers that keep it and to
    /// servers that compute it anew.
    cnonce: Option<String>,
    /// Requests answered under `nonce`.
    count: u32,
}

/// By strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hash {
    Md5,
    Sha256,
    Sha512_256,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Algorithm {
    hash: Hash,
    session: bool,
}

/// Which protection the server takes, best for us first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Qop {
    /// RFC 2069: the server knows of none.
    Absent,
    Auth,
    /// Only over the body as well.
    AuthInt,
}

/// What a challenge means for the request that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenged {
    /// [`authorize`](DigestSession::authorize) has a new answer: send the request again.
    Answer,
    /// The server has seen the right kind of answer and does not accept it.
    Refused,
    /// There is no Digest challenge that can be answered.
    NotOffered,
}

impl DigestSession {
    /// A session that has met no challenge yet.
    pub fn new(user: impl Into<String>, password: impl Into<Secret>) -> Self {
        DigestSession { user: user.into(), password: password.into(), space: None }
    }

    /// Whether there has been a challenge, so that requests can be authorized unasked.
    pub fn is_challenged(&self) -> bool {
        self.space.is_some()
    }

    /// Takes the challenges of a 401 or 407. Of several for Digest, the strongest is answered.
    /// `answers`: how many answers *to a challenge* the request has carried; an authorization sent
    /// unasked, under an older challenge, is none.
    pub fn challenged(&mut self, challenges: &[Challenge<'_>], answers: u32) -> Challenged {
        let offers = challenges.iter().filter_map(|offer| Some((offer, Space::read(offer)?)));
        // Of equals the server's first.
        let strongest = offers.rev().max_by_key(|(_, space)| space.algorithm.hash);
        let Some((offer, space)) = strongest else {
            return Challenged::NotOffered;
        };
        // RFC 7616, 3.3: with `stale`, only the nonce was at fault.
        let stale = offer.param("stale").is_some_and(|v| v.eq_ignore_ascii_case(b"true"));
        if answers >= MOST_ANSWERS || answers > 0 && !stale {
            return Challenged::Refused;
        }
        self.space = Some(space);
        Challenged::Answer
    }

    /// Takes the `Authentication-Info` of a response: the server may name the next nonce (RFC
    /// 7616, section 3.5).
    pub fn inform(&mut self, authentication_info: &[u8]) {
        if let Some(space) = &mut self.space
            && let Some(nonce) = info_param(authentication_info, "nextnonce")
            && !nonce.is_empty()
        {
            space.nonce = nonce;
            space.count = 0;
        }
    }

    /// The value of `Authorization` or `Proxy-Authorization` for a request of `method` to `uri`
    /// (the request target, as sent), marked sensitive. `body` is the request's, if it is at hand:
    /// `Some(b"")` for none, `None` for a stream. `random` yields uniformly random numbers.
    ///
    /// # Errors
    ///
    /// No challenge was met, it wants the body of a stream, or the credentials contain control
    /// characters.
    pub fn authorize(
        &mut self,
        method: &Method,
        uri: &str,
        body: Option<&[u8]>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<HeaderValue, AuthError> {
        refuse_controls(&self.user)?;
        let space = self.space.as_mut().ok_or(AuthError::NoChallenge)?;
        let body = match space.qop {
            Qop::AuthInt => Some(body.ok_or(AuthError::BodyNotAtHand)?),
            Qop::Absent | Qop::Auth => None,
        };
        let cnonce = space.cnonce.get_or_insert_with(|| new_cnonce(random)).clone();
        space.count = space.count.saturating_add(1);
        let proof = Proof { user: &self.user, space, cnonce: &cnonce, method, uri };
        let response = proof.response(self.password.expose(), body);
        sensitive(&proof.fields(&response))
    }
}

fn new_cnonce(random: &mut dyn FnMut() -> u64) -> String {
    format!("{:016x}{:016x}", random(), random())
}

impl Space {
    /// `None`: not a Digest challenge, or not one this client can answer.
    fn read(challenge: &Challenge<'_>) -> Option<Space> {
        if !challenge.is("Digest") {
            return None;
        }
        let text = |name| challenge.param(name).and_then(|value| str::from_utf8(value).ok());
        let algorithm_name = text("algorithm");
        let is_true = |name| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Some(Space {
            algorithm: Algorithm::named(algorithm_name.unwrap_or("MD5"))?,
            algorithm_name: algorithm_name.map(str::to_owned),
            realm: challenge.param("realm").unwrap_or_default().to_vec(),
            nonce: challenge.param("nonce")?.to_vec(),
            opaque: challenge.param("opaque").map(<[u8]>::to_vec),
            qop: Qop::among(challenge.param("qop"))?,
            utf8: text("charset").is_some_and(|value| value.eq_ignore_ascii_case("UTF-8")),
            userhash: is_true("userhash"),
            cnonce: None,
            count: 0,
        })
    }
}

impl Algorithm {
    fn named(name: &str) -> Option<Algorithm> {
        let name = name.to_ascii_uppercase();
        let (hash, session) = match name.strip_suffix("-SESS") {
            Some(hash) => (hash, true),
            None => (name.as_str(), false),
        };
        let hash = match hash {
            "MD5" => Hash::Md5,
            "SHA-256" => Hash::Sha256,
            "SHA-512-256" => Hash::Sha512_256,
            _ => return None,
        };
        Some(Algorithm { hash, session })
    }
}

impl Hash {
    /// The hash of `parts` with colons between, in hexadecimal.
    fn of(self, parts: &[&[u8]]) -> Zeroizing<String> {
        let mut data = Zeroizing::new(Vec::with_capacity(256));
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                data.push(b':');
            }
            data.extend_from_slice(part);
        }
        match self {
            Hash::Md5 => hex(&Md5::digest(&*data)),
            Hash::Sha256 => hex(&Sha256::digest(&*data)),
            Hash::Sha512_256 => hex(&Sha512_256::digest(&*data)),
        }
    }
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(nibble.into(), 16));
        }
    }
    text
}

impl Qop {
    /// The best of an offered list. `None`: none that is known.
    fn among(offered: Option<&[u8]>) -> Option<Qop> {
        let Some(offered) = offered else {
            return Some(Qop::Absent);
        };
        let has = |name: &str| {
            let mut words = offered.split(|&byte| matches!(byte, b',' | b' ' | b'\t'));
            words.any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        match (has("auth"), has("auth-int")) {
            (true, _) => Some(Qop::Auth),
            (false, true) => Some(Qop::AuthInt),
            (false, false) => offered.trim_ascii().is_empty().then_some(Qop::Absent),
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Qop::Absent => None,
            Qop::Auth => Some("auth"),
            Qop::AuthInt => Some("auth-int"),
        }
    }
}

/// One answer in the making.
struct Proof<'a> {
    user: &'a str,
    space: &'a Space,
    cnonce: &'a str,
    method: &'a Method,
    uri: &'a str,
}

impl Proof<'_> {
    /// RFC 7616, section 3.4.1.
    fn response(&self, password: &str, body: Option<&[u8]>) -> Zeroizing<String> {
        let Space { algorithm, realm, nonce, qop, count, .. } = self.space;
        let (hash, cnonce) = (algorithm.hash, self.cnonce.as_bytes());
        // Section 3.4.2: A1.
        let mut secret = hash.of(&[self.user.as_bytes(), realm, password.as_bytes()]);
        if algorithm.session {
            secret = hash.of(&[secret.as_bytes(), nonce, cnonce]);
        }
        // Section 3.4.3: A2.
        let (method, uri) = (self.method.as_str().as_bytes(), self.uri.as_bytes());
        let request = match body {
            Some(body) => hash.of(&[method, uri, hash.of(&[body]).as_bytes()]),
            None => hash.of(&[method, uri]),
        };
        match qop.name() {
            Some(qop) => {
                let count = format!("{count:08x}");
                let parts = [nonce, count.as_bytes(), cnonce, qop.as_bytes(), request.as_bytes()];
                hash.of(&[secret.as_bytes(), parts[0], parts[1], parts[2], parts[3], parts[4]])
            }
            None => hash.of(&[secret.as_bytes(), nonce, request.as_bytes()]),
        }
    }

    /// RFC 7616, section 3.4: which parameters are quoted is fixed, and servers insist on it.
    fn fields(&self, response: &str) -> Vec<u8> {
        let space = self.space;
        let mut out = Params(b"Digest ".to_vec());
        match (space.userhash, space.utf8 && !self.user.is_ascii()) {
            (true, _) => {
                let hash = space.algorithm.hash;
                let user = hash.of(&[self.user.as_bytes(), &space.realm]);
                out.quoted("username", user.as_bytes());
            }
            (false, true) => out.plain("username*", &extended(self.user)),
            (false, false) => out.quoted("username", self.user.as_bytes()),
        }
        out.quoted("realm", &space.realm);
        out.quoted("uri", self.uri.as_bytes());
        if let Some(name) = &space.algorithm_name {
            out.plain("algorithm", name);
        }
        out.quoted("nonce", &space.nonce);
        if let Some(qop) = space.qop.name() {
            out.plain("nc", &format!("{:08x}", space.count));
            out.plain("qop", qop);
        }
        // A session key needs it even where RFC 2069 knows no qop.
        if space.qop != Qop::Absent || space.algorithm.session {
            out.quoted("cnonce", self.cnonce.as_bytes());
        }
        out.quoted("response", response.as_bytes());
        if let Some(opaque) = &space.opaque {
            out.quoted("opaque", opaque);
        }
        if space.userhash {
            out.plain("userhash", "true");
        }
        out.0
    }
}

/// A list of parameters behind its scheme.
struct Params(Vec<u8>);

impl Params {
    fn name(&mut self, name: &str) {
        if !self.0.ends_with(b" ") {
            self.0.extend_from_slice(b", ");
        }
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'=');
    }

    fn plain(&mut self, name: &str, value: &str) {
        self.name(name);
        self.0.extend_from_slice(value.as_bytes());
    }

    fn quoted(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.0.push(b'"');
        for &byte in value {
            if matches!(byte, b'"' | b'\\') {
                self.0.push(b'\\');
            }
            self.0.push(byte);
        }
        self.0.push(b'"');
    }
}

/// The extended notation of RFC 8187, section 3.2.
fn extended(text: &str) -> String {
    let mut out = String::from("UTF-8''");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
