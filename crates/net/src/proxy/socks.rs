//! SOCKS4, SOCKS4a (the de-facto protocols of 1992 and 1994) and SOCKS5 (RFC 1928, with the user name
//! and password of RFC 1929), as machines: bytes in, bytes out.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
};

use bytes::{Buf as _, BytesMut};

use super::ProxyKind;
use crate::{DialErrorKind, dial::Host};

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Write these bytes, all of them.
    Write(Vec<u8>),
    /// Append to the input what comes.
    Read,
    /// The tunnel is made. What is left of the input came through it.
    Done,
}

/// One conversation.
pub struct Socks {
    state: State,
}

/// What happens next; each state holds what is still to be said.
enum State {
    Connect4 { request: Vec<u8> },
    Reply4,
    Greet5 { auth: Option<Auth>, request: Vec<u8> },
    Method5 { auth: Option<Auth>, request: Vec<u8> },
    Auth5 { request: Vec<u8> },
    Connect5 { request: Vec<u8> },
    Reply5,
    Done,
}

/// The message of RFC 1929 section 2.
struct Auth(Vec<u8>);

impl Socks {
    /// A conversation with a proxy of `kind` about a connection to `target`.
    ///
    /// # Errors
    /// [`SocksError`] of [`DialErrorKind::Config`] when the protocol has no way to say it.
    pub fn new(
        kind: ProxyKind,
        auth: Option<&(String, String)>,
        target: &Host,
        port: u16,
    ) -> Result<Self, SocksError> {
        let state = match kind {
            ProxyKind::Socks4 | ProxyKind::Socks4a => {
                let names = kind == ProxyKind::Socks4a;
                let user = auth.map_or("", |(user, _)| user);
                State::Connect4 { request: request4(user, target, port, names)? }
            }
            ProxyKind::Socks5 | ProxyKind::Socks5h => {
                let names = kind == ProxyKind::Socks5h;
                let auth = auth.map(auth5).transpose()?;
                State::Greet5 { auth, request: request5(target, port, names)? }
            }
            ProxyKind::Http | ProxyKind::Https => return Err(SocksError::NotSocks),
        };
        Ok(Socks { state })
    }

    /// Goes on with what has come, taking from `input` only what belongs to the conversation.
    ///
    /// # Errors
    /// [`SocksError`]; the connection is of no more use.
    pub fn poll(&mut self, input: &mut BytesMut) -> Result<Progress, SocksError> {
        let state = std::mem::replace(&mut self.state, State::Done);
        let (state, progress) = state.step(input)?;
        self.state = state;
        Ok(progress)
    }
}

impl State {
    fn step(self, input: &mut BytesMut) -> Result<(State, Progress), SocksError> {
        Ok(match self {
            State::Connect4 { request } => (State::Reply4, Progress::Write(request)),
            State::Reply4 => match reply4(input)? {
                true => (State::Done, Progress::Done),
                false => (State::Reply4, Progress::Read),
            },
            State::Greet5 { auth, request } => {
                // RFC 1928 section 3: version, count, methods (0: none, 2: user name and password).
                let greeting = match auth {
                    Some(_) => vec![5, 2, 0, 2],
                    None => vec![5, 1, 0],
                };
                (State::Method5 { auth, request }, Progress::Write(greeting))
            }
            State::Method5 { auth, request } => match (method5(input)?, auth) {
                (None, auth) => (State::Method5 { auth, request }, Progress::Read),
                (Some(0), _) => State::Connect5 { request }.step(input)?,
                (Some(2), Some(Auth(message))) => {
                    (State::Auth5 { request }, Progress::Write(message))
                }
                (Some(0xff), Some(_)) => return Err(SocksError::NoMethod),
                (Some(0xff | 2), None) => return Err(SocksError::AuthWanted),
                (Some(_), _) => return Err(SocksError::Malformed("it chose a method not offered")),
            },
            State::Auth5 { request } => match auth_reply5(input)? {
                true => State::Connect5 { request }.step(input)?,
                false => (State::Auth5 { request }, Progress::Read),
            },
            State::Connect5 { request } => (State::Reply5, Progress::Write(request)),
            State::Reply5 => match reply5(input)? {
                true => (State::Done, Progress::Done),
                false => (State::Reply5, Progress::Read),
            },
            State::Done => (State::Done, Progress::Done),
        })
    }
}

