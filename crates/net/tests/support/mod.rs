//! The same test body on every runtime, and the peers it talks to: plain threads on loopback.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::{
    future::Future,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use mimus_net::{
    Runtime, Socket, Wait,
    dial::SocketOptions,
    rt::{Blocking, Endpoint, Smol, Tokio, io as verbs},
};

pub type Rt = Arc<dyn Runtime>;

pub fn current_thread<F: Future<Output = ()>>(body: impl FnOnce(Rt) -> F) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(body(Arc::new(Tokio::on(tokio.handle().clone()))));
}

pub fn multi_thread<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Rt) -> F) {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let task = tokio.spawn(body(Arc::new(Tokio::on(tokio.handle().clone()))));
    tokio.block_on(task).unwrap();
}

pub fn smol<F: Future<Output = ()>>(body: impl FnOnce(Rt) -> F) {
    smol::block_on(body(Arc::new(Smol)));
}

pub fn blocking<F: Future<Output = ()>>(body: impl FnOnce(Rt) -> F) {
    Blocking::block_on(body(Arc::new(Blocking)));
}

/// One `#[test]` for each runtime from each body.
#[macro_export]
macro_rules! on_every_runtime {
    ($($body:ident),* $(,)?) => { $(
        mod $body {
            #[test]
            fn tokio_current_thread() { $crate::support::current_thread(super::bodies::$body) }
            #[test]
            fn tokio_multi_thread() { $crate::support::multi_thread(super::bodies::$body) }
            #[test]
            fn smol() { $crate::support::smol(super::bodies::$body) }
            #[test]
            fn blocking() { $crate::support::blocking(super::bodies::$body) }
        }
    )* };
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A listener whose connections each get `serve`, on a thread of their own.
pub fn server(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    addr
}

pub fn echo(mut stream: impl Read + Write) -> io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        match stream.read(&mut buf)? {
            0 => return Ok(()),
            n => stream.write_all(&buf[..n])?,
        }
    }
}

/// Keeps the connection open and says nothing until the peer closes.
pub fn silence(mut stream: TcpStream) -> io::Result<()> {
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// A port of loopback on which nobody listens.
pub fn nobody() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// A listener that lets nobody in: its backlog is full. Lives as long as what it returns.
pub fn full_backlog() -> (SocketAddr, Vec<socket2::Socket>) {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut held = vec![listener];
    for _ in 0..4 {
        let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        filler.set_nonblocking(true).unwrap();
        let _ = filler.connect(&addr);
        held.push(filler);
    }
    (addr.as_socket().unwrap(), held)
}

pub async fn connect(rt: &Rt, to: SocketAddr) -> io::Result<Box<dyn Socket>> {
    rt.connect(&Endpoint::Tcp(to), &SocketOptions::default()).await
}

pub async fn read(socket: &mut dyn Socket, wait: Wait) -> io::Result<Vec<u8>> {
    let mut buf = BytesMut::with_capacity(4096);
    verbs::read(socket, &mut buf, wait).await?;
    Ok(buf.to_vec())
}

pub async fn read_exactly(socket: &mut dyn Socket, n: usize, wait: Wait) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < n {
        let some = read(socket, wait).await.unwrap();
        assert!(!some.is_empty(), "the stream ended after {} of {n} bytes", all.len());
        all.extend(some);
    }
    all
}

/// That `start` was `expected` ago: not before, and not much after (the machine may be busy).
pub fn assert_took(start: Instant, expected: Duration) {
    let took = start.elapsed();
    assert!(took >= expected, "too early: {took:?} instead of {expected:?}");
    assert!(took < expected + ms(150), "too late: {took:?} instead of {expected:?}");
}
