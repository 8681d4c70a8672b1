//! `mimus ws`: from its words to the exit code. Read it from the top.

mod input;
mod show;

use std::{
    ffi::OsString,
    io::IsTerminal as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mimus::ws::{
    Builder, Close, CloseCode, ConnectError, DeflateOffer, Message, Receiver, Sender, WebSocket,
};

use self::{input::Input, show::Screen};
use crate::{
    address, client, docs,
    exit::{Exit, Failure, wrong_usage},
    fields::FieldFlags,
    flags::ws::{SocketFlags, Wanted},
    interrupt,
    output::{
        Verbose, colours_welcome, harmless, millis, pretty::Palette, stderr_is_terminal,
        stdout_is_terminal, tell,
    },
    payload::Payload,
    request::Recipe,
    resume::Start,
};

type Mode = mimus::Blocking;

/// How much of the body of a refusal is shown, in bytes.
const REFUSAL: usize = 4096;

/// Does what the words behind `mimus ws` say.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let wanted = match Wanted::from_words(words) {
        Ok(wanted) => wanted,
        Err(error) => return wrong_usage(&error),
    };
    if let Some(answered) = docs::answer_ws(&wanted.about) {
        return finish(answered);
    }
    let url = match wanted.url() {
        Ok(url) => url,
        Err(error) => return wrong_usage(&error),
    };
    let begun = Instant::now();
    finish(open(&wanted, url).and_then(|socket| talk(socket, &wanted, begun)))
}

fn finish(result: Result<(), Failure>) -> Exit {
    let Err(failure) = result else { return Exit::Ok };
    if !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
    failure.exit
}

/// Whether the flags name a proxy.
fn proxied(wanted: &Wanted) -> bool {
    wanted.flags.connection.proxy.as_deref().is_some_and(|proxy| !proxy.is_empty())
}

/// Opens the socket that the flags describe.
fn open(wanted: &Wanted, url: &str) -> Result<WebSocket<Mode>, Failure> {
    let (flags, options) = (&wanted.flags, &wanted.socket);
    let url = address::complete_socket(url)?;
    let fields = FieldFlags::from_flags(&flags.request.header)?;
    let client = client::build(flags, &fields, client::jar(&flags.auth)?)?;
    let recipe = Recipe { flags, fields: &fields, payload: &Payload::None, method: None };
    let mut socket = client.websocket(&url).subprotocols(options.subprotocol.iter().cloned());
    for (name, value) in fields.send() {
        socket = socket.header(name, value);
    }
    for (name, value) in recipe.derived_fields(&Start::default()) {
        socket = socket.header(name, value);
    }
    if options.verbose {
        let coloured = colours_welcome(flags.terminal.color, stderr_is_terminal());
        let verbose = Verbose { palette: Palette::when(coloured), show_secrets: false };
        socket = socket.request(|request| request.hook(verbose));
    }
    socket = socket.request(|request| request.retry(client::retries(flags)));
    let connect = shaped(socket, wanted).connect();
    connect.map_err(|error| refused(error, proxied(wanted)))
}

/// With what the flags say about its behaviour.
fn shaped(mut socket: Builder<Mode>, wanted: &Wanted) -> Builder<Mode> {
    let (connection, options) = (&wanted.flags.connection, &wanted.socket);
    if let Some(origin) = &options.origin {
        socket = socket.origin(origin);
    }
    if options.deflate {
        socket = socket.deflate(DeflateOffer::default());
    }
    if let Some(most) = options.max_message {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        socket = socket.max_message(most).max_frame(most);
    }
    if let Some(wait) = options.pong_timeout {
        socket = socket.pong_timeout(wait);
    }
    if let Some(wait) = options.close_timeout {
        socket = socket.close_timeout(wait);
    }
    socket =
        socket.ping_interval(options.ping_interval).idle_timeout(wanted.flags.policy.idle_timeout);
    match connection.version() {
        _ if connection.http2 => socket.prefer_http2(),
        Some(version) => socket.version(version),
        None => socket,
    }
}

/// Why there is no socket. What the server says of it is shown.
fn refused(error: ConnectError<Mode>, proxied: bool) -> Failure {
    let failure = Failure::of(error.error(), proxied);
    if let Some(response) = error.into_http()
        && let Ok(body) = response.bytes()
    {
        let lines = body[..body.len().min(REFUSAL)].split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).for_each(|line| tell(&harmless(line)));
    }
    failure
}

