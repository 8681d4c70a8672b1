//! The certificate authority of one origin, and what each TLS port shows.

use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};

use crate::port::Port;
use crate::record::SeenTls;

/// The names the right certificate is for.
const NAMES: &[&str] = &["localhost", "origin.test", "127.0.0.1", "::1"];
/// How much early data one resumed session may send, in bytes.
const EARLY_DATA: u32 = 16 * 1024;

/// A certificate and its private key, both PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub cert_pem: String,
    /// The private key, PKCS #8.
    pub key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("cert_pem", &self.cert_pem).finish_non_exhaustive()
    }
}

/// The certificate authority, new with each origin.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    client: Identity,
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

impl Authority {
    pub(crate) fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Mimus testkit authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let (begin, end) = valid_now();
        (params.not_before, params.not_after) = (begin, end);
        let key = KeyPair::generate().map_err(other)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(other)?;
        let client = client_identity(&issuer)?;
        Ok(Self { issuer, client })
    }

    pub(crate) fn ca_pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn client(&self) -> &Identity {
        &self.client
    }

    /// The server side of one TLS port.
    pub(crate) fn server_config(&self, port: Port) -> io::Result<Arc<ServerConfig>> {
        let versions: &[&SupportedProtocolVersion] = match port {
            Port::Tls12 => &[&TLS12],
            Port::Tls13 | Port::TlsEarlyData => &[&TLS13],
            _ => &[&TLS13, &TLS12],
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(other)?;
        let builder = if port == Port::TlsClientCert {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).map_err(other)?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(other)?)
        } else {
            builder.with_no_client_auth()
        };
        let (chain, key) = self.certificate(port)?;
        let mut config = builder.with_single_cert(chain, key).map_err(other)?;
        let offer = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.alpn_protocols = match port {
            Port::TlsNoAlpn => Vec::new(),
            Port::H2 => offer(&["h2"]),
            Port::H2OrHttp1 => offer(&["h2", "http/1.1"]),
            _ => offer(&["http/1.1"]),
        };
        match port {
            // Early data needs the stateful session cache that is rustls' default, so that
            // a session is resumed once at most (RFC 8446 section 8.1).
            Port::TlsEarlyData => config.max_early_data_size = EARLY_DATA,
            _ => config.ticketer = ring::Ticketer::new().map_err(other)?,
        }
        Ok(Arc::new(config))
    }

    fn certificate(
        &self,
        port: Port,
    ) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let now = OffsetDateTime::now_utc();
        let names: &[&str] = if port == Port::TlsWrongName { &["wrong.test"] } else { NAMES };
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(other)?;
        params.distinguished_name.push(DnType::CommonName, "Mimus testkit origin");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        (params.not_before, params.not_after) = match port {
            Port::TlsExpired => (now - Duration::days(30), now - Duration::days(1)),
            Port::TlsNotYetValid => (now + Duration::days(365), now + Duration::days(730)),
            _ => valid_now(),
        };
        let key = KeyPair::generate().map_err(other)?;
        let cert = if port == Port::TlsSelfSigned {
            params.self_signed(&key)
        } else {
            params.signed_by(&key, &self.issuer)
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((vec![cert.map_err(other)?.der().clone()], key))
    }
}

fn valid_now() -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now - Duration::days(7), now + Duration::days(365))
}

fn client_identity(issuer: &CertifiedIssuer<'static, KeyPair>) -> io::Result<Identity> {
    let mut params = CertificateParams::new(vec!["client.test".to_owned()]).map_err(other)?;
    params.distinguished_name.push(DnType::CommonName, "Mimus testkit client");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    (params.not_before, params.not_after) = valid_now();
    let key = KeyPair::generate().map_err(other)?;
    let cert = params.signed_by(&key, issuer).map_err(other)?;
    Ok(Identity { cert_pem: cert.pem(), key_pem: key.serialize_pem() })
}

/// What the finished handshake of `conn` agreed on.
pub(crate) fn seen(conn: &ServerConnection, early_data: usize) -> SeenTls {
    use tokio_rustls::rustls::HandshakeKind;
    SeenTls {
        sni: conn.server_name().map(str::to_owned),
        alpn: conn.alpn_protocol().map(<[u8]>::to_vec),
        version: conn.protocol_version().map(|version| format!("{version:?}")).unwrap_or_default(),
        resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
        early_data,
        client_cert: conn.peer_certificates().is_some(),
    }
}
