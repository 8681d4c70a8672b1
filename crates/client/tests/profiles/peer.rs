//! A server that writes down what it is told, and answers when it is allowed to.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

use crate::capture::{self, END_STREAM, HEADERS, SETTINGS};

/// Everything must be over within this.
const PATIENCE: Duration = Duration::from_secs(60);

/// How it speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// With extended CONNECT.
    Http2,
    /// With these settings.
    Http2Saying(&'static [u8]),
    Http1,
    /// HTTP/1.1 without TLS.
    Plain,
}

/// What it heard on each connection, in the order in which they were made.
pub type Heard = Arc<Mutex<Vec<Vec<u8>>>>;

pub struct Peer {
    pub addr: SocketAddr,
    /// The certificate to trust, PEM.
    pub ca: String,
    pub heard: Heard,
}

/// Answers that are told apart by the path: fields besides the status.
pub type Answer = fn(path: &str) -> Vec<(&'static str, String)>;

/// The page's cookies, as the capture server set them.
pub fn page(path: &str) -> Vec<(&'static str, String)> {
    match path {
        "/" | "/ws" | "/form" => vec![
            ("set-cookie", "sid=abc123; Path=/; Secure".to_owned()),
            ("set-cookie", "theme=dark; Path=/".to_owned()),
        ],
        _ => Vec::new(),
    }
}

/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 section 3).
const CONNECT: &[u8] = &[0, 8, 0, 0, 0, 1];

impl Peer {
    /// `groups` are so many streams each, which are answered together once all of them are there.
    pub fn start(speaks: Speaks, groups: Vec<Vec<u32>>, answer: Answer) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let heard = Heard::default();
        let names = ["a.test", "b.test"].map(str::to_owned).to_vec();
        let key = rcgen::generate_simple_self_signed(names).unwrap();
        let ca = key.cert.pem();
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![key.cert.der().clone()],
                    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der())),
                )
                .unwrap();
        let settings = match speaks {
            Speaks::Http2 => CONNECT,
            Speaks::Http2Saying(settings) => settings,
            Speaks::Http1 | Speaks::Plain => &[],
        };
        let over_http2 = matches!(speaks, Speaks::Http2 | Speaks::Http2Saying(_));
        let alpn: &[u8] = if over_http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![alpn.to_vec()];
        let (config, all) = (Arc::new(config), Arc::clone(&heard));
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                all.lock().unwrap().push(Vec::new());
                let (config, all, groups) = (Arc::clone(&config), Arc::clone(&all), groups.clone());
                let note = move |bytes: &[u8]| all.lock().unwrap()[number].extend_from_slice(bytes);
                thread::spawn(move || match speaks {
                    Speaks::Plain => serve_http1(stream, answer, note),
                    Speaks::Http1 => serve_http1(tls(stream, config), answer, note),
                    Speaks::Http2 | Speaks::Http2Saying(_) => {
                        serve_http2(tls(stream, config), settings, &groups, answer, note);
                    }
                });
            }
        });
        Peer { addr, ca, heard }
    }
}

fn tls(stream: TcpStream, config: Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config).unwrap(), stream)
}

/// Reads some more; false at the end.
fn read(stream: &mut impl Read, into: &mut Vec<u8>, note: &impl Fn(&[u8])) -> bool {
    let mut room = [0; 4096];
    match stream.read(&mut room) {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            note(&room[..count]);
            into.extend_from_slice(&room[..count]);
            true
        }
    }
}

fn serve_http1(mut stream: impl Read + Write, answer: Answer, note: impl Fn(&[u8])) {
    let mut bytes = Vec::new();
    while read(&mut stream, &mut bytes, &note) {
        while let Some(asked) = capture::next_request(&mut bytes) {
            let fields = answer(asked.path());
            let redirects = fields.iter().any(|(name, _)| *name == "Location");
            let status = if redirects { "302 Found" } else { "200 OK" };
            let mut text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n");
            for (name, value) in fields {
                text += &format!("{name}: {value}\r\n");
            }
            // The client may be gone: what that means is for the test to say.
            let _ = stream.write_all((text + "\r\n").as_bytes());
        }
    }
}

fn serve_http2(
    mut stream: impl Read + Write,
    settings: &[u8],
    groups: &[Vec<u32>],
    answer: Answer,
    note: impl Fn(&[u8]),
) {
    let (mut bytes, mut opened) = (Vec::new(), false);
    let (mut seen, mut ended) = (Vec::new(), Vec::new());
    let mut groups = groups.iter();
    let mut group = groups.next();
    // And that ours are heeded.
    let greeting = [frame(SETTINGS, 0, 0, settings), frame(SETTINGS, 1, 0, &[])].concat();
    let _ = stream.write_all(&greeting);
    while read(&mut stream, &mut bytes, &note) {
        opened = opened || capture::take_preface(&mut bytes);
        while opened && let Some(frame) = capture::next_frame(&mut bytes) {
            ended.extend((frame.flags & END_STREAM != 0 && frame.kind < 2).then_some(frame.stream));
            seen.push(frame);
        }
        while let Some(streams) = group
            && streams.iter().all(|stream| ended.contains(stream))
        {
            let requests = capture::requests(&seen);
            for &id in streams {
                let asked = requests.iter().find(|asked| asked.stream == id).unwrap();
                let mut block = vec![0x88];
                for (name, value) in answer(asked.path()) {
                    block.extend_from_slice(&[0, name.len() as u8]);
                    block.extend_from_slice(name.as_bytes());
                    block.push(value.len() as u8);
                    block.extend_from_slice(value.as_bytes());
                }
                let _ = stream.write_all(&frame(HEADERS, 5, id, &block));
            }
            group = groups.next();
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
