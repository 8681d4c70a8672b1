//! `mimus profile capture`: a browser asks for pages of ours, and what it sent becomes a profile.

mod browser;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mimus::profile::capture::{Captured, Pages};

use self::browser::Running;
use crate::{
    exit::{Exit, Failure},
    flags::profile::Capture,
    interrupt,
    output::{harmless, tell, to_stdout},
};

/// How long a browser of ours may take to start and to go through the pages.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked at whether it still runs.
const TURN: Duration = Duration::from_millis(200);

/// Captures one, and writes its file and the report.
pub(crate) fn run(flags: &Capture) -> Result<(), Failure> {
    let pages = Pages::start(flags.connections.into())
        .map_err(|e| Failure::new(Exit::Connect, format!("the server cannot be set up: {e}")))?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    interrupt::install();
    interrupt::first(move || stopped.store(true, Ordering::Release));
    let folder = tempfile::Builder::new().prefix("mimus-capture-").tempdir();
    let folder = folder.map_err(|e| Failure::write("the directory for temporary files", &e))?;
    let authority = folder.path().join("ca.pem");
    fs::write(&authority, pages.authority_pem())
        .map_err(|e| Failure::write(authority.display(), &e))?;
    let keys: Vec<String> = pages.spki_sha256().iter().map(|key| STANDARD.encode(key)).collect();
    let keys = format!("--ignore-certificate-errors-spki-list={}", keys.join(","));
    let mut running = match &flags.browser {
        Some(name) => Some(Running::start(name, folder.path(), &authority, &keys, pages.url())?),
        None => {
            invite(&pages, &authority, &keys);
            None
        }
    };
    let gone_through = go_through(&pages, running.as_mut(), &stop);
    // Before the folder goes, which is its own.
    drop(running);
    drop(folder);
    gone_through?;
    let captured = Captured::from_seen(&pages.seen(), flags.name.as_deref()).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Failure::new(Exit::Protocol, format!("{error}{}", cause.unwrap_or_default()))
    })?;
    report(&captured);
    match &flags.out {
        None => to_stdout(captured.toml.as_bytes()),
        Some(path) => {
            fs::write(path, &captured.toml).map_err(|e| Failure::write(path.display(), &e))?;
            tell(&format!("mimus: use it by mimus --as {}", usable(path)));
            Ok(())
        }
    }
}

/// The path as `--as` takes it for a file's.
fn usable(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let told = text.ends_with(".toml") || text.contains(std::path::is_separator);
    if told { text } else { PathBuf::from(".").join(path).display().to_string() }
}

fn invite(pages: &Pages, authority: &std::path::Path, keys: &str) {
    tell(&format!("mimus: open {} in the browser, which has to trust", pages.url()));
    tell(&format!(
        "mimus:   {} (an authority for websites, of this run only),",
        authority.display()
    ));
    tell(&format!("mimus:   or start a Chromium with {keys}"));
}

/// Waits until the last page was asked for.
fn go_through(
    pages: &Pages,
    mut running: Option<&mut Running>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let mut told = 0;
    loop {
        let (connections, done) = pages.wait(TURN);
        if connections > told {
            tell(&format!("mimus: {connections} connections"));
            told = connections;
        }
        if done {
            return Ok(());
        }
        if stop.load(Ordering::Acquire) {
            return Err(Failure::new(Exit::Interrupted, "interrupted"));
        }
        let Some(running) = running.as_deref_mut() else { continue };
        if let Some(said) = running.ended() {
            let why = format!("the browser ended before it was through the pages: {said}");
            return Err(Failure::new(Exit::Connect, why));
        }
        if Instant::now() > until {
            let why = "the browser did not go through the pages in 2 minutes";
            return Err(Failure::new(Exit::Timeout, why));
        }
    }
}

fn report(captured: &Captured) {
    tell(&format!("mimus: the nearest profile is {}", captured.nearest.name()));
    for note in &captured.notes {
        tell(&format!("mimus: {}", harmless(note.as_bytes())));
    }
    let differences = captured.differences();
    if differences.is_empty() {
        tell("mimus: it says the same as the nearest");
    }
    for (place, near, own) in differences {
        for (mark, value) in [('-', near), ('+', own)] {
            if let Some(value) = value {
                tell(&format!("{mark} {place} = {}", harmless(value.as_bytes())));
            }
        }
    }
}
