//! Header blocks made heads, trailers and events (RFC 9113 section 8).

use bytes::Bytes;

use super::conn::Conn;
use super::flood::Ration;
use super::frame;
use super::receive::About;
use super::section::{Kind, Section, Verdict};
use super::stream::{Asked, Recv};
use super::streams::Found;
use super::{Code, hpack};
use crate::{Error, Event, LimitExceeded, PeerMisbehaved};

impl Conn {
    /// A whole header block. It is decoded whatever becomes of it, because the compression state is
    /// the connection's (section 4.3).
    pub(super) fn block(&mut self, id: u32, about: About, bytes: &[u8]) -> Result<(), Error> {
        let end = match about {
            About::Message { end } => end,
            About::Promise { stream } => return self.refuse_promise(stream, bytes),
        };
        let index = match self.streams.find(id) {
            Found::Live(index) if self.is_receiving(index)? => index,
            found => return self.drop_block(id, found, end, bytes),
        };
        self.floods.earn();
        let slot = self.streams.at(index);
        let (recv, asked) = (slot.recv, slot.asked);
        let kind = if matches!(recv, Recv::Head { .. }) { Kind::Response } else { Kind::Trailers };
        let section = self.decode(kind, bytes)?;
        let taken = match recv {
            Recv::Head { informational } => self.head(index, informational, section, asked, end),
            _ => self.trailers(index, section, end),
        };
        match taken {
            Err(reason) => {
                self.streams.at(index).peer_closed = end;
                self.stream_error(index, reason)
            }
            Ok(()) => {
                self.streams.stir(index);
                if end {
                    self.streams.at(index).peer_closed = true;
                    self.streams.settle(index);
                }
                Ok(())
            }
        }
    }

    fn decode(&mut self, kind: Kind, bytes: &[u8]) -> Result<Section, Error> {
        let mut section = Section::new(kind, &self.limits);
        let decoded = self.decoder.decode(bytes, |name, value| {
            section.take(name, value);
            Ok::<(), hpack::Error>(())
        });
        // Section 4.3: COMPRESSION_ERROR.
        decoded.map_err(|_| PeerMisbehaved::BadHeaderBlock)?;
        Ok(section)
    }

    /// A block for a stream that does not want it.
    fn drop_block(&mut self, id: u32, found: Found, end: bool, bytes: &[u8]) -> Result<(), Error> {
        match found {
            // A head and trailers may have crossed our frame, and some informational ones.
            Found::Reset if self.streams.late_head(id) <= self.limits.informational + 2 => {}
            Found::Reset | Found::Live(_) => self.spend(Ration::IdleFrames)?,
            found => self.late(found)?,
        }
        if end {
            match found {
                Found::Live(index) => self.streams.at(index).peer_closed = true,
                _ => self.streams.end_late(id),
            }
        }
        self.decode(Kind::Dropped, bytes).map(drop)
    }

    fn refuse_promise(&mut self, promised: u32, bytes: &[u8]) -> Result<(), Error> {
        self.spend(Ration::ProvokedResets)?;
        self.decode(Kind::Dropped, bytes)?;
        // Section 8.4.
        self.reply(|out| frame::write_reset(out, promised, Code::REFUSED_STREAM))
    }

    fn head(
        &mut self,
        index: u32,
        informational: u32,
        section: Section,
        asked: Asked,
        end: bool,
    ) -> Result<(), Error> {
        let Verdict { head, left, bytes } = section.response(asked, end)?;
        self.check_unread(bytes)?;
        let slot = self.streams.at(index);
        if head.status.is_informational() {
            // Section 8.1: any number of them, which our limits do not share.
            slot.interim_bytes = slot.interim_bytes.saturating_add(bytes);
            if informational >= self.limits.informational {
                return Err(LimitExceeded::Informational.into());
            }
            if slot.interim_bytes > self.limits.head_bytes {
                return Err(LimitExceeded::HeadBytes.into());
            }
            slot.recv = Recv::Head { informational: informational + 1 };
            self.unread += slot.push(Event::Informational(head));
            return Ok(());
        }
        slot.length_known = left.is_some();
        slot.recv = if end { Recv::Ended { told: false } } else { Recv::Body { left } };
        // RFC 9113 section 8.5, RFC 8441 section 5: what follows is another protocol's.
        let tunnel = asked == Asked::Connect && head.status.is_success();
        self.unread += slot.push(Event::Head(head));
        if tunnel {
            slot.push(Event::Upgraded(Bytes::new()));
        }
        Ok(())
    }

    fn trailers(&mut self, index: u32, section: Section, end: bool) -> Result<(), Error> {
        // Section 8.1: a second HEADERS frame ends the message.
        if !end {
            return Err(PeerMisbehaved::HeadersInBody.into());
        }
        let trailers = section.trailers()?;
        self.check_unread(0)?;
        let slot = self.streams.at(index);
        slot.end_body()?;
        if !trailers.is_empty() {
            self.unread += slot.push(Event::Trailers(trailers));
        }
        Ok(())
    }

    /// Heads know no flow control: this is theirs.
    fn check_unread(&self, more: u32) -> Result<(), LimitExceeded> {
        // Twice, because data alone may fill the limit.
        if self.unread + more as usize > 2 * self.limits.unread as usize {
            return Err(LimitExceeded::Unread);
        }
        Ok(())
    }
}
