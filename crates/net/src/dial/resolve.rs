//! Names to addresses.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, ToSocketAddrs},
};

use bytes::Bytes;

use super::{Resolve, oneshot};
use crate::{BoxFuture, Runtime};

/// The system's resolver (`getaddrinfo`): hosts file, DNS, mDNS and whatever else the system is set
/// up for. It blocks, so it runs where [`Runtime::spawn_blocking`] puts it; a lookup that is no
/// longer waited for still ends by itself, unheard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        runtime: &'a dyn Runtime,
    ) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let (answer, answered) = oneshot::channel();
        let owned = name.to_owned();
        runtime.spawn_blocking(Box::new(move || answer.send(look_up(&owned))));
        Box::pin(async {
            let lost = || io::Error::other("no thread could be had for the system's resolver");
            answered.await.unwrap_or_else(|| Err(lost()))
        })
    }
}

fn look_up(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut ips = Vec::new();
    for addr in (name, 0).to_socket_addrs().map_err(not_found)? {
        if !ips.contains(&addr.ip()) {
            ips.push(addr.ip());
        }
    }
    Ok(ips)
}

/// Gives `EAI_NONAME` and `EAI_NODATA` a kind. The standard library keeps no more of
/// `getaddrinfo`'s code than its text (glibc, musl, Apple).
fn not_found(error: io::Error) -> io::Error {
    const TEXTS: [&str; 5] = [
        "not known",
        "No address associated",
        "Name does not resolve",
        "has no usable address",
        "nodename nor servname",
    ];
    let text = error.to_string();
    if error.raw_os_error().is_none() && TEXTS.iter().any(|t| text.contains(t)) {
        return io::Error::new(io::ErrorKind::NotFound, error);
    }
    error
}

/// Answers from a fixed table, for tests and for programs that must not ask anyone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticResolver {
    names: HashMap<String, Vec<IpAddr>>,
    ech: HashMap<String, Bytes>,
}

impl StaticResolver {
    /// A resolver that knows nothing.
    pub fn new() -> Self {
        StaticResolver::default()
    }

    /// Adds addresses for `name` (case does not matter), behind those it has already.
    #[must_use]
    pub fn with(mut self, name: &str, ips: impl IntoIterator<Item = IpAddr>) -> Self {
        self.names.entry(name.to_ascii_lowercase()).or_default().extend(ips);
        self
    }

    /// Has `name` (case does not matter) have an HTTPS record with this ECHConfigList, for every port.
    #[must_use]
    pub fn with_ech(mut self, name: &str, list: impl Into<Bytes>) -> Self {
        self.ech.insert(name.to_ascii_lowercase(), list.into());
        self
    }
}

impl Resolve for StaticResolver {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        _: &'a dyn Runtime,
    ) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let ips = self.names.get(&name.to_ascii_lowercase()).cloned().unwrap_or_default();
        Box::pin(std::future::ready(Ok(ips)))
    }

    fn ech<'a>(
        &'a self,
        name: &'a str,
        _: u16,
        _: &'a dyn Runtime,
    ) -> BoxFuture<'a, io::Result<Option<Bytes>>> {
        let list = self.ech.get(&name.to_ascii_lowercase()).cloned();
        Box::pin(std::future::ready(Ok(list)))
    }
}

#[cfg(feature = "hickory")]
pub use hickory::HickoryResolver;

#[cfg(feature = "hickory")]
mod hickory {
    use std::{fmt, io, net::IpAddr};

    use bytes::Bytes;
    use hickory_resolver::{
        TokioResolver,
        net::NetError,
        proto::rr::{
            RData, Record, RecordType,
            rdata::svcb::{SVCB, SvcParamKey, SvcParamValue},
        },
    };
    use tokio::{
        runtime::Handle,
        task::{JoinError, JoinHandle},
    };

    use crate::{BoxFuture, Runtime, dial::Resolve};

    /// Asks DNS itself, without a thread per lookup.
    ///
    /// Lookups run as tasks of one tokio runtime, named by its handle, which has to be running (a
    /// multi-threaded one, or one that is inside of its `block_on`); whoever waits for them may be
    /// on any runtime. A lookup that is no longer waited for is cancelled.
    #[derive(Clone)]
    pub struct HickoryResolver {
        resolver: TokioResolver,
        handle: Handle,
    }

    impl HickoryResolver {
        /// With the system's configuration (`resolv.conf`, hosts file).
        ///
        /// # Errors
        /// When that cannot be read.
        pub fn system(handle: Handle) -> io::Result<Self> {
            let resolver = TokioResolver::builder_tokio()
                .and_then(hickory_resolver::ResolverBuilder::build)
                .map_err(io::Error::other)?;
            Ok(HickoryResolver::new(resolver, handle))
        }

        /// With a configuration of one's own.
        pub fn new(resolver: TokioResolver, handle: Handle) -> Self {
            HickoryResolver { resolver, handle }
        }
    }

