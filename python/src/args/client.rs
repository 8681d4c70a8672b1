//! The arguments that a client is made with.

use std::sync::Arc;

use mimus::{Client, ClientBuilder, DecodeLimits, Proxies, cookie::Jar, profile::Profile};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyBool};

use super::{Defaults, fields, flag, given, http_version, keywords, network, redirects};
use crate::{
    auth::Auth,
    cookies,
    hooks::{Before, Hooks},
    options::{Limits, retries, timeouts},
    transport::Transport,
};

keywords! {
    /// The keyword arguments of `Client` and `AsyncClient`.
    pub(crate) struct ClientArgs {
        base_url,
        params,
        headers,
        cookies,
        auth,
        timeout,
        follow_redirects,
        proxy,
        trust_env,
        verify,
        cert,
        profile,
        http_version,
        retries,
        limits,
        hooks,
        local_address,
        unix_socket,
        resolve,
        decode,
        default_headers,
        transport,
    }
}

impl ClientArgs<'_> {
    /// A builder with these settings, which lacks its runtime, and what calls need to know besides.
    ///
    /// # Errors
    /// A Python exception for what is not valid.
    pub(crate) fn apply(self, py: Python<'_>) -> PyResult<(ClientBuilder, Defaults)> {
        let mut defaults = Defaults::default();
        let mut builder = Client::builder();
        if let Some(base) = given(&self.base_url) {
            builder = builder.base_url(super::url(base)?.to_str()?);
        }
        if let Some(params) = given(&self.params) {
            defaults.params = fields::pairs(params, "params")?;
        }
        builder = self.headers(builder)?;
        builder = self.cookies(py, builder, &mut defaults)?;
        if let Some(hooks) = given(&self.hooks) {
            defaults.hooks = Hooks::from_python(hooks)?;
            let callables = &defaults.hooks.request;
            if !callables.is_empty() {
                let callables = callables.iter().map(|hook| hook.clone_ref(py)).collect();
                builder = builder.hook(Before::each(callables));
            }
        }
        if let Some(auth) = given(&self.auth) {
            builder = match Auth::from_python(auth)? {
                Auth::None => builder,
                Auth::Credentials(credentials) => builder.auth(credentials),
                Auth::Callable(callable) => {
                    defaults.auth = Some(callable);
                    builder
                }
            };
        }
        builder = self.policies(builder)?;
        builder = self.transport(py, builder, &mut defaults)?;
        if let Some(transport) = given(&self.transport) {
            builder = builder.answer_with(Transport::from_python(transport)?);
            defaults.has_transport = true;
        }
        Ok((builder, defaults))
    }

    fn headers(&self, mut builder: ClientBuilder) -> PyResult<ClientBuilder> {
        if flag(self.default_headers.as_ref(), "default_headers")? == Some(false) {
            for name in ["Accept", "User-Agent", "Accept-Encoding"] {
                builder = builder.no_default_header(name);
            }
        }
        let Some(headers) = given(&self.headers) else { return Ok(builder) };
        let mut builder = Some(builder);
        fields::each_field_or_none(headers, |name, value| {
            builder = builder.take().map(|builder| match value {
                Some(value) => builder.default_header(name, value),
                None => builder.no_default_header(name),
            });
        })?;
        builder.ok_or_else(|| PyTypeError::new_err("headers"))
    }

    fn cookies(
        &self,
        py: Python<'_>,
        builder: ClientBuilder,
        defaults: &mut Defaults,
    ) -> PyResult<ClientBuilder> {
        let jar = Arc::new(Jar::new());
        if let Some(cookies) = given(&self.cookies) {
            if let Ok(keep) = cookies.cast::<PyBool>()
                && !keep.is_true()
            {
                return Ok(builder);
            }
            if cookies.hasattr("extract_cookies")? {
                cookies::import(py, &jar, cookies)?;
            } else if !cookies.is_instance_of::<PyBool>() {
                defaults.cookies = fields::cookie_line(cookies)?;
            }
        }
        defaults.jar = Some(Arc::clone(&jar));
        Ok(builder.cookie_store(jar))
    }

    fn policies(&self, mut builder: ClientBuilder) -> PyResult<ClientBuilder> {
        if let Some(limit) = &self.timeout {
            builder = builder.timeouts(timeouts(limit)?);
        }
        if let Some(follow) = given(&self.follow_redirects) {
            builder = builder.redirect(redirects(follow)?);
        }
        if let Some(policy) = given(&self.retries) {
            builder = builder.retry(retries(policy)?);
        }
        if let Some(limits) = given(&self.limits) {
            let limits = limits
                .cast::<Limits>()
                .map_err(|_| PyTypeError::new_err("limits must be a mimus.Limits"))?;
            let limits = &limits.get().0;
            builder = builder
                .max_connections(limits.total.map(std::num::NonZero::get))
                .max_connections_per_host(limits.per_key.map(std::num::NonZero::get))
                .max_idle_per_host(limits.idle_per_key)
                .pool_idle_timeout(limits.idle_timeout)
                .pool_max_lifetime(limits.max_lifetime);
        }
        if let Some(decode) = flag(self.decode.as_ref(), "decode")? {
            builder = builder.decode(decode.then(DecodeLimits::default));
        }
        Ok(builder)
    }

    fn transport(
        &self,
        py: Python<'_>,
        mut builder: ClientBuilder,
        defaults: &mut Defaults,
    ) -> PyResult<ClientBuilder> {
        if let Some(version) = given(&self.http_version) {
            defaults.version = http_version(version)?;
            builder = builder.version(defaults.version);
        }
        if let Some(tls) = defaults.tls.set_usual(py, self.verify.as_ref(), self.cert.as_ref())? {
            builder = builder.tls(tls);
        }
        // After `tls`, which it keeps.
        if let Some(profile) = given(&self.profile) {
            let name: String = profile.extract()?;
            // One that there is not is refused when the client is built.
            let known = Profile::named(&name).ok();
            defaults.tls.set_hello(known.and_then(|known| known.client_hello().cloned()));
            builder = builder.profile(name.as_str());
            defaults.profile = Some(name);
        }
        let trust_env = flag(self.trust_env.as_ref(), "trust_env")?.unwrap_or(true);
        // Who says whose credentials are sent, even if it is nobody's, means no others.
        if trust_env && self.auth.is_none() {
            builder = builder.netrc_if_any();
        }
        builder = match given(&self.proxy) {
            Some(proxy) => builder.proxies(network::proxies(proxy)?),
            None if trust_env => builder,
            None => builder.proxies(Proxies::none()),
        };
        if let Some(path) = given(&self.unix_socket) {
            builder = builder.unix_socket(path.extract::<std::path::PathBuf>()?);
        }
        if let Some(resolve) = given(&self.resolve) {
            for known in network::resolve(resolve)? {
                builder = builder.resolve(&known.host, known.port, known.addrs);
            }
        }
        if let Some(address) = given(&self.local_address) {
            builder = builder.socket_options(network::local_address(address)?);
        }
        Ok(builder)
    }
}
