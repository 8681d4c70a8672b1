//! Settings that have several parts: timeouts, limits of the pool, retries.

use std::time::Duration;

use mimus::{Method, PoolLimits, StatusCode, Timeouts, retry::RetryPolicy};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict},
};

/// A duration in seconds, or no limit.
pub(crate) fn seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Duration>> {
    if value.is_none() {
        return Ok(None);
    }
    let wrong = || PyTypeError::new_err(format!("{name} must be a number of seconds or None"));
    if value.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    let seconds: f64 = value.extract().map_err(|_| wrong())?;
    if seconds == f64::INFINITY {
        return Ok(None);
    }
    Duration::try_from_secs_f64(seconds)
        .map(Some)
        .map_err(|_| PyValueError::new_err(format!("{name} must not be negative: {seconds}")))
}

/// How long each part of a call may take, in seconds. None is without limit.
///
/// Args:
///     total: The whole call, from the start to the end of the body, redirects and retries included. Default: None.
///     connect: Resolving the name, connecting, and the TLS handshake, each. Default: 10.
///     read: Waiting for the response head, and between two reads of the body. Default: 300.
///     write: Between two writes of the request. Default: 300.
///     pool: Waiting for a connection where the client's limits are reached. Default: None.
///
/// Raises:
///     ValueError: A limit is negative.
#[pyclass(frozen, eq, hash, module = "mimus", name = "Timeout")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Timeout {
    total: Option<Duration>,
    connect: Option<Duration>,
    read: Option<Duration>,
    write: Option<Duration>,
    pool: Option<Duration>,
}

#[pymethods]
impl Timeout {
    #[new]
    #[pyo3(signature = (total=None, *, connect=Unset, read=Unset, write=Unset, pool=None),
           text_signature = "(total=None, *, connect=10.0, read=300.0, write=300.0, pool=None)")]
    fn new(
        total: Option<&Bound<'_, PyAny>>,
        connect: Limit<'_>,
        read: Limit<'_>,
        write: Limit<'_>,
        pool: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let usual = Timeouts::default();
        let limit =
            |value: Option<&Bound<'_, PyAny>>, name| value.map_or(Ok(None), |v| seconds(v, name));
        Ok(Timeout {
            total: limit(total, "total")?,
            connect: connect.or(usual.connect, "connect")?,
            read: read.or(usual.idle, "read")?,
            write: write.or(usual.idle, "write")?,
            pool: limit(pool, "pool")?,
        })
    }

    /// Seconds for the whole call.
    #[getter]
    fn total(&self) -> Option<f64> {
        self.total.map(|limit| limit.as_secs_f64())
    }

    /// Seconds for resolving, connecting, and the TLS handshake, each.
    #[getter]
    fn connect(&self) -> Option<f64> {
        self.connect.map(|limit| limit.as_secs_f64())
    }

    /// Seconds until the head, and between two reads of the body.
    #[getter]
    fn read(&self) -> Option<f64> {
        self.read.map(|limit| limit.as_secs_f64())
    }

    /// Seconds between two writes.
    #[getter]
    fn write(&self) -> Option<f64> {
        self.write.map(|limit| limit.as_secs_f64())
    }

    /// Seconds of waiting for a connection.
    #[getter]
    fn pool(&self) -> Option<f64> {
        self.pool.map(|limit| limit.as_secs_f64())
    }

    fn __repr__(&self) -> String {
        format!(
            "Timeout(total={}, connect={}, read={}, write={}, pool={})",
            say_seconds(self.total),
            say_seconds(self.connect),
            say_seconds(self.read),
            say_seconds(self.write),
            say_seconds(self.pool)
        )
    }
}

/// A limit that may be None, or not given at all.
pub(crate) enum Limit<'py> {
    Unset,
    Given(Bound<'py, PyAny>),
}
use Limit::Unset;

impl<'py> FromPyObject<'_, 'py> for Limit<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Limit::Given(value.to_owned()))
    }
}

impl Limit<'_> {
    fn or(self, usual: Option<Duration>, name: &str) -> PyResult<Option<Duration>> {
        match self {
            Limit::Unset => Ok(usual),
            Limit::Given(value) => seconds(&value, name),
        }
    }
}

