//! The run, from the command line to the exit code. Read it from the top.

use std::{process::ExitCode, sync::Arc, time::Instant};

use mimus::{
    Method, StatusCode,
    blocking::{Client, Response},
    cookie::Jar,
};

use crate::{
    client::{self, retries},
    docs,
    exit::{Exit, Failure, wrong_usage},
    fields::FieldFlags,
    fingerprint,
    flags::{Flags, Targets},
    grpc, interrupt,
    observe::{Recorder, version_name},
    output::{
        Dump, Format, Heads, Output, Stream, Summary, Verbose, colours_welcome,
        har::{Archive, Capture, Ending},
        millis,
        pretty::Palette,
        progress::Progress,
        stderr_is_terminal, tell, to_stderr, to_stdout, without_userinfo, write_private,
    },
    payload::Payload,
    place, profile,
    request::{Observer, Recipe},
    resume::{Resumed, Start, resumed, resumption_wait, strong_validator},
    sse, ws,
};

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    let subject = match std::env::args_os().nth(1) {
        Some(word) if word == "fingerprint" => Some(fingerprint::run as fn(_) -> Exit),
        Some(word) if word == "grpc" => Some(grpc::run as fn(_) -> Exit),
        Some(word) if word == "profile" => Some(profile::run as fn(_) -> Exit),
        Some(word) if word == "sse" => Some(sse::run as fn(_) -> Exit),
        Some(word) if word == "ws" => Some(ws::run as fn(_) -> Exit),
        _ => None,
    };
    if let Some(run) = subject {
        interrupt::install();
        return run(std::env::args_os().skip(2)).into();
    }
    let flags = match Flags::from_env() {
        Ok(flags) => flags,
        Err(error) => return wrong_usage(&error).into(),
    };
    if let Some(answered) = docs::answer(&flags.about) {
        return finish(&flags, answered.err());
    }
    let targets = match flags.targets() {
        Ok(targets) => targets,
        Err(error) => return wrong_usage(&error).into(),
    };
    interrupt::install();
    match Session::new(&flags, &targets) {
        Ok(session) => session.run().into(),
        Err(failure) => finish(&flags, Some(failure)),
    }
}

fn finish(flags: &Flags, failure: Option<Failure>) -> ExitCode {
    let Some(failure) = failure else { return Exit::Ok.into() };
    report(flags, &failure);
    failure.exit.into()
}

/// Tells about a failure, unless nobody wants to hear.
fn report(flags: &Flags, failure: &Failure) {
    let silent = flags.terminal.silent && !flags.terminal.show_error;
    if !silent && !failure.quiet {
        tell(&format!("mimus: {failure}"));
    }
}

/// What the transfers of a run share.
struct Session<'a> {
    flags: &'a Flags,
    targets: &'a Targets,
    client: Client,
    fields: FieldFlags,
    payload: Payload,
    format: Format,
    jar: Option<Arc<Jar>>,
    dump: Option<Dump>,
    archive: Option<Archive>,
    verbose: Option<Verbose>,
}

impl<'a> Session<'a> {
    fn new(flags: &'a Flags, targets: &'a Targets) -> Result<Self, Failure> {
        let (format, unknown) = match &flags.output.write_out {
            Some(format) => Format::from_flag(format)?,
            None => Default::default(),
        };
        for name in unknown {
            tell(&format!("mimus: -w knows no {name:?}"));
        }
        let fields = FieldFlags::from_flags(&flags.request.header)?;
        let payload = Payload::from_flags(flags)?;
        let jar = client::jar(&flags.auth)?;
        let client = client::build(flags, &fields, jar.clone())?;
        let dump = flags.output.dump_header.as_deref().map(Dump::create).transpose()?;
        let show_secrets = flags.terminal.show_secrets;
        let coloured = colours_welcome(flags.terminal.color, stderr_is_terminal());
        Ok(Session {
            flags,
            targets,
            client,
            fields,
            payload,
            format,
            jar,
            dump,
            archive: flags.output.har.is_some().then(|| Archive::new(show_secrets)),
            verbose: flags
                .terminal
                .verbose
                .then(|| Verbose { palette: Palette::when(coloured), show_secrets }),
        })
    }

