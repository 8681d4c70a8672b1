//! What a browser's profile costs: the client with one, the client without one that sends the very same
//! fields because its user lists them, and the making of clients.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex, PoisonError},
};

use mimus::{BoxError, ClientBuilder, Fields, Hook, Version, blocking};
use mimus_bench_kit::{Ask, AsyncPeer, Config, PeerError, Protocol, Seen, Setup};

/// Configurations that make exchanges.
pub const CONFIGS: &[Config] = &[
    Config { name: "chrome", about: "mimus::Client with the profile \"chrome\", on tokio" },
    Config {
        name: "chrome-by-hand",
        about: "mimus::Client without a profile, whose default headers are those of \"chrome\"",
    },
    Config { name: "firefox", about: "mimus::Client with the profile \"firefox\", on tokio" },
    Config {
        name: "firefox-by-hand",
        about: "mimus::Client without a profile, whose default headers are those of \"firefox\"",
    },
];

/// Configurations whose exchange is the making of a client, which then asks nobody.
pub const NEW: &[Config] = &[
    Config { name: "new", about: "mimus::Client::new()" },
    Config { name: "new-chrome", about: "a client with the profile \"chrome\"" },
    Config { name: "new-firefox", about: "a client with the profile \"firefox\"" },
];

/// Has a client look like the configuration's browser, or say the same fields without its profile.
pub fn set_up<M>(builder: ClientBuilder<M>, setup: &Setup) -> Result<ClientBuilder<M>, PeerError> {
    let Some(browser) = setup.config.strip_suffix("-by-hand") else {
        return Ok(builder.profile(&*setup.config));
    };
    let mut builder = builder.no_default_header("User-Agent").no_default_header("Accept");
    let fields = fields_of(browser, setup.protocol)?;
    for (name, value) in fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        builder = builder.default_header(name, value);
    }
    Ok(builder)
}

/// The fields of a small GET with the profile, as the client itself says that it is about to send them.
fn fields_of(browser: &str, protocol: Protocol) -> Result<Fields, PeerError> {
    // Who never answers: it takes a connection for the client to know what it will say.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/b/64", listener.local_addr()?);
    let said = Arc::new(Overheard::default());
    let client = blocking::Client::builder().no_proxy().profile(browser).hook(Ear(said.clone()));
    let client = match protocol {
        Protocol::Http2 => client.version(Version::HTTP_2),
        _ => client,
    };
    let ended = client.build()?.get(&*url).send();
    let fields = said.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (fields, ended) {
        (Some(fields), _) => Ok(fields),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(_)) => Err("nobody saw the fields".into()),
    }
}

/// The fields of a request that was not sent.
#[derive(Debug, Default)]
struct Overheard(Mutex<Option<Fields>>);

/// Takes note of a request's fields, and ends it.
#[derive(Debug)]
struct Ear(Arc<Overheard>);

impl Hook for Ear {
    fn before_send(&self, request: &mut mimus::Outgoing<'_>) -> Result<(), BoxError> {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.fields.clone());
        Err("that was all".into())
    }
}

/// Makes clients.
#[derive(Debug, Clone)]
pub struct New {
    browser: Option<&'static str>,
}

impl New {
    /// # Errors
    /// When the configuration is none of [`NEW`].
    pub fn of(setup: &Setup) -> Result<Self, PeerError> {
        let browser = match &*setup.config {
            "new" => None,
            "new-chrome" => Some("chrome"),
            "new-firefox" => Some("firefox"),
            other => return Err(format!("{other:?} makes no clients").into()),
        };
        Ok(Self { browser })
    }
}

impl AsyncPeer for New {
    async fn exchange(&self, _: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let builder = mimus::Client::builder();
        let builder = match self.browser {
            None => builder,
            Some(browser) => builder.profile(browser),
        };
        std::hint::black_box(builder.build()?);
        seen.status(200);
        seen.whole(&[]);
        Ok(())
    }
}