    impl fmt::Debug for HickoryResolver {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("HickoryResolver").finish_non_exhaustive()
        }
    }

    impl Resolve for HickoryResolver {
        fn resolve<'a>(
            &'a self,
            name: &'a str,
            _: &'a dyn Runtime,
        ) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let (resolver, name) = (self.resolver.clone(), name.to_owned());
            let lookup = async move { look_up(&resolver, &name).await };
            let lookup = Cancelled(self.handle.spawn(lookup));
            Box::pin(async { lookup.join().await.map_err(io::Error::other)? })
        }

        fn ech<'a>(
            &'a self,
            name: &'a str,
            port: u16,
            _: &'a dyn Runtime,
        ) -> BoxFuture<'a, io::Result<Option<Bytes>>> {
            // RFC 9460 section 9.1: the port is part of the name, unless it is the usual one.
            let owner = match port {
                443 => name.to_owned(),
                port => format!("_{port}._https.{name}"),
            };
            let (resolver, name) = (self.resolver.clone(), name.to_owned());
            let lookup = async move {
                match resolver.lookup(owner, RecordType::HTTPS).await {
                    Ok(found) => Ok(ech_of(found.answers(), &name, port)),
                    Err(e) if is_not_found(&e) => Ok(None),
                    Err(e) => Err(io::Error::other(e)),
                }
            };
            let lookup = Cancelled(self.handle.spawn(lookup));
            Box::pin(async { lookup.join().await.map_err(io::Error::other)? })
        }
    }

    /// The keys in the best of the records that are about the addresses of the name itself: we connect to no
    /// others.
    fn ech_of(answers: &[Record], host: &str, port: u16) -> Option<Bytes> {
        let records = || {
            answers.iter().filter_map(|record| match &record.data {
                RData::HTTPS(https) => Some(&https.0),
                _ => None,
            })
        };
        // RFC 9460 section 2.4.1: one in AliasMode makes the others void.
        if records().any(|record| record.svc_priority == 0) {
            return None;
        }
        // Section 2.5.2: the root stands for the record's owner, which is the host's name with the usual port alone.
        let is_host = |record: &SVCB| match record.target_name.is_root() {
            true => port == 443,
            false => {
                let target = record.target_name.to_ascii();
                target.trim_end_matches('.').eq_ignore_ascii_case(host.trim_end_matches('.'))
            }
        };
        let own = records().filter(|record| is_host(record) && serves(record, port));
        let best = own.min_by_key(|record| record.svc_priority)?;
        best.svc_params.iter().find_map(|(_, value)| match value {
            SvcParamValue::EchConfigList(list) => Some(list.0.clone().into()),
            _ => None,
        })
    }

    /// Whether a record is about this port, and asks for nothing that is not heeded (RFC 9460 section 8).
    fn serves(record: &SVCB, port: u16) -> bool {
        const HEEDED: [SvcParamKey; 6] = [
            SvcParamKey::Alpn,
            SvcParamKey::NoDefaultAlpn,
            SvcParamKey::Port,
            SvcParamKey::Ipv4Hint,
            SvcParamKey::EchConfigList,
            SvcParamKey::Ipv6Hint,
        ];
        record.svc_params.iter().all(|(_, value)| match value {
            SvcParamValue::Port(its) => *its == port,
            SvcParamValue::Mandatory(keys) => keys.0.iter().all(|key| HEEDED.contains(key)),
            _ => true,
        })
    }

    async fn look_up(resolver: &TokioResolver, name: &str) -> io::Result<Vec<IpAddr>> {
        match resolver.lookup_ip(name).await {
            Ok(found) => Ok(found.iter().collect()),
            Err(e) if is_not_found(&e) => Err(io::Error::new(io::ErrorKind::NotFound, e)),
            Err(e) => Err(io::Error::other(e)),
        }
    }

    fn is_not_found(error: &NetError) -> bool {
        error.is_nx_domain() || error.is_no_records_found()
    }

    /// A task that ends with whoever waits for it.
    struct Cancelled<T>(JoinHandle<T>);

    impl<T> Cancelled<T> {
        async fn join(mut self) -> Result<T, JoinError> {
            (&mut self.0).await
        }
    }

    impl<T> Drop for Cancelled<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::Blocking;

    #[test]
    fn the_system_knows_localhost_and_not_invalid() {
        let resolve = |name| Blocking::block_on(SystemResolver.resolve(name, &Blocking));
        assert!(resolve("localhost").unwrap().iter().all(IpAddr::is_loopback));
        // A NUL cannot reach the system.
        assert_eq!(resolve("local\0host").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn resolver_texts_get_a_kind() {
        let kind = |text: &str| not_found(io::Error::other(text)).kind();
        let prefix = "failed to lookup address information: ";
        assert_eq!(kind(&format!("{prefix}Name or service not known")), io::ErrorKind::NotFound);
        assert_eq!(
            kind(&format!("{prefix}Temporary failure in name resolution")),
            io::ErrorKind::Other
        );
    }

    #[test]
    fn a_table_ignores_case() {
        let ip: IpAddr = [127, 0, 0, 9].into();
        let table = StaticResolver::new().with("Example.Test", [ip]);
        let resolve = |name| Blocking::block_on(table.resolve(name, &Blocking)).unwrap();
        assert_eq!(resolve("EXAMPLE.test"), [ip]);
        assert_eq!(resolve("other.test"), Vec::<IpAddr>::new());
    }
}
