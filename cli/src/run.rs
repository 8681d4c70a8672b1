//! The run, from the command line to the exit code. Read it from the top.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use mimus::{
    Method, StatusCode,
    blocking::{Client, Response},
    cookie::Jar,
};

use crate::{
    address,
    client::{self, retries},
    docs,
    exit::{Exit, Failure},
    fields::FieldFlags,
    flags::{Flags, Targets, values::ResumeAt},
    interrupt,
    observe::{Recorder, version_name},
    output::{
        Dump, FileSink, Format, Heads, Look, Output, Paging, Screen, Sink, Stream, Summary,
        Verbose, colours_welcome,
        har::{Archive, Capture, Ending},
        millis,
        pretty::Palette,
        progress::Progress,
        stderr_is_terminal, stdout_is_terminal, tell, without_userinfo, write_all,
    },
    payload::Payload,
    request::{Observer, Recipe},
};

/// Does what the command line says.
pub(crate) fn run() -> ExitCode {
    let flags = match Flags::from_env() {
        Ok(flags) => flags,
        Err(error) => return wrong_usage(&error),
    };
    if let Some(answered) = docs::answer(&flags.about) {
        return finish(&flags, answered.err());
    }
    let targets = match flags.targets() {
        Ok(targets) => targets,
        Err(error) => return wrong_usage(&error),
    };
    interrupt::install();
    match Session::new(&flags, &targets) {
        Ok(session) => session.run().into(),
        Err(failure) => finish(&flags, Some(failure)),
    }
}

