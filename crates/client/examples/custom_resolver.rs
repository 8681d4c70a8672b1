//! Names resolved by a resolver of one's own; and a name pinned to an address, without one.
//!
//! `cargo run --example custom_resolver`

#![allow(clippy::print_stdout)]

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};

use mimus::{
    Client, Resolve,
    rt::{BoxFuture, Runtime},
};
use mimus_testkit::{Origin, Port};

/// Knows the names under `birds.test`, and no others.
#[derive(Debug)]
struct Birds;

impl Resolve for Birds {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        _: &'a dyn Runtime,
    ) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            println!("resolving {name}");
            match name.ends_with(".birds.test") {
                true => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
                false => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let origin = Origin::start()?;
    let addr = origin.addr(Port::Http)?;
    let client = Client::builder().resolver(Birds).build()?;

    for host in ["wren.birds.test", "cat.test"] {
        match client.get(format!("http://{host}:{}/get", addr.port())).send().await {
            Ok(response) => println!("{host}: {}", response.status()),
            Err(error) => println!("{host}: {error:#}"),
        }
    }

    let pinned = client.get("http://pinned.test/get").resolve("pinned.test", None, [addr]);
    println!("pinned.test: {}", pinned.send().await?.status());
    Ok(())
}