impl fmt::Debug for Socks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Connect4 { .. } => "Socks(Connect4)",
            State::Reply4 => "Socks(Reply4)",
            State::Greet5 { .. } => "Socks(Greet5)",
            State::Method5 { .. } => "Socks(Method5)",
            State::Auth5 { .. } => "Socks(Auth5)",
            State::Connect5 { .. } => "Socks(Connect5)",
            State::Reply5 => "Socks(Reply5)",
            State::Done => "Socks(Done)",
        })
    }
}

/// Version, CONNECT, port, address, user NUL; for 4a an impossible address, and the name NUL.
fn request4(user: &str, target: &Host, port: u16, names: bool) -> Result<Vec<u8>, SocksError> {
    let (ip, name) = match target {
        Host::Addr(IpAddr::V4(ip), _) => (*ip, None),
        Host::Addr(IpAddr::V6(ip), _) => match ip.to_ipv4_mapped() {
            Some(ip) => (ip, None),
            None => return Err(SocksError::NoIpv6),
        },
        Host::Name(name) if names => (Ipv4Addr::new(0, 0, 0, 1), Some(name)),
        Host::Name(_) => return Err(SocksError::NameNotResolved),
    };
    if user.contains('\0') {
        return Err(SocksError::BadCredentials);
    }
    let mut out = vec![4, 1];
    out.extend(port.to_be_bytes());
    out.extend(ip.octets());
    out.extend(user.as_bytes());
    out.push(0);
    if let Some(name) = name {
        if name.is_empty() || name.len() > 255 || name.contains('\0') {
            return Err(SocksError::BadName);
        }
        out.extend(name.as_bytes());
        out.push(0);
    }
    Ok(out)
}

/// Null, result, port, address. Whether it is whole.
fn reply4(input: &mut BytesMut) -> Result<bool, SocksError> {
    match input.first() {
        None | Some(0) => {}
        Some(_) => return Err(SocksError::Malformed("its answer is not SOCKS4")),
    }
    match input.get(1) {
        None | Some(90) => {}
        Some(code) => return Err(SocksError::Refused4(*code)),
    }
    Ok(take(input, 8))
}

/// RFC 1929 section 2: version, length, name, length, password.
fn auth5((user, password): &(String, String)) -> Result<Auth, SocksError> {
    let mut out = vec![1];
    for text in [user, password] {
        let length = u8::try_from(text.len()).map_err(|_| SocksError::BadCredentials)?;
        out.push(length);
        out.extend(text.as_bytes());
    }
    if user.is_empty() {
        return Err(SocksError::BadCredentials);
    }
    Ok(Auth(out))
}

/// RFC 1928 section 4: version, CONNECT, reserved, address, port.
fn request5(target: &Host, port: u16, names: bool) -> Result<Vec<u8>, SocksError> {
    let mut out = vec![5, 1, 0];
    match target {
        Host::Addr(IpAddr::V4(ip), _) => {
            out.push(1);
            out.extend(ip.octets());
        }
        Host::Addr(IpAddr::V6(ip), _) => {
            out.push(4);
            out.extend(ip.octets());
        }
        Host::Name(name) if names => {
            let length = u8::try_from(name.len()).map_err(|_| SocksError::BadName)?;
            if length == 0 {
                return Err(SocksError::BadName);
            }
            out.extend([3, length]);
            out.extend(name.as_bytes());
        }
        Host::Name(_) => return Err(SocksError::NameNotResolved),
    }
    out.extend(port.to_be_bytes());
    Ok(out)
}

fn version5(input: &BytesMut, version: u8) -> Result<(), SocksError> {
    match input.first() {
        Some(found) if *found != version => Err(SocksError::Malformed("its answer is not SOCKS5")),
        _ => Ok(()),
    }
}

/// RFC 1928 section 3: version, method.
fn method5(input: &mut BytesMut) -> Result<Option<u8>, SocksError> {
    version5(input, 5)?;
    let method = input.get(1).copied();
    if method.is_some() {
        input.advance(2);
    }
    Ok(method)
}

/// RFC 1929 section 2: version, status. Whether it is there, and good.
fn auth_reply5(input: &mut BytesMut) -> Result<bool, SocksError> {
    version5(input, 1)?;
    match input.get(1) {
        None => Ok(false),
        Some(0) => Ok(take(input, 2)),
        Some(_) => Err(SocksError::AuthRejected),
    }
}

