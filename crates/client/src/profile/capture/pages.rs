//! The pages that make a browser show what it sends, and what is kept of it.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;

use crate::fingerprint::{Answer, Asked, Listener, Seen, Serving, Site};

/// The host of the pages: a hello to an address would lack an extension.
const HOST: &str = "localhost";

/// Where they listen.
const ADDRESS: &str = "127.0.0.1:0";

/// The kind of request that asks for this path, as a profile's file names it.
pub(super) fn kind(path: &str) -> Option<&'static str> {
    Some(match path {
        "/" | "/again" => "navigate",
        "/frame" => "iframe",
        "/fetch" => "fetch",
        "/xhr" => "xhr",
        "/script.js" => "script",
        "/style.css" => "style",
        "/image.svg" => "image",
        "/favicon.ico" => "favicon",
        "/socket" => "websocket",
        _ => return None,
    })
}

/// The second page, over HTTP/1.1: it loads the same, and says in the end that all was seen.
const AGAIN: &str = "<!doctype html><title>Mimus</title><link rel=stylesheet href=/style.css>\
    <script src=/script.js></script><p>Captured.<img src=/image.svg><iframe src=/frame></iframe>\
    <script>
async function run() {
  await fetch('/fetch').catch(() => 0);
  await new Promise(end => {
    const request = new XMLHttpRequest();
    request.onloadend = end;
    request.open('GET', '/xhr');
    request.send();
  });
  await fetch('/done');
}
addEventListener('load', run);
</script>
";

/// Servers whose pages make a browser navigate, load what pages load, open a WebSocket, do the same over
/// HTTP/1.1, and connect several times: each connection is to another port, and there are sessions to resume.
#[derive(Debug)]
pub struct Pages {
    urls: Vec<String>,
    authority: Vec<u8>,
    keys: Vec<[u8; 32]>,
    kept: Arc<Kept>,
    _serving: Vec<Serving>,
}

#[derive(Debug, Default)]
struct Kept {
    all: Mutex<All>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct All {
    /// By the server and the connection's number.
    seen: BTreeMap<(usize, u64), Seen>,
    done: bool,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, server: usize, seen: &Seen, done: bool) {
        let mut all = self.lock();
        all.seen.insert((server, seen.number), seen.clone());
        all.done |= done;
        drop(all);
        self.changed.notify_all();
    }
}

impl Pages {
    /// Serves them, with so many connections of HTTP/2 to be made to them.
    ///
    /// # Errors
    /// When a port cannot be listened at, or there is no thread to be had.
    pub fn start(connections: usize) -> io::Result<Self> {
        let first = Listener::bind(ADDRESS, &[HOST, "127.0.0.1"])?;
        let mut listeners = Vec::new();
        for _ in 1..connections.max(1) {
            listeners.push(first.beside(ADDRESS, &[HOST], &["h2", "http/1.1"])?);
        }
        let http1 = first.beside(ADDRESS, &[HOST], &["http/1.1"])?;
        let ports = listeners.iter().map(|listener| listener.local_addr().port());
        let page = page(&ports.collect::<Vec<_>>(), http1.local_addr().port());
        let authority = first.authority_pem().to_vec();
        listeners.insert(0, first);
        listeners.push(http1);
        let root =
            |listener: &Listener| format!("https://{HOST}:{}/", listener.local_addr().port());
        let urls = listeners.iter().map(root).collect();
        let keys = listeners.iter().map(Listener::spki_sha256).collect();
        let kept = Arc::new(Kept::default());
        let (page, last) = (Arc::<str>::from(page), listeners.len() - 1);
        let serve = |(server, listener): (usize, Listener)| {
            let page = Arc::clone(&page);
            listener.serve(Port { server, closes: server == last, page, kept: Arc::clone(&kept) })
        };
        let serving = listeners.into_iter().enumerate().map(serve);
        let serving = serving.collect::<io::Result<_>>()?;
        Ok(Pages { urls, authority, keys, kept, _serving: serving })
    }

