//! From Python's arguments to the core's requests and clients, for the client that blocks and the one that is awaited
//! alike.

mod body;
mod client;
mod fields;
mod multipart;
mod network;
mod tls;

pub(crate) use body::to_json;
pub(crate) use client::ClientArgs;
pub(crate) use fields::{field_value, fill_fields};
pub(crate) use tls::TlsCache;

use std::sync::Arc;

use mimus::{
    DecodeLimits, Method, Request, RequestBuilder, Version, cookie::Jar, profile::Kind, redirect,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyString},
};

use crate::{
    auth::Auth,
    bodies::AsyncBody,
    errors,
    hooks::{Before, Hooks},
    options::{retries, timeouts, timeouts_by_name},
    transport,
};

/// A struct of the keyword arguments of a function, each as it was given, and how it is made of `**kwargs`.
macro_rules! keywords {
    ($(#[$about:meta])* $visibility:vis struct $name:ident { $($field:ident,)* }) => {
        $(#[$about])*
        #[derive(Default)]
        $visibility struct $name<'py> {
            $($field: Option<Bound<'py, PyAny>>,)*
        }

        impl<'py> $name<'py> {
            /// Sorts out what was given to `function`.
            ///
            /// # Errors
            /// `TypeError` for an argument that it does not have.
            $visibility fn parse(
                function: &str,
                given: Option<&Bound<'py, pyo3::types::PyDict>>,
            ) -> PyResult<Self> {
                let mut arguments = Self::default();
                for (name, value) in given.into_iter().flatten() {
                    let name = name.cast_into::<pyo3::types::PyString>()?;
                    let place = match name.to_str()? {
                        $(stringify!($field) => &mut arguments.$field,)*
                        other => return Err($crate::args::unexpected(function, other)),
                    };
                    *place = Some(value);
                }
                Ok(arguments)
            }
        }
    };
}
pub(crate) use keywords;

/// What arguments of requests and httpx are called here.
const ELSEWHERE: [(&str, &str); 5] = [
    ("allow_redirects", "follow_redirects"),
    ("max_redirects", "follow_redirects=<a number>"),
    ("proxies", "proxy"),
    ("http2", "http_version"),
    ("event_hooks", "hooks"),
];

/// `function` does not take `argument`.
pub(crate) fn unexpected(function: &str, argument: &str) -> PyErr {
    let known = ELSEWHERE.iter().find(|(theirs, _)| *theirs == argument);
    let hint = known.map(|(_, ours)| format!(": here it is {ours}")).unwrap_or_default();
    PyTypeError::new_err(format!(
        "{function}() got an unexpected keyword argument '{argument}'{hint}"
    ))
}

keywords! {
    /// The keyword arguments of a call.
    pub(crate) struct CallArgs {
        params,
        headers,
        cookies,
        content,
        data,
        files,
        json,
        auth,
        timeout,
        follow_redirects,
        proxy,
        verify,
        cert,
        profile,
        http_version,
        unix_socket,
        resolve,
        local_address,
        retries,
        kind,
        extensions,
        stream,
        decode,
    }
}

/// What to do with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Hand it out at its head; else when its body was read.
    pub(crate) stream: bool,
}

/// A call that is ready to be made.
pub(crate) struct Call {
    pub(crate) request: Box<Request>,
    pub(crate) plan: Plan,
}

/// What a call needs to know of its client besides the core's own.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// The version of HTTP that the client speaks, if it was said.
    pub(crate) version: Option<Version>,
    /// The name of the client's profile, if it has one.
    pub(crate) profile: Option<String>,
    /// Makes the configurations for calls with a `verify` or `cert` of their own.
    pub(crate) tls: TlsCache,
    /// The parameters that each URL gets.
    pub(crate) params: Vec<(String, String)>,
    /// The callable that is asked for credentials.
    pub(crate) auth: Option<Py<PyAny>>,
    pub(crate) hooks: Hooks,
    /// The cookies that the client keeps, if it keeps any.
    pub(crate) jar: Option<Arc<Jar>>,
    /// The value of a `Cookie` field that each call gets.
    pub(crate) cookies: Vec<u8>,
    /// Whether it answers its calls itself.
    pub(crate) has_transport: bool,
}

/// The keyword arguments that a function was given, to be changed.
pub(crate) fn copied<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())
}

