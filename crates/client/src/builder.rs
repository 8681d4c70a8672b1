//! How a client is made.

use std::{fmt, marker::PhantomData, num::NonZero, path::PathBuf, sync::Arc, time::Duration};

use mimus_net::{
    Runtime,
    dial::{Dialer, Resolve, SystemResolver},
    rt,
};
use mimus_proto::Fields;

use crate::{
    Client, Coding, Error, Proxies, Result, blocking,
    client::{Async, Blocking, Inner, bad_setting},
    cookie::{CookieStore, Jar},
    error::without_secrets,
    options::{Settings, shared_setters},
    origins::Origins,
    policy::netrc::Netrc,
    pool::{Limits, SharedPool},
    profile::{self, Hints, IntoProfile, Profile},
    target::{Accepted, IntoUrl, Known, Targets},
};

/// Settings of a client on their way to becoming one. What is set here is the default of every call
/// and can be overridden by each.
#[must_use = "a builder makes nothing until it is built"]
pub struct ClientBuilder<M = Async> {
    settings: Settings,
    fields: Vec<(String, Vec<u8>)>,
    /// Of `fields`, those that are ours and not the user's.
    own_fields: Vec<&'static str>,
    names_codings: bool,
    profile: Option<Result<Profile, profile::Error>>,
    profile_hello: bool,
    ja3: Option<String>,
    akamai: Option<String>,
    base_url: Option<Result<Accepted>>,
    runtime: Option<Arc<dyn Runtime>>,
    resolver: Option<Arc<dyn Resolve>>,
    pool: Limits,
    /// Who builds said how many connections there may be to an origin.
    limits_hosts: bool,
    cookies: Option<Arc<dyn CookieStore>>,
    netrc: Option<NetrcSource>,
    mode: PhantomData<fn() -> M>,
}

impl<M> fmt::Debug for ClientBuilder<M> {
    /// Without the default fields' values and the base URL's credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = self.base_url.as_ref().and_then(|url| url.as_ref().ok());
        f.debug_struct("ClientBuilder")
            .field("settings", &self.settings)
            .field("fields", &fields)
            .field("base_url", &base_url.map(|url| without_secrets(&url.0.url).to_string()))
            .field("runtime", &self.runtime)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

enum NetrcSource {
    Default,
    /// As the default, where it is one.
    IfAny,
    File(PathBuf),
}

impl<M> ClientBuilder<M> {
    pub(crate) fn new() -> Self {
        let settings = Settings { proxies: Arc::new(Proxies::from_env()), ..Settings::default() };
        ClientBuilder {
            settings,
            fields: vec![
                ("User-Agent".into(), concat!("mimus/", env!("CARGO_PKG_VERSION")).into()),
                ("Accept".into(), "*/*".into()),
            ],
            own_fields: vec!["User-Agent", "Accept"],
            names_codings: true,
            profile: None,
            profile_hello: true,
            ja3: None,
            akamai: None,
            base_url: None,
            runtime: None,
            resolver: None,
            pool: Limits::default(),
            limits_hosts: false,
            cookies: None,
            netrc: None,
            mode: PhantomData,
        }
    }

    fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    shared_setters!();

