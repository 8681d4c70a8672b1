//! Proxies: for a client, by rules, and for one call.
//!
//! `cargo run --example proxy`

#![allow(clippy::print_stdout)]

use mimus::{Client, Proxies, Proxy};
use mimus_testkit::{Origin, Port};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let http = Proxy::parse(&format!("http://{}", origin.addr(Port::Proxy)?))?;
    let socks = Proxy::parse(&format!("socks5h://{}", origin.addr(Port::Socks)?))?;
    let url = origin.http_url("/ip");

    // Without a word, a client follows `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.
    let rules = Proxies::all(http).no_proxy("internal.test, 10.0.0.0/8");
    let client = Client::builder().proxies(rules).build()?;

    let forwarded = client.get(&url).send().await?;
    println!("by HTTP proxy {:?}: {}", forwarded.remote_addr(), forwarded.status());

    let tunnelled = client.get(&url).proxy_tunnel(true).send().await?;
    println!("by CONNECT {:?}: {}", tunnelled.remote_addr(), tunnelled.status());

    let by_socks = client.get(&url).proxy(socks).send().await?;
    println!("by SOCKS {:?}: {}", by_socks.remote_addr(), by_socks.status());

    let direct = client.get(&url).no_proxy().send().await?;
    println!("direct {:?}: {}", direct.remote_addr(), direct.status());
    Ok(())
}