/// The arguments of a call whose response is handed out at its head.
pub(crate) fn streamed<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = copied(py, options)?;
    options.set_item("stream", true)?;
    Ok(options)
}

/// The method that a user names, in whatever case.
pub(crate) fn method(name: &str) -> PyResult<Method> {
    // Methods are case-sensitive (RFC 9110 section 9.1), and those of the registry are upper-case.
    let known = name.to_ascii_uppercase();
    let standard = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    let name = if standard.contains(&known.as_str()) { &known } else { name };
    Method::from_bytes(name.as_bytes())
        .map_err(|_| PyValueError::new_err(format!("{name:?} is not a method")))
}

/// The text of a URL: a string, or an object whose string is one.
pub(crate) fn url<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.clone()),
        Err(_) if value.is_none() || value.is_instance_of::<pyo3::types::PyBytes>() => {
            Err(PyTypeError::new_err("the URL must be a string"))
        }
        Err(_) => value.str(),
    }
}

impl CallArgs<'_> {
    /// Finishes the request that `builder` begins. `asynchronous` makes a body of an async iterable.
    ///
    /// # Errors
    /// A Python exception for what is not valid.
    pub(crate) fn apply<M>(
        &self,
        py: Python<'_>,
        builder: RequestBuilder<M>,
        defaults: &Defaults,
        asynchronous: AsyncBody,
    ) -> PyResult<Call> {
        let plan = Plan { stream: flag(self.stream.as_ref(), "stream")?.unwrap_or(false) };
        let builder = self.extend(py, builder, defaults, asynchronous)?;
        let request = builder.build_boxed().map_err(|error| errors::raise(py, &error))?;
        Ok(Call { request, plan })
    }

    /// The same for a request that is not finished by this.
    ///
    /// # Errors
    /// A Python exception for what is not valid.
    pub(crate) fn extend<M>(
        &self,
        py: Python<'_>,
        mut builder: RequestBuilder<M>,
        defaults: &Defaults,
        asynchronous: AsyncBody,
    ) -> PyResult<RequestBuilder<M>> {
        let mut announced = None;
        if !defaults.params.is_empty() {
            builder = builder.query(&defaults.params);
        }
        if let Some(params) = given(&self.params) {
            builder = fields::query(builder, params)?;
        }
        if let Some(headers) = given(&self.headers) {
            builder = fields::headers(builder, headers, &mut announced)?;
        }
        if given(&self.cookies).is_some() || !defaults.cookies.is_empty() {
            builder = fields::cookies(builder, &defaults.cookies, given(&self.cookies))?;
        }
        builder = self.credentials(py, builder, defaults)?;
        builder = self.policies(builder)?;
        builder = self.transport(py, builder, defaults)?;
        body::apply(py, builder, &self.body(announced), asynchronous)
    }

    fn body(&self, announced: Option<u64>) -> body::Given<'_, '_> {
        body::Given {
            content: given(&self.content),
            data: given(&self.data),
            files: given(&self.files),
            json: given(&self.json),
            announced,
        }
    }

    fn credentials<M>(
        &self,
        py: Python<'_>,
        builder: RequestBuilder<M>,
        defaults: &Defaults,
    ) -> PyResult<RequestBuilder<M>> {
        let Some(auth) = &self.auth else {
            return Ok(match &defaults.auth {
                Some(callable) => builder.hook(Before::authenticating(callable.clone_ref(py))),
                None => builder,
            });
        };
        match Auth::from_python(auth)? {
            Auth::None => Ok(builder.auth(None).no_netrc()),
            Auth::Credentials(credentials) => Ok(builder.auth(credentials)),
            Auth::Callable(callable) => {
                Ok(builder.auth(None).no_netrc().hook(Before::authenticating(callable)))
            }
        }
    }

    /// What is decided above the connection.
    fn policies<M>(&self, mut builder: RequestBuilder<M>) -> PyResult<RequestBuilder<M>> {
        if let Some(limit) = &self.timeout {
            builder = builder.timeouts(timeouts(limit)?);
        }
        if let Some(follow) = given(&self.follow_redirects) {
            builder = builder.redirect(redirects(follow)?);
        }
        if let Some(policy) = &self.retries {
            builder = builder.retry(retries(policy)?);
        }
        if let Some(decode) = flag(self.decode.as_ref(), "decode")? {
            builder = builder.decode(decode.then(DecodeLimits::default));
        }
        if let Some(name) = given(&self.kind) {
            builder = builder.kind(kind(name)?);
        }
        if let Some(extensions) = given(&self.extensions)
            && let Some(limits) = extended(extensions, self.timeout.is_some())?
        {
            builder = builder.timeouts(limits);
        }
        Ok(builder)
    }

    /// What makes one connection different from another.
    fn transport<M>(
        &self,
        py: Python<'_>,
        mut builder: RequestBuilder<M>,
        defaults: &Defaults,
    ) -> PyResult<RequestBuilder<M>> {
        if let Some(version) = &self.http_version {
            builder = builder.version(http_version(version)?);
        }
        if let Some(profile) = given(&self.profile)
            && Some(profile.extract::<String>()?) != defaults.profile
        {
            return Err(PyValueError::new_err(
                "a profile is a client's, not a call's: make a Client(profile=...) for it",
            ));
        }
        if (self.verify.is_some() || self.cert.is_some())
            && let Some(config) =
                defaults.tls.config(py, self.verify.as_ref(), self.cert.as_ref())?
        {
            builder = builder.tls(config);
        }
        if let Some(proxy) = given(&self.proxy) {
            builder = builder.proxies(network::proxies(proxy)?);
        }
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
        // Whoever answers in the place of all servers.
        Ok(match transport::interceptor(py).filter(|_| !defaults.has_transport) {
            Some(interceptor) => builder.answer_with(interceptor),
            None => builder,
        })
    }
}