    /// Fetches every URL, then writes what is written once. The first failure counts.
    fn run(mut self) -> Exit {
        let mut exit = Exit::Ok;
        for number in 0..self.targets.urls.len() {
            let result = self.fetch(number);
            self.note(&mut exit, result);
        }
        let jar = self.save_jar();
        self.note(&mut exit, jar);
        if let (Some(archive), Some(path)) = (&self.archive, &self.flags.output.har) {
            let written = archive.write(path);
            self.note(&mut exit, written);
        }
        exit
    }

    fn note(&self, exit: &mut Exit, result: Result<(), Failure>) {
        if let Err(failure) = result {
            report(self.flags, &failure);
            if *exit == Exit::Ok {
                *exit = failure.exit;
            }
        }
    }

    fn save_jar(&self) -> Result<(), Failure> {
        match (&self.jar, &self.flags.auth.cookie_jar) {
            (Some(jar), Some(path)) => write_private(path, jar.to_netscape(true).as_bytes()),
            _ => Ok(()),
        }
    }

    /// One URL: the transfer, and then what is told about it whether it went well or not.
    fn fetch(&mut self, number: usize) -> Result<(), Failure> {
        let mut transfer = Transfer::new(number, self.archive.is_some());
        let result = self.transfer(&mut transfer);
        let end = Instant::now();
        if let Some(bar) = &transfer.bar {
            bar.finish();
        }
        if let (Err(_), Some(output)) = (&result, &transfer.output) {
            output.abandon();
        }
        let summary = self.summary(&transfer, result.as_ref().err(), end);
        if let Some(verbose) = &self.verbose {
            let size = summary.size_download;
            verbose
                .remark(&format!("{size} bytes of body, {} in all", millis(summary.times.total)));
        }
        if let Some(archive) = &mut self.archive {
            let error = summary.error.as_deref();
            let size = transfer.size_download;
            let ending = Ending { body: &transfer.capture, size, at: end, error };
            archive.push(&transfer.recorder.lock(), &self.payload, &ending);
        }
        let written = self.format.write(&summary, |stream, bytes| match stream {
            Stream::Stdout => to_stdout(bytes),
            Stream::Stderr => to_stderr(bytes),
        });
        result.and(written)
    }

    fn transfer(&self, transfer: &mut Transfer) -> Result<(), Failure> {
        let recipe = Recipe {
            flags: self.flags,
            fields: &self.fields,
            payload: &self.payload,
            method: self.targets.method.as_ref(),
        };
        transfer.url = recipe.url(&self.targets.urls[transfer.number])?;
        transfer.method = recipe.method();
        let (output, offset) = place::find(self.flags, transfer.number, &transfer.url)?;
        transfer.output = Some(output.clone());
        let mut start = Start { offset, validator: None };
        loop {
            match self.attempt(transfer, &recipe, &output, &start) {
                Err(failure) => match self.go_on(transfer, &failure)? {
                    Some(next) => start = next,
                    None => return Err(failure),
                },
                done => return done,
            }
        }
    }

