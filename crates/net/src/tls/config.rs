//! Whom to trust, who we are, and what to agree to.

use std::{
    fmt,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use boring::{
    error::ErrorStack,
    pkcs12::Pkcs12,
    pkey::{PKey, Private},
    ssl::SslContext,
    x509::X509,
};

use super::{ClientHello, ClientHelloError, TlsVersion, hello, session::SessionCache, shape};

/// Which trust anchors to start from; [`TlsConfigBuilder::add_ca`] adds to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Roots {
    /// The operating system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured); Mozilla's built-in
    /// ones when that store is empty or unreadable.
    #[default]
    Native,
    /// Mozilla's, as built in, whatever the system says.
    Webpki,
    /// None but the added ones.
    None,
}

/// A shared TLS configuration: trust, identity, versions, session cache. Cheap to clone; clones
/// share the session cache, and everything that is parsed is parsed on first use.
#[derive(Clone)]
pub struct TlsConfig {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    sessions: Arc<SessionCache>,
    context: OnceLock<Result<SslContext, ErrorStack>>,
    /// The same for connections that offer HTTP/1.1 alone, where the hello tells them apart.
    http1_context: OnceLock<Result<SslContext, ErrorStack>>,
}

/// Where session secrets go when someone asked for them.
pub(super) type KeyLog = Arc<Mutex<dyn Write + Send>>;

/// A certificate chain, leaf first, and the leaf's key.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) chain: Vec<X509>,
    pub(super) key: PKey<Private>,
}

/// Everything a builder collects.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) roots: Roots,
    pub(super) extra_roots: Vec<X509>,
    pub(super) identity: Option<Identity>,
    pub(super) min_version: TlsVersion,
    pub(super) max_version: TlsVersion,
    pub(super) key_log: Option<KeyLog>,
    pub(super) verify_certificate: bool,
    pub(super) verify_hostname: bool,
    pub(super) resumption: bool,
    pub(super) sni: bool,
    pub(super) hello: Option<ClientHello>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            roots: Roots::Native,
            extra_roots: Vec::new(),
            identity: None,
            min_version: TlsVersion::Tls12,
            max_version: TlsVersion::Tls13,
            key_log: None,
            verify_certificate: true,
            verify_hostname: true,
            resumption: true,
            sni: true,
            hello: None,
        }
    }
}

impl TlsConfig {
    /// Starts from the defaults: native roots, TLS 1.2 and 1.3, verification, SNI and resumption on.
    pub fn builder() -> TlsConfigBuilder {
        TlsConfigBuilder::default()
    }

    /// The same, sessions apart, that says `hello`: see [`TlsConfigBuilder::client_hello`].
    ///
    /// # Errors
    /// When BoringSSL cannot say it.
    pub fn with_client_hello(&self, hello: ClientHello) -> Result<Self, TlsConfigError> {
        let settings = self.inner.settings.clone();
        TlsConfigBuilder { settings, error: None }.client_hello(hello).build()
    }

    /// What it says in place of BoringSSL's own hello, if anything.
    pub fn client_hello(&self) -> Option<&ClientHello> {
        self.inner.settings.hello.as_ref()
    }

    fn new(settings: Settings) -> Self {
        let inner = Inner {
            settings,
            sessions: Arc::default(),
            context: OnceLock::new(),
            http1_context: OnceLock::new(),
        };
        TlsConfig { inner: Arc::new(inner) }
    }

    /// Whether both are the same configuration, and so share trust, identity and sessions.
    pub fn same(&self, other: &TlsConfig) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(super) fn sessions(&self) -> &SessionCache {
        &self.inner.sessions
    }

    /// Whether [`prepare`](Self::prepare) has nothing to do.
    pub(crate) fn is_prepared(&self) -> bool {
        self.inner.context.get().is_some()
    }

    /// Reads the trust store and makes BoringSSL's form of this configuration. It takes tens of
    /// milliseconds the first time in a process, which is too long for a reactor.
    pub(crate) fn prepare(&self) {
        // Who needs the context gets the error.
        let _ = self.context(&[]);
    }

    /// BoringSSL's form of this configuration for a connection that offers `alpn`, made on first use.
    pub(super) fn context(&self, alpn: &[&[u8]]) -> Result<&SslContext, &ErrorStack> {
        let Inner { settings, sessions, context, http1_context } = &*self.inner;
        let hello = settings.hello.as_ref();
        let http1 = hello.and_then(|hello| hello.http1_certificate_compression.as_deref());
        let usual = hello.map_or(&[][..], |hello| &hello.certificate_compression);
        let (context, compression) = match http1 {
            Some(http1) if alpn == [b"http/1.1"] => (http1_context, http1),
            _ => (context, usual),
        };
        context.get_or_init(|| hello::context(settings, sessions, compression)).as_ref()
    }
}

