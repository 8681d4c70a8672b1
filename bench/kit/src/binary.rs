//! The command line of a measured client.

use std::{
    ffi::OsString,
    fmt::Display,
    io::{self, BufRead, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use serde::Serialize;

use crate::{
    AsyncPeer, BlockingPeer, Hello, Job, PeerError, Protocol,
    measure::{Session, async_session, blocking_session},
};

/// A configuration that a client can be measured in.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// What it is called: `default`, `best`...
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
}

/// What a client is made for.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The name of the [`Config`].
    pub config: String,
    /// What it is to speak. A client that cannot is not asked to, by the suite.
    pub protocol: Protocol,
    /// The certificate, in PEM, of the authority that the server's is from; `None` without TLS.
    pub ca: Option<Vec<u8>>,
    /// Each exchange must open a connection of its own. Set only for a client that says
    /// [`Cold::Configured`](crate::Cold::Configured).
    pub cold: bool,
}

/// The tokio runtime of an asynchronous client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Flavor {
    Current,
    Multi,
}

pub(crate) type Open = Arc<dyn Fn(Setup, Flavor) -> Result<Box<dyn Session>, PeerError>>;

/// A measured client's binary: its name, and its configurations with how to make a client of each.
pub struct Binary {
    name: String,
    version: String,
    configs: Vec<Entry>,
}

/// A configuration with how to make a client of it.
struct Entry {
    config: Config,
    /// What a client of it may be asked to speak.
    speaks: fn(Protocol) -> bool,
    open: Open,
}

/// [`Binary`] of an asynchronous client alone: what its `main` calls.
pub fn run_async<P: AsyncPeer>(
    name: &str,
    version: &str,
    configs: &[Config],
    make: impl Fn(&Setup) -> Result<P, PeerError> + Send + Sync + 'static,
) -> ExitCode {
    Binary::new(name, version).with_async(configs, make).run()
}

/// [`Binary`] of a blocking client alone: what its `main` calls.
pub fn run_blocking<P: BlockingPeer>(
    name: &str,
    version: &str,
    configs: &[Config],
    make: impl Fn(&Setup) -> Result<P, PeerError> + 'static,
) -> ExitCode {
    Binary::new(name, version).with_blocking(configs, make).run()
}

impl Binary {
    /// A client without configurations yet. The version is that of the library measured; see
    /// [`locked`](crate::locked).
    pub fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), configs: Vec::new() }
    }

    /// Adds configurations in which the client is asynchronous. `make` is called within the runtime.
    #[must_use]
    pub fn with_async<P: AsyncPeer>(
        self,
        configs: &[Config],
        make: impl Fn(&Setup) -> Result<P, PeerError> + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        self.with(configs, Arc::new(move |setup, flavor| async_session(setup, flavor, &make)))
    }

    /// Adds configurations in which the client blocks.
    #[must_use]
    pub fn with_blocking<P: BlockingPeer>(
        self,
        configs: &[Config],
        make: impl Fn(&Setup) -> Result<P, PeerError> + 'static,
    ) -> Self {
        let make = Arc::new(make);
        self.with(configs, Arc::new(move |setup, _| blocking_session(setup, make.clone())))
    }

    pub(crate) fn with(mut self, configs: &[Config], open: Open) -> Self {
        self.configs.extend(configs.iter().map(|&config| {
            let open = open.clone();
            Entry { config, speaks: |_| true, open }
        }));
        self
    }

    /// The configurations that were added last, so many of them, are for these protocols only, and go
    /// before others of the same name: so that what one protocol needs is no part of a client for another.
    #[must_use]
    pub fn only_for(mut self, last: &[Config], speaks: fn(Protocol) -> bool) -> Self {
        for entry in self.configs.iter_mut().rev().take(last.len()) {
            entry.speaks = speaks;
        }
        self
    }

    /// Does what the command line says.
    pub fn run(self) -> ExitCode {
        match Command::parse().and_then(|command| self.obey(command)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{}: {}", self.name, with_causes(&*e));
                ExitCode::FAILURE
            }
        }
    }

    fn obey(&self, command: Command) -> Result<(), PeerError> {
        match command {
            Command::Hello { config: None } => {
                self.configs.iter().try_for_each(|entry| say(&self.hello(&entry.config)))
            }
            Command::Hello { config: Some(config) } => {
                let entry = self.entry(&config, |_| true)?;
                say(&self.hello(&entry.config))
            }
            Command::Serve(options) => {
                let (config, mut session) = self.open(options)?;
                say(&self.hello(&config))?;
                for line in io::stdin().lock().lines() {
                    let job: Job = serde_json::from_str(&line?)?;
                    say(&session.answer(&job))?;
                }
                Ok(())
            }
            Command::Once(options, job) => say(&self.open(options)?.1.answer(&job)),
        }
    }

    fn entry(&self, name: &str, is: impl Fn(&Entry) -> bool) -> Result<&Entry, PeerError> {
        self.configs
            .iter()
            .rfind(|entry| entry.config.name == name && is(entry))
            .ok_or_else(|| format!("no configuration {name:?}").into())
    }

    fn open(&self, options: Options) -> Result<(Config, Box<dyn Session>), PeerError> {
        let entry = self.entry(&options.config, |entry| (entry.speaks)(options.protocol))?;
        let ca = match options.ca {
            Some(path) => {
                Some(std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?)
            }
            None => None,
        };
        let Options { config: name, protocol, .. } = options;
        let setup = Setup { config: name, protocol, ca, cold: false };
        Ok((entry.config, (entry.open)(setup, options.flavor)?))
    }

    fn hello(&self, config: &Config) -> Hello {
        Hello {
            name: self.name.clone(),
            version: self.version.clone(),
            config: config.name.to_owned(),
            about: config.about.to_owned(),
        }
    }
}

