//! Ways to an origin: proxies, sockets, addresses, TLS sessions.

use mimus::{Proxy, TlsConfig};
use mimus_testkit::Port;

use crate::setup::{Demo, Result, ensure, ms};

/// The proxy at a port, by a URL that begins with `scheme`, credentials included.
fn proxy(demo: &Demo, scheme: &str, port: Port) -> Result<Proxy> {
    Ok(Proxy::parse(&format!("{scheme}{}", demo.origin.addr(port)?))?)
}

/// What a proxy was asked for, as method and target, by requests after the first `known`.
fn asked(demo: &Demo, port: Port, known: usize) -> Vec<(String, String)> {
    let seen = demo.origin.requests().into_iter().skip(known);
    seen.filter(|seen| seen.port == port).map(|seen| (seen.method, seen.target)).collect()
}

pub async fn forward_proxy(demo: &Demo) -> Result {
    let url = demo.http("/get");
    let known = demo.origin.requests().len();
    let client = demo.builder().proxy(proxy(demo, "http://", Port::Proxy)?).build()?;
    let status = client.get(&url).send().await?.status();
    let asked = asked(demo, Port::Proxy, known);
    ensure!(status == 200, "{status}");
    ensure!(asked == [("GET".to_owned(), url)], "the proxy was asked {asked:?}");
    Ok(format!("{status}; the proxy was asked GET {}", asked[0].1))
}

pub async fn connect_proxy(demo: &Demo) -> Result {
    let known = demo.origin.requests().len();
    let with = proxy(demo, "http://user:secret@", Port::ProxyAuth)?;
    let response = demo.client()?.get(demo.https("/get")).proxy(with).send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    ensure!(response.tls().is_some(), "no TLS with the origin");
    let asked = asked(demo, Port::ProxyAuth, known);
    ensure!(asked.len() == 1 && asked[0].0 == "CONNECT", "the proxy was asked {asked:?}");
    let leaked = demo.last_request()?.header("proxy-authorization");
    ensure!(leaked.is_none(), "the proxy's credentials went to the origin");
    Ok(format!("{}; CONNECT {} with credentials", response.status(), asked[0].1))
}

pub async fn socks5h(demo: &Demo) -> Result {
    let known = demo.origin.requests().len();
    let with = proxy(demo, "socks5h://", Port::Socks)?;
    let response = demo.client()?.get(demo.https("/get")).proxy(with).send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    let asked = asked(demo, Port::Socks, known);
    let by_name = asked.len() == 1 && asked[0].1.starts_with("localhost:");
    ensure!(by_name, "the proxy was asked {asked:?}");
    ensure!(response.timings().dns.is_none(), "the name was resolved here");
    Ok(format!("{}; asked for {}", response.status(), asked[0].1))
}

pub async fn unix_socket(demo: &Demo) -> Result {
    let client = demo.builder().unix_socket(demo.origin.unix_path()).build()?;
    let response = client.get("http://any.test/get").send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    ensure!(response.remote_addr().is_none(), "{:?}", response.remote_addr());
    let seen = demo.last_request()?;
    let host = seen.header("host").unwrap_or_default();
    ensure!(seen.port == Port::Unix && host == "any.test", "{host} on {:?}", seen.port);
    Ok(format!("{} for Host: {host}", response.status()))
}

pub async fn dead_address(demo: &Demo) -> Result {
    let (dead, live) = (demo.origin.addr(Port::Refused)?, demo.origin.addr(Port::Http)?);
    let client = demo.builder().resolve("two.test", None, [dead, live]).build()?;
    let response = client.get("http://two.test/get").send().await?;
    ensure!(response.status() == 200, "{}", response.status());
    ensure!(response.remote_addr() == Some(live), "{:?}", response.remote_addr());
    Ok(format!("{dead} refused, {live} answered {}", response.status()))
}

pub async fn resumption(demo: &Demo) -> Result {
    // Sessions belong to a TLS configuration and its clones; this one knows none yet.
    let fresh = TlsConfig::builder().add_ca(demo.origin.ca_pem().as_bytes()).build()?;
    let client = demo.builder().tls(fresh).build()?;
    let mut facts = Vec::new();
    for expected in [false, true] {
        let response = client.get(demo.https("/get")).send().await?;
        let tls = response.tls().ok_or("no TLS")?;
        ensure!(tls.resumed == expected, "resumed: {}", tls.resumed);
        let how = if tls.resumed { "resumed" } else { "full" };
        let took = response.timings().tls.ok_or("no handshake")?;
        facts.push(format!("{how} handshake {}", ms(took)));
        response.bytes().await?;
        client.close_idle();
    }
    Ok(facts.join(", "))
}

pub async fn client_certificate(demo: &Demo) -> Result {
    let url = demo.at(Port::TlsClientCert, "/get")?;
    let client = demo.client()?;
    let unknown = client.get(&url).send().await;
    ensure!(unknown.is_err(), "taken without a certificate");
    let identity = demo.origin.client_identity();
    let known = TlsConfig::builder()
        .add_ca(demo.origin.ca_pem().as_bytes())
        .identity(identity.cert_pem.as_bytes(), identity.key_pem.as_bytes())
        .build()?;
    let status = client.get(&url).tls(known).send().await?.status();
    ensure!(status == 200, "{status}");
    Ok(format!("{status} with it, refused without"))
}
