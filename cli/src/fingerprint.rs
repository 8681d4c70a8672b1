//! `mimus fingerprint`: from its words to the exit code. Read it from the top.

use std::{
    collections::HashSet,
    ffi::OsString,
    fmt::Write as _,
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use mimus::{
    Url,
    fingerprint::{Answer, Asked, Frame, Listener, Seen, Site, Transport, akamai},
};

use crate::{
    client, docs,
    exit::{Exit, Failure, wrong_usage},
    fields::FieldFlags,
    flags::{
        fingerprint::{LookFlags, Subject, Wanted},
        values::ResolveRule,
    },
    output::{harmless, tell, to_stdout},
    payload::Payload,
    request::Recipe,
    resume::Start,
};

/// Does what the words behind `mimus fingerprint` say.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let mut wanted = match Wanted::from_words(words) {
        Ok(wanted) => wanted,
        Err(error) => return wrong_usage(&error),
    };
    if let Some(answered) = docs::answer_fingerprint(&wanted.about) {
        return finish(answered);
    }
    let subject = match wanted.subject() {
        Ok(Subject::Us(url)) => Err(url.to_owned()),
        Ok(Subject::Them(addr)) => Ok(addr.to_owned()),
        Err(error) => return wrong_usage(&error),
    };
    finish(match subject {
        Err(url) => look_at_us(&mut wanted, &url),
        Ok(addr) => look_at_them(&wanted.look, &addr),
    })
}

fn finish(result: Result<(), Failure>) -> Exit {
    let Err(failure) = result else { return Exit::Ok };
    if !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
    failure.exit
}

/// Sends what the flags describe to a server of our own that goes by the URL's name.
fn look_at_us(wanted: &mut Wanted, given: &str) -> Result<(), Failure> {
    let given = if given.contains("://") { given.to_owned() } else { format!("https://{given}") };
    let fields = FieldFlags::from_flags(&wanted.flags.request.header)?;
    let payload = Payload::from_flags(&wanted.flags)?;
    let recipe = Recipe { flags: &wanted.flags, fields: &fields, payload: &payload, method: None };
    let url = recipe.url(&given)?;
    let mut url = Url::parse(&url).map_err(|e| Failure::new(Exit::Url, e.to_string()))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let listener = Listener::bind("127.0.0.1:0", &[&host]).map_err(|e| cannot_listen(&e))?;
    let (sender, seen) = mpsc::channel();
    let local = listener.local_addr();
    let watch = Watch::new(sender, false);
    let serving = listener.serve(watch).map_err(|e| cannot_listen(&e))?;

    lead_to(wanted, &mut url, &host, local)?;
    let recipe = Recipe { flags: &wanted.flags, fields: &fields, payload: &payload, method: None };
    let client = client::build(&wanted.flags, &fields, client::jar(&wanted.flags.auth)?)?;
    let request = recipe.request(&client, url.as_str(), &Start::default(), Arc::new(|_| {}))?;
    let answer = request.send().map_err(|e| Failure::of(&e, false))?;
    answer.bytes().map_err(|e| Failure::of(&e, false))?;
    let seen = seen.recv().map_err(|_| Failure::new(Exit::Empty, "nothing was seen"))?;
    drop(serving);
    show(&seen, wanted.look.jsonl)
}

/// Makes the flags those of a client that meets our server in place of the URL's.
fn lead_to(
    wanted: &mut Wanted,
    url: &mut Url,
    host: &str,
    local: SocketAddr,
) -> Result<(), Failure> {
    // The server is ours, and whom we trust is not to be seen from outside.
    wanted.flags.tls.insecure = true;
    wanted.flags.tls.cacert = None;
    let connection = &mut wanted.flags.connection;
    (connection.proxy, connection.noproxy) = (None, Some("*".to_owned()));
    connection.unix_socket = None;
    connection.interface = None;
    (connection.ipv4, connection.ipv6) = (false, false);
    if host.parse::<std::net::IpAddr>().is_ok() {
        // An address is not looked up, and is not told to the server in TLS.
        let moved = url.set_ip_host(local.ip()).and_then(|()| url.set_port(Some(local.port())));
        return moved.map_err(|()| Failure::new(Exit::Url, "the URL has no host"));
    }
    let port = url.port_or_known_default().unwrap_or_default();
    connection.resolve = vec![ResolveRule { host: host.to_owned(), port, addrs: vec![local] }];
    Ok(())
}

