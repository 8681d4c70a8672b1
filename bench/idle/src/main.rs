//! What each of many idle pooled connections, and each of many idle WebSockets, of Mimus holds in memory,
//! plain and TLS.
//!
//! The bench's server, in a process of its own, answers. Each connection is held open by a response that
//! is not read to its end until all of them are there; then all go back into the pool. What the process
//! holds more than with one connection is theirs.

#![expect(clippy::print_stdout, reason = "it is what a measuring program is for")]

use std::future::{Future as _, poll_fn};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, ExitCode, Stdio};
use std::task::Poll;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use mimus::{
    Client, TlsConfig,
    ws::{ConnectError, MessageRef, WebSocket},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The second piece of the body comes that late: after `send` has returned, so that the connection stays
/// with its response, and soon enough for the last response to be waited for.
const HELD: &str = "/paced/2/8/200000000";
/// Descriptors of the process beside its connections.
const SPARE: u64 = 64;

/// Measures what idle pooled connections and WebSockets of Mimus hold in memory.
#[derive(Parser)]
struct Args {
    /// Connections.
    #[arg(long, default_value_t = 10_000)]
    count: usize,
    /// Fail if a plain connection holds more bytes of heap.
    #[arg(long, default_value_t = 4_096)]
    max: u64,
    /// Fail if a WebSocket without TLS holds more bytes of heap.
    #[arg(long, default_value_t = 8_192)]
    max_socket: u64,
    /// The server's binary; the one beside this program if not said.
    #[arg(long)]
    server: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("bench-idle: {why:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    raise_limit(args.count as u64 + SPARE)?;
    let server =
        Server::start(args.server.as_deref().map_or_else(beside, |path| Ok(path.into()))?)?;
    let plain = measure(Client::new(), &server.http, args.count).context("plain")?;
    println!("plain: {plain}");
    let tls = TlsConfig::builder().add_ca(&server.ca).build()?;
    let client = Client::builder().tls(tls).build()?;
    let secure = client.clone();
    println!("TLS:   {}", measure(client, &server.https, args.count).context("TLS")?);
    // Their descriptors are for the sockets.
    secure.close_idle();
    let socket = measure_sockets(&Client::new(), &server.http, args.count).context("ws")?;
    println!("ws:    {socket}");
    println!("wss:   {}", measure_sockets(&secure, &server.https, args.count).context("wss")?);
    let mut code = ExitCode::SUCCESS;
    for (what, held, max) in
        [("connection", plain, args.max), ("WebSocket", socket, args.max_socket)]
    {
        if held.heap > max {
            eprintln!("bench-idle: a plain {what} holds more than {max} bytes of heap");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// What each connection holds, in bytes.
struct Held {
    count: usize,
    heap: u64,
    resident: u64,
}

impl Held {
    fn since(before: &Memory, after: &Memory, count: usize) -> Self {
        let each = |now: u64, then: u64| now.saturating_sub(then) / count as u64;
        Held {
            count,
            heap: each(after.heap, before.heap),
            resident: each(after.resident, before.resident),
        }
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, heap, resident } = self;
        write!(f, "{count} idle, each {heap} bytes of heap, {resident} resident")
    }
}

fn measure(client: Client, base: &str, count: usize) -> Result<Held> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = format!("{base}{HELD}");
    runtime.block_on(async {
        // What the first makes once, for the client and the thread, is not the others'.
        use_at_once(&client, &url, 1).await?;
        let before = Memory::now()?;
        use_at_once(&client, &url, count + 1).await?;
        Ok(Held::since(&before, &Memory::now()?, count))
    })
}

/// The same of WebSockets on which a message went each way.
fn measure_sockets(client: &Client, base: &str, count: usize) -> Result<Held> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = format!("{base}/ws");
    runtime.block_on(async {
        let mut sockets = vec![talk_once(client, &url).await?];
        sockets.reserve_exact(count);
        let before = Memory::now()?;
        for _ in 0..count {
            sockets.push(talk_once(client, &url).await?);
        }
        // An idle socket is one that somebody waits on.
        for socket in &mut sockets {
            let mut next = pin!(socket.recv());
            let waits = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_pending())).await;
            ensure!(waits, "the server says something unasked");
        }
        let held = Held::since(&before, &Memory::now()?, count);
        // All of them were open while that was measured.
        for socket in &mut sockets {
            exchange(socket).await?;
        }
        Ok(held)
    })
}

async fn talk_once(client: &Client, url: &str) -> Result<WebSocket> {
    let mut socket = client.websocket(url).connect().await.map_err(ConnectError::into_error)?;
    exchange(&mut socket).await?;
    Ok(socket)
}

/// As much as a chat or a feed says at once.
async fn exchange(socket: &mut WebSocket) -> Result<()> {
    socket.send_binary(&[7; 1024]).await?;
    let back = socket.recv_ref().await?.context("the server closed")?;
    ensure!(back == MessageRef::Binary(&[7; 1024]), "the server says something else");
    Ok(())
}

/// Uses `count` connections at once, and leaves them idle.
async fn use_at_once(client: &Client, url: &str, count: usize) -> Result<()> {
    let mut responses = Vec::with_capacity(count);
    for _ in 0..count {
        responses.push(client.get(url).send().await?);
    }
    for response in responses {
        response.bytes().await?;
    }
    let idle = client.pool_stats().idle;
    ensure!(idle == count, "{idle} connections are idle instead of {count}");
    Ok(())
}

/// What the process holds, in bytes.
struct Memory {
    /// What was asked of the allocator and not given back, by Rust and by BoringSSL, with the allocator's
    /// own overhead.
    heap: u64,
    /// Pages in memory. The allocator keeps what was used in between, so this is more.
    resident: u64,
}

impl Memory {
    fn now() -> Result<Self> {
        // SAFETY: it has no preconditions.
        let heap = unsafe { libc::mallinfo2() };
        let statm = std::fs::read_to_string("/proc/self/statm")?;
        let pages: u64 =
            statm.split_whitespace().nth(1).context("no resident pages in statm")?.parse()?;
        Ok(Self {
            heap: (heap.uordblks + heap.hblkhd) as u64,
            resident: pages * rustix::param::page_size() as u64,
        })
    }
}

/// The bench's server; it ends with its input.
struct Server {
    http: String,
    https: String,
    ca: Vec<u8>,
    process: Child,
}

impl Server {
    fn start(binary: PathBuf) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let ca = directory.path().join("ca.pem");
        let mut process = Command::new(&binary)
            .arg("--ca-out")
            .arg(&ca)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let output = process.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let listening: serde_json::Value =
            serde_json::from_str(&line).context("the server does not say where it listens")?;
        let url =
            |key: &str| listening[key].as_str().map(str::to_owned).context("a URL is missing");
        Ok(Self { http: url("http")?, https: url("https")?, ca: std::fs::read(ca)?, process })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Only fails for a process that is gone.
        let _ = self.process.wait();
    }
}

fn beside() -> Result<PathBuf> {
    let here = std::env::current_exe().context("where this program is")?;
    Ok(here.with_file_name("bench-server"))
}

/// Allows itself `descriptors`, which the server, started later, is allowed too.
fn raise_limit(descriptors: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= descriptors) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), maximum: limit.maximum })
        .with_context(|| format!("{descriptors} descriptors are more than are allowed here"))
}
