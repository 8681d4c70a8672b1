//! Proxies: listeners that pass bytes on, to loopback only.

pub(crate) mod http;
pub(crate) mod socks;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::conn::{After, Conn};
use crate::io::Io;

/// The address a proxy takes a name for. It asks no resolver: the origin's own names are
/// loopback, every other one does not exist, so that a test sees who resolved a name.
fn resolve(host: &str, port: u16) -> Option<SocketAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let ip = match bare.parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) => {
            let lower = bare.trim_end_matches('.').to_ascii_lowercase();
            let ours = matches!(lower.as_str(), "localhost" | "origin.test" | "wrong.test");
            (ours || lower.ends_with(".localhost")).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))?
        }
    };
    ip.is_loopback().then(|| SocketAddr::new(ip, port))
}

async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let addr = resolve(host, port).ok_or(io::ErrorKind::NotFound)?;
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Passes bytes both ways until both sides have finished; an error on one side resets both.
async fn tunnel(mut conn: Conn, mut upstream: TcpStream) {
    let early = conn.inbox.split();
    let passed = async {
        upstream.write_all(&early).await?;
        copy_bidirectional(&mut conn.io, &mut upstream).await
    };
    if passed.await.is_err() {
        upstream.reset_on_close();
        conn.end(After::Reset).await;
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn only_loopback_resolves() {
        for host in ["localhost", "ORIGIN.test.", "127.0.0.2", "[::1]", "::1", "a.localhost"] {
            assert!(resolve(host, 1).is_some_and(|addr| addr.ip().is_loopback()), "{host}");
        }
        for host in ["example.com", "10.0.0.1", "0.0.0.0", "", "localhost.example"] {
            assert_eq!(resolve(host, 1), None, "{host}");
        }
    }
}
