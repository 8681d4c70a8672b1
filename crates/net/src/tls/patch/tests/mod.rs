//! The patch as its users see it: what is on the wire, and what a peer can do with it.

mod credentials;
mod openssl;
mod records;
mod shape;

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, Read, Write},
    rc::Rc,
    sync::{Arc, Mutex},
};

use boring::{
    pkey::{PKey, Private},
    ssl::{
        Error, ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslSession,
        SslSessionCacheMode, SslStream, SslVerifyMode,
    },
    x509::X509,
};
use boring_sys as ffi;
use mimus_proto::fingerprint::{ClientHello, HelloReader};

use super::{super::error::peer_alert, *};

/// Whether the test can be made. Where it cannot, it says so behind libtest's back, which would keep
/// what a passing test prints to itself.
fn patched(test: &str) -> bool {
    if !BORINGSSL_IS_PATCHED {
        let required = std::env::var_os("MIMUS_REQUIRE_PATCH").is_some();
        assert!(!required, "this build's BoringSSL lacks Mimus's patch");
        let _ = writeln!(io::stderr(), "SKIPPED {test}: this build's BoringSSL lacks the patch");
    }
    BORINGSSL_IS_PATCHED
}

type Queue = Rc<RefCell<VecDeque<u8>>>;

/// One end of a connection in memory, which remembers what was written to it.
struct End {
    incoming: Queue,
    outgoing: Queue,
    written: Vec<u8>,
}

fn ends() -> (End, End) {
    let (one, other) = (Queue::default(), Queue::default());
    let end = |incoming: &Queue, outgoing: &Queue| End {
        incoming: incoming.clone(),
        outgoing: outgoing.clone(),
        written: Vec::new(),
    };
    (end(&one, &other), end(&other, &one))
}

impl Read for End {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.incoming.borrow_mut().read(buf)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }
}

impl Write for End {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(buf);
        self.outgoing.borrow_mut().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client and a server on one thread.
struct Pair {
    client: SslStream<End>,
    server: SslStream<End>,
}

impl Pair {
    fn new(client: Ssl, server: Ssl) -> Self {
        let (near, far) = ends();
        let client = SslStream::new(client, near).unwrap();
        Pair { client, server: SslStream::new(server, far).unwrap() }
    }

    /// To the end of both, or of one.
    fn handshake(&mut self) -> Result<(), Error> {
        loop {
            let client = self.client.connect();
            let server = self.server.accept();
            match (client, server) {
                (Ok(()), Ok(())) => return Ok(()),
                (Err(error), _) if error.code() != ErrorCode::WANT_READ => return Err(error),
                (_, Err(error)) if error.code() != ErrorCode::WANT_READ => return Err(error),
                _ => {}
            }
        }
    }

    /// The alert that the server got (RFC 8446 section 6), once the client has failed.
    fn alert(&mut self) -> Option<u8> {
        let error = self.server.accept().unwrap_err();
        peer_alert(&error)
    }
}

struct Record {
    kind: u8,
    bytes: Vec<u8>,
}

/// The records of one direction (RFC 8446 section 5.1).
fn records(mut bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let [kind, _, _, a, b, rest @ ..] = bytes {
        let (body, rest) = rest.split_at(usize::from(u16::from_be_bytes([*a, *b])));
        records.push(Record { kind: *kind, bytes: body.to_vec() });
        bytes = rest;
    }
    records
}

fn hello(bytes: &[u8]) -> ClientHello {
    HelloReader::new().recv(bytes).unwrap().unwrap()
}

/// Where a client's latest session is kept.
type Sessions = Arc<Mutex<Option<SslSession>>>;

fn client_context() -> (SslContextBuilder, Sessions) {
    let mut context = SslContextBuilder::new(SslMethod::tls()).unwrap();
    // The hello is what is judged here, not the certificate.
    context.set_verify(SslVerifyMode::NONE);
    context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    let sessions = Sessions::default();
    let kept = sessions.clone();
    context.set_new_session_callback(move |_, session| *kept.lock().unwrap() = Some(session));
    (context, sessions)
}

/// A certificate for `a.test` as `change` makes it, in PEM, and its key.
fn certificate(change: impl FnOnce(&mut rcgen::CertificateParams)) -> (String, rcgen::KeyPair) {
    let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    change(&mut params);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key)
}

fn private_key(key: &rcgen::KeyPair) -> PKey<Private> {
    PKey::private_key_from_pem(key.serialize_pem().as_bytes()).unwrap()
}

fn server_context() -> SslContextBuilder {
    let (certificate, key) = certificate(|_| {});
    let mut context = SslContextBuilder::new(SslMethod::tls()).unwrap();
    context.set_certificate(&X509::from_pem(certificate.as_bytes()).unwrap()).unwrap();
    context.set_private_key(&private_key(&key)).unwrap();
    context
}

fn server(context: &SslContext) -> Ssl {
    Ssl::new(context).unwrap()
}
