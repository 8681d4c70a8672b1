//! What happened on the way of one transfer, taken from the library's events. The write-out, the HAR
//! file and the exit code are made from it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use mimus::{ConnectionInfo, Fields, Hook, Observation, ResponseHead, StatusCode, Url, Version};

use crate::output::Times;

/// The record of one transfer. Clones share it: one is the client's hook, one stays with us.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(Arc<Mutex<Record>>);

/// What happened so far.
#[derive(Debug)]
pub(crate) struct Record {
    started: Instant,
    /// Keep every exchange; else only the latest, so that a record is of bounded size.
    keep_all: bool,
    /// In order. The last one is the one that counts.
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) num_connects: usize,
    pub(crate) num_redirects: usize,
    pub(crate) num_retries: usize,
    pub(crate) size_header: u64,
    /// The heads of the requests.
    pub(crate) size_request: u64,
    /// When the exchange that is on its way began, and over what it goes.
    begun: Moment,
    link: Option<Link>,
    /// How much of the time went into redirects.
    redirect: Duration,
}

/// One point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: Instant,
    pub(crate) system: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Moment { instant: Instant::now(), system: SystemTime::now() }
    }

    fn plus(self, time: Duration) -> Self {
        Moment { instant: self.instant + time, system: self.system + time }
    }
}

/// The connection of an exchange.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) info: ConnectionInfo,
    /// Whether it was made for this exchange.
    pub(crate) fresh: bool,
}

/// A request, and the response if it came.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) begun: Moment,
    pub(crate) link: Option<Link>,
    pub(crate) method: String,
    pub(crate) url: Url,
    pub(crate) version: Version,
    /// The fields as they were written.
    pub(crate) fields: Fields,
    pub(crate) sent: Instant,
    /// Bytes of the body that were taken to be sent.
    pub(crate) uploaded: u64,
    pub(crate) answer: Option<Answer>,
    /// Where a redirect that was followed led.
    pub(crate) redirected_to: Option<Url>,
}

/// The head of a response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) reason: String,
    pub(crate) fields: Fields,
    pub(crate) at: Instant,
}

impl Recorder {
    /// A record that begins now.
    pub(crate) fn new(keep_all: bool) -> Self {
        let begun = Moment::now();
        Recorder(Arc::new(Mutex::new(Record {
            started: begun.instant,
            keep_all,
            exchanges: Vec::new(),
            num_connects: 0,
            num_redirects: 0,
            num_retries: 0,
            size_header: 0,
            size_request: 0,
            begun,
            link: None,
            redirect: Duration::ZERO,
        })))
    }

    /// The record. Nothing that holds it can panic, so a poisoned lock is as good as any.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook for Recorder {
    fn observe(&self, happened: &Observation<'_>) {
        self.lock().observe(happened);
    }
}

impl Record {
    fn observe(&mut self, happened: &Observation<'_>) {
        match happened {
            Observation::Connected { connection } => {
                self.num_connects += 1;
                self.link = Some(Link { info: (*connection).clone(), fresh: true });
            }
            Observation::Reused { connection } | Observation::Coalesced { connection } => {
                self.link = Some(Link { info: (*connection).clone(), fresh: false });
            }
            Observation::Sending { method, url, target, version, fields, .. } => {
                let version_len = version_name(*version).len();
                let line = method.as_str().len() + target.len() + version_len + "  \r\n".len();
                self.size_request += head_size(line, fields);
                let exchange = Exchange {
                    begun: self.begun,
                    link: self.link.take(),
                    method: method.to_string(),
                    url: (*url).clone(),
                    version: *version,
                    fields: (*fields).clone(),
                    sent: Instant::now(),
                    uploaded: 0,
                    answer: None,
                    redirected_to: None,
                };
                if !self.keep_all {
                    self.exchanges.clear();
                }
                self.exchanges.push(exchange);
            }
            Observation::Informational { head } => {
                self.size_header += response_size(head);
            }
            Observation::Head { head, .. } => {
                self.size_header += response_size(head);
                // Another exchange follows, unless this was the last.
                self.begun = Moment::now();
                if let Some(exchange) = self.exchanges.last_mut() {
                    exchange.answer = Some(Answer {
                        status: head.status,
                        version: head.version,
                        reason: String::from_utf8_lossy(reason(head)).into_owned(),
                        fields: head.fields.clone(),
                        at: self.begun.instant,
                    });
                }
            }
            Observation::Redirecting { to, .. } => {
                self.num_redirects += 1;
                self.begun = Moment::now();
                self.redirect = self.begun.instant - self.started;
                if let Some(exchange) = self.exchanges.last_mut() {
                    exchange.redirected_to = Some((*to).clone());
                }
            }
            Observation::Retrying { after, .. } => {
                self.num_retries += 1;
                self.begun = Moment::now().plus(*after);
            }
            _ => {}
        }
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// So much of the body of the exchange under way is being sent.
    pub(crate) fn uploaded(&mut self, bytes: u64) {
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.uploaded = bytes;
        }
    }

    /// The exchange that counts.
    pub(crate) fn last(&self) -> Option<&Exchange> {
        self.exchanges.last()
    }

    /// The times of curl's names, each from the start of the transfer to a point in the last
    /// exchange.
    pub(crate) fn times(&self, end: Instant) -> Times {
        let mut times = Times {
            redirect: self.redirect,
            total: end.saturating_duration_since(self.started),
            ..Times::default()
        };
        let Some(last) = self.last() else { return times };
        let begun = last.begun.instant.saturating_duration_since(self.started);
        let dial = match &last.link {
            Some(link) if link.fresh => link.info.dial,
            _ => Default::default(),
        };
        times.namelookup = begun + dial.resolve.unwrap_or_default();
        times.connect = times.namelookup + dial.connect.unwrap_or_default();
        if let Some(tls) = dial.tls {
            times.appconnect = times.connect + dial.proxy.unwrap_or_default() + tls;
        }
        times.pretransfer = last.sent.saturating_duration_since(self.started);
        if let Some(answer) = &last.answer {
            times.starttransfer = answer.at.saturating_duration_since(self.started);
        }
        times
    }
}

/// The bytes of a response head, as RFC 9112 section 4 writes it: what is compressed in HTTP/2 is
/// counted as it is shown.
fn response_size(head: &ResponseHead) -> u64 {
    let version = version_name(head.version).len();
    head_size(version + " 200 \r\n".len() + reason(head).len(), &head.fields)
}

/// The reason of a response, which from HTTP/2 on there is none of (RFC 9113 section 8.3.2).
pub(crate) fn reason(head: &ResponseHead) -> &[u8] {
    match head.version {
        Version::HTTP_2 | Version::HTTP_3 => b"",
        _ => head.reason(),
    }
}

fn head_size(start_line: usize, fields: &Fields) -> u64 {
    let fields: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    (start_line + fields + 2) as u64
}

/// The name of a protocol version, as a start line has it.
pub(crate) fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}
