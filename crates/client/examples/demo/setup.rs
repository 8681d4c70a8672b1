//! What every step works with: an origin, clients that trust it, and ways to say what is wrong.

use std::{error::Error, time::Duration};

use mimus::{BoxError, Client, ClientBuilder, Kind, Phase, TlsConfig};
use mimus_testkit::{Origin, Port, Seen};

/// What a step ends with: the facts it found, or what is wrong.
pub type Result<T = String> = std::result::Result<T, BoxError>;

/// Ends a step as wrong, for the reason given, unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+).into());
        }
    };
}
pub(crate) use ensure;

/// The origin, and whom to trust to reach it over TLS.
pub struct Demo {
    pub origin: Origin,
    trust: TlsConfig,
}

impl Demo {
    pub fn start() -> Result<Self> {
        let origin = Origin::start()?;
        let trust = TlsConfig::builder().add_ca(origin.ca_pem().as_bytes()).build()?;
        Ok(Demo { origin, trust })
    }

    /// Trusts the certificate authority of the origin, beside those of the system.
    pub fn trust(&self) -> TlsConfig {
        self.trust.clone()
    }

    /// A proxy that the environment may name has no way to the origin.
    pub fn builder(&self) -> ClientBuilder {
        Client::builder().no_proxy().tls(self.trust())
    }

    pub fn client(&self) -> Result<Client> {
        Ok(self.builder().build()?)
    }

    pub fn http(&self, path: &str) -> String {
        self.origin.http_url(path)
    }

    pub fn https(&self, path: &str) -> String {
        self.origin.https_url(path)
    }

    pub fn at(&self, port: Port, path: &str) -> Result<String> {
        Ok(self.origin.url(port, path)?)
    }

    /// The request that the origin received last.
    pub fn last_request(&self) -> Result<Seen> {
        self.origin.requests().pop().ok_or_else(|| "the origin saw no request".into())
    }

    /// How many connections the origin has accepted so far.
    pub fn connections(&self) -> usize {
        self.origin.connections().len()
    }

    /// Waits until the origin has seen the end of every connection but the first `known`.
    pub async fn all_closed_since(&self, known: usize) -> Result<()> {
        let open = || self.origin.connections().into_iter().skip(known).find(|seen| !seen.closed);
        for _ in 0..200 {
            if open().is_none() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let Some(leaked) = open() else { return Ok(()) };
        let asked = self.origin.requests().into_iter().rfind(|seen| seen.conn == leaked.conn);
        let target = asked.map(|seen| seen.target).unwrap_or_default();
        Err(format!("the connection for {target} is still open at the origin").into())
    }
}

/// The error of a call that has to fail in this way. What failed before there was any exchange, or
/// after it, has no phase.
pub fn refused<T>(
    result: mimus::Result<T>,
    kind: Kind,
    phase: impl Into<Option<Phase>>,
) -> Result<mimus::Error> {
    match result {
        Ok(_) => Err("the call succeeded".into()),
        Err(error) if (error.kind(), error.phase()) == (kind, phase.into()) => Ok(error),
        Err(error) => Err(format!("{:?}: {}", error.kind(), chain(&error)).into()),
    }
}

/// An error and its causes on one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<_> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// What an error comes from in the end.
pub fn root(error: &mimus::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// A duration in milliseconds, with as many digits as mean something.
pub fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        ..10.0 => format!("{ms:.2} ms"),
        10.0..100.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.0} ms"),
    }
}