/// Shows whoever connects, until there were enough of them.
fn look_at_them(look: &LookFlags, addr: &str) -> Result<(), Failure> {
    let ip = addr.rsplit_once(':').map_or(addr, |(ip, _)| ip.trim_matches(['[', ']'])).to_owned();
    let mut names = vec!["localhost", "127.0.0.1", "::1"];
    if !ip.is_empty() && !names.contains(&&*ip) {
        names.push(&ip);
    }
    names.extend(look.name.iter().map(String::as_str));
    let listener = Listener::bind(addr, &names).map_err(|e| cannot_listen(&e))?;
    if let Some(path) = &look.ca_file {
        write_certificate(path, listener.authority_pem())?;
    }
    let (sender, seen) = mpsc::channel();
    let local = listener.local_addr();
    let watch = Watch::new(sender, true);
    let asking = Arc::clone(&watch.asking);
    let serving = listener.serve(watch).map_err(|e| cannot_listen(&e))?;
    tell(&format!("mimus: listening at https://{local}/ and http://{local}/"));
    let shown = show_all(&seen, look);
    let_read(&asking);
    drop(serving);
    shown
}

/// Waits until those who asked last have read the answer and left, or for a second.
fn let_read(asking: &Mutex<HashSet<u64>>) {
    let until = Instant::now() + Duration::from_secs(1);
    let is_empty = || asking.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
    while !is_empty() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
}

fn cannot_listen(error: &io::Error) -> Failure {
    Failure::new(Exit::Connect, format!("the server cannot be set up: {error}"))
}

fn write_certificate(path: &Path, pem: &[u8]) -> Result<(), Failure> {
    fs::write(path, pem).map_err(|e| Failure::write(path.display(), &e))
}

fn show_all(seen: &Receiver<Seen>, look: &LookFlags) -> Result<(), Failure> {
    let mut left = look.count.unwrap_or(u64::MAX);
    while left > 0 {
        let Ok(seen) = seen.recv() else { break };
        show(&seen, look.jsonl)?;
        left -= 1;
    }
    Ok(())
}

/// Answers with what was seen, and passes each connection on once: at its first request, or at its end
/// when it had none and those count.
struct Watch {
    to: Sender<Seen>,
    /// Whether connections without a request are passed on: a browser opens spare ones.
    silent_too: bool,
    /// The connections that asked and are open.
    asking: Arc<Mutex<HashSet<u64>>>,
}

impl Watch {
    fn new(to: Sender<Seen>, silent_too: bool) -> Self {
        Watch { to, silent_too, asking: Arc::default() }
    }

    fn asking(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site for Watch {
    fn answer(&self, seen: &Seen, _: &Asked<'_>) -> Answer {
        if self.asking().insert(seen.number) {
            // Who does not listen any more has seen enough.
            let _ = self.to.send(seen.clone());
        }
        Answer::json(&seen.describe())
    }

    fn left(&self, seen: &Seen) {
        if !self.asking().remove(&seen.number) && self.silent_too {
            let _ = self.to.send(seen.clone());
        }
    }
}

fn show(seen: &Seen, jsonl: bool) -> Result<(), Failure> {
    let text = match jsonl {
        true => format!("{}\n", seen.describe()),
        false => text(seen),
    };
    to_stdout(text.as_bytes())
}

/// One line for each print.
fn text(seen: &Seen) -> String {
    let mut lines: Vec<(&str, String)> = vec![("from", seen.peer.to_string())];
    if let Some(hello) = &seen.hello {
        let (ja3, ja3n, peet) = (hello.ja3(), hello.ja3n(), hello.peetprint());
        let ja4 = hello.ja4(Transport::Tcp);
        lines.extend([
            ("JA3", ja3.hash),
            ("", ja3.raw),
            ("JA3N", ja3n.hash),
            ("", ja3n.raw),
            ("JA4", ja4.hash),
            ("JA4_r", ja4.raw),
            ("peetprint", peet.hash),
            ("", peet.raw),
            ("ALPN", seen.alpn.clone().unwrap_or_else(|| "none".to_owned())),
        ]);
    }
    if !seen.frames.is_empty() {
        let akamai = akamai(&seen.frames);
        lines.extend([("Akamai", akamai.hash), ("", akamai.raw)]);
    }
    let of_http2 = seen.frames.iter().find_map(|frame| match frame {
        Frame::Headers(block) => Some(block.fields.iter().map(|field| harmless(&field.name))),
        _ => None,
    });
    let of_http1 = seen.heads.first().map(|head| head.fields.iter().map(|(n, _)| n.to_owned()));
    if let Some(names) = of_http2.map(Vec::from_iter).or(of_http1.map(Vec::from_iter)) {
        lines.push(("fields", names.join(" ")));
    }
    if let Some(error) = &seen.error {
        lines.push(("error", harmless(error.as_bytes())));
    }
    let mut text = String::new();
    for (name, value) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    }
    text.push('\n');
    text
}