impl Default for TlsConfig {
    fn default() -> Self {
        TlsConfig::new(Settings::default())
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.inner.settings;
        f.debug_struct("TlsConfig")
            .field("roots", &settings.roots)
            .field("extra_roots", &settings.extra_roots.len())
            .field("identity", &settings.identity.is_some())
            .field("min_version", &settings.min_version)
            .field("max_version", &settings.max_version)
            .field("key_log", &settings.key_log.is_some())
            .field("verify_certificate", &settings.verify_certificate)
            .field("verify_hostname", &settings.verify_hostname)
            .field("resumption", &settings.resumption)
            .field("sni", &settings.sni)
            .field("client_hello", &settings.hello.is_some())
            .finish()
    }
}

/// Collects a [`TlsConfig`]. Mistakes are kept and reported by [`build`](Self::build), the first one
/// first.
#[derive(Default)]
pub struct TlsConfigBuilder {
    settings: Settings,
    error: Option<TlsConfigError>,
}

impl TlsConfigBuilder {
    /// Which trust anchors to start from. [`Roots::Native`] by default.
    #[must_use]
    pub fn roots(mut self, roots: Roots) -> Self {
        self.settings.roots = roots;
        self
    }

    /// Trusts the certificates in `pem_or_der` as well: any number of them in PEM, or one in DER. They
    /// need not be self-signed authorities: an intermediate one, or a server's own, is trusted as it is.
    #[must_use]
    pub fn add_ca(mut self, pem_or_der: &[u8]) -> Self {
        match certificates(pem_or_der) {
            Ok(certificates) => self.settings.extra_roots.extend(certificates),
            Err(error) => self.fail("the added CA is not a certificate in PEM or DER", error),
        }
        self
    }

    /// Presents this certificate to servers that ask for one. `chain` is PEM, leaf first; `key` is
    /// the leaf's unencrypted private key in PEM (PKCS#8, PKCS#1 or SEC 1).
    #[must_use]
    pub fn identity(mut self, chain: &[u8], key: &[u8]) -> Self {
        match (X509::stack_from_pem(chain), PKey::private_key_from_pem(key)) {
            (Ok(chain), Ok(key)) => self.set_identity(chain, key),
            (Err(error), _) => self.fail("the identity's certificate chain is not PEM", error),
            (_, Err(error)) => self.fail("the identity's key is not an unencrypted PEM key", error),
        }
        self
    }

    /// The same with a key that is encrypted with `password`, in PKCS#8 or as OpenSSL did it before. A key that is
    /// not encrypted is taken as it is.
    #[must_use]
    pub fn identity_encrypted(mut self, chain: &[u8], key: &[u8], password: &str) -> Self {
        let key = PKey::private_key_from_pem_passphrase(key, password.as_bytes());
        match (X509::stack_from_pem(chain), key) {
            (Ok(chain), Ok(key)) => self.set_identity(chain, key),
            (Err(error), _) => self.fail("the identity's certificate chain is not PEM", error),
            (_, Err(error)) => {
                self.fail("the identity's key cannot be opened with this password", error);
            }
        }
        self
    }

    /// The same from a PKCS#12 archive (`.p12`, `.pfx`).
    #[must_use]
    pub fn identity_pkcs12(mut self, archive: &[u8], password: &str) -> Self {
        match Pkcs12::from_der(archive).and_then(|archive| archive.parse(password)) {
            Ok(parsed) => {
                let mut chain = vec![parsed.cert];
                chain.extend(parsed.chain.iter().flatten().map(ToOwned::to_owned));
                self.set_identity(chain, parsed.pkey);
            }
            Err(error) => {
                self.fail("the PKCS#12 identity cannot be opened with this password", error);
            }
        }
        self
    }

    /// The lowest version to agree to. TLS 1.2 by default.
    #[must_use]
    pub fn min_version(mut self, version: TlsVersion) -> Self {
        self.settings.min_version = version;
        self
    }

    /// The highest version to agree to. TLS 1.3 by default.
    #[must_use]
    pub fn max_version(mut self, version: TlsVersion) -> Self {
        self.settings.max_version = version;
        self
    }

    /// Writes the secrets of every session to `log`, one NSS key log line at a time, so that a
    /// recorded connection can be decrypted. For debugging only.
    #[must_use]
    pub fn key_log(mut self, log: impl Write + Send + 'static) -> Self {
        self.settings.key_log = Some(Arc::new(Mutex::new(log)));
        self
    }

