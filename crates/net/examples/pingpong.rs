//! Small exchanges on one connection, for counting system calls:
//!
//! ```text
//! pingpong serve &
//! strace -c -f pingpong blocking 127.0.0.1:PORT 10000
//! ```
//!
//! The peer is a process of its own (this program as `serve`), so that only the client is traced.
#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use mimus_net::{
    Runtime, Wait,
    dial::SocketOptions,
    rt::{Blocking, Endpoint, io},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const REQUEST: [u8; 120] = [b'q'; 120];

async fn exchange(runtime: &dyn Runtime, to: SocketAddr, rounds: u32) -> Outcome {
    let options = SocketOptions::default();
    let mut socket = runtime.connect(&Endpoint::Tcp(to), &options).await?;
    let mut buf = BytesMut::with_capacity(8192);
    let start = Instant::now();
    for _ in 0..rounds {
        socket.set_deadline(Some(Instant::now() + Duration::from_secs(30)));
        io::write_all(&mut *socket, &REQUEST).await?;
        let mut got = 0;
        while got < REQUEST.len() {
            buf.clear();
            got += match io::read(&mut *socket, &mut buf, Wait::Alone).await? {
                0 => return Err("the peer went away".into()),
                n => n,
            };
        }
    }
    println!("{:.2} us a round trip", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    Ok(())
}

fn serve() -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut buf = [0; REQUEST.len()];
        while stream.read_exact(&mut buf).is_ok() {
            stream.write_all(&buf)?;
        }
    }
}

#[cfg(feature = "tokio")]
fn on_tokio(to: SocketAddr, rounds: u32) -> Outcome {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runtime = mimus_net::rt::Tokio::on(tokio.handle().clone());
    tokio.block_on(exchange(&runtime, to, rounds))
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve"] => serve(),
        ["blocking", to, rounds] => {
            Blocking::block_on(exchange(&Blocking, to.parse()?, rounds.parse()?))
        }
        #[cfg(feature = "tokio")]
        ["tokio", to, rounds] => on_tokio(to.parse()?, rounds.parse()?),
        #[cfg(feature = "smol")]
        ["smol", to, rounds] => {
            smol::block_on(exchange(&mimus_net::rt::Smol, to.parse()?, rounds.parse()?))
        }
        _ => Err("usage: pingpong serve | (blocking | tokio | smol) ADDRESS ROUNDS".into()),
    }
}
