//! Peers that are not ours: rustls servers on threads, and sockets that count and dribble.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::{
    any::Any,
    io::{self, IoSlice, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    thread,
    time::Instant,
};

use bytes::BytesMut;
use mimus_net::{
    DialError, Socket, Wait,
    dial::{Host, SocketOptions, TlsPlan},
    rt::{Blocking, Endpoint, Probe, Runtime as _, io as verbs},
    tls::{self, Roots, TlsConfig, TlsConfigBuilder},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::{
    HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    crypto::CryptoProvider,
    pki_types::{PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate chain and its key, in PEM.
pub struct Identity {
    pub chain: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        Authority::named("Test Authority")
    }

    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    pub fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| {})
    }

    pub fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let issuer: &Issuer<'_, KeyPair> = &self.0;
        let chain = params.signed_by(&key, issuer).unwrap().pem();
        Identity { chain, key: key.serialize_pem() }
    }

    /// A client that trusts this authority only.
    pub fn client(&self) -> TlsConfigBuilder {
        TlsConfig::builder().roots(Roots::None).add_ca(self.pem().as_bytes())
    }
}

impl Identity {
    pub fn server(&self) -> ServerConfig {
        self.server_with(rustls::ALL_VERSIONS, None)
    }

    pub fn server_with(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        self.server_by(rustls::crypto::ring::default_provider(), versions, clients)
    }

    /// The same with cryptography of the test's choice.
    pub fn server_by(
        &self,
        provider: CryptoProvider,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let provider = Arc::new(provider);
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let chain = rustls::pki_types::CertificateDer::pem_slice_iter(self.chain.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        builder.with_single_cert(chain.map(Result::unwrap).collect(), key).unwrap()
    }
}

pub type Peer = StreamOwned<ServerConnection, TcpStream>;

/// What a server saw of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub kind: Option<HandshakeKind>,
    pub early: Vec<u8>,
}

pub struct Server {
    pub addr: SocketAddr,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

/// One thread accepts, and one serves each connection: with `configs` in turn, the last one for the
/// rest, and then `script`.
pub fn serve_each(
    configs: Vec<ServerConfig>,
    script: impl Fn(Peer) -> io::Result<()> + Send + Sync + 'static,
) -> Server {
    let configs: Vec<_> = configs.into_iter().map(Arc::new).collect();
    let (seen, script, count) =
        (Arc::new(Mutex::new(Vec::new())), Arc::new(script), AtomicUsize::new(0));
    let noted = Arc::clone(&seen);
    let addr = listen(move |stream| {
        let n = count.fetch_add(1, Ordering::SeqCst).min(configs.len() - 1);
        let mut peer = StreamOwned::new(ServerConnection::new(configs[n].clone()).unwrap(), stream);
        let early = handshake(&mut peer)?;
        noted.lock().unwrap().push(Seen { kind: peer.conn.handshake_kind(), early });
        script(peer)
    });
    Server { addr, seen }
}

pub fn serve(
    config: ServerConfig,
    script: impl Fn(Peer) -> io::Result<()> + Send + Sync + 'static,
) -> Server {
    serve_each(vec![config], script)
}

/// A listener on loopback whose connections each get a thread.
pub fn listen(handle: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            stream.set_nodelay(true).unwrap();
            let handle = Arc::clone(&handle);
            thread::spawn(move || {
                if let Err(error) = handle(stream) {
                    eprintln!("the test server: {error}");
                }
            });
        }
    });
    addr
}

/// Completes the handshake; gives back the early data, in the order in which it came.
fn handshake(peer: &mut Peer) -> io::Result<Vec<u8>> {
    let mut early = Vec::new();
    while peer.conn.is_handshaking() {
        peer.conn.complete_io(&mut peer.sock)?;
    }
    if let Some(mut data) = peer.conn.early_data() {
        data.read_to_end(&mut early)?;
    }
    Ok(early)
}