    /// A field sent with every request that has none of its name; replaces an earlier default.
    pub fn default_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self = self.no_default_header(name);
        self.fields.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sends no default field of this name (`Accept` and `User-Agent` are there from the start, and
    /// `Accept-Encoding` for calls that decode).
    pub fn no_default_header(mut self, name: &str) -> Self {
        self.names_codings &= !name.eq_ignore_ascii_case("accept-encoding");
        self.fields.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self.own_fields.retain(|own| !own.eq_ignore_ascii_case(name));
        self
    }

    /// The browser to look like on the wire, or its name: its TLS, its HTTP/2, and the fields of its
    /// requests (see [`profile`]). What the user says besides stands where that browser has it; what
    /// contradicts the profile is sent, and warned about. HTTP/2 settings, and
    /// [`coalesce`](Self::coalesce), are overridden by setters that come later.
    pub fn profile(mut self, profile: impl IntoProfile) -> Self {
        let profile = profile.into_profile();
        if let Ok(profile) = &profile {
            profile.apply(self.settings.transport_mut());
            self.settings.profile = Some(profile.clone());
        }
        self.profile = Some(profile);
        self
    }

    /// Whether the profile's ClientHello is said, unless [`tls`](Self::tls) was given one of its own. On by
    /// default; without it the rest of the profile is contradicted by TLS, which is of use where BoringSSL
    /// lacks what a hello needs.
    pub fn profile_client_hello(mut self, on: bool) -> Self {
        self.profile_hello = on;
        self
    }

    /// The ClientHello that this JA3 describes: `version,ciphers,extensions,groups,point formats`, as it is
    /// written before it is hashed. It says which extensions there are and in which order, and of most not
    /// what they say: that is as in the hello of [`tls`](Self::tls) or of the [`profile`](Self::profile), whatever
    /// the order of the calls, or else of the profile compiled in that is nearest.
    ///
    /// What cannot be said is an error of [`build`](Self::build) that names the part. An order of extensions
    /// takes a patched BoringSSL.
    pub fn ja3(mut self, text: impl Into<String>) -> Self {
        self.ja3 = Some(text.into());
        self
    }

    /// Has HTTP/2 connections open as this Akamai fingerprint says: `SETTINGS|WINDOW_UPDATE|PRIORITY|order of
    /// the pseudo-fields`, for example `1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p`. The rest is as the
    /// [`profile`](Self::profile) has it, or [`http2_opening`](Self::http2_opening). Windows stay as they are
    /// announced.
    ///
    /// What cannot be said is an error of [`build`](Self::build) that names the part.
    pub fn akamai(mut self, text: impl Into<String>) -> Self {
        self.akamai = Some(text.into());
        self
    }

    /// The `User-Agent`. The default names this library and its version.
    pub fn user_agent(self, value: impl AsRef<[u8]>) -> Self {
        self.default_header("User-Agent", value)
    }

    /// What relative URLs are relative to.
    pub fn base_url(mut self, url: impl IntoUrl) -> Self {
        self.base_url = Some(url.into_target(&Known::new(&Targets::new(None))));
        self
    }

    /// Who resolves names. The default asks the operating system, off the reactor.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// The most connections to one origin at a time. No limit by default, but a [`profile`](Self::profile)'s (browsers
    /// have 6), nor with 0.
    pub fn max_connections_per_host(mut self, n: impl Into<Option<usize>>) -> Self {
        self.limits_hosts = true;
        self.pool.per_key = n.into().and_then(NonZero::new);
        self
    }

    /// The most connections in all at a time. No limit by default, nor with 0.
    pub fn max_connections(mut self, n: impl Into<Option<usize>>) -> Self {
        self.pool.total = n.into().and_then(NonZero::new);
        self
    }

    /// The most idle connections kept per origin; 0 keeps none. No limit by default: as many as were in
    /// use at once are kept until they have been idle for too long.
    pub fn max_idle_per_host(mut self, n: usize) -> Self {
        self.pool.idle_per_key = n;
        self
    }

    /// How long an idle connection is kept. 90 s by default.
    pub fn pool_idle_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.pool.idle_timeout = limit.into();
        self
    }

    /// How old a connection may grow before it is no longer reused. No limit by default.
    pub fn pool_max_lifetime(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.pool.max_lifetime = limit.into();
        self
    }

    /// Keeps cookies in a new [`Jar`], or none. Off by default.
    pub fn cookies(mut self, on: bool) -> Self {
        self.cookies = on.then(|| Arc::new(Jar::new()) as Arc<dyn CookieStore>);
        self
    }

    /// Keeps cookies in this store.
    pub fn cookie_store(mut self, store: Arc<dyn CookieStore>) -> Self {
        self.cookies = Some(store);
        self
    }

    /// Takes credentials from the user's netrc file (`$NETRC`, else `~/.netrc`) for calls that have
    /// none. Off by default.
    pub fn netrc(mut self, on: bool) -> Self {
        self.netrc = on.then_some(NetrcSource::Default);
        self
    }

    /// As [`netrc`](Self::netrc), if there is such a file and it can be read; one that is broken counts for nothing.
    pub fn netrc_if_any(mut self) -> Self {
        self.netrc = Some(NetrcSource::IfAny);
        self
    }

    /// Takes credentials from this netrc file for calls that have none.
    pub fn netrc_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.netrc = Some(NetrcSource::File(path.into()));
        self
    }

    fn finish(mut self, runtime: Arc<dyn Runtime>) -> Result<Arc<Inner>> {
        self.finish_profile()?;
        self.finish_texts()?;
        let mut fields = Fields::new();
        for (name, value) in &self.fields {
            crate::request::set(&mut fields, name, value)
                .map_err(|e| bad_setting("a default field is not valid", e))?;
        }
        let base_url = match self.base_url {
            Some(url) => Some(url?.0.url.clone()),
            None => None,
        };
        let netrc = self.netrc.map(read_netrc).transpose()?.flatten();
        let dialer = Dialer {
            runtime,
            resolver: self.resolver.unwrap_or_else(|| Arc::new(SystemResolver)),
            overrides: Arc::default(),
        };
        Ok(Arc::new(Inner {
            settings: Arc::new(self.settings),
            default_fields: fields,
            names_codings: self.names_codings,
            targets: Targets::new(base_url),
            dialer,
            pool: SharedPool::new(self.pool.clone()),
            pool_limits: self.pool,
            http1_origins: Origins::default(),
            apart_origins: Origins::default(),
            http2_origins: Origins::default(),
            http1_takers: Origins::default(),
            hints: Hints::default(),
            cookies: self.cookies,
            netrc,
        }))
    }

