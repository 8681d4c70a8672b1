//! Who answers: the bench's own server, or a realistic one.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use mimus_bench_kit::Protocol;
use serde::{Deserialize, Serialize};

use crate::child::Lines;
use crate::pin;
use crate::suite::Workload;

/// How long a server may take to listen.
const STARTING: Duration = Duration::from_secs(20);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The bench's own: fixed answers, so that the client is the bottleneck.
    Minimal,
    /// nginx serving files, without TLS.
    Nginx,
    /// go-httpbin, without TLS.
    Httpbin,
}

/// A server that runs; it is ended when dropped.
#[derive(Debug)]
pub struct Server {
    choice: Choice,
    listening: Listening,
    /// The certificate to trust, if it speaks TLS.
    pub ca: Option<PathBuf>,
    _process: Process,
}

#[derive(Debug)]
enum Process {
    Spoken(#[expect(dead_code, reason = "ended when dropped")] Lines),
    Mute(Child),
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Mute(child) = self {
            // Only fails for a process that has ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the bench's own server says when it listens; the others are asked over plain HTTP/1.1 only.
#[derive(Debug, Deserialize)]
struct Listening {
    http: String,
    https: Option<String>,
    h2c: Option<String>,
    h2: Option<String>,
}

impl Server {
    /// Starts the bench's own server from `binary`, held to `core`, with its files in `scratch`.
    pub fn minimal(binary: &Path, core: Option<usize>, scratch: &Path) -> Result<Self> {
        let ca = scratch.join("ca.pem");
        let mut lines = Lines::start(Command::new(binary).arg("--ca-out").arg(&ca), core)?;
        let line = lines.receive(STARTING).context("the server does not start")?;
        let listening: Listening =
            serde_json::from_str(&line).context("the server does not say where it listens")?;
        Ok(Self {
            choice: Choice::Minimal,
            listening,
            ca: Some(ca),
            _process: Process::Spoken(lines),
        })
    }

    /// Starts nginx with one worker and a file for each of `workloads`.
    pub fn nginx(core: Option<usize>, scratch: &Path, workloads: &[&Workload]) -> Result<Self> {
        let files = scratch.join("files");
        for workload in workloads {
            let Some(path) = &workload.nginx else { continue };
            let file = files.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap_or(&files))?;
            fs::File::create(&file)?.set_len(workload.body)?;
        }
        let port = free_port()?;
        let conf = scratch.join("nginx.conf");
        fs::write(&conf, nginx_conf(port, scratch, &files))?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(scratch).arg("-c").arg(&conf);
        Self::mute(Choice::Nginx, &mut command, core, port)
    }

    /// Starts go-httpbin.
    pub fn httpbin(core: Option<usize>) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new("go-httpbin");
        command.args(["-host", "127.0.0.1", "-max-body-size", "1073741824"]);
        command.args(["-port", &port.to_string()]);
        Self::mute(Choice::Httpbin, &mut command, core, port)
    }

    fn mute(choice: Choice, command: &mut Command, core: Option<usize>, port: u16) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = command.get_program().display().to_string();
        let child = pin::on_core(core, || {
            command
                .spawn()
                .with_context(|| format!("cannot start {program} (is it installed, and on PATH?)"))
        })?;
        let server = Self {
            choice,
            listening: Listening {
                http: format!("http://127.0.0.1:{port}"),
                https: None,
                h2c: None,
                h2: None,
            },
            ca: None,
            _process: Process::Mute(child),
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > STARTING {
                bail!("{program} does not listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Where `workload` is asked for by who speaks `protocol`; `None` if this server cannot serve it. Of
    /// what asks nobody, the operation.
    pub fn url(&self, workload: &Workload, protocol: Protocol) -> Option<String> {
        let at = &self.listening;
        let path = path_on(self.choice, workload)?;
        let base = match (protocol, workload.tls) {
            (Protocol::Codec | Protocol::StartUp, _) => return Some(path.to_owned()),
            (Protocol::Http2 | Protocol::GrpcProst | Protocol::GrpcJson, false) => {
                at.h2c.as_ref()?
            }
            (Protocol::Http2 | Protocol::GrpcProst | Protocol::GrpcJson, true) => at.h2.as_ref()?,
            (_, false) => &at.http,
            (_, true) => at.https.as_ref()?,
        };
        let base = match protocol.is_web_socket() {
            true => base.replacen("http", "ws", 1),
            false => base.clone(),
        };
        Some(format!("{base}{path}"))
    }
}

/// The path of `workload` on the server of `choice`, if that can serve it.
pub fn path_on(choice: Choice, workload: &Workload) -> Option<&str> {
    match choice {
        _ if workload.server.is_some() => {
            (workload.server == Some(choice)).then_some(&*workload.path)
        }
        Choice::Minimal => Some(&workload.path),
        _ if workload.tls || workload.protocol != Protocol::Http1 => None,
        Choice::Nginx => workload.nginx.as_deref(),
        Choice::Httpbin => workload.httpbin.as_deref(),
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn nginx_conf(port: u16, scratch: &Path, files: &Path) -> String {
    let (scratch, files) = (scratch.display(), files.display());
    format!(
        "daemon off;\nworker_processes 1;\npid {scratch}/nginx.pid;\nerror_log {scratch}/error.log;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nodelay on;\n\
         keepalive_requests 100000000;\n  keepalive_timeout 3600;\n\
         client_body_temp_path {scratch}/body;\n  proxy_temp_path {scratch}/proxy;\n\
         fastcgi_temp_path {scratch}/fastcgi;\n  uwsgi_temp_path {scratch}/uwsgi;\n\
         scgi_temp_path {scratch}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; root {files}; }}\n}}\n"
    )
}
