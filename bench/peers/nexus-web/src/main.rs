//! nexus-web 0.8: its codec over tokio sockets, by its own adapter (nexus-async-web), on rustls. A
//! connection for each exchange under way; it has no pool that tasks could share.

mod websocket;

use std::{
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use mimus_bench_kit::{
    Ask, AsyncPeer, Binary, Cold, Config, Deliver, Job, Outgoing, PeerError, Seen, Setup, Upload,
    locked,
};
use nexus_async_web::{
    TlsConfig,
    rest::{HttpConnection, HttpConnectionBuilder, MaybeTls},
};
use nexus_web::{
    http::ResponseReader,
    rest::{ClientBuilder, RequestWriter},
};
use rustls_pki_types::{CertificateDer, pem::PemObject};

const CONFIGS: &[Config] = &[
    Config { name: "default", about: "builders as they come, buffers as large as the bodies" },
    Config { name: "best", about: "TCP_NODELAY, buffers as large as the bodies" },
];

/// What its documentation gives the buffers; heads have to fit as well.
const BUFFER: usize = 32 * 1024;
/// The largest body that one buffer may be expected to hold.
const LARGEST: u64 = 64 * 1024 * 1024;

#[derive(Clone)]
struct Nexus {
    best: bool,
    cold: bool,
    tls: TlsConfig,
    /// Its buffers do not grow: the largest body of the job.
    body: Arc<AtomicUsize>,
    idle: Arc<Mutex<Vec<Lane>>>,
}

/// A connection with its buffers, and where it leads.
struct Lane {
    origin: String,
    room: usize,
    writer: RequestWriter,
    reader: ResponseReader,
    connection: HttpConnection<MaybeTls>,
}

impl Nexus {
    fn new(setup: &Setup, body: Arc<AtomicUsize>) -> Result<Self, PeerError> {
        Ok(Self {
            best: setup.config == "best",
            cold: setup.cold,
            tls: tls(setup)?,
            body,
            idle: Arc::default(),
        })
    }

    fn take(&self, origin: &str, room: usize) -> Option<Lane> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(lane) = idle.pop() {
            if lane.origin == origin && lane.room == room {
                return Some(lane);
            }
        }
        None
    }

    fn keep(&self, lane: Lane) {
        if !self.cold {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
        }
    }

    async fn connect(&self, origin: &str, room: usize) -> Result<Lane, PeerError> {
        let mut builder = HttpConnectionBuilder::new().tls(&self.tls);
        if self.best {
            builder = builder.disable_nagle();
        }
        let mut writer = ClientBuilder::writer_for(origin)?;
        writer.set_write_buffer_capacity(room);
        Ok(Lane {
            origin: origin.to_owned(),
            room,
            writer,
            reader: ResponseReader::new(room),
            connection: builder.connect(origin).await?,
        })
    }
}

fn tls(setup: &Setup) -> Result<TlsConfig, PeerError> {
    let mut tls = TlsConfig::builder().skip_system_certs();
    for root in CertificateDer::pem_slice_iter(setup.ca.as_deref().unwrap_or_default()) {
        tls = tls.add_root_cert(root?);
    }
    Ok(tls.build()?)
}

/// The URL as its caller has it: where to connect, and what to ask for there.
fn split(url: &str) -> Option<(&str, &str)> {
    let authority = url.find("://")? + 3;
    let path = authority + url[authority..].find('/')?;
    Some(url.split_at(path))
}

impl AsyncPeer for Nexus {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        let (origin, path) = split(ask.url).ok_or("the URL has no path")?;
        let room = BUFFER + self.body.load(Ordering::Relaxed);
        let mut lane = match self.take(origin, room) {
            Some(lane) => lane,
            None => self.connect(origin, room).await?,
        };
        let request = match &ask.upload {
            Outgoing::None => lane.writer.get_raw(path).finish()?,
            Outgoing::Known(bytes) => lane.writer.post_raw(path).body(bytes).finish()?,
            Outgoing::Stream(_) => return Err("no streamed request bodies".into()),
        };
        let response = lane.connection.send(request, &mut lane.reader).await?;
        seen.status(response.status());
        seen.whole(response.body());
        self.keep(lane);
        Ok(())
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        let (upload, streamed) = match job.upload {
            Upload::None | Upload::Messages { .. } => (0, false),
            Upload::Known(bytes) => (bytes, false),
            Upload::Chunked(_) | Upload::Paced { .. } => (0, true),
        };
        let body = job.body.max(upload);
        if streamed {
            Some("a request is one buffer: no streamed bodies".to_owned())
        } else if job.deliver != Deliver::Bytes {
            Some("a response is one buffer: no body in pieces".to_owned())
        } else if body > LARGEST {
            Some(format!("a message is one buffer of fixed size: {body} bytes in memory"))
        } else {
            // Its caller has to know, so this is where this one learns it.
            self.body.store(body as usize, Ordering::Relaxed);
            None
        }
    }
}

/// What the job is about.
#[derive(Clone)]
enum Either {
    Http(Nexus),
    WebSocket(websocket::Awaited),
}

impl AsyncPeer for Either {
    const COLD: Cold = Cold::Configured;

    async fn exchange(&self, ask: Ask<'_>, seen: &mut Seen) -> Result<(), PeerError> {
        match self {
            Self::Http(nexus) => nexus.exchange(ask, seen).await,
            Self::WebSocket(nexus) => nexus.exchange(ask, seen).await,
        }
    }

    fn unsupported(&self, job: &Job) -> Option<String> {
        match self {
            Self::Http(nexus) => nexus.unsupported(job),
            Self::WebSocket(nexus) => nexus.unsupported(job),
        }
    }
}

fn main() -> ExitCode {
    let version = locked(include_str!("../Cargo.lock"), "nexus-web");
    let body = Arc::default();
    Binary::new("nexus-web", &version)
        .with_async(CONFIGS, move |setup| match setup.protocol.is_web_socket() {
            true => Ok(Either::WebSocket(websocket::Awaited::new(setup)?)),
            false => Ok(Either::Http(Nexus::new(setup, Arc::clone(&body))?)),
        })
        .with_blocking(websocket::BLOCKING, websocket::Blocking::new)
        .run()
}
