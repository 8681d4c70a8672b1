//! `mimus-origin`, the program, and `Origin`, the value, from start to end.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use common::*;
use mimus_testkit::{
    Origin, PORTS, Port, bad_h2, bad_routes, bad_ws, grpc_routes, routes, ws_routes,
};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mimus-origin"))
}

fn printed(args: &[&str]) -> String {
    let out = program().args(args).output().expect("it runs");
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

#[test]
fn it_says_where_it_listens_serves_and_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, client, unix) =
        (dir.path().join("ca.pem"), dir.path().join("client.pem"), dir.path().join("socket"));
    let mut child = program()
        .args(["--stdin", "--port", "socks", "--port", "tls-expired"])
        .args(["--port", "bad-h2:goaway-first", "--port", "bad-h2-tls:lost-fin-in-body"])
        .arg("--ca-out")
        .arg(&ca)
        .arg("--client-out")
        .arg(&client)
        .arg("--unix")
        .arg(&unix)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let addr = ready["http"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(get("/get").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream).status, 200);
    assert!(ready["https"].as_str().unwrap().starts_with("https://localhost:"));
    for port in ["socks", "tls-expired", "bad-h2:goaway-first", "bad-h2-tls:lost-fin-in-body"] {
        TcpStream::connect(ready["ports"][port].as_str().unwrap()).unwrap();
    }
    assert!(std::fs::read_to_string(ca).unwrap().contains("BEGIN CERTIFICATE"));
    assert!(std::fs::read_to_string(client).unwrap().contains("BEGIN PRIVATE KEY"));
    assert!(unix.exists());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!unix.exists());
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn it_ends_in_order_when_terminated() {
    let mut child = program().stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let unix = std::path::PathBuf::from(ready["unix"].as_str().unwrap());
    assert!(unix.exists());
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!unix.exists());
}

#[test]
fn its_list_has_every_row_and_its_help_every_flag() {
    let list = printed(&["--list"]);
    for name in PORTS.iter().map(|row| row.name) {
        assert!(list.contains(name), "{name}");
    }
    for row in bad_h2() {
        assert!(list.contains(&row.name) && list.contains(&row.what), "{}", row.name);
    }
    for row in bad_ws() {
        assert!(list.contains(&row.name) && list.contains(&row.what), "{}", row.name);
    }
    for route in routes().chain(bad_routes()).chain(grpc_routes()).chain(ws_routes()) {
        assert!(list.contains(route.pattern) && list.contains(route.what), "{}", route.pattern);
    }
    let json: serde_json::Value = serde_json::from_str(&printed(&["--list", "--json"])).unwrap();
    assert_eq!(json["bad"].as_array().unwrap().len(), bad_routes().count());
    assert_eq!(json["bad_ws"].as_array().unwrap().len(), bad_ws().len());
    let help = printed(&["--help"]);
    for flag in ["--http", "--https", "--unix", "--ca-out", "--client-out", "--port", "--list"] {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn wrong_arguments_are_told() {
    for (args, why) in [
        (["--port", "nowhere"], "no port is called nowhere"),
        (["--http", "0.0.0.0:0"], "not a loopback address"),
        (["--proxy-auth", "nobody"], "USER:PASSWORD"),
    ] {
        let out = program().args(args).output().unwrap();
        assert!(!out.status.success());
        let told = String::from_utf8(out.stderr).unwrap();
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn an_origin_starts_and_ends_inside_a_runtime_and_takes_its_connections_along() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let origin = Origin::builder().proxy_auth("a", "b").start().unwrap();
        let mut stream = connect(&origin, Port::Http);
        stream.write_all(get("/delay/60").as_bytes()).unwrap();
        eventually("the request is seen", || origin.requests().len() == 1);
        drop(origin);
        let (bytes, _) = read_all(&mut stream);
        assert!(bytes.is_empty());
    });
}

#[test]
fn every_port_opens_once_and_stays() {
    let origin = origin();
    for row in PORTS.iter().filter(|row| !matches!(row.port, Port::Unix | Port::BadH2)) {
        let addr = origin.addr(row.port).unwrap();
        assert!(addr.ip().is_loopback());
        assert_eq!(origin.addr(row.port).unwrap(), addr, "{}", row.name);
    }
    assert!(origin.addr(Port::Unix).is_err() && origin.addr(Port::BadH2).is_err());
}
