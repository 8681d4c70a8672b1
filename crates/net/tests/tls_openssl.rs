//! TLS against `openssl s_server`, where it is installed.
#![allow(missing_docs, clippy::unwrap_used)]

mod tls_peer;

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use mimus_net::{
    Socket,
    tls::{TlsConfigBuilder, TlsVersion},
};
use tls_peer::*;

/// An `openssl s_server -www`, killed when dropped.
struct OpenSsl {
    child: Child,
    addr: SocketAddr,
    _files: Files,
}

/// A certificate and key where openssl can read them.
struct Files(std::path::PathBuf);

impl Drop for Files {
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

fn s_server(identity: &Identity, more: &[&str]) -> Option<OpenSsl> {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let dir = std::env::temp_dir().join(format!("mimus-net-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let files = Files(dir);
    let (cert, key) = (files.0.join("cert.pem"), files.0.join("key.pem"));
    std::fs::write(&cert, &identity.chain).unwrap();
    std::fs::write(&key, &identity.key).unwrap();
    let spawned = Command::new("openssl")
        .args(["s_server", "-www", "-accept", "127.0.0.1:0", "-cert"])
        .arg(&cert)
        .arg("-key")
        .arg(&key)
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped: openssl is not installed");
        return None;
    };
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let addr = lines.find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok());
    let addr = addr.expect("s_server says where it listens");
    // Keep the pipe open and empty, or a talkative server would stop.
    std::thread::spawn(move || lines.for_each(drop));
    Some(OpenSsl { child, addr, _files: files })
}

/// Two connections for each version, of which the second resumes the first.
fn answers_and_resumes(shape: impl Fn(TlsConfigBuilder) -> TlsConfigBuilder) {
    let ca = Authority::new();
    let identity = ca.issue(&["bird.test"]);
    for (version, flag, name) in
        [(TlsVersion::Tls13, "-tls1_3", "TLSv1.3"), (TlsVersion::Tls12, "-tls1_2", "TLSv1.2")]
    {
        let Some(server) = s_server(&identity, &[flag]) else { return };
        let config = shape(ca.client()).min_version(version).max_version(version).build().unwrap();
        run(async {
            for n in 0..2 {
                let mut socket = connect(server.addr, &config, "bird.test").await.unwrap();
                let page = page(&mut *socket).await;
                assert!(page.starts_with("HTTP/1.0 200"), "{page}");
                assert!(page.contains(name), "{page}");
                assert_eq!(socket.tls().unwrap().resumed, n > 0, "{name}");
            }
        });
    }
}

async fn page(socket: &mut dyn Socket) -> String {
    write(socket, b"GET / HTTP/1.0\r\n\r\n").await;
    let mut page = Vec::new();
    loop {
        match read_once(socket).await {
            Ok(some) if some.is_empty() => break,
            Ok(some) => page.extend(some),
            // s_server may leave without a word.
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
                break;
            }
        }
    }
    String::from_utf8_lossy(&page).into_owned()
}

#[test]
fn openssl_answers_and_resumes() {
    answers_and_resumes(|config| config);
}

#[cfg(feature = "serde")]
#[test]
fn openssl_understands_a_browsers_hello() {
    let hello: mimus_net::tls::ClientHello =
        toml::from_str(include_str!("hellos/chromium-156.toml")).unwrap();
    answers_and_resumes(|config| config.client_hello(hello.clone()));
}
