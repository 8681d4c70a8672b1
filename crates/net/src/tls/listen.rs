//! The server's end of TLS, for tools that watch clients: blocking, with certificates that are thrown
//! away.

use std::{
    io::{self, Read, Write},
    net::IpAddr,
};

use boring::{
    asn1::Asn1Time,
    bn::{BigNum, MsbOption},
    ec::{EcGroup, EcKey},
    error::ErrorStack,
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    ssl::{
        AlpnError, HandshakeError, ShutdownResult, SslContext, SslMethod, SslStream, SslVersion,
        select_next_proto,
    },
    x509::{
        X509, X509Builder, X509Name, X509Ref,
        extension::{
            AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage,
            SubjectAlternativeName, SubjectKeyIdentifier,
        },
    },
};

/// How long a certificate is valid, in days: browsers refuse what is valid for long.
const DAYS: u32 = 30;

/// A certificate authority that nobody needs to keep: its key never leaves memory.
pub struct Authority {
    certificate: X509,
    key: PKey<Private>,
    pem: Vec<u8>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes one with a key of P-256.
    ///
    /// # Errors
    /// When BoringSSL cannot, which is when there is no memory.
    pub fn throwaway() -> io::Result<Self> {
        Self::make().map_err(io::Error::other)
    }

    fn make() -> Result<Self, ErrorStack> {
        let key = new_key()?;
        let name = name("Mimus throwaway CA")?;
        let mut builder = certificate(&name, &name, &key)?;
        builder.append_extension(&*BasicConstraints::new().critical().ca().build()?)?;
        builder.append_extension(&*KeyUsage::new().critical().key_cert_sign().build()?)?;
        let id = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None))?;
        builder.append_extension(&id)?;
        builder.sign(&key, MessageDigest::sha256())?;
        let certificate = builder.build();
        let pem = certificate.to_pem()?;
        Ok(Authority { certificate, key, pem })
    }

    /// The certificate to be trusted, in PEM.
    #[must_use]
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// A server's certificate for these names and addresses, and its key.
    fn issue(&self, names: &[&str]) -> Result<(X509, PKey<Private>), ErrorStack> {
        let key = new_key()?;
        let subject = name("Mimus")?;
        let mut builder = certificate(&subject, self.certificate.subject_name(), &key)?;
        builder.append_extension(&*BasicConstraints::new().build()?)?;
        builder.append_extension(&*KeyUsage::new().critical().digital_signature().build()?)?;
        builder.append_extension(&*ExtendedKeyUsage::new().server_auth().build()?)?;
        let issuer: Option<&X509Ref> = Some(&self.certificate);
        let mut alternatives = SubjectAlternativeName::new();
        for name in names {
            match name.parse::<IpAddr>() {
                Ok(_) => alternatives.ip(name),
                Err(_) => alternatives.dns(name),
            };
        }
        let alternatives = alternatives.build(&builder.x509v3_context(issuer, None))?;
        builder.append_extension(&alternatives)?;
        let context = builder.x509v3_context(issuer, None);
        let authority = AuthorityKeyIdentifier::new().keyid(true).build(&context)?;
        builder.append_extension(&authority)?;
        builder.sign(&self.key, MessageDigest::sha256())?;
        Ok((builder.build(), key))
    }
}

fn new_key() -> Result<PKey<Private>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&group)?)
}

fn name(text: &str) -> Result<X509Name, ErrorStack> {
    let mut name = X509Name::builder()?;
    name.append_entry_by_nid(Nid::COMMONNAME, text)?;
    Ok(name.build())
}

/// What all certificates have.
fn certificate(
    subject: &boring::x509::X509NameRef,
    issuer: &boring::x509::X509NameRef,
    key: &PKey<Private>,
) -> Result<X509Builder, ErrorStack> {
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    let mut serial = BigNum::new()?;
    // RFC 5280 section 4.1.2.2: at most 20 bytes, and positive.
    serial.rand(159, MsbOption::MAYBE_ZERO, false)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(subject)?;
    builder.set_issuer_name(issuer)?;
    builder.set_pubkey(key)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(DAYS)?)?;
    Ok(builder)
}

