//! OpenSSL's server, where it is installed.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::*;

/// An `openssl s_server`, killed when dropped, with its certificate in a directory of its own.
pub(super) struct OpenSsl {
    child: Child,
    addr: String,
    _dir: TempDir,
}

struct TempDir(std::path::PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// None where openssl is not installed.
pub(super) fn s_server(name: &str, more: &[&str]) -> Option<OpenSsl> {
    let dir = std::env::temp_dir().join(format!("mimus-net-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let dir = TempDir(dir);
    let (certificate, key) = certificate(|_| {});
    let file = |name: &str, text: &str| {
        let path = dir.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let mut command = Command::new("openssl");
    command.args(["s_server", "-www", "-accept", "127.0.0.1:0", "-cert"]);
    command
        .arg(file("cert.pem", &certificate))
        .arg("-key")
        .arg(file("key.pem", &key.serialize_pem()));
    let spawned = command
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        let _ = writeln!(io::stderr(), "SKIPPED {name}: openssl is not installed");
        return None;
    };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let addr = lines.find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned)).unwrap();
    // Keep the pipe open and empty, or a talkative server would stop.
    std::thread::spawn(move || lines.for_each(drop));
    Some(OpenSsl { child, addr, _dir: dir })
}

/// A socket that remembers what was written to it.
pub(super) struct Logged {
    socket: TcpStream,
    pub(super) written: Vec<u8>,
}

impl Read for Logged {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.socket.read(buf)
    }
}

impl Write for Logged {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.socket.write(buf)?;
        self.written.extend_from_slice(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl OpenSsl {
    pub(super) fn dial(&self, ssl: Ssl) -> SslStream<Logged> {
        let socket = TcpStream::connect(&self.addr).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        SslStream::new(ssl, Logged { socket, written: Vec::new() }).unwrap()
    }
}
