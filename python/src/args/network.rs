//! Where connections go: proxies, fixed addresses, our own end.

use std::net::{IpAddr, SocketAddr};

use mimus::{Proxies, Proxy, SocketOptions};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyString},
};

use super::fields::each_pair;
use crate::errors;

/// What `proxy=` means: False for none, a URL for everything, or URLs by scheme ("http", "https", "all", and
/// "no_proxy" for a list of hosts to reach directly).
pub(super) fn proxies(value: &Bound<'_, PyAny>) -> PyResult<Proxies> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return match truth.is_true() {
            false => Ok(Proxies::none()),
            true => Err(PyTypeError::new_err("proxy must be a URL, a mapping or False")),
        };
    }
    if let Ok(url) = value.cast::<PyString>() {
        return Ok(Proxies::all(proxy(url.py(), url.to_str()?)?));
    }
    by_scheme(value)
}

fn by_scheme(map: &Bound<'_, PyAny>) -> PyResult<Proxies> {
    let (mut http, mut https, mut all, mut direct) = (None, None, None, None);
    each_pair(map, "proxy", |scheme, url| {
        let scheme: String = scheme.extract()?;
        let place = match scheme.trim_end_matches("://") {
            "http" | "ws" => &mut http,
            "https" | "wss" => &mut https,
            "all" => &mut all,
            "no_proxy" | "no" => &mut direct,
            other => {
                let what = format!("proxies are by scheme: http, https or all, not {other:?}");
                return Err(PyValueError::new_err(what));
            }
        };
        *place = url.extract::<Option<String>>()?;
        Ok(())
    })?;
    let mut proxies = Proxies::none();
    if let Some(url) = http.or_else(|| all.clone()) {
        proxies = proxies.http(proxy(map.py(), &url)?);
    }
    if let Some(url) = https.or(all) {
        proxies = proxies.https(proxy(map.py(), &url)?);
    }
    if let Some(list) = direct {
        proxies = proxies.no_proxy(&list);
    }
    Ok(proxies)
}

fn proxy(py: Python<'_>, url: &str) -> PyResult<Proxy> {
    Proxy::parse(url).map_err(|error| errors::plain(py, "InvalidURL", error.to_string()))
}

/// A fixed answer to the question for a name.
pub(super) struct Known {
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) addrs: Vec<SocketAddr>,
}

/// What `resolve=` means: "host" or "host:port" -> an address or a list of them.
pub(super) fn resolve(map: &Bound<'_, PyAny>) -> PyResult<Vec<Known>> {
    let mut all = Vec::new();
    each_pair(map, "resolve", |name, addrs| {
        let name: String = name.extract()?;
        let (host, port) = host_and_port(&name)?;
        let texts: Vec<String> = match addrs.cast::<PyString>() {
            Ok(one) => vec![one.to_str()?.to_owned()],
            Err(_) => addrs.extract()?,
        };
        let addrs = texts.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        all.push(Known { host, port, addrs });
        Ok(())
    })?;
    Ok(all)
}

fn host_and_port(name: &str) -> PyResult<(String, Option<u16>)> {
    match name.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => match port.parse() {
            Ok(port) => Ok((host.to_owned(), Some(port))),
            Err(_) => Err(PyValueError::new_err(format!("{name:?} has no port after its colon"))),
        },
        _ => Ok((name.to_owned(), None)),
    }
}

/// An address with or without a port; 0 stands for the URL's.
fn address(text: &str) -> PyResult<SocketAddr> {
    let bare = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    text.parse::<SocketAddr>()
        .or_else(|_| bare())
        .map_err(|_| PyValueError::new_err(format!("{text:?} is not an IP address")))
}

/// What `local_address=` means: an address of ours, or the name of an interface.
pub(super) fn local_address(value: &Bound<'_, PyAny>) -> PyResult<SocketOptions> {
    let text: String = match value.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_owned(),
        Err(_) => value.str()?.to_str()?.to_owned(),
    };
    let mut options = SocketOptions::default();
    match text.parse::<IpAddr>() {
        Ok(ip) => options.bind = Some(ip),
        Err(_) => options.interface = Some(text),
    }
    Ok(options)
}