    /// One call, from the request to the end of the body.
    fn attempt(
        &self,
        transfer: &mut Transfer,
        recipe: &Recipe<'_>,
        output: &Output,
        start: &Start,
    ) -> Result<(), Failure> {
        let include = self.flags.output.include || self.flags.request.head;
        let heads = Heads::new(include.then(|| output.clone()), self.dump.clone());
        let observer = transfer.upload(self.shows_progress(recipe.has_body()));
        let mut request = recipe
            .request(&self.client, &transfer.url, start, observer)?
            .retry(retries(self.flags))
            .hook(transfer.recorder.clone());
        if let Some(limit) = self.flags.policy.max_time {
            request = request.timeout(limit.saturating_sub(transfer.recorder.lock().elapsed()));
        }
        if let Some(verbose) = &self.verbose {
            request = request.hook(verbose.clone());
        }
        if heads.is_wanted() {
            request = request.hook(heads.clone());
        }
        let mut response = request.send().map_err(|e| self.failure(&e))?;
        if let Some(bar) = transfer.bar.take() {
            bar.clear();
        }
        heads.result()?;
        transfer.final_url = Some(without_userinfo(response.url()).to_string());
        if let Some(offset) = start.offset.filter(|_| transfer.method != Method::HEAD) {
            match resumed(&response, offset)? {
                Resumed::Continues => {}
                Resumed::Complete => return Ok(()),
            }
        }
        self.receive(transfer, output, start.offset.unwrap_or(0), &mut response)
    }

    /// The body, to where it belongs; and what its status means.
    fn receive(
        &self,
        transfer: &mut Transfer,
        output: &Output,
        mut position: u64,
        response: &mut Response,
    ) -> Result<(), Failure> {
        let status = response.status();
        let failed = status.as_u16() >= 400;
        if failed && self.flags.output.fail {
            return Err(status_failure(status, response));
        }
        output.begin(response.fields(), response.content_length());
        transfer.begun = status.is_success();
        // A 206 that came by If-Range need not repeat the tag.
        if status != StatusCode::PARTIAL_CONTENT || response.fields().contains("etag") {
            transfer.validator = strong_validator(response);
        }
        if self.shows_progress(output.path().is_some()) {
            let total = response.content_length().map(|length| position + length);
            transfer.bar = Some(Progress::new("down", position, total));
        }
        let earlier = transfer.size_download;
        while let Some(piece) = response.chunk().map_err(|e| self.failure(&e))? {
            output.body(&piece)?;
            position += piece.len() as u64;
            transfer.size_download = earlier + response.body_mut().received();
            if self.archive.is_some() {
                transfer.capture.push(&piece);
            }
            if let Some(bar) = &transfer.bar {
                bar.at(position);
            }
        }
        // The end of a coding yields nothing, but was received.
        transfer.size_download = earlier + response.body_mut().received();
        output.finish()?;
        match failed && self.flags.output.fail_with_body {
            true => Err(status_failure(status, response)),
            false => Ok(()),
        }
    }

    /// Where a download that broke goes on, when -C and --retry say that it shall. The library makes
    /// the retries up to a head; this is for what breaks behind it.
    fn go_on(&self, transfer: &mut Transfer, failure: &Failure) -> Result<Option<Start>, Failure> {
        let flags = &self.flags.policy;
        let broken = matches!(failure.exit, Exit::Partial | Exit::Receive | Exit::Timeout);
        let wanted = self.flags.output.continue_at.is_some() && transfer.method == Method::GET;
        let left = transfer.resumptions < flags.retry.unwrap_or(0);
        if !(broken && wanted && left && transfer.begun) {
            return Ok(None);
        }
        let Some(output) = &transfer.output else { return Ok(None) };
        let Some(size) = output.resume()? else { return Ok(None) };
        let wait = resumption_wait(flags.retry_delay, transfer.resumptions);
        let then = transfer.recorder.lock().elapsed() + wait;
        if [flags.max_time, flags.retry_max_time].into_iter().flatten().any(|limit| then >= limit) {
            return Ok(None);
        }
        if let Some(verbose) = &self.verbose {
            let why = &failure.message;
            verbose.remark(&format!("going on at byte {size} in {}: {why}", millis(wait)));
        }
        if let Some(bar) = transfer.bar.take() {
            bar.clear();
        }
        transfer.resumptions += 1;
        transfer.begun = false;
        transfer.recorder.lock().num_retries += 1;
        std::thread::sleep(wait);
        let validator = transfer.validator.clone().filter(|_| size > 0);
        Ok(Some(Start { offset: (size > 0).then_some(size), validator }))
    }

