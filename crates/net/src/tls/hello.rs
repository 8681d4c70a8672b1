//! What a connection says of itself: a configuration and a plan, turned into BoringSSL's objects.
//!
//! Everything that shapes the ClientHello is set here and nowhere else: in [`context`] what all
//! connections of a configuration share, in [`configure`] what one connection adds.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{
        Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslRef, SslSessionCacheMode,
        SslVerifyMode, SslVersion,
    },
    x509::verify::{X509CheckFlags, X509VerifyParamRef},
};

use super::{
    ClientHello, Ech, TlsVersion,
    client_hello::CertificateCompression,
    config::{Settings, log_keys},
    early, roots,
    session::{SessionCache, SessionKey},
    shape,
};
use crate::{
    DialError, DialErrorKind, Phase,
    dial::{Host, TlsPlan},
};

/// What all connections of a configuration share, with `compression` for certificates.
pub(super) fn context(
    settings: &Settings,
    sessions: &Arc<SessionCache>,
    compression: &[CertificateCompression],
) -> Result<SslContext, ErrorStack> {
    let mut context = SslContextBuilder::new(SslMethod::tls())?;
    context.set_min_proto_version(Some(version(settings.min_version)))?;
    context.set_max_proto_version(Some(version(settings.max_version)))?;
    // One record a call: the machine decides how many records make a batch.
    context.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
    if let Some(hello) = &settings.hello {
        shape::context(&mut context, hello, compression)?;
    }
    set_trust(&mut context, settings)?;
    if let Some(identity) = &settings.identity {
        if let Some((leaf, issuers)) = identity.chain.split_first() {
            context.set_certificate(leaf)?;
            for issuer in issuers {
                context.add_extra_chain_cert(issuer.clone())?;
            }
        }
        context.set_private_key(&identity.key)?;
    }
    if settings.resumption {
        let sessions = Arc::clone(sessions);
        let index = key_index()?;
        context
            .set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        context.set_new_session_callback(move |ssl, session| {
            if let Some(key) = ssl.ex_data(index) {
                sessions.insert(key, session);
            }
        });
    }
    if let Some(log) = settings.key_log.clone() {
        context.set_keylog_callback(move |_, line| log_keys(&log, line));
    }
    Ok(context.build())
}

fn version(version: TlsVersion) -> SslVersion {
    match version {
        TlsVersion::Tls10 => SslVersion::TLS1,
        TlsVersion::Tls11 => SslVersion::TLS1_1,
        TlsVersion::Tls12 => SslVersion::TLS1_2,
        TlsVersion::Tls13 => SslVersion::TLS1_3,
    }
}

fn set_trust(context: &mut SslContextBuilder, settings: &Settings) -> Result<(), ErrorStack> {
    if !settings.verify_certificate {
        context.set_verify(SslVerifyMode::NONE);
        return Ok(());
    }
    context.set_verify(SslVerifyMode::PEER);
    context.set_cert_store(roots::store(settings.roots, &settings.extra_roots)?);
    Ok(())
}

/// What one connection adds: the peer's name, ALPN, a session to resume.
pub(super) fn configure(plan: &TlsPlan, host: &Host, port: u16) -> Result<Ssl, DialError> {
    let hello = plan.config.settings().hello.as_ref();
    let protocols = offered(hello, &plan.alpn);
    let context = plan.config.context(&protocols).map_err(|error| {
        refuse("the TLS configuration cannot be used".to_owned()).caused_by(error.clone())
    })?;
    let peer = Peer::of(host)?;
    let alpn = encode_alpn(&protocols)?;
    let setup = || -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(context)?;
        name_peer(&mut ssl, &peer, plan.config.settings())?;
        if !alpn.is_empty() {
            ssl.set_alpn_protos(&alpn)?;
        }
        if let Ech::Config(list) = &plan.ech {
            ssl.set_ech_config_list(list.as_bytes())?;
        }
        let resumption = plan.config.settings().resumption;
        let psk = resumption && resume(&mut ssl, plan, &peer, port)?;
        if let Some(hello) = hello {
            shape::connection(&mut ssl, hello, &protocols, psk)?;
        }
        Ok(ssl)
    };
    setup().map_err(|error| {
        refuse(format!("TLS with {host:?} cannot be set up", host = peer.text())).caused_by(error)
    })
}

