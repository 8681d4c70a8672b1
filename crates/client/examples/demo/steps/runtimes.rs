//! The same call, whoever drives the socket.

use std::time::Instant;

use mimus::{Client, blocking, rt};
use tokio::runtime::Builder;

use crate::setup::{Demo, Result, ensure, ms};

/// A runtime, and the call made on it.
type Run<'a> = (&'static str, &'a dyn Fn() -> Result<Vec<u8>>);

pub async fn same_get(demo: &Demo) -> Result {
    let url = &demo.https("/bytes/100000");
    let tokio = |mut builder: Builder| {
        let client = demo.client();
        apart(move || builder.enable_all().build()?.block_on(fetch(client?, url)))
    };
    // Each is a client of its own, so each makes its own connection.
    let runs: [Run<'_>; 4] = [
        ("tokio current_thread", &|| tokio(Builder::new_current_thread())),
        ("tokio multi_thread", &|| tokio(Builder::new_multi_thread())),
        ("smol", &|| {
            let client = demo.builder().runtime(rt::Smol).build()?;
            apart(|| smol::block_on(fetch(client, url)))
        }),
        // Here it blocks the thread inside of an async program, and nothing else.
        ("blocking", &|| {
            let builder = blocking::Client::builder().no_proxy().tls(demo.trust());
            Ok(builder.build()?.get(url).send()?.bytes()?.into())
        }),
    ];
    let (mut facts, mut bodies) = (Vec::new(), Vec::new());
    for (name, run) in runs {
        let started = Instant::now();
        let body = run().map_err(|error| format!("{name}: {error:#}"))?;
        facts.push(format!("{name} {}", ms(started.elapsed())));
        bodies.push(body);
    }
    ensure!(bodies[0].len() == 100_000, "{} bytes", bodies[0].len());
    ensure!(bodies.iter().all(|body| *body == bodies[0]), "the bodies differ");
    Ok(facts.join(", "))
}

async fn fetch(client: Client, url: &str) -> Result<Vec<u8>> {
    Ok(client.get(url).send().await?.error_for_status()?.bytes().await?.into())
}

/// Runs `work` on a thread of its own, outside of the demo's runtime.
fn apart<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|_| Err("the thread panicked".into()))
    })
}
