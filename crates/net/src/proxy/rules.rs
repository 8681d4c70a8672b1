//! Which proxy serves which URL.

use std::sync::Arc;

use super::{Proxy, ProxyError, no_proxy::NoProxy};
use crate::dial::Host;

/// Which proxy serves a URL: one for each scheme, and a list of hosts to reach directly.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    direct: NoProxy,
}

impl Proxies {
    /// No proxy for anything.
    pub fn none() -> Self {
        Proxies::default()
    }

    /// `proxy` for everything.
    pub fn all(proxy: Proxy) -> Self {
        let proxy = Some(Arc::new(proxy));
        Proxies { http: proxy.clone(), https: proxy, direct: NoProxy::default() }
    }

    /// `proxy` for `http` (and `ws`) URLs.
    #[must_use]
    pub fn http(mut self, proxy: Proxy) -> Self {
        self.http = Some(Arc::new(proxy));
        self
    }

    /// `proxy` for `https` (and `wss`) URLs.
    #[must_use]
    pub fn https(mut self, proxy: Proxy) -> Self {
        self.https = Some(Arc::new(proxy));
        self
    }

    /// The hosts to reach directly, in the syntax of [`NO_PROXY`](super::no_proxy).
    #[must_use]
    pub fn no_proxy(mut self, list: &str) -> Self {
        self.direct = NoProxy::parse(list);
        self
    }

    /// What the environment says, as of now. A variable that names no usable proxy is left out, with
    /// a warning in the log; [`try_from_env`](Self::try_from_env) reports it instead.
    pub fn from_env() -> Self {
        let (proxies, errors) = read(&environment);
        for error in errors {
            tracing::warn!(%error, "proxy ignored");
        }
        proxies
    }

    /// What the environment says, as of now.
    ///
    /// # Errors
    /// The first variable that names no usable proxy.
    pub fn try_from_env() -> Result<Self, ProxyError> {
        Proxies::from_lookup(environment)
    }

    /// What variables looked up by `get` say: `http_proxy`, `https_proxy`, `all_proxy` and
    /// `no_proxy`, in lower case or else in upper case. `HTTP_PROXY` does not count where
    /// `REQUEST_METHOD` is set: in a CGI program it is a header of the request (CVE-2016-5385).
    ///
    /// # Errors
    /// The first variable that names no usable proxy.
    pub fn from_lookup(get: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let (proxies, errors) = read(&get);
        errors.into_iter().next().map_or(Ok(proxies), Err)
    }

    /// The proxy for a URL with this host and port; `https` also stands for `wss`.
    pub fn select(&self, https: bool, host: &Host, port: u16) -> Option<Arc<Proxy>> {
        let proxy = if https { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.direct.matches(host, port)).cloned()
    }

    /// Whether nothing ever goes through a proxy.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The rules in the environment, and what is wrong with it.
fn read(get: &dyn Fn(&str) -> Option<String>) -> (Proxies, Vec<ProxyError>) {
    let mut errors = Vec::new();
    let cgi = get("REQUEST_METHOD").is_some();
    let mut proxy = |lower: &str| {
        let (name, value) = variable(get, lower, cgi)?;
        match Proxy::parse(&value) {
            Ok(proxy) => Some(Arc::new(proxy)),
            Err(error) => {
                errors.push(error.found_in(&name));
                None
            }
        }
    };
    let (http, https, all) = (proxy("http_proxy"), proxy("https_proxy"), proxy("all_proxy"));
    let no_proxy = variable(get, "no_proxy", false).map(|(_, list)| list);
    let proxies = Proxies {
        http: http.or_else(|| all.clone()),
        https: https.or(all),
        direct: NoProxy::parse(&no_proxy.unwrap_or_default()),
    };
    (proxies, errors)
}

/// The variable `lower`, or the same in upper case, if it is set to something.
fn variable(
    get: &dyn Fn(&str) -> Option<String>,
    lower: &str,
    cgi: bool,
) -> Option<(String, String)> {
    let upper = lower.to_ascii_uppercase();
    let names = [Some(lower.to_owned()), (!(cgi && lower == "http_proxy")).then_some(upper)];
    names.into_iter().flatten().find_map(|name| {
        let value = get(&name).filter(|value| !value.trim().is_empty())?;
        Some((name, value))
    })
}