fn wrong_usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    Exit::Usage.into()
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
            (Some(jar), Some(path)) => write_all(path, jar.to_netscape(true).as_bytes()),
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
            let ending = Ending { body: &transfer.capture, at: end, error };
            archive.push(&transfer.recorder.lock(), &self.payload, &ending);
        }
        let written = self.format.write(&summary, |stream, bytes| match stream {
            Stream::Stdout => std::io::Write::write_all(&mut std::io::stdout(), bytes),
            Stream::Stderr => std::io::Write::write_all(&mut std::io::stderr(), bytes),
        });
        let written = written.map_err(|e| Failure::write("the text of -w", &e));
        result.and(written)
    }

    fn transfer(&self, transfer: &mut Transfer) -> Result<(), Failure> {
        let recipe = Recipe {
            flags: self.flags,
            fields: &self.fields,
            payload: &self.payload,
            method: self.targets.method.as_ref(),
        };
        let url = recipe.url(&self.targets.urls[transfer.number])?;
        transfer.method = recipe.method();
        transfer.url.clone_from(&url);
        let (output, offset) = self.output(transfer.number, &url)?;
        transfer.output = Some(output.clone());

        let include = self.flags.output.include || self.flags.request.head;
        let heads = Heads::new(include.then(|| output.clone()), self.dump.clone());
        let observer = transfer.upload(self.shows_progress(recipe.has_body()));
        let mut request = recipe
            .request(&self.client, &url, offset, observer)?
            .retry(retries(self.flags))
            .hook(transfer.recorder.clone());
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
        self.receive(transfer, &output, offset, &mut response)
    }

    /// The body, to where it belongs; and what its status means.
    fn receive(
        &self,
        transfer: &mut Transfer,
        output: &Output,
        offset: Option<u64>,
        response: &mut Response,
    ) -> Result<(), Failure> {
        if let Some(offset) = offset.filter(|_| transfer.method != Method::HEAD) {
            match resumed(response, offset)? {
                Resumed::Continues => {}
                Resumed::Complete => return Ok(()),
            }
        }
        let status = response.status();
        let failed = status.as_u16() >= 400;
        if failed && self.flags.output.fail {
            return Err(status_failure(status, response));
        }
        output.begin(response.fields(), response.content_length());
        if self.shows_progress(output.path().is_some()) {
            let start = offset.unwrap_or(0);
            let total = response.content_length().map(|length| start + length);
            transfer.bar = Some(Progress::new("down", start, total));
        }
        while let Some(piece) = response.chunk().map_err(|e| self.failure(&e))? {
            output.body(&piece)?;
            transfer.size_download += piece.len() as u64;
            if self.archive.is_some() {
                transfer.capture.push(&piece);
            }
            if let Some(bar) = &transfer.bar {
                bar.at(offset.unwrap_or(0) + transfer.size_download);
            }
        }
        output.finish()?;
        match failed && self.flags.output.fail_with_body {
            true => Err(status_failure(status, response)),
            false => Ok(()),
        }
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

    /// Where the body of the transfer goes, and from which byte on it is asked for.
    fn output(&self, number: usize, url: &str) -> Result<(Output, Option<u64>), Failure> {
        let Some(path) = self.file_name(number, url)? else {
            let offset = match self.flags.output.continue_at {
                None | Some(ResumeAt::Offset(0)) => None,
                Some(ResumeAt::Offset(offset)) => Some(offset),
                Some(ResumeAt::EndOfFile) => {
                    let what = "-C - needs the file of -o or -O to go on with";
                    return Err(Failure::new(Exit::Usage, what));
                }
            };
            return Ok((Output::new(self.standard_output(false)), offset));
        };
        if path.as_os_str() == "-" {
            return Ok((Output::new(self.standard_output(true)), None));
        }
        let mut file = FileSink::new(path, self.flags.output.create_dirs);
        let offset = match self.flags.output.continue_at {
            None => 0,
            Some(ResumeAt::Offset(offset)) => offset,
            Some(ResumeAt::EndOfFile) => file.size()?,
        };
        file.resume_at(offset)?;
        Ok((Output::new(Sink::File(file)), (offset > 0).then_some(offset)))
    }

    /// The file that -o or -O names for this URL.
    fn file_name(&self, number: usize, url: &str) -> Result<Option<PathBuf>, Failure> {
        let flags = &self.flags.output;
        let name = match flags.output.get(number) {
            Some(name) => name.clone(),
            None if flags.remote_name => match address::last_segment(url) {
                Some(name) => PathBuf::from(name),
                None => {
                    let what = "the URL has no file name for -O; give one with -o";
                    return Err(Failure::new(Exit::Write, what));
                }
            },
            None => return Ok(None),
        };
        Ok(Some(match &flags.output_dir {
            Some(dir) if name != Path::new("-") => dir.join(name),
            _ => name,
        }))
    }

    /// The standard output. `forced` is `-o -`: whatever it is, it is wanted.
    fn standard_output(&self, forced: bool) -> Sink {
        let flags = &self.flags.terminal;
        let terminal = stdout_is_terminal();
        let coloured = colours_welcome(flags.color, terminal);
        let look = Look {
            palette: Palette::when(coloured),
            pretty: flags.pretty || (terminal && !flags.no_pretty && !forced),
            paging: match (terminal && !flags.no_pager && !forced, flags.pager) {
                (false, _) => Paging::Never,
                (true, false) => Paging::WhenLong,
                (true, true) => Paging::Always,
            },
            immediate: flags.no_buffer,
            text_only: terminal && !forced,
        };
        match look.pretty || coloured || terminal {
            true => Sink::Screen(Screen::new(look)),
            false => Sink::Stdout,
        }
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

/// How a server takes the wish to go on.
#[derive(Debug, PartialEq, Eq)]
enum Resumed {
    /// The rest follows.
    Continues,
    /// There is no rest.
    Complete,
}

/// Judges the answer to `Range: bytes=OFFSET-` (RFC 9110 sections 14.4, 15.3.7 and 15.5.17).
fn resumed(response: &Response, offset: u64) -> Result<Resumed, Failure> {
    let range = response.header("content-range");
    judge_resumption(response.status(), range, offset)
        .map_err(|what| Failure::new(Exit::Range, format!("{what}; the file stays as it was")))
}

fn judge_resumption(
    status: StatusCode,
    content_range: Option<&str>,
    offset: u64,
) -> Result<Resumed, String> {
    let range = content_range.and_then(|text| text.trim().strip_prefix("bytes "));
    match status {
        StatusCode::PARTIAL_CONTENT => {
            let first = range.and_then(|r| r.split('-').next()).and_then(|n| n.trim().parse().ok());
            match first == Some(offset) {
                true => Ok(Resumed::Continues),
                false => Err(format!("the server sends other bytes than those from {offset} on")),
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let size: Option<u64> =
                range.and_then(|r| r.strip_prefix("*/")).and_then(|n| n.trim().parse().ok());
            match size {
                // A server that does not say how long it is has said that nothing follows.
                None => Ok(Resumed::Complete),
                Some(size) if size == offset => Ok(Resumed::Complete),
                Some(size) => Err(format!("the server has {size} bytes, and here are {offset}")),
            }
        }
        status if status.is_success() => {
            Err("the server does not resume, but sends all of it".into())
        }
        status => Err(format!("the server answered {status}, and cannot resume")),
    }
}

fn status_failure(status: StatusCode, response: &Response) -> Failure {
    let url = without_userinfo(response.url());
    Failure::new(Exit::Status, format!("the server answered {status} for {url}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_rest_is_appended() {
        let judge = |status, range, offset| {
            judge_resumption(StatusCode::from_u16(status).unwrap(), range, offset)
        };
        assert_eq!(judge(206, Some("bytes 10-19/20"), 10), Ok(Resumed::Continues));
        assert_eq!(judge(206, Some("bytes 10-19/*"), 10), Ok(Resumed::Continues));
        assert_eq!(judge(416, Some("bytes */10"), 10), Ok(Resumed::Complete));
        assert_eq!(judge(416, None, 10), Ok(Resumed::Complete));
        let refused = [
            (206, Some("bytes 0-19/20")),
            (206, None),
            (206, Some("items 10-19/20")),
            (416, Some("bytes */5")),
            (200, None),
            (404, None),
            (302, None),
        ];
        for (status, range) in refused {
            assert!(judge(status, range, 10).is_err(), "{status} {range:?}");
        }
    }
}