/// Sends back what comes, and hangs up when the client does.
pub fn echo(mut peer: impl Read + Write) -> io::Result<()> {
    let mut buf = vec![0; 64 * 1024];
    loop {
        match peer.read(&mut buf)? {
            0 => return Ok(()),
            n => peer.write_all(&buf[..n])?,
        }
        peer.flush()?;
    }
}

pub fn run<F: Future>(future: F) -> F::Output {
    Blocking::block_on(future)
}

pub async fn tcp(addr: SocketAddr) -> Box<dyn Socket> {
    Blocking.connect(&Endpoint::Tcp(addr), &SocketOptions::default()).await.unwrap()
}

pub fn plan(config: &TlsConfig) -> TlsPlan {
    TlsPlan {
        config: config.clone(),
        alpn: Vec::new(),
        early_data: false,
        ech: mimus_net::tls::Ech::Off,
    }
}

pub fn host(name: &str) -> Host {
    Host::Name(name.to_owned())
}

pub async fn connect(
    addr: SocketAddr,
    config: &TlsConfig,
    name: &str,
) -> Result<Box<dyn Socket>, DialError> {
    tls::connect(tcp(addr).await, &plan(config), &host(name), addr.port()).await
}

pub async fn write(socket: &mut dyn Socket, bytes: &[u8]) {
    verbs::write_all(socket, bytes).await.unwrap();
    verbs::flush(socket).await.unwrap();
}

pub async fn read_exactly(socket: &mut dyn Socket, n: usize) -> Vec<u8> {
    let mut all = BytesMut::with_capacity(n);
    while all.len() < n {
        let got = verbs::read(socket, &mut all, Wait::Alone).await.unwrap();
        assert_ne!(got, 0, "the stream ended after {} of {n} bytes", all.len());
    }
    all.to_vec()
}

pub async fn read_once(socket: &mut dyn Socket) -> io::Result<Vec<u8>> {
    let mut buf = BytesMut::with_capacity(16 * 1024);
    verbs::read(socket, &mut buf, Wait::Alone).await?;
    Ok(buf.to_vec())
}

/// Writes `ping` and reads it back.
pub async fn ping(socket: &mut dyn Socket) {
    write(socket, b"ping").await;
    assert_eq!(read_exactly(socket, 4).await, b"ping");
}

/// A socket that counts calls, and may hand over one byte at a time.
#[derive(Debug)]
pub struct Watched {
    pub inner: Box<dyn Socket>,
    pub reads: Arc<AtomicUsize>,
    pub writes: Arc<AtomicUsize>,
    pub dribble: bool,
}

impl Watched {
    pub fn new(inner: Box<dyn Socket>) -> Self {
        Watched { inner, reads: Arc::default(), writes: Arc::default(), dribble: false }
    }
}

impl Socket for Watched {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
        wait: Wait,
    ) -> Poll<io::Result<usize>> {
        let n = if self.dribble {
            let mut one = BytesMut::with_capacity(1);
            // A small allocation may still have room for more than was asked.
            let mut limited = one.split_off(one.capacity() - 1);
            let n = ready!(self.inner.poll_read(cx, &mut limited, wait))?;
            buf.extend_from_slice(&limited);
            n
        } else {
            ready!(self.inner.poll_read(cx, buf, wait))?
        };
        self.reads.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Ok(n))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let n = if self.dribble {
            let first = bufs.iter().find(|b| !b.is_empty()).map_or(&[][..], |b| &b[..1]);
            ready!(self.inner.poll_write(cx, &[IoSlice::new(first)]))?
        } else {
            ready!(self.inner.poll_write(cx, bufs))?
        };
        self.writes.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Ok(n))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_close(cx)
    }

    fn set_deadline(&mut self, at: Option<Instant>) {
        self.inner.set_deadline(at);
    }

    fn is_stale(&mut self, probe: Probe) -> bool {
        self.inner.is_stale(probe)
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.inner.peer_addr()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.inner.local_addr()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
