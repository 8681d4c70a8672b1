//! `mimus sse`: from its words to the exit code. Read it from the top.

use std::{
    ffi::OsString,
    future::poll_fn,
    sync::Arc,
    time::{Duration, Instant},
};

use mimus::{
    rt::{Blocking, within},
    sse::{Event, EventSource},
};
use serde_json::{Map, Value};

use crate::{
    client, docs,
    exit::{Exit, Failure, wrong_usage},
    fields::FieldFlags,
    flags::sse::{StreamFlags, Wanted},
    output::{
        Verbose, colours_welcome, harmless, pretty::Palette, stderr_is_terminal,
        stdout_is_terminal, tell, to_stdout,
    },
    payload::Payload,
    request::Recipe,
    resume::Start,
};

type Source = EventSource<mimus::Blocking>;

/// Does what the words behind `mimus sse` say.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> Exit {
    let mut wanted = match Wanted::from_words(words) {
        Ok(wanted) => wanted,
        Err(error) => return wrong_usage(&error),
    };
    if let Some(answered) = docs::answer_sse(&wanted.about) {
        return finish(answered);
    }
    // It bounds the run, not each of its connections.
    let limit = wanted.flags.policy.max_time.take();
    let source = match wanted.url() {
        Ok(url) => source(&wanted, url),
        Err(error) => return wrong_usage(&error),
    };
    let proxied = wanted.flags.connection.proxy.as_deref().is_some_and(|p| !p.is_empty());
    finish(source.and_then(|source| follow(source, &wanted.stream, limit, proxied)))
}

fn finish(result: Result<(), Failure>) -> Exit {
    let Err(failure) = result else { return Exit::Ok };
    if !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
    failure.exit
}

/// The source that the flags describe.
fn source(wanted: &Wanted, url: &str) -> Result<Source, Failure> {
    let (flags, stream) = (&wanted.flags, &wanted.stream);
    let fields = FieldFlags::from_flags(&flags.request.header)?;
    let payload = Payload::from_flags(flags)?;
    let client = client::build(flags, &fields, client::jar(&flags.auth)?)?;
    let recipe = Recipe { flags, fields: &fields, payload: &payload, method: None };
    let url = recipe.url(url)?;
    let mut request = recipe.request(&client, &url, &Start::default(), Arc::new(|_| {}))?;
    if !fields.mention("accept") {
        request = request.set_header("Accept", mimus::sse::MEDIA_TYPE);
    }
    request = request.retry(client::retries(flags));
    if stream.verbose {
        let coloured = colours_welcome(flags.terminal.color, stderr_is_terminal());
        request = request.hook(Verbose { palette: Palette::when(coloured), show_secrets: false });
    }
    let mut source = request.event_source().max_failures(stream.max_failures);
    if stream.no_reconnect || stream.reconnect {
        source = source.reconnect(stream.reconnect);
    }
    if let Some(id) = &stream.last_event_id {
        source = source.last_event_id_seen(id);
    }
    Ok(source)
}

/// Shows each event when it comes.
fn follow(
    mut source: Source,
    flags: &StreamFlags,
    limit: Option<Duration>,
    proxied: bool,
) -> Result<(), Failure> {
    let started = Instant::now();
    let until = limit.and_then(|limit| started.checked_add(limit));
    let for_terminal = stdout_is_terminal();
    let mut left = flags.count.unwrap_or(u64::MAX);
    while left > 0 {
        let next = poll_fn(|cx| source.poll_event(cx));
        let Some(next) = Blocking::block_on(within(&Blocking, until, next)) else {
            return Err(Failure::new(Exit::Timeout, "the time of -m is over"));
        };
        let Some(event) = next.transpose().map_err(|e| Failure::of(&e, proxied))? else { break };
        if !flags.event.is_empty() && !flags.event.iter().any(|kind| *kind == *event.event) {
            continue;
        }
        let at = flags.timing.then(|| started.elapsed());
        let text = match flags.jsonl {
            true => json(&event, at),
            false => plain(&event, at, for_terminal),
        };
        to_stdout((text + "\n").as_bytes())?;
        left -= 1;
    }
    Ok(())
}

/// The data. On a terminal, what controls one is shown and not obeyed.
fn plain(event: &Event, at: Option<Duration>, for_terminal: bool) -> String {
    let data = match for_terminal {
        true => {
            event.data.split('\n').map(|l| harmless(l.as_bytes())).collect::<Vec<_>>().join("\n")
        }
        false => event.data.to_string(),
    };
    match at {
        Some(at) => format!("{:.3} {data}", at.as_secs_f64()),
        None => data,
    }
}

fn json(event: &Event, at: Option<Duration>) -> String {
    let mut object = Map::new();
    if let Some(at) = at {
        object.insert("time".to_owned(), at.as_secs_f64().into());
    }
    for (name, text) in [("event", &event.event), ("id", &event.id), ("data", &event.data)] {
        object.insert(name.to_owned(), Value::String(text.to_string()));
    }
    Value::Object(object).to_string()
}