/// Accepts handshakes as the servers of some names. It resumes sessions, and asks clients for nothing.
pub struct Acceptor {
    context: SslContext,
    spki: [u8; 32],
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl Acceptor {
    /// With a certificate for `names` (hosts or addresses), and these protocols of ALPN, the preferred
    /// one first.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate, or a protocol is empty or longer than 255 bytes.
    pub fn new(authority: &Authority, names: &[&str], protocols: &[&str]) -> io::Result<Self> {
        let mut wire = Vec::new();
        for protocol in protocols {
            let len = u8::try_from(protocol.len()).ok().filter(|&len| len > 0);
            wire.push(
                len.ok_or_else(|| io::Error::other("a protocol of a length it cannot have"))?,
            );
            wire.extend_from_slice(protocol.as_bytes());
        }
        Self::make(authority, names, wire).map_err(io::Error::other)
    }

    fn make(authority: &Authority, names: &[&str], wire: Vec<u8>) -> Result<Self, ErrorStack> {
        let (certificate, key) = authority.issue(names)?;
        let spki = boring::sha::sha256(&key.public_key_to_der()?);
        let mut context = SslContext::builder(SslMethod::tls())?;
        context.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        context.set_certificate(&certificate)?;
        context.set_private_key(&key)?;
        context.set_session_id_context(b"mimus")?;
        context.set_alpn_select_callback(move |_, offered| {
            select_next_proto(&wire, offered)
                // The callback's answer has to be a part of what was offered.
                .and_then(|chosen| find(offered, chosen))
                .ok_or(AlpnError::NOACK)
        });
        Ok(Acceptor { context: context.build(), spki })
    }

    /// The SHA-256 of the certificate's public key: what Chromium's
    /// `--ignore-certificate-errors-spki-list` takes in base64.
    #[must_use]
    pub fn spki_sha256(&self) -> [u8; 32] {
        self.spki
    }

    /// Makes the handshake over a blocking stream.
    ///
    /// # Errors
    /// `TimedOut` when the stream's own timeout fires, what the stream says when it fails, and else
    /// what BoringSSL says of the client's messages.
    pub fn accept<S: Read + Write>(&self, stream: S) -> io::Result<Accepted<S>> {
        let ssl = boring::ssl::Ssl::new(&self.context).map_err(io::Error::other)?;
        match ssl.accept(stream) {
            Ok(stream) => Ok(Accepted(stream)),
            Err(HandshakeError::SetupFailure(error)) => Err(io::Error::other(error)),
            Err(HandshakeError::WouldBlock(_)) => Err(io::ErrorKind::TimedOut.into()),
            Err(HandshakeError::Failure(failed)) => {
                let error = failed.into_error();
                Err(error.into_io_error().unwrap_or_else(io::Error::other))
            }
        }
    }
}

/// The protocol of the client's list that is this one.
fn find<'a>(mut offered: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    while let Some((&len, rest)) = offered.split_first() {
        let (protocol, rest) = rest.split_at_checked(len.into())?;
        if protocol == wanted {
            return Some(protocol);
        }
        offered = rest;
    }
    None
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Accepted<S>(SslStream<S>);

impl<S: Read + Write> Accepted<S> {
    /// What ALPN chose.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.0.ssl().selected_alpn_protocol()
    }

    /// Whether a session was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.0.ssl().session_reused()
    }

    /// The stream below.
    pub fn get_ref(&self) -> &S {
        self.0.get_ref()
    }

    /// Says `close_notify` (RFC 8446 section 6.1), and that is all.
    ///
    /// # Errors
    /// As the stream below.
    pub fn close(&mut self) -> io::Result<()> {
        match self.0.shutdown() {
            Ok(ShutdownResult::Sent | ShutdownResult::Received) => Ok(()),
            Err(error) => Err(error.into_io_error().unwrap_or_else(io::Error::other)),
        }
    }
}

impl<S: Read + Write> Read for Accepted<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<S: Read + Write> Write for Accepted<S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