/// An argument that is there and not None.
fn given<'a, 'py>(argument: &'a Option<Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    argument.as_ref().filter(|value| !value.is_none())
}

pub(crate) fn flag(argument: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<bool>> {
    let Some(value) = argument.filter(|value| !value.is_none()) else { return Ok(None) };
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(Some(flag.is_true())),
        Err(_) => Err(PyTypeError::new_err(format!("{name} must be True or False"))),
    }
}

/// What `follow_redirects=` means.
fn redirects(value: &Bound<'_, PyAny>) -> PyResult<redirect::Policy> {
    if let Ok(follow) = value.cast::<PyBool>() {
        return Ok(match follow.is_true() {
            true => redirect::Policy::default(),
            false => redirect::Policy::none(),
        });
    }
    match value.extract::<usize>() {
        Ok(limit) => Ok(redirect::Policy::limited(limit)),
        Err(_) => Err(PyTypeError::new_err("follow_redirects must be True, False or a number")),
    }
}

/// What `http_version=` means; "h2c" is HTTP/2 without asking first, which plain text needs.
pub(crate) fn http_version(value: &Bound<'_, PyAny>) -> PyResult<Option<Version>> {
    if value.is_none() {
        return Ok(None);
    }
    let name: String = value.extract()?;
    match name.as_str() {
        "1.1" | "1" | "HTTP/1.1" => Ok(Some(Version::HTTP_11)),
        "2" | "h2" | "h2c" | "HTTP/2" => Ok(Some(Version::HTTP_2)),
        _ => Err(PyValueError::new_err(format!(
            "http_version must be \"1.1\", \"2\", \"h2c\" or None, not {name:?}"
        ))),
    }
}

fn kind(value: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let name: String = value.extract()?;
    Kind::named(&name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no kind of request {name:?}")))
}

/// What `extensions=` means: of those that httpx has, `timeout`. None is ignored.
fn extended(extensions: &Bound<'_, PyAny>, has_timeout: bool) -> PyResult<Option<mimus::Timeouts>> {
    let (mut limits, mut refused) = (None, None);
    fields::each_pair(extensions, "extensions", |name, value| {
        let instead = match name.extract::<String>()?.as_str() {
            "timeout" if has_timeout => "`timeout` says it already",
            "timeout" => {
                limits = Some(timeouts_by_name(&value)?);
                return Ok(());
            }
            "sni_hostname" => "ask for that name, and give its address by `resolve`",
            "trace" => "`hooks` see requests and responses, and a response has `timings`",
            _ => "there is no such extension",
        };
        refused = Some(format!("the extension {} cannot be used: {instead}", name.repr()?));
        Ok(())
    })?;
    match refused {
        None => Ok(limits),
        Some(why) => Err(PyValueError::new_err(why)),
    }
}