fn say(line: &impl Serialize) -> Result<(), PeerError> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// An error and those beneath it, as one line.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

enum Command {
    Hello { config: Option<String> },
    Serve(Options),
    Once(Options, Box<Job>),
}

struct Options {
    config: String,
    ca: Option<PathBuf>,
    flavor: Flavor,
    protocol: Protocol,
}

impl Command {
    fn parse() -> Result<Self, PeerError> {
        Self::parse_from(lexopt::Parser::from_env())
    }

    fn parse_from(mut arguments: lexopt::Parser) -> Result<Self, PeerError> {
        use lexopt::prelude::*;
        let (mut verb, mut config, mut ca, mut job) = (None, None, None, None);
        let (mut flavor, mut protocol) = (Flavor::Current, Protocol::default());
        while let Some(argument) = arguments.next()? {
            match argument {
                Value(word) if verb.is_none() => verb = Some(word.string()?),
                Long("config") => config = Some(arguments.value()?.string()?),
                Long("ca") => ca = Some(PathBuf::from(arguments.value()?)),
                Long("job") => job = Some(arguments.value()?.string()?),
                Long("protocol") => protocol = parse_protocol(&arguments.value()?.string()?)?,
                Long("runtime") => flavor = parse_flavor(arguments.value()?)?,
                other => return Err(other.unexpected().into()),
            }
        }
        let options = |config: Option<String>| match config {
            Some(config) => Ok(Options { config, ca, flavor, protocol }),
            None => Err(missing("--config")),
        };
        match verb.as_deref() {
            Some("hello") => Ok(Self::Hello { config }),
            Some("serve") => Ok(Self::Serve(options(config)?)),
            Some("once") => {
                let job = job.ok_or_else(|| missing("--job"))?;
                Ok(Self::Once(options(config)?, serde_json::from_str(&job)?))
            }
            Some(other) => Err(format!("{other:?} is none of hello, serve, once").into()),
            None => Err(missing("hello, serve or once")),
        }
    }
}

fn missing(what: impl Display) -> PeerError {
    format!("{what} is missing").into()
}

fn parse_protocol(name: &str) -> Result<Protocol, PeerError> {
    Protocol::named(name).ok_or_else(|| format!("no protocol {name:?}").into())
}

fn parse_flavor(value: OsString) -> Result<Flavor, PeerError> {
    match value.to_str() {
        Some("current") => Ok(Flavor::Current),
        Some("multi") => Ok(Flavor::Multi),
        _ => Err(format!("no runtime {value:?}: it is current or multi").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Command, PeerError> {
        Command::parse_from(lexopt::Parser::from_args(line))
    }

    #[test]
    fn the_command_line_is_read() {
        let Ok(Command::Serve(options)) = parse(&[
            "serve",
            "--config",
            "best",
            "--ca",
            "ca.pem",
            "--runtime",
            "multi",
            "--protocol",
            "web-socket-deflate",
        ]) else {
            panic!("serve");
        };
        assert_eq!(options.config, "best");
        assert_eq!(options.ca, Some("ca.pem".into()));
        assert!(matches!(options.flavor, Flavor::Multi));
        assert_eq!(options.protocol, Protocol::WebSocketDeflate);
        assert!(matches!(parse(&["hello"]), Ok(Command::Hello { config: None })));
    }

    #[test]
    fn what_is_missing_or_unknown_is_said() {
        for (line, says) in [
            (&[][..], "hello, serve or once is missing"),
            (&["serve"], "--config is missing"),
            (&["once", "--config", "x"], "--job is missing"),
            (&["dance"], "none of hello"),
            (&["serve", "--config", "x", "--runtime", "y"], "no runtime"),
            (&["serve", "--fast"], "--fast"),
            (&["serve", "--config", "x", "--protocol", "gopher"], "no protocol"),
        ] {
            let error = parse(line).err().unwrap().to_string();
            assert!(error.contains(says), "{line:?}: {error}");
        }
    }
}
