//! One test body, four runtimes.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use mimus::{Client, ClientBuilder, rt};
use mimus_testkit::Origin;

/// What a test body gets: an origin of its own, and a way to make clients on the runtime under test.
pub struct Bench {
    pub origin: Origin,
    runtime: Kind,
    pub executor: Arc<smol::Executor<'static>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    TokioCurrent,
    TokioMulti,
    Smol,
    Blocking,
    /// Not among those of every test: [`Kind::Smol`] with an executor that drives connections.
    SmolOn,
}

impl Bench {
    fn new(runtime: Kind) -> Self {
        let origin = Origin::start().expect("the origin starts");
        Bench { origin, runtime, executor: Arc::default() }
    }

    /// How many runtimes there are.
    pub const RUNTIMES: usize = 4;

    /// Which of the runtimes this is.
    pub fn number(&self) -> usize {
        self.runtime as usize
    }

    /// On the same runtime, with another origin.
    pub fn another(&self) -> Bench {
        Bench { executor: self.executor.clone(), ..Bench::new(self.runtime) }
    }

    /// A builder on the runtime under test, trusting the origin, deaf to the environment's proxies.
    pub fn builder(&self) -> ClientBuilder {
        let builder = Client::builder().no_proxy().tls(self.trust());
        match self.runtime {
            Kind::TokioCurrent | Kind::TokioMulti => builder.runtime(rt::Tokio::ambient()),
            Kind::Smol => builder.runtime(rt::Smol),
            Kind::SmolOn => builder.runtime(rt::Smol::on(self.executor.clone())),
            Kind::Blocking => builder.runtime(rt::Blocking),
        }
    }

    pub fn client(&self) -> Client {
        self.builder().build().expect("the settings are valid")
    }

    pub fn trust(&self) -> mimus::TlsConfig {
        mimus::TlsConfig::builder()
            .add_ca(self.origin.ca_pem().as_bytes())
            .build()
            .expect("the origin's CA is a certificate")
    }

    pub fn http(&self, path: &str) -> String {
        self.origin.http_url(path)
    }

    pub fn https(&self, path: &str) -> String {
        self.origin.https_url(path)
    }

    /// Whether concurrent futures on one task make progress side by side: not when the socket blocks
    /// the thread.
    pub fn concurrent(&self) -> bool {
        self.runtime != Kind::Blocking
    }

    /// Whether the runtime drives tasks in the background.
    pub fn has_tasks(&self) -> bool {
        matches!(self.runtime, Kind::TokioCurrent | Kind::TokioMulti)
    }

    /// Sleeps on the runtime under test.
    pub async fn sleep(&self, time: Duration) {
        use mimus::rt::Runtime;
        let at = std::time::Instant::now() + time;
        match self.runtime {
            Kind::TokioCurrent | Kind::TokioMulti => rt::Tokio::ambient().sleep_until(at).await,
            Kind::Smol | Kind::SmolOn => rt::Smol.sleep_until(at).await,
            Kind::Blocking => rt::Blocking.sleep_until(at).await,
        }
    }

    /// Waits until the origin has no open connection, which is how a leak would show.
    pub async fn all_closed(&self) {
        for _ in 0..200 {
            if self.origin.open_connections() == 0 {
                return;
            }
            self.sleep(Duration::from_millis(10)).await;
        }
        panic!("{} connections leaked", self.origin.open_connections());
    }
}

/// Runs `body` to its end on one runtime.
pub fn run<F: Future<Output = ()> + Send + 'static>(kind: Kind, body: impl FnOnce(Bench) -> F) {
    let bench = Bench::new(kind);
    let executor = bench.executor.clone();
    let future = body(bench);
    match kind {
        Kind::TokioCurrent => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made")
            .block_on(future),
        Kind::TokioMulti => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime can be made");
            // On a worker, not on the thread that blocks: tasks must be able to move.
            runtime.block_on(runtime.spawn(future)).expect("the test body does not panic");
        }
        Kind::Smol => smol::block_on(future),
        Kind::SmolOn => smol::block_on(executor.run(future)),
        Kind::Blocking => rt::Blocking::block_on(future),
    }
}

/// Each named async function becomes a test on each runtime.
macro_rules! on_every_runtime {
    ($($name:ident),* $(,)?) => {
        mod tokio_current_thread {
            $(#[test] fn $name() {
                crate::support::run(crate::support::Kind::TokioCurrent, super::$name);
            })*
        }
        mod tokio_multi_thread {
            $(#[test] fn $name() {
                crate::support::run(crate::support::Kind::TokioMulti, super::$name);
            })*
        }
        mod smol {
            $(#[test] fn $name() {
                crate::support::run(crate::support::Kind::Smol, super::$name);
            })*
        }
        mod blocking {
            $(#[test] fn $name() {
                crate::support::run(crate::support::Kind::Blocking, super::$name);
            })*
        }
    };
}
pub(crate) use on_every_runtime;

/// A loopback port where nobody listens.
pub fn dead_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("a bound socket has an address")
}

/// The failure of a call that must fail.
pub fn failure<T>(result: mimus::Result<T>) -> mimus::Error {
    match result {
        Ok(_) => panic!("the call should have failed"),
        Err(error) => error,
    }
}