    /// The same, appended to the file at `path`.
    #[must_use]
    pub fn key_log_file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        match open_key_log(path) {
            Ok(file) => self.key_log(file),
            Err(error) => {
                self.fail(format!("the key log {} cannot be opened", path.display()), error);
                self
            }
        }
    }

    /// The same, to the file that the environment's `SSLKEYLOGFILE` names, if it names one. The
    /// variable is looked at only here.
    #[must_use]
    pub fn key_log_from_env(self) -> Self {
        match std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty()) {
            Some(path) => self.key_log_file(PathBuf::from(path)),
            None => self,
        }
    }

    /// Takes any certificate from anyone: **the connection is encrypted, but nobody knows to whom**.
    /// Off by default.
    #[must_use]
    pub fn danger_accept_any_certificate(mut self, accept: bool) -> Self {
        self.settings.verify_certificate = !accept;
        self
    }

    /// Takes a trusted certificate **whatever host it was issued for**. Off by default.
    #[must_use]
    pub fn danger_ignore_hostname(mut self, ignore: bool) -> Self {
        self.settings.verify_hostname = !ignore;
        self
    }

    /// Whether sessions are remembered and resumed (RFC 8446 section 2.2). On by default.
    #[must_use]
    pub fn session_resumption(mut self, on: bool) -> Self {
        self.settings.resumption = on;
        self
    }

    /// Whether the host name is sent in the clear for the server to choose its certificate (RFC 6066
    /// section 3). On by default; never done for addresses.
    #[must_use]
    pub fn sni(mut self, on: bool) -> Self {
        self.settings.sni = on;
        self
    }

    /// Says `hello` instead of what BoringSSL says by itself, to look like the browser that it is from.
    /// It sets the versions and resumption as well; what is set after it wins.
    #[must_use]
    pub fn client_hello(mut self, hello: ClientHello) -> Self {
        if let Err(error) = hello.check().and_then(|()| shape::check(&hello)) {
            self.error.get_or_insert(error.into());
            return self;
        }
        self.settings.min_version = hello.min_version;
        self.settings.max_version = hello.max_version;
        self.settings.resumption = hello.resumption;
        self.settings.hello = Some(hello);
        self
    }

    /// The configuration. Fast: trust stores are read when the first connection needs them.
    ///
    /// # Errors
    /// The first thing that was wrong with what the builder was given.
    pub fn build(self) -> Result<TlsConfig, TlsConfigError> {
        let TlsConfigBuilder { settings, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        if settings.min_version > settings.max_version {
            return Err(TlsConfigError::new("the lowest TLS version is above the highest"));
        }
        let trusts_nobody = settings.roots == Roots::None && settings.extra_roots.is_empty();
        if settings.verify_certificate && trusts_nobody {
            return Err(TlsConfigError::new("no roots and no added CA: nobody could be trusted"));
        }
        Ok(TlsConfig::new(settings))
    }

    fn set_identity(&mut self, chain: Vec<X509>, key: PKey<Private>) {
        let matches = match chain.first() {
            None => {
                self.error.get_or_insert_with(|| {
                    TlsConfigError::new("the identity's certificate chain is empty")
                });
                return;
            }
            Some(leaf) => leaf.public_key().is_ok_and(|public| public.public_eq(&key)),
        };
        if matches {
            self.settings.identity = Some(Identity { chain, key });
        } else {
            self.error.get_or_insert_with(|| {
                TlsConfigError::new("the identity's key does not belong to its first certificate")
            });
        }
    }

    fn fail(
        &mut self,
        detail: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) {
        let source = Some(Box::new(source) as _);
        self.error.get_or_insert(TlsConfigError { detail: detail.into(), source });
    }
}

impl fmt::Debug for TlsConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfigBuilder").field("error", &self.error).finish_non_exhaustive()
    }
}

/// PEM with at least one certificate, or one in DER.
fn certificates(pem_or_der: &[u8]) -> Result<Vec<X509>, ErrorStack> {
    match X509::stack_from_pem(pem_or_der)? {
        none if none.is_empty() => Ok(vec![X509::from_der(pem_or_der)?]),
        some => Ok(some),
    }
}

/// Whoever can read a key log can read the traffic: the owner alone, where that can be said.
fn open_key_log(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes one line. A log that cannot be written must not break the connection it describes.
pub(super) fn log_keys(log: &KeyLog, line: &str) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    // One write a line, so that processes appending to one file do not mix theirs.
    if let Err(error) = log.write_all(format!("{line}\n").as_bytes()).and_then(|()| log.flush()) {
        tracing::debug!(%error, "the TLS key log could not be written");
    }
}

/// What was wrong with a TLS configuration.
#[derive(Debug)]
pub struct TlsConfigError {
    detail: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl TlsConfigError {
    fn new(detail: &str) -> Self {
        TlsConfigError { detail: detail.to_owned(), source: None }
    }
}

impl From<ClientHelloError> for TlsConfigError {
    fn from(error: ClientHelloError) -> Self {
        TlsConfigError {
            detail: "the ClientHello cannot be sent".to_owned(),
            source: Some(Box::new(error)),
        }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS configuration: {}", self.detail)
    }
}

impl std::error::Error for TlsConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|error| error as _)
    }
}
