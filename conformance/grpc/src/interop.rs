//! The interop cases of the gRPC project (its "interop test descriptions"), as a client of their server.

mod cases;
mod messages;

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
};

use anyhow::{Context as _, Result, bail};
use mimus::{Client, TlsConfig, grpc::Channel};

/// What the command line says, in the flags of grpc-go's own client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    host: String,
    port: u16,
    case: String,
    tls: bool,
    /// Trust `ca_file` rather than the system's authorities.
    test_ca: bool,
    ca_file: Option<String>,
    /// The name that the certificate must have.
    name: Option<String>,
}

impl Flags {
    fn read(words: impl Iterator<Item = String>) -> Result<Self> {
        let mut flags = Flags::default();
        for word in words {
            let flag = word.strip_prefix("--").with_context(|| format!("{word:?} is no flag"))?;
            let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
            match name {
                "server_host" => flags.host = value.to_owned(),
                "server_port" => flags.port = value.parse().context("server_port")?,
                "test_case" => flags.case = value.to_owned(),
                "use_tls" => flags.tls = value.parse().context("use_tls")?,
                "use_test_ca" => flags.test_ca = value.parse().context("use_test_ca")?,
                "ca_file" => flags.ca_file = Some(value.to_owned()),
                "server_host_override" => flags.name = Some(value.to_owned()),
                _ => bail!("no such flag: --{name}"),
            }
        }
        Ok(flags)
    }

    fn channel(&self) -> Result<Channel> {
        let mut builder = Client::builder().no_proxy();
        let mut host = self.host.as_str();
        if self.tls {
            let mut tls = TlsConfig::builder();
            if self.test_ca {
                let file = self.ca_file.as_deref().context("--use_test_ca wants a --ca_file")?;
                tls = tls.add_ca(&std::fs::read(file).with_context(|| file.to_owned())?);
            }
            builder = builder.tls(tls.build()?);
            if let Some(name) = self.name.as_deref() {
                let at: IpAddr = self.host.parse().context("a name instead of an address")?;
                let at = SocketAddr::new(at, self.port);
                builder = builder.resolve(name, Some(self.port), [at]);
                host = name;
            }
        }
        let scheme = if self.tls { "https" } else { "http" };
        Ok(builder.build()?.grpc(format!("{scheme}://{host}:{}", self.port))?)
    }
}

/// Makes the case that the words name, and says so when it has passed.
pub(crate) async fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let flags = Flags::read(words)?;
    cases::run(&flags.case, &flags.channel()?).await.context(flags.case.clone())?;
    Ok(writeln!(io::stdout(), "{} ok", flags.case)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_grpc_go() {
        let words = ["--server_host=127.0.0.1", "--server_port=80", "--test_case=x", "--use_tls"];
        let flags = Flags::read(words.map(str::to_owned).into_iter()).ok();
        let host = "127.0.0.1".to_owned();
        let wanted = Flags { host, port: 80, case: "x".to_owned(), tls: true, ..Flags::default() };
        assert_eq!(flags, Some(wanted));
        for bad in ["x", "--server_port=x", "--use_tls=2", "--unheard_of"] {
            assert!(Flags::read([bad.to_owned()].into_iter()).is_err(), "{bad}");
        }
    }
}