/// What both directions share.
struct Talk {
    sender: Mutex<Sender<Mode>>,
    /// Why the input ended early.
    failed: Mutex<Option<Failure>>,
    interrupted: AtomicBool,
}

impl Talk {
    /// Sends one message.
    fn send(&self, message: Message) -> mimus::Result<()> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(message)
    }

    /// Says goodbye. The server's answer ends the receiving side.
    fn close(&self) {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the socket is closed already there is nothing to say.
        let _ = sender.close(CloseCode::NORMAL, "");
    }

    fn fail(&self, failure: Failure) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Sends what is read and shows what comes, until one side closes.
fn talk(socket: WebSocket<Mode>, wanted: &Wanted, begun: Instant) -> Result<(), Failure> {
    let options = &wanted.socket;
    tell_opened(&socket, options, begun);
    let interactive = std::io::stdin().is_terminal() && stdout_is_terminal();
    let (mut input, printer) = Input::open(interactive, options)?;
    let mut screen = Screen::new(printer, options, stdout_is_terminal());
    let (mut receiver, sender) = socket.split();
    let talk = Arc::new(Talk {
        sender: Mutex::new(sender),
        failed: Mutex::default(),
        interrupted: AtomicBool::new(false),
    });
    let interrupted = Arc::clone(&talk);
    interrupt::first(move || {
        interrupted.interrupted.store(true, Ordering::Release);
        // Not here: the next Ctrl-C must get through when this takes long.
        thread::spawn(move || interrupted.close());
    });
    let feeding = Arc::clone(&talk);
    thread::spawn(move || input.feed(&feeding));
    let received = receive(&mut receiver, &talk, &mut screen, wanted);
    screen.leave();
    if talk.interrupted.load(Ordering::Acquire) {
        let why = "interrupted".to_owned();
        return Err(Failure { exit: Exit::Interrupted, message: why, quiet: true });
    }
    let failed = talk.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    match failed {
        Some(failure) => Err(failure),
        None => received.and_then(|()| judge(receiver.close_reason().as_ref(), options)),
    }
}

fn tell_opened(socket: &WebSocket<Mode>, options: &SocketFlags, begun: Instant) {
    if options.timing {
        tell(&format!("open after {} ms", millis(begun.elapsed())));
    }
    if options.verbose
        && let Some(name) = socket.subprotocol()
    {
        tell(&format!("* subprotocol {}", harmless(name.as_bytes())));
    }
}

/// Shows each message when it comes.
fn receive(
    receiver: &mut Receiver<Mode>,
    talk: &Arc<Talk>,
    screen: &mut Screen,
    wanted: &Wanted,
) -> Result<(), Failure> {
    let watch = wanted.flags.policy.max_time.map(|time| watch(talk, time));
    let mut enough = false;
    loop {
        let message = match receiver.recv() {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(error) => return Err(Failure::of(&error, proxied(wanted))),
        };
        if enough {
            continue;
        }
        screen.show(&message)?;
        if wanted.socket.one_message && matches!(message, Message::Text(_) | Message::Binary(_)) {
            enough = true;
            talk.close();
        }
    }
    match watch.is_some_and(|over| over.load(Ordering::Acquire)) {
        true => Err(Failure::new(Exit::Timeout, "the time of -m is over")),
        false => Ok(()),
    }
}

/// Closes the socket when this time is over, and says then that it is.
fn watch(talk: &Arc<Talk>, time: Duration) -> Arc<AtomicBool> {
    let (over, talk) = (Arc::new(AtomicBool::new(false)), Arc::clone(talk));
    let told = Arc::clone(&over);
    thread::spawn(move || {
        thread::sleep(time);
        told.store(true, Ordering::Release);
        talk.close();
    });
    over
}

/// How a run ends whose server has closed so.
fn judge(close: Option<&Close>, options: &SocketFlags) -> Result<(), Failure> {
    let Some(close) = close else { return Ok(()) };
    let mut told = close.code.to_string();
    if !close.reason.is_empty() {
        told.push_str(&format!(": {}", harmless(close.reason.as_bytes())));
    }
    if !matches!(close.code, CloseCode::NORMAL | CloseCode::GOING_AWAY) {
        return Err(Failure::new(Exit::Close, format!("the server closed with {told}")));
    }
    if options.verbose || !close.reason.is_empty() {
        tell(&format!("closed with {told}"));
    }
    Ok(())
}