/// What is said to who gives another.
const TIMEOUT: &str = "timeout must be a number of seconds for the whole call, a mimus.Timeout(connect=..., read=...) for \
                       its parts, or None";

/// What `timeout=` means: a number bounds the whole call, None nothing at all.
pub(crate) fn timeouts(value: &Bound<'_, PyAny>) -> PyResult<Timeouts> {
    let mut timeouts = Timeouts::NONE;
    if value.is_none() {
        return Ok(timeouts);
    }
    let Ok(given) = value.cast::<Timeout>() else {
        timeouts = Timeouts::default();
        timeouts.total = seconds(value, "timeout").map_err(|error| {
            match error.is_instance_of::<PyTypeError>(value.py()) {
                true => PyTypeError::new_err(TIMEOUT),
                false => error,
            }
        })?;
        return Ok(timeouts);
    };
    let given = given.get();
    timeouts.total = given.total;
    timeouts.resolve = given.connect;
    timeouts.connect = given.connect;
    timeouts.tls = given.connect;
    timeouts.head = given.read;
    timeouts.idle = given.read;
    timeouts.write = given.write;
    timeouts.pool = given.pool;
    Ok(timeouts)
}

/// What the extension `timeout` of httpx says: seconds for "connect", "read", "write" and "pool"; what is not named has no
/// limit.
pub(crate) fn timeouts_by_name(value: &Bound<'_, PyAny>) -> PyResult<Timeouts> {
    let limits = value.cast::<PyDict>().map_err(|_| {
        PyTypeError::new_err("the extension 'timeout' must be a dict of numbers of seconds")
    })?;
    let mut timeouts = Timeouts::NONE;
    for (name, limit) in limits {
        let name: String = name.extract()?;
        let limit = seconds(&limit, &name)?;
        match name.as_str() {
            "connect" => {
                (timeouts.resolve, timeouts.connect, timeouts.tls) = (limit, limit, limit);
            }
            "read" => (timeouts.head, timeouts.idle) = (limit, limit),
            "write" => timeouts.write = limit,
            "pool" => timeouts.pool = limit,
            other => {
                let what = format!("timeouts are connect, read, write and pool, not {other:?}");
                return Err(PyValueError::new_err(what));
            }
        }
    }
    Ok(timeouts)
}

/// What a client's pool of connections may hold.
///
/// Args:
///     max_connections: The most connections in all at a time. Default: None, no limit.
///     max_connections_per_host: The most to one origin. Default: None, no limit.
///     max_idle_per_host: The most idle ones kept to one origin. Default: None, no limit.
///     idle_timeout: How long an idle one is kept, in seconds. Default: 90.
///     max_lifetime: How old one may grow before it is no longer used again, in seconds. Default: None.
#[pyclass(frozen, eq, module = "mimus", name = "Limits")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits(pub(crate) PoolLimits);

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (*, max_connections=None, max_connections_per_host=None, max_idle_per_host=None,
                        idle_timeout=Unset, max_lifetime=None),
           text_signature = "(*, max_connections=None, max_connections_per_host=None, max_idle_per_host=None, \
                             idle_timeout=90.0, max_lifetime=None)")]
    fn new(
        max_connections: Option<usize>,
        max_connections_per_host: Option<usize>,
        max_idle_per_host: Option<usize>,
        idle_timeout: Limit<'_>,
        max_lifetime: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut limits = PoolLimits::default();
        limits.total = max_connections.and_then(std::num::NonZero::new);
        limits.per_key = max_connections_per_host.and_then(std::num::NonZero::new);
        limits.idle_per_key = max_idle_per_host.unwrap_or(limits.idle_per_key);
        limits.idle_timeout = idle_timeout.or(limits.idle_timeout, "idle_timeout")?;
        limits.max_lifetime =
            max_lifetime.map_or(Ok(None), |value| seconds(value, "max_lifetime"))?;
        Ok(Limits(limits))
    }

    fn __repr__(&self) -> String {
        let say = |n: Option<usize>| n.map_or_else(|| "None".to_owned(), |n| n.to_string());
        let idle = Some(self.0.idle_per_key).filter(|most| *most != usize::MAX);
        format!(
            "Limits(max_connections={}, max_connections_per_host={}, max_idle_per_host={}, idle_timeout={}, \
             max_lifetime={})",
            say(self.0.total.map(std::num::NonZero::get)),
            say(self.0.per_key.map(std::num::NonZero::get)),
            say(idle),
            say_seconds(self.0.idle_timeout),
            say_seconds(self.0.max_lifetime),
        )
    }
}