    /// What a profile says takes the place of what we say ourselves.
    fn finish_profile(&mut self) -> Result<()> {
        let Some(profile) = self.profile.take() else {
            return Ok(());
        };
        let profile = profile.map_err(|e| bad_setting("it has no profile", e))?;
        let supported = |name: &str| Coding::from_token(name).is_some_and(Coding::is_supported);
        if let Some(coding) = profile.codings().find(|coding| !supported(coding)) {
            let what = format!("the profile asks for {coding}, which this build cannot decode");
            return Err(Error::request(what));
        }
        let tls = &mut self.settings.transport_mut().tls;
        if let Some(hello) = profile.client_hello().filter(|_| self.profile_hello)
            && tls.client_hello().is_none()
            && self.ja3.is_none()
        {
            *tls = tls.with_client_hello(hello.clone()).map_err(|e| {
                bad_setting(&format!("it cannot say the hello of {:?}", profile.name()), e)
            })?;
        }
        if !self.limits_hosts {
            self.pool.per_key = profile.connections_per_host();
        }
        let own = std::mem::take(&mut self.own_fields);
        self.fields.retain(|(name, _)| !own.contains(&name.as_str()));
        Ok(())
    }

    /// What fingerprints say takes the place of what a profile says.
    fn finish_texts(&mut self) -> Result<()> {
        let profile = self.settings.profile.clone();
        if let Some(text) = self.ja3.take() {
            let tls = &mut self.settings.transport_mut().tls;
            let base = tls.client_hello().or(profile.as_ref().and_then(Profile::client_hello));
            let hello = profile::hello_of(&text, base);
            let hello = hello.map_err(|e| bad_setting("the JA3 cannot be said", e))?;
            *tls = tls
                .with_client_hello(hello)
                .map_err(|e| bad_setting("the JA3 cannot be said", e))?;
        }
        if let Some(text) = self.akamai.take() {
            profile::open_as(&text, &mut self.settings.transport_mut().http2)
                .map_err(|e| bad_setting("HTTP/2 cannot open like that", e))?;
        }
        Ok(())
    }
}

impl ClientBuilder<Async> {
    /// The runtime on which calls are made: [`rt::Tokio`], `rt::Smol`, or one's own. The default is
    /// the tokio runtime on which each call is made.
    pub fn runtime(mut self, runtime: impl Runtime) -> Self {
        self.runtime = Some(Arc::new(runtime));
        self
    }

    /// The client.
    ///
    /// # Errors
    /// When a setting is not valid.
    pub fn build(self) -> Result<Client> {
        let runtime = match self.runtime.clone() {
            Some(runtime) => runtime,
            #[cfg(feature = "tokio")]
            None => Arc::new(rt::Tokio::ambient()),
            #[cfg(not(feature = "tokio"))]
            None => return Err(crate::Error::request("no runtime was chosen")),
        };
        self.finish(runtime).map(Client::from_inner)
    }
}

impl ClientBuilder<Blocking> {
    /// The client.
    ///
    /// # Errors
    /// When a setting is not valid.
    pub fn build(self) -> Result<blocking::Client> {
        self.finish(Arc::new(rt::Blocking)).map(blocking::Client::from_inner)
    }
}

/// The user's netrc may be missing; one that is named must be there.
fn read_netrc(source: NetrcSource) -> Result<Option<Netrc>> {
    let (path, must_exist) = match source {
        NetrcSource::IfAny => {
            return Ok(read_netrc(NetrcSource::Default).unwrap_or_else(|error| {
                tracing::debug!(%error, "the netrc file is passed over");
                None
            }));
        }
        NetrcSource::File(path) => (path, true),
        NetrcSource::Default => match std::env::var_os("NETRC") {
            Some(path) => (PathBuf::from(path), true),
            None => match std::env::home_dir() {
                Some(home) => (home.join(".netrc"), false),
                None => return Ok(None),
            },
        },
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => text
            .parse()
            .map(Some)
            .map_err(|e| bad_setting(&format!("{} is not a netrc file", path.display()), e)),
        Err(e) if !must_exist && e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(bad_setting(&format!("{} cannot be read", path.display()), e)),
    }
}