/// The key under which sessions with this server are kept.
pub(super) fn session_key(host: &Host, port: u16) -> Result<SessionKey, DialError> {
    Ok(SessionKey { host: Peer::of(host)?.text(), port })
}

fn refuse(detail: String) -> DialError {
    DialError::new(Phase::Tls, DialErrorKind::Config, detail)
}

/// Who the certificate has to be for.
pub(super) enum Peer {
    Name(String),
    Ip(IpAddr),
}

impl Peer {
    pub(super) fn of(host: &Host) -> Result<Self, DialError> {
        let name = match host {
            Host::Addr(ip, _zone) => return Ok(Peer::Ip(*ip)),
            // RFC 6066 section 3: the name goes without the root's dot; certificates never have it.
            Host::Name(name) => name.strip_suffix('.').unwrap_or(name),
        };
        if let Ok(ip) = name.parse() {
            return Ok(Peer::Ip(ip));
        }
        if name.is_empty() || name.len() > 255 || !name.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(refuse(format!("{name:?} is not a host name that TLS can carry")));
        }
        Ok(Peer::Name(name.to_ascii_lowercase()))
    }

    fn text(&self) -> String {
        match self {
            Peer::Name(name) => name.clone(),
            Peer::Ip(ip) => ip.to_string(),
        }
    }
}

fn name_peer(ssl: &mut SslRef, peer: &Peer, settings: &Settings) -> Result<(), ErrorStack> {
    if let Peer::Name(name) = peer
        && settings.sni
    {
        ssl.set_hostname(name)?;
    }
    if settings.verify_certificate && settings.verify_hostname {
        expect_peer(ssl.verify_param_mut(), peer)?;
    }
    Ok(())
}

/// Has a certificate verified only if it is for `peer`.
pub(super) fn expect_peer(param: &mut X509VerifyParamRef, peer: &Peer) -> Result<(), ErrorStack> {
    match peer {
        Peer::Name(name) => {
            // RFC 9525 section 6: only subjectAltName counts, and `*` stands for one whole label.
            param.set_hostflags(
                X509CheckFlags::NO_PARTIAL_WILDCARDS | X509CheckFlags::NEVER_CHECK_SUBJECT,
            );
            param.set_host(name)
        }
        Peer::Ip(ip) => param.set_ip(*ip),
    }
}

/// The protocols of the plan, in the order and choice of the hello if that has any of them.
fn offered<'a>(hello: Option<&'a ClientHello>, plan: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let named = hello.iter().flat_map(|hello| &hello.alpn).map(|name| name.as_bytes());
    let both: Vec<_> = named.filter(|name| plan.contains(name)).collect();
    if both.is_empty() { plan.to_vec() } else { both }
}

/// RFC 7301 section 3.1: each protocol behind its length.
fn encode_alpn(protocols: &[&[u8]]) -> Result<Vec<u8>, DialError> {
    let mut out = Vec::new();
    for protocol in protocols {
        match u8::try_from(protocol.len()) {
            Ok(length) if length > 0 => out.push(length),
            _ => return Err(refuse("an ALPN protocol has 1 to 255 bytes".to_owned())),
        }
        out.extend_from_slice(protocol);
    }
    Ok(out)
}

/// Has new sessions stored under the peer's key, and offers one that is there. Tells whether that is a
/// pre-shared key (RFC 8446 section 4.2.11).
fn resume(ssl: &mut SslRef, plan: &TlsPlan, peer: &Peer, port: u16) -> Result<bool, ErrorStack> {
    let key = SessionKey { host: peer.text(), port };
    let session = plan.config.sessions().take(&key);
    let psk =
        session.as_ref().is_some_and(|session| session.protocol_version() == SslVersion::TLS1_3);
    if let Some(session) = session {
        // SAFETY: the cache belongs to one configuration: the session came from a connection of the very
        // context that `ssl` was made from, or of the other one of that configuration, which verifies
        // by the same method and store.
        unsafe { ssl.set_session(&session) }?;
        if plan.early_data {
            early::enable(ssl);
        }
    }
    ssl.set_ex_data(key_index()?, key);
    Ok(psk)
}

/// Where a connection carries its [`SessionKey`] for the new-session callback.
fn key_index() -> Result<Index<Ssl, SessionKey>, ErrorStack> {
    static INDEX: OnceLock<Result<Index<Ssl, SessionKey>, ErrorStack>> = OnceLock::new();
    INDEX.get_or_init(Ssl::new_ex_index).clone()
}
