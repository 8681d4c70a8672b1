//! What is seen of one response.

use serde::Deserialize;

use crate::{Messages, clock::now, job::Deliver};

/// The length of a stamp, in bytes.
pub(crate) const STAMP: usize = 8;

/// What is seen of one response: its status, when its body began to come, how long that is, and what
/// the stamps in it tell. The client tells, the kit keeps.
#[derive(Debug)]
pub struct Seen {
    expect: Expect,
    began: u64,
    status: u16,
    bytes: u64,
    first: Option<u64>,
    stamps: Stamps,
    report: Vec<u8>,
    delay: Vec<u64>,
    echo: Option<Echo>,
}

/// WebSocket messages that have to come back as they were sent.
#[derive(Debug)]
struct Echo {
    sent: Messages,
    /// How many came.
    came: u32,
    /// Messages whose content is still to be compared; later ones only by their length.
    compared: u32,
    wrong: Option<String>,
}

/// The first messages of a job are compared byte by byte, of every client; all of them would be a
/// measurable part of the fast exchanges.
const COMPARED: u32 = 64;

/// What the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// So many bytes, of which no more than the number matters.
    Length { bytes: u64, deliver: Deliver },
    /// What the server tells of a paced upload of so many pieces.
    Report { pieces: u32 },
}

/// The body of a server's answer to a paced upload.
#[derive(Deserialize)]
struct Report {
    delay: Vec<u64>,
}

impl Seen {
    pub(crate) fn new(expect: Expect) -> Self {
        let size = match expect {
            Expect::Length { deliver: Deliver::Paced { size }, .. } => size as usize,
            Expect::Length { .. } | Expect::Report { .. } => 0,
        };
        Self {
            expect,
            began: 0,
            status: 0,
            bytes: 0,
            first: None,
            stamps: Stamps { size, at: 0, stamp: [0; STAMP] },
            report: Vec::new(),
            delay: Vec::new(),
            echo: None,
        }
    }

    /// An exchange sends these messages.
    pub(crate) fn expect(&mut self, sent: &Messages) {
        match &mut self.echo {
            Some(echo) => {
                echo.sent.go_to(sent);
                (echo.came, echo.wrong) = (0, None);
            }
            none => {
                let sent = sent.clone();
                *none = Some(Echo { sent, came: 0, compared: COMPARED, wrong: None });
            }
        }
    }

    /// The next message came.
    pub fn message(&mut self, message: &[u8]) {
        self.status = 200;
        self.bytes += message.len() as u64;
        let Some(echo) = &mut self.echo else { return };
        let place = echo.came;
        echo.came += 1;
        if echo.compared > 0 {
            echo.compared -= 1;
            if echo.sent.get(place).is_none_or(|sent| sent.as_bytes() != message) {
                echo.wrong.get_or_insert_with(|| format!("message {place} is not what was sent"));
            }
        }
    }

    /// An exchange begins.
    pub(crate) fn begin(&mut self, began: u64) {
        self.began = began;
        self.status = 0;
        self.bytes = 0;
        self.first = None;
        self.stamps.at = 0;
        self.report.clear();
        self.delay.clear();
    }

    /// The status came.
    pub fn status(&mut self, status: u16) {
        self.status = status;
    }

    /// A piece of the body came; an empty one is none.
    pub fn piece(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len() as u64;
        match self.expect {
            Expect::Report { .. } => self.report.extend_from_slice(piece),
            Expect::Length { deliver: Deliver::Paced { .. }, .. } => {
                let at = now();
                self.first.get_or_insert(at);
                self.stamps.read(piece, at, &mut self.delay);
            }
            Expect::Length { .. } => {
                self.first.get_or_insert_with(now);
            }
        }
    }

    /// The whole body came, as one.
    pub fn whole(&mut self, body: &[u8]) {
        self.bytes += body.len() as u64;
        if let Expect::Report { .. } = self.expect {
            self.report.extend_from_slice(body);
        }
    }

    /// Body bytes that came.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The delay of each paced piece of this exchange, in nanoseconds, once it was [checked](Self::check).
    pub(crate) fn delays(&self) -> &[u64] {
        &self.delay
    }

    /// From the beginning to the first piece of the body; of a paced upload, whose first piece was
    /// handed over at `handed_over`, until the server had that. In nanoseconds.
    pub(crate) fn first_byte(&self, handed_over: Option<u64>) -> Option<u64> {
        match self.expect {
            Expect::Report { .. } => {
                Some((handed_over? + self.delay.first()?).saturating_sub(self.began))
            }
            Expect::Length { .. } => Some(self.first? - self.began),
        }
    }