    /// What the browser has to be pointed at.
    #[must_use]
    pub fn url(&self) -> &str {
        self.urls.first().map_or("", String::as_str)
    }

    /// The roots of all servers, the last of which speaks HTTP/1.1 alone. The pages lead to each.
    #[must_use]
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The certificate that it has to trust, in PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &[u8] {
        &self.authority
    }

    /// The SHA-256 of each server's public key, for Chromium's `--ignore-certificate-errors-spki-list`.
    #[must_use]
    pub fn spki_sha256(&self) -> &[[u8; 32]] {
        &self.keys
    }

    /// Waits until the pages are through or another connection said something; no longer than `limit`.
    /// Gives the number of connections that said something, and whether the pages are through.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> (usize, bool) {
        let all = self.kept.lock();
        let before = all.seen.len();
        let unchanged = |all: &mut All| !all.done && all.seen.len() == before;
        let waited = self.kept.changed.wait_timeout_while(all, limit, unchanged);
        let (all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (all.seen.len(), all.done)
    }

    /// What was seen so far, connection by connection.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.kept.lock().seen.values().cloned().collect()
    }
}

/// The first page.
fn page(ports: &[u16], http1: u16) -> String {
    format!(
        "<!doctype html><title>Mimus</title><link rel=stylesheet href=/style.css>\
         <script src=/script.js></script><p>Capturing...<img src=/image.svg><iframe src=/frame></iframe>\
         <script>
const once = url => fetch(url, {{mode: 'no-cors', cache: 'no-store'}}).catch(() => 0);
async function run() {{
  await fetch('/fetch').catch(() => 0);
  await new Promise(end => {{
    const request = new XMLHttpRequest();
    request.onloadend = end;
    request.open('GET', '/xhr');
    request.send();
  }});
  for (const port of {ports:?}) await once(`https://{HOST}:${{port}}/other`);
  for (let turn = 0; turn < 3; turn++) await once(`https://{HOST}:{http1}/other`);
  // The second is to a host that HTTP/2 is spoken with already.
  for (const host of ['{HOST}:{http1}', location.host]) await new Promise(end => {{
    const socket = new WebSocket(`wss://${{host}}/socket`);
    socket.onerror = socket.onclose = end;
    socket.onopen = () => socket.close();
  }});
  location = 'https://{HOST}:{http1}/again';
}}
addEventListener('load', run);
</script>
"
    )
}

/// One of the servers.
struct Port {
    server: usize,
    /// Whether each answer is its connection's last.
    closes: bool,
    page: Arc<str>,
    kept: Arc<Kept>,
}

impl Site for Port {
    fn answer(&self, seen: &Seen, asked: &Asked<'_>) -> Answer {
        self.kept.keep(self.server, seen, asked.target == "/done");
        let mut answer = match asked.target {
            "/" => Answer::new("text/html", self.page.to_string()),
            "/again" => Answer::new("text/html", AGAIN),
            "/frame" => Answer::new("text/html", "<!doctype html><p>A frame.\n"),
            "/script.js" => Answer::new("text/javascript", "// Nothing.\n"),
            "/style.css" => Answer::new("text/css", "p { margin: 1em }\n"),
            "/image.svg" => Answer::new(
                "image/svg+xml",
                "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>\n",
            ),
            "/fetch" | "/xhr" | "/other" | "/done" => Answer::new("text/plain", "Seen.\n"),
            _ => {
                let mut answer = Answer::new("text/plain", "There is nothing here.\n");
                answer.status = StatusCode::NOT_FOUND;
                answer
            }
        };
        let mut say = |name: &str, value: &str| {
            // Both can be sent.
            let _ = answer.fields.append(name, value);
        };
        say("Cache-Control", "no-store");
        if self.closes {
            say("Connection", "close");
        }
        answer
    }

    fn left(&self, seen: &Seen) {
        // Who sent no hello said nothing.
        if seen.hello.is_some() {
            self.kept.keep(self.server, seen, false);
        }
    }
}
