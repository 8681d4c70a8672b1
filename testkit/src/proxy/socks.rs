//! A SOCKS proxy: versions 4, 4a and 5 (RFC 1928), with passwords (RFC 1929).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{dial, tunnel};
use crate::conn::{After, Conn};
use crate::port::Port;
use crate::record::Seen;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest user name or host name of version 4, which end with a NUL.
const MAX_NAME: usize = 512;

/// Serves one client of the proxy.
pub(crate) async fn serve(mut conn: Conn) {
    if conn.about.port == Port::SocksStall {
        conn.until_gone().await;
        return conn.end(After::Drop).await;
    }
    match timeout(PATIENCE, negotiate(&mut conn)).await {
        Ok(Ok(Some(upstream))) => tunnel(conn, upstream).await,
        Ok(Ok(None)) => conn.end(After::Close).await,
        Ok(Err(_)) | Err(_) => conn.end(After::Drop).await,
    }
}

/// What the client wants, and the bytes in which it said so.
struct Wish {
    version: &'static str,
    host: String,
    port: u16,
    said: BytesMut,
}

/// Takes bytes and keeps them for the record.
async fn take(conn: &mut Conn, said: &mut BytesMut, len: usize) -> io::Result<Bytes> {
    let bytes = conn.take(len).await?;
    said.extend_from_slice(&bytes);
    Ok(bytes)
}

/// The connection to where the client wanted; `None` once it was refused.
async fn negotiate(conn: &mut Conn) -> io::Result<Option<TcpStream>> {
    let mut said = BytesMut::new();
    match take(conn, &mut said, 1).await?[0] {
        4 => version4(conn, said).await,
        5 => version5(conn, said).await,
        _ => Ok(None),
    }
}

fn record(conn: &Conn, wish: &Wish) {
    conn.about.shared.recorder.request(Seen {
        conn: conn.about.id,
        seq: 1,
        port: conn.about.port,
        version: "SOCKS",
        authority: None,
        stream: 0,
        method: wish.version.to_owned(),
        target: format!("{}:{}", wish.host, wish.port),
        head: wish.said.clone().freeze(),
        body_len: 0,
        body_complete: true,
        tls: None,
        ws: None,
    });
}

async fn version4(conn: &mut Conn, mut said: BytesMut) -> io::Result<Option<TcpStream>> {
    const GRANTED: u8 = 0x5a;
    const REJECTED: u8 = 0x5b;
    let fixed = take(conn, &mut said, 7).await?;
    let port = u16::from_be_bytes([fixed[1], fixed[2]]);
    let ip = Ipv4Addr::new(fixed[3], fixed[4], fixed[5], fixed[6]);
    name(conn, &mut said).await?;
    // 4a: 0.0.0.x with x not 0 means that a name follows.
    let named = matches!(ip.octets(), [0, 0, 0, last] if last != 0);
    let (version, host) = match named {
        true => ("SOCKS4A", name(conn, &mut said).await?),
        false => ("SOCKS4", ip.to_string()),
    };
    let wish = Wish { version, host, port, said };
    record(conn, &wish);
    let dialled = match fixed[0] {
        1 if conn.about.port != Port::SocksAuth => dial(&wish.host, port).await,
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    let code = if dialled.is_ok() { GRANTED } else { REJECTED };
    conn.write(&[0, code, 0, 0, 0, 0, 0, 0]).await?;
    Ok(dialled.ok())
}

async fn name(conn: &mut Conn, said: &mut BytesMut) -> io::Result<String> {
    let bytes = conn.take_until(b"\0", MAX_NAME).await?;
    said.extend_from_slice(&bytes);
    said.extend_from_slice(b"\0");
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn version5(conn: &mut Conn, mut said: BytesMut) -> io::Result<Option<TcpStream>> {
    const NONE: u8 = 0x00;
    const PASSWORD: u8 = 0x02;
    const UNACCEPTABLE: u8 = 0xff;
    let count = take(conn, &mut said, 1).await?[0];
    let methods = take(conn, &mut said, usize::from(count)).await?;
    let wanted = if conn.about.port == Port::SocksAuth { PASSWORD } else { NONE };
    if !methods.contains(&wanted) {
        conn.write(&[5, UNACCEPTABLE]).await?;
        return Ok(None);
    }
    conn.write(&[5, wanted]).await?;
    if wanted == PASSWORD && !password(conn, &mut said).await? {
        return Ok(None);
    }
    let fixed = take(conn, &mut said, 4).await?;
    let host = match fixed[3] {
        1 => {
            let ip = take(conn, &mut said, 4).await?;
            Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]).to_string()
        }
        3 => {
            let len = take(conn, &mut said, 1).await?[0];
            let name = take(conn, &mut said, usize::from(len)).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        4 => {
            let bytes = take(conn, &mut said, 16).await?;
            let ip = <[u8; 16]>::try_from(&bytes[..]).map_err(io::Error::other)?;
            format!("[{}]", Ipv6Addr::from(ip))
        }
        _ => return refuse5(conn, 8).await,
    };
    let port = take(conn, &mut said, 2).await?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    let wish = Wish { version: "SOCKS5", host, port, said };
    record(conn, &wish);
    if fixed[1] != 1 {
        return refuse5(conn, 7).await;
    }
    match dial(&wish.host, port).await {
        Ok(upstream) => {
            conn.write(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await?;
            Ok(Some(upstream))
        }
        Err(error) => refuse5(conn, code(&error)).await,
    }
}

/// The reply of RFC 1928 section 6 that says why.
fn code(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 4,
        io::ErrorKind::ConnectionRefused => 5,
        _ => 1,
    }
}

async fn refuse5(conn: &mut Conn, code: u8) -> io::Result<Option<TcpStream>> {
    conn.write(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    Ok(None)
}

/// RFC 1929 section 2.
async fn password(conn: &mut Conn, said: &mut BytesMut) -> io::Result<bool> {
    let [_, len] = take(conn, said, 2).await?[..] else {
        return Ok(false);
    };
    let user = take(conn, said, usize::from(len)).await?;
    let len = take(conn, said, 1).await?[0];
    let password = take(conn, said, usize::from(len)).await?;
    let right = user == conn.about.shared.proxy_user.as_bytes()
        && password == conn.about.shared.proxy_password.as_bytes();
    conn.write(&[1, u8::from(!right)]).await?;
    Ok(right)
}