    /// What is wrong with the response, if anything.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if self.status != 200 {
            return Err(format!("status {}", self.status));
        }
        if let Some(echo) = &mut self.echo {
            if let Some(wrong) = echo.wrong.take() {
                return Err(wrong);
            }
            if echo.came != echo.sent.count() {
                return Err(format!("{} messages instead of {}", echo.came, echo.sent.count()));
            }
        }
        match self.expect {
            Expect::Length { bytes, .. } if bytes != self.bytes => {
                Err(format!("a body of {} bytes instead of {bytes}", self.bytes))
            }
            Expect::Length { .. } => Ok(()),
            Expect::Report { pieces } => {
                let Report { delay } = serde_json::from_slice(&self.report)
                    .map_err(|e| format!("the server's report of delays: {e}"))?;
                let told = delay.len();
                self.delay = delay;
                match told == pieces as usize {
                    true => Ok(()),
                    false => Err(format!("the server saw {told} pieces instead of {pieces}")),
                }
            }
        }
    }
}

/// Finds the stamp at each of the server's piece boundaries, however reads cut the pieces.
#[derive(Debug)]
struct Stamps {
    size: usize,
    /// Bytes of the present piece that have come.
    at: usize,
    stamp: [u8; STAMP],
}

impl Stamps {
    /// Pushes, for each piece of which `data` brings the last byte, the time from its stamp to `now`.
    fn read(&mut self, mut data: &[u8], now: u64, delay: &mut Vec<u64>) {
        while !data.is_empty() {
            let (here, rest) = data.split_at(data.len().min(self.size - self.at));
            if let Some(missing) = self.stamp.get_mut(self.at..) {
                let n = missing.len().min(here.len());
                missing[..n].copy_from_slice(&here[..n]);
            }
            self.at += here.len();
            if self.at == self.size {
                self.at = 0;
                delay.push(now.saturating_sub(u64::from_le_bytes(self.stamp)));
            }
            data = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(stamps: &[u64], size: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for stamp in stamps {
            all.extend_from_slice(&stamp.to_le_bytes());
            all.resize(all.len() + size - STAMP, 0xff);
        }
        all
    }

    #[test]
    fn stamps_are_found_however_the_pieces_are_cut() {
        for size in [8, 9, 20, 64] {
            let body = pieces(&[100, 250, 400], size);
            for cut in 1..=body.len() {
                let mut stamps = Stamps { size, at: 0, stamp: [0; STAMP] };
                let mut delay = Vec::new();
                for part in body.chunks(cut) {
                    stamps.read(part, 1000, &mut delay);
                }
                assert_eq!(delay, [900, 750, 600], "pieces of {size} cut by {cut}");
            }
        }
    }

    fn seen(bytes: u64, deliver: Deliver) -> Seen {
        let mut seen = Seen::new(Expect::Length { bytes, deliver });
        seen.begin(now());
        seen
    }

    #[test]
    fn another_status_or_length_is_a_failure() {
        let mut ok = seen(3, Deliver::Bytes);
        ok.status(200);
        ok.whole(b"abc");
        assert_eq!(ok.check(), Ok(()));
        ok.begin(0);
        assert_eq!(ok.check(), Err("status 0".into()));
        ok.status(200);
        ok.piece(b"ab");
        assert_eq!(ok.check(), Err("a body of 2 bytes instead of 3".into()));
    }

    #[test]
    fn the_first_byte_is_timed_at_the_first_piece_with_bytes() {
        let mut seen = seen(2, Deliver::Sink);
        seen.piece(b"");
        assert_eq!(seen.first_byte(None), None);
        seen.piece(b"a");
        let first = seen.first_byte(None);
        assert!(first.is_some());
        seen.piece(b"b");
        assert_eq!(seen.first_byte(None), first);
    }

    #[test]
    fn messages_have_to_come_back_as_they_were_sent() {
        let sent = Messages::new(2, 3, false);
        let copy: Vec<Vec<u8>> = sent.iter().map(|one| one.as_bytes().to_vec()).collect();
        let mut seen = seen(6, Deliver::Bytes);
        let mut exchange = |came: &[&[u8]]| {
            seen.begin(0);
            seen.expect(&sent);
            came.iter().for_each(|message| seen.message(message));
            seen.check()
        };
        assert_eq!(exchange(&[&copy[0], &copy[1]]), Ok(()));
        assert_eq!(exchange(&[&copy[0]]), Err("1 messages instead of 2".into()));
        let wrong = exchange(&[&copy[0], b"abc"]);
        assert_eq!(wrong, Err("message 1 is not what was sent".into()));
        assert_eq!(exchange(&[]), Err("status 0".into()));
    }

    #[test]
    fn the_report_of_a_paced_upload_must_tell_of_every_piece() {
        let mut seen = Seen::new(Expect::Report { pieces: 2 });
        seen.begin(1000);
        seen.status(200);
        seen.piece(b"{\"delay\":[5");
        seen.piece(b",7]}");
        assert_eq!(seen.check(), Ok(()));
        assert_eq!(seen.delays(), [5, 7]);
        assert_eq!(seen.first_byte(Some(1010)), Some(15));
        seen.begin(1000);
        seen.status(200);
        seen.whole(b"{\"delay\":[5]}");
        assert!(seen.check().is_err());
    }
}
