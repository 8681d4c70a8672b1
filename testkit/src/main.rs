//! `mimus-origin`: the embedded origin in a process of its own.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use mimus_testkit::{
    BadH2, BadWs, Origin, PORTS, Port, Route, bad_h2, bad_routes, bad_ws, grpc_routes, routes,
    ws_routes,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// An origin for tests that speaks HTTP/1.1, HTTP/2 and gRPC: behaves well on its plain routes, badly on request.
///
/// Prints one line of JSON with its addresses once it is ready, and runs until it is told to
/// stop (SIGINT, SIGTERM, or the end of its input with --stdin). Listens on loopback only.
#[derive(Debug, Parser)]
#[command(name = "mimus-origin", version)]
struct Args {
    /// Where HTTP listens; a loopback address, port 0 for any
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    http: SocketAddr,
    /// Where HTTPS listens; a loopback address, port 0 for any
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    https: SocketAddr,
    /// The path of the Unix socket [default: one in a new directory]
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Write the certificate authority's certificate there, PEM
    #[arg(long, value_name = "FILE")]
    ca_out: Option<PathBuf>,
    /// Write a client certificate and its key there, PEM, for the port tls-client-cert
    #[arg(long, value_name = "FILE")]
    client_out: Option<PathBuf>,
    /// Open this port too (see --list); may be repeated, or be `all`, or `bad-h2:ROW` or
    /// `bad-h2-tls:ROW` for a row of misbehaviour over HTTP/2
    #[arg(long = "port", value_name = "NAME")]
    ports: Vec<String>,
    /// The credentials that proxy-auth and socks-auth want
    #[arg(long, value_name = "USER:PASSWORD", default_value = "user:secret")]
    proxy_auth: String,
    /// Stop when standard input ends, so that the origin ends with the process that started it
    #[arg(long)]
    stdin: bool,
    /// Print every port and every route with what it does, and exit
    #[arg(long)]
    list: bool,
    /// With --list: as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.list { list(args.json) } else { run(&args) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With standard error closed there is nobody left to tell.
            let _ = writeln!(io::stderr(), "mimus-origin: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let wanted = args.ports.iter().map(|name| wanted(name)).collect::<io::Result<Vec<_>>>()?;
    let (user, password) = args
        .proxy_auth
        .split_once(':')
        .ok_or_else(|| invalid("--proxy-auth wants USER:PASSWORD".to_owned()))?;
    let mut builder =
        Origin::builder().http(args.http).https(args.https).proxy_auth(user, password);
    if let Some(path) = &args.unix {
        builder = builder.unix(path);
    }
    // Before the ready line: whoever reads it may send a signal at once.
    let orders = Orders::take()?;
    let origin = builder.start()?;
    write_out(args.ca_out.as_deref(), || origin.ca_pem())?;
    let client = origin.client_identity();
    write_out(args.client_out.as_deref(), || format!("{}{}", client.cert_pem, client.key_pem))?;
    let ready = ready(&origin, &wanted)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()?;
    orders.wait(args.stdin);
    Ok(())
}

/// What `--port` can ask for.
enum Wanted {
    Ports(Vec<Port>),
    BadH2 { name: String, row: String, tls: bool },
}

fn wanted(name: &str) -> io::Result<Wanted> {
    let has_address = |port: &Port| !matches!(port, Port::Unix | Port::BadH2);
    if name == "all" {
        let all = PORTS.iter().map(|row| row.port).filter(has_address);
        return Ok(Wanted::Ports(all.collect()));
    }
    if let Some(port) = Port::from_name(name).filter(|&port| port != Port::BadH2) {
        return Ok(Wanted::Ports([port].into_iter().filter(has_address).collect()));
    }
    match name.split_once(':') {
        Some((kind @ ("bad-h2" | "bad-h2-tls"), row))
            if bad_h2().iter().any(|bad| bad.name == row) =>
        {
            Ok(Wanted::BadH2 {
                name: name.to_owned(),
                row: row.to_owned(),
                tls: kind == "bad-h2-tls",
            })
        }
        _ => Err(invalid(format!("no port is called {name}; --list has them"))),
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn write_out(path: Option<&Path>, text: impl Fn() -> String) -> io::Result<()> {
    path.map_or(Ok(()), |path| std::fs::write(path, text()))
}

/// The ready line: `http`, `https`, `unix`, and the URLs of the ports asked for.
fn ready(origin: &Origin, wanted: &[Wanted]) -> io::Result<Value> {
    let mut ports = Map::new();
    for wish in wanted {
        match wish {
            Wanted::Ports(all) => {
                for &port in all {
                    ports.insert(port.name().to_owned(), json!(origin.addr(port)?.to_string()));
                }
            }
            Wanted::BadH2 { name, row, tls } => {
                ports.insert(name.clone(), json!(origin.bad_h2(row, *tls)?.to_string()));
            }
        }
    }
    Ok(json!({
        "http": origin.http_url(""),
        "https": origin.https_url(""),
        "unix": origin.unix_path(),
        "ports": ports,
        "pid": std::process::id(),
    }))
}

/// The orders to stop, taken from the moment it is made.
struct Orders {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Orders {
    fn take() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(entered);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Blocks until there is one; with `stdin`, the end of the input is one too.
    fn wait(mut self, stdin: bool) {
        let (ended, end) = oneshot::channel::<()>();
        let held = if stdin {
            std::thread::spawn(move || {
                let mut rest = [0; 4096];
                while matches!(io::stdin().read(&mut rest), Ok(1..)) {}
                drop(ended);
            });
            None
        } else {
            Some(ended)
        };
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = end => {}
            }
        });
        drop(held);
    }
}

fn outcomes(right: &[impl std::fmt::Debug]) -> Vec<String> {
    right.iter().map(|outcome| format!("{outcome:?}").to_lowercase()).collect()
}

fn bad_row(row: &BadH2) -> Value {
    json!({
        "name": row.name,
        "what": row.what,
        "ask": format!("{:?}", row.ask).to_lowercase(),
        "right": outcomes(&row.right),
        "codes": row.codes,
        "connections": row.connections,
        "body": row.body,
    })
}

fn bad_ws_row(row: &BadWs) -> Value {
    json!({
        "name": row.name,
        "what": row.what,
        "ask": format!("{:?}", row.ask).to_lowercase(),
        "right": outcomes(&row.right),
        "codes": row.codes,
        "messages": row.messages,
        "http2": row.http2,
    })
}

fn list(as_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        let of =
            |row: &Route| json!({ "path": row.pattern, "methods": row.methods, "what": row.what });
        let ports: Vec<Value> =
            PORTS.iter().map(|row| json!({ "name": row.name, "what": row.what })).collect();
        let whole = json!({
            "ports": ports,
            "routes": routes().map(of).collect::<Vec<_>>(),
            "grpc": grpc_routes().map(of).collect::<Vec<_>>(),
            "ws": ws_routes().map(of).collect::<Vec<_>>(),
            "bad_ws": bad_ws().iter().map(bad_ws_row).collect::<Vec<_>>(),
            "bad_h2": bad_h2().iter().map(bad_row).collect::<Vec<_>>(),
            "bad": bad_routes().map(of).collect::<Vec<_>>(),
        });
        return writeln!(out, "{whole:#}");
    }
    writeln!(out, "Ports:")?;
    for row in PORTS {
        writeln!(out, "  {:<20} {}", row.name, row.what)?;
    }
    let tables: [(&str, Vec<_>); 4] = [
        ("Routes", routes().collect()),
        ("WebSocket", ws_routes().collect()),
        ("gRPC", grpc_routes().collect()),
        ("Misbehaviour", bad_routes().collect()),
    ];
    for (title, all) in tables {
        writeln!(out, "\n{title}:")?;
        for route in all {
            let methods =
                if route.methods.is_empty() { "any".to_owned() } else { route.methods.join(",") };
            writeln!(out, "  {:<40} {methods:<14} {}", route.pattern, route.what)?;
        }
    }
    writeln!(out, "\nMisbehaviour over HTTP/2, and how it ends with a right client:")?;
    for row in bad_h2() {
        writeln!(out, "  {:<40} {:<14} {}", row.name, outcomes(&row.right).join(","), row.what)?;
    }
    writeln!(out, "\nMisbehaviour over WebSocket, and how it ends with a right client:")?;
    for row in bad_ws() {
        writeln!(out, "  {:<40} {:<14} {}", row.name, outcomes(&row.right).join(","), row.what)?;
    }
    Ok(())
}