/// RFC 1928 section 6: version, reply, reserved, address, port. Whether it is whole. A refusal counts
/// as soon as its code is there: some proxies send no more than that.
fn reply5(input: &mut BytesMut) -> Result<bool, SocksError> {
    version5(input, 5)?;
    match input.get(1) {
        None | Some(0) => {}
        Some(code) => return Err(SocksError::Refused5(*code)),
    }
    let address = match (input.get(3), input.get(4)) {
        (Some(1), _) => 4,
        (Some(4), _) => 16,
        (Some(3), Some(length)) => 1 + usize::from(*length),
        (Some(3) | None, _) => return Ok(false),
        (Some(_), _) => {
            return Err(SocksError::Malformed("its answer has an unknown address type"));
        }
    };
    Ok(take(input, 4 + address + 2))
}

/// Takes `n` bytes off `input`, if they are all there.
fn take(input: &mut BytesMut, n: usize) -> bool {
    let whole = input.len() >= n;
    if whole {
        input.advance(n);
    }
    whole
}

/// Why a SOCKS proxy gave no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocksError {
    /// The kind of proxy is no SOCKS at all.
    NotSocks,
    /// A name for a protocol that takes addresses only.
    NameNotResolved,
    /// A name that is empty, longer than 255 bytes, or has a NUL in it.
    BadName,
    /// An IPv6 address for SOCKS4.
    NoIpv6,
    /// A user name or password that the protocol cannot carry.
    BadCredentials,
    /// The proxy wants credentials, and none are configured.
    AuthWanted,
    /// The proxy accepts neither no authentication nor a user name and password.
    NoMethod,
    /// The user name or the password is wrong.
    AuthRejected,
    /// SOCKS4 said no, with this code.
    Refused4(u8),
    /// SOCKS5 said no, with this code.
    Refused5(u8),
    /// What came is not an answer.
    Malformed(&'static str),
}

impl SocksError {
    /// What kind of failure to dial this is.
    pub fn kind(&self) -> DialErrorKind {
        match self {
            SocksError::NotSocks
            | SocksError::NameNotResolved
            | SocksError::BadName
            | SocksError::NoIpv6
            | SocksError::BadCredentials => DialErrorKind::Config,
            SocksError::AuthWanted
            | SocksError::NoMethod
            | SocksError::AuthRejected
            | SocksError::Refused4(92 | 93) => DialErrorKind::ProxyAuth,
            SocksError::Refused4(_) | SocksError::Refused5(_) | SocksError::Malformed(_) => {
                DialErrorKind::Proxy
            }
        }
    }
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            SocksError::NotSocks => "not a SOCKS proxy",
            SocksError::NameNotResolved => "the target's name has to be resolved first",
            SocksError::BadName => "the target's name is empty, too long for SOCKS, or has a NUL",
            SocksError::NoIpv6 => "SOCKS4 cannot connect to an IPv6 address",
            SocksError::BadCredentials => {
                "SOCKS cannot carry the user name or password: 1 to 255 bytes, no NUL in SOCKS4"
            }
            SocksError::AuthWanted => "the proxy wants a user name and password",
            SocksError::NoMethod => "the proxy accepts none of the ways to authenticate",
            SocksError::AuthRejected => "the proxy rejected the user name or password",
            SocksError::Refused4(code) => return refused4(f, *code),
            SocksError::Refused5(code) => return refused5(f, *code),
            SocksError::Malformed(what) => {
                return write!(f, "the proxy does not speak the protocol: {what}");
            }
        };
        f.write_str(sentence)
    }
}

fn refused4(f: &mut fmt::Formatter<'_>, code: u8) -> fmt::Result {
    f.write_str(match code {
        91 => "the proxy rejected the request, or the target did not answer (91)",
        92 => "the proxy cannot reach the identd that would name the user (92)",
        93 => "the user name is not the one that identd gives (93)",
        _ => return write!(f, "the proxy refused with the unknown code {code}"),
    })
}

/// RFC 1928 section 6.
fn refused5(f: &mut fmt::Formatter<'_>, code: u8) -> fmt::Result {
    f.write_str(match code {
        1 => "the proxy failed (1)",
        2 => "the proxy's rules do not allow the connection (2)",
        3 => "the target's network is unreachable (3)",
        4 => "the target is unreachable (4)",
        5 => "the target refused the connection (5)",
        6 => "the way to the target is too long (6)",
        7 => "the proxy does not support CONNECT (7)",
        8 => "the proxy does not support this type of address (8)",
        _ => return write!(f, "the proxy refused with the unknown code {code}"),
    })
}

impl std::error::Error for SocksError {}
