//! The certificate authority of one run, and the TLS that its leaf is shown with.

use std::error::Error;

use boring::error::ErrorStack;
use boring::pkey::{PKey, Private};
use boring::ssl::{
    AlpnError, SslAcceptor, SslContext, SslMethod, SslMode, SslSessionCacheMode, select_next_proto,
};
use boring::x509::X509;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// What clients ask for.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];
/// As ALPN writes them.
const HTTP1: &[u8] = b"\x08http/1.1";
const HTTP2: &[u8] = b"\x02h2";

/// TLS, and the authority behind it.
pub(crate) struct Identity {
    /// The authority's certificate.
    pub(crate) ca_pem: String,
    /// What connections are made with, by what they speak.
    pub(crate) http1: SslContext,
    pub(crate) http2: SslContext,
}

impl Identity {
    /// Makes both, valid for a day. Keys are ECDSA P-256.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let issuer = CertifiedIssuer::self_signed(authority(), KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let leaf = leaf()?.signed_by(&key, &issuer)?;

        let certificate = X509::from_pem(leaf.pem().as_bytes())?;
        let key = PKey::private_key_from_pem(key.serialize_pem().as_bytes())?;
        let context = |protocol| context(&certificate, &key, protocol);
        Ok(Self { ca_pem: issuer.pem(), http1: context(HTTP1)?, http2: context(HTTP2)? })
    }
}

fn context(
    certificate: &X509,
    key: &PKey<Private>,
    protocol: &'static [u8],
) -> Result<SslContext, ErrorStack> {
    let mut tls = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
    tls.set_certificate(certificate)?;
    tls.set_private_key(key)?;
    // Tickets are on by default; nothing is kept here.
    tls.set_session_cache_mode(SslSessionCacheMode::OFF);
    tls.set_session_id_context(b"bench")?;
    tls.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
    tls.set_alpn_select_callback(move |_, offered| {
        select_next_proto(protocol, offered).ok_or(AlpnError::NOACK)
    });
    Ok(tls.build().into_context())
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Mimus bench authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = today();
    params
}

fn leaf() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(NAMES.map(String::from))?;
    params.distinguished_name.push(DnType::CommonName, NAMES[0]);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = today();
    Ok(params)
}

/// From an hour ago, for clocks that differ.
fn today() -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now - Duration::hours(1), now + Duration::days(1))
}