/// A limit as Python writes it.
fn say_seconds(limit: Option<Duration>) -> String {
    limit.map_or_else(|| "None".to_owned(), |limit| format!("{:?}", limit.as_secs_f64()))
}

/// Retries beyond those that are always safe and always made.
///
/// Args:
///     max_retries: How many a call may make. Default: 3.
///     statuses: The statuses worth another attempt. Default: 408, 429, 502, 503, 504.
///     methods: The methods that may be attempted again after something was sent. Default: the idempotent ones.
///     on_connect: Whether a failure to connect is worth another attempt. Default: True.
///     on_timeout: Whether a timeout is. Default: False.
///     backoff: The longest first delay in seconds; it doubles with each retry. Default: 0.1.
///     max_delay: The longest delay of all, in seconds. Default: 10.
///     max_retry_after: The longest `Retry-After` that is waited for, in seconds. Default: 60.
///
/// Raises:
///     ValueError: A status or a method is none.
#[pyclass(frozen, module = "mimus", name = "Retry")]
#[derive(Debug, Clone)]
pub(crate) struct Retry {
    policy: RetryPolicy,
    /// As it was made.
    said: String,
}

#[pymethods]
impl Retry {
    #[new]
    #[pyo3(signature = (max_retries=3, *, statuses=None, methods=None, on_connect=true, on_timeout=false,
                        backoff=0.1, max_delay=10.0, max_retry_after=60.0))]
    #[expect(clippy::too_many_arguments, reason = "the parts of a policy, by name")]
    fn new(
        max_retries: u32,
        statuses: Option<Vec<u16>>,
        methods: Option<Vec<String>>,
        on_connect: bool,
        on_timeout: bool,
        backoff: f64,
        max_delay: f64,
        max_retry_after: f64,
    ) -> PyResult<Self> {
        let seconds = |n: f64| {
            Duration::try_from_secs_f64(n)
                .map_err(|_| PyValueError::new_err(format!("{n} is no number of seconds")))
        };
        let said = {
            let truth = |it: bool| if it { "True" } else { "False" };
            let statuses = statuses.as_ref().map_or_else(|| "None".into(), |s| format!("{s:?}"));
            let methods = methods.as_ref().map_or_else(|| "None".into(), |m| format!("{m:?}"));
            format!(
                "Retry({max_retries}, statuses={statuses}, methods={methods}, on_connect={}, on_timeout={}, \
                 backoff={backoff:?}, max_delay={max_delay:?}, max_retry_after={max_retry_after:?})",
                truth(on_connect),
                truth(on_timeout),
            )
        };
        let mut policy = RetryPolicy::default()
            .max_retries(max_retries)
            .on_connect(on_connect)
            .on_timeout(on_timeout)
            .backoff(seconds(backoff)?, seconds(max_delay)?)
            .max_retry_after(seconds(max_retry_after)?);
        if let Some(statuses) = statuses {
            let parsed =
                statuses.into_iter().map(StatusCode::from_u16).collect::<Result<Vec<_>, _>>();
            policy = policy.statuses(parsed.map_err(|e| PyValueError::new_err(e.to_string()))?);
        }
        if let Some(methods) = methods {
            let parsed = methods.iter().map(|name| Method::from_bytes(name.as_bytes()));
            let parsed = parsed.collect::<Result<Vec<_>, _>>();
            policy = policy.methods(parsed.map_err(|e| PyValueError::new_err(e.to_string()))?);
        }
        Ok(Retry { policy, said })
    }

    fn __repr__(&self) -> &str {
        &self.said
    }
}

/// What `retries=` means.
pub(crate) fn retries(value: &Bound<'_, PyAny>) -> PyResult<Option<RetryPolicy>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(retry) = value.cast::<Retry>() {
        return Ok(Some(retry.get().policy.clone()));
    }
    let count: u32 = value
        .extract()
        .map_err(|_| PyTypeError::new_err("retries must be a number, a Retry or None"))?;
    Ok((count > 0).then(|| RetryPolicy::default().max_retries(count)))
}