    fn failure(&self, error: &mimus::Error) -> Failure {
        let proxied = self.flags.connection.proxy.as_deref().is_some_and(|p| !p.is_empty());
        Failure::of(error, proxied)
    }

    /// Whether a transfer shows its progress; `worth` says that it is one where people want it.
    fn shows_progress(&self, worth: bool) -> bool {
        let flags = &self.flags.terminal;
        let quiet = flags.silent || flags.verbose || flags.no_progress;
        stderr_is_terminal() && (flags.progress_bar || (worth && !quiet))
    }

    fn summary(&self, transfer: &Transfer, failure: Option<&Failure>, end: Instant) -> Summary {
        let record = transfer.recorder.lock();
        let mut summary = Summary {
            method: transfer.method.to_string(),
            url: self.targets.urls[transfer.number].clone(),
            url_effective: transfer.final_url.clone().unwrap_or_else(|| transfer.url.clone()),
            urlnum: transfer.number,
            http_version: "0",
            num_connects: record.num_connects,
            num_redirects: record.num_redirects,
            num_retries: record.num_retries,
            size_download: transfer.size_download,
            size_header: record.size_header,
            size_request: record.size_request,
            times: record.times(end),
            filename: transfer
                .output
                .as_ref()
                .and_then(Output::path)
                .map(|path| path.display().to_string()),
            exit_code: failure.map_or(0, |f| f.exit as u8),
            error: failure.map(|f| f.message.clone()),
            certificate_refused: failure.is_some_and(|f| f.exit == Exit::Certificate),
            ..Summary::default()
        };
        let Some(last) = record.last() else { return summary };
        summary.method.clone_from(&last.method);
        summary.size_upload = last.uploaded;
        summary.size_request += last.uploaded;
        if let Some(link) = &last.link {
            summary.remote = link.info.peer;
            summary.local = link.info.local;
        }
        let Some(answer) = &last.answer else { return summary };
        summary.status = answer.status.as_u16();
        summary.http_version = version_name(answer.version).trim_start_matches("HTTP/");
        let field = |(name, value): (&str, &[u8])| {
            (name.to_owned(), String::from_utf8_lossy(value).into_owned())
        };
        summary.fields = answer.fields.iter().map(field).collect();
        if answer.status.is_redirection()
            && let Some(location) = answer.fields.get_str("location")
        {
            summary.redirect_url = last.url.join(location).ok().map(|url| url.to_string());
        }
        summary
    }
}

/// One transfer under way.
struct Transfer {
    number: usize,
    method: Method,
    /// What was asked for.
    url: String,
    /// What answered.
    final_url: Option<String>,
    recorder: Recorder,
    output: Option<Output>,
    capture: Capture,
    bar: Option<Progress>,
    size_download: u64,
    /// A body worth going on with has begun.
    begun: bool,
    /// What tells whether the rest is still the rest of the same.
    validator: Option<String>,
    /// How many times a broken download was gone on with.
    resumptions: u32,
}

impl Transfer {
    fn new(number: usize, keep_all: bool) -> Self {
        Transfer {
            number,
            method: Method::GET,
            url: String::new(),
            final_url: None,
            recorder: Recorder::new(keep_all),
            output: None,
            capture: Capture::default(),
            bar: None,
            size_download: 0,
            begun: false,
            validator: None,
            resumptions: 0,
        }
    }

    /// Who counts what is sent, with a bar or without.
    fn upload(&mut self, shown: bool) -> Observer {
        let recorder = self.recorder.clone();
        self.bar = shown.then(|| Progress::new("up", 0, None));
        let bar = self.bar.clone();
        Arc::new(move |progress: mimus::Progress| {
            recorder.lock().uploaded(progress.transferred);
            if let Some(bar) = &bar {
                if let Some(total) = progress.total {
                    bar.set_total(total);
                }
                bar.at(progress.transferred);
            }
        })
    }
}

fn status_failure(status: StatusCode, response: &Response) -> Failure {
    let url = without_userinfo(response.url());
    Failure::new(Exit::Status, format!("the server answered {status} for {url}"))
}
