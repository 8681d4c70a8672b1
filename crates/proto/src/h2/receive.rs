//! The server's frames, read into the streams (RFC 9113 sections 4 to 6).

use bytes::{Buf, Bytes, BytesMut};

use super::Code;
use super::conn::{Conn, GoneAway, State};
use super::flood::Ration;
use super::frame::{self, HEADER_LEN, Header, flag, kind};
use super::opening::SettingId;
use super::origins;
use super::settings::{Change, MAX_WINDOW};
use super::stream::{Recv, Send, StreamError};
use super::streams::Found;
use super::timers::Pong;
use crate::{Error, LimitExceeded, PeerMisbehaved};

/// Data up to this size is copied out of the read buffer: the copy costs less than sharing it, and
/// keeps no more alive than itself.
const COPIED: usize = 512;

/// Where in the server's bytes the machine is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reading {
    /// Before a frame.
    Frame,
    /// Inside a DATA frame of a live stream.
    Data(Data),
    /// Inside something of no interest.
    Skip(u32),
}

/// What is left of a DATA frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    stream: u32,
    content: u32,
    padding: u32,
    /// END_STREAM.
    end: bool,
    /// Some of the window went to padding, which nobody will take.
    padded: bool,
}

/// A header block whose end has not come (RFC 9113 section 6.10).
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) about: About,
    frames: u32,
    fragments: Vec<u8>,
}

/// What a header block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// Of the stream: its head or trailers, and END_STREAM.
    Message { end: bool },
    /// A push, which is refused.
    Promise { stream: u32 },
}

impl Conn {
    /// Reads every frame that is there, and what there is of a DATA frame.
    pub(super) fn read(&mut self, buf: &mut BytesMut) -> Result<(), Error> {
        loop {
            let more = match self.reading {
                Reading::Frame => self.frame(buf)?,
                Reading::Data(data) => self.data(buf, data)?,
                Reading::Skip(left) => {
                    let skipped = left.min(u32::try_from(buf.len()).unwrap_or(u32::MAX));
                    buf.advance(skipped as usize);
                    let left = left - skipped;
                    self.reading = if left > 0 { Reading::Skip(left) } else { Reading::Frame };
                    left == 0
                }
            };
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether the connection could end here in order.
    pub(super) fn is_between_frames(&self) -> bool {
        matches!(self.reading, Reading::Frame) && self.block.is_none()
    }

    fn frame(&mut self, buf: &mut BytesMut) -> Result<bool, Error> {
        let Some(header) = Header::parse(buf) else {
            return Ok(false);
        };
        let needed = self.check(header)?;
        if header.kind == kind::DATA {
            return self.begin_data(buf, header);
        }
        let Some(payload) = buf.get(HEADER_LEN..HEADER_LEN + needed) else {
            return Ok(false);
        };
        self.control(header, payload)?;
        buf.advance(HEADER_LEN + needed);
        let rest = header.len - needed as u32;
        if rest > 0 {
            self.reading = Reading::Skip(rest);
        }
        Ok(true)
    }

    /// What a frame's header alone can be wrong about. Gives how much of the payload is needed at
    /// once; the rest of it is skipped.
    fn check(&self, header: Header) -> Result<usize, Error> {
        let len = header.len;
        // RFC 9113 section 3.4: SETTINGS come first. Another protocol ends here, too.
        if !self.peer_spoke && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(PeerMisbehaved::NoSettings.into());
        }
        // Section 4.2.
        if len > self.local.frame {
            return Err(PeerMisbehaved::FrameSize.into());
        }
        // Section 6.10: nothing between the frames of a block, and no continuation of nothing.
        let continues = header.kind == kind::CONTINUATION;
        match &self.block {
            Some(block) if !continues || block.stream != header.stream => {
                return Err(PeerMisbehaved::BrokenHeaderBlock.into());
            }
            None if continues => return Err(PeerMisbehaved::BrokenHeaderBlock.into()),
            _ => {}
        }
        let size = |right: bool, needed: u32| {
            if right { Ok(needed as usize) } else { Err(PeerMisbehaved::FrameSize.into()) }
        };
        check_stream(header)?;
        match header.kind {
            kind::DATA => Ok(0),
            kind::HEADERS | kind::CONTINUATION | kind::PUSH_PROMISE => {
                // Room for the largest padding beside the fragment.
                if len > self.limits.header_block.saturating_add(512) {
                    return Err(LimitExceeded::HeaderBlock.into());
                }
                Ok(len as usize)
            }
            // Section 6.3 would have a stream error; who cannot count to five is not followed.
            kind::PRIORITY => size(len == 5, 5),
            kind::RST_STREAM | kind::WINDOW_UPDATE => size(len == 4, 4),
            kind::SETTINGS if header.has(flag::ACK) => size(len == 0, 0),
            kind::SETTINGS if len / 6 > self.limits.settings_entries => {
                Err(LimitExceeded::SettingsEntries.into())
            }
            kind::SETTINGS => size(len.is_multiple_of(6), len),
            kind::PING => size(len == 8, 8),
            kind::GOAWAY => size(len >= 8, 8),
            kind::ORIGIN if origins::is_valid(header) => Ok(len as usize),
            _ => Ok(0),
        }
    }

    fn control(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        match header.kind {
            kind::HEADERS => self.headers(header, payload),
            kind::CONTINUATION => self.continuation(header, payload),
            kind::RST_STREAM => self.rst_stream(header.stream, payload),
            kind::SETTINGS if header.has(flag::ACK) => {
                self.timers.settings_acknowledged();
                self.spend(Ration::Settings)
            }
            kind::SETTINGS => self.settings(payload),
            kind::PUSH_PROMISE => self.push_promise(header, payload),
            kind::PING => self.ping(header, payload),
            kind::GOAWAY => self.go_away(payload),
            kind::WINDOW_UPDATE => self.window_update(header.stream, payload),
            // RFC 9218 section 7.1.
            kind::PRIORITY_UPDATE => Err(PeerMisbehaved::PriorityUpdate.into()),
            kind::ORIGIN if origins::is_valid(header) => {
                self.origins.add(payload, self.limits.origins);
                self.spend(Ration::IdleFrames)
            }
            // RFC 9113 section 5.3.2: priorities mean nothing. Section 5.5: what is unknown neither.
            _ => self.spend(Ration::IdleFrames),
        }
    }

    /// The beginning of a DATA frame: flow control counts all of it at once (section 6.9.1).
    fn begin_data(&mut self, buf: &mut BytesMut, header: Header) -> Result<bool, Error> {
        let padded = header.has(flag::PADDED);
        let padding = match (padded, buf.get(HEADER_LEN)) {
            (false, _) => 0,
            (true, _) if header.len == 0 => return Err(PeerMisbehaved::FrameSize.into()),
            (true, None) => return Ok(false),
            (true, Some(&padding)) => u32::from(padding),
        };
        let prefix = u32::from(padded);
        // Section 6.1.
        let content =
            (header.len - prefix).checked_sub(padding).ok_or(PeerMisbehaved::BadPadding)?;
        self.recv_window.receive(header.len)?;
        buf.advance(HEADER_LEN + prefix as usize);
        let end = header.has(flag::END_STREAM);
        // An empty frame that ends nothing is work for nothing (CVE-2019-9518).
        if content == 0 && !end {
            self.spend(Ration::EmptyFrames)?;
        } else {
            self.floods.earn();
        }
        self.received += u64::from(content);
        let data = Data { stream: header.stream, content, padding, end, padded };
        self.reading = if self.takes_data(header, content)? {
            Reading::Data(data)
        } else {
            self.grant_connection();
            Reading::Skip(content + padding)
        };
        Ok(true)
    }

    /// Whether a DATA frame belongs to a stream that still wants it.
    fn takes_data(&mut self, header: Header, content: u32) -> Result<bool, Error> {
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        match self.streams.find(id) {
            Found::Live(index) => {
                let slot = self.streams.at(index);
                if let Err(reason) = slot.recv_window.receive(header.len) {
                    // Section 6.9.1: of the stream, as the connection's window had room.
                    self.stream_error(index, reason.into())?;
                    return Ok(false);
                }
                let mut takes = self.is_receiving(index)?;
                // A frame that is too long is an error before any of it is given out, so that how its
                // bytes came makes no difference.
                if takes && let Err(reason) = self.streams.at(index).count_body(content) {
                    self.stream_error(index, reason.into())?;
                    takes = false;
                }
                if end && !takes {
                    self.streams.at(index).peer_closed = true;
                }
                Ok(takes)
            }
            Found::Reset if !self.streams.spend_late(id, header.len) => {
                Err(PeerMisbehaved::WindowOverspent.into())
            }
            Found::Reset => {
                if end {
                    self.streams.end_late(id);
                }
                Ok(false)
            }
            found => self.late(found).map(|()| false),
        }
    }

    /// Whether HEADERS or DATA may come on a live stream now (section 5.1).
    pub(super) fn is_receiving(&mut self, index: u32) -> Result<bool, Error> {
        let slot = self.streams.at(index);
        let reason = PeerMisbehaved::FrameOnClosedStream.into();
        match slot.recv {
            Recv::Head { .. } | Recv::Body { .. } => Ok(true),
            // Closed, by END_STREAM: a connection error.
            Recv::Ended { .. } if slot.closed => Err(reason),
            // Half-closed (remote), or closed by RST_STREAM: a stream error.
            Recv::Ended { .. } => self.stream_error(index, reason).map(|()| false),
            Recv::Failed(_) if slot.peer_closed => self.stream_error(index, reason).map(|()| false),
            // We reset it: this crossed our frame.
            Recv::Failed(_) => Ok(false),
        }
    }

    /// HEADERS or DATA on a stream that is not there.
    pub(super) fn late(&mut self, found: Found) -> Result<(), Error> {
        match found {
            Found::Idle => Err(PeerMisbehaved::FrameOnIdleStream.into()),
            Found::Closed => Err(PeerMisbehaved::FrameOnClosedStream.into()),
            Found::Forgotten => self.spend(Ration::IdleFrames),
            Found::Reset | Found::Live(_) => Ok(()),
        }
    }

    /// What there is of a DATA frame.
    fn data(&mut self, buf: &mut BytesMut, mut data: Data) -> Result<bool, Error> {
        let here = u32::try_from(buf.len()).unwrap_or(u32::MAX);
        let content = data.content.min(here);
        if content > 0 {
            data.content -= content;
            self.deliver(buf, data.stream, content as usize);
        }
        if data.content == 0 {
            let padding = data.padding.min(here - content);
            buf.advance(padding as usize);
            data.padding -= padding;
        }
        if data.content > 0 || data.padding > 0 {
            self.reading = Reading::Data(data);
            return Ok(false);
        }
        self.reading = Reading::Frame;
        self.finish_data(data)?;
        Ok(true)
    }

    /// What is left of the DATA frame that has begun on a stream.
    pub(super) fn coming(&self, stream: u32) -> u32 {
        match self.reading {
            Reading::Data(data) if data.stream == stream => data.content,
            _ => 0,
        }
    }

    fn deliver(&mut self, buf: &mut BytesMut, stream: u32, len: usize) {
        let Found::Live(index) = self.streams.find(stream) else {
            // Given up meanwhile.
            buf.advance(len);
            return;
        };
        let slot = self.streams.at(index);
        if !matches!(slot.recv, Recv::Body { .. }) {
            buf.advance(len);
            return;
        }
        if let Some(whole) = slot.whole() {
            whole.extend_from_slice(&buf[..len]);
            buf.advance(len);
            self.grant_stream(index);
            return self.streams.stir(index);
        }
        if slot.gathers(len) {
            slot.gather(&buf[..len]);
            buf.advance(len);
        } else if len <= COPIED {
            slot.push_data(Bytes::copy_from_slice(&buf[..len]));
            buf.advance(len);
        } else {
            slot.push_data(buf.split_to(len).freeze());
        }
        self.unread += len;
        self.streams.stir(index);
    }

    fn finish_data(&mut self, data: Data) -> Result<(), Error> {
        self.grant_connection();
        let Found::Live(index) = self.streams.find(data.stream) else {
            if data.end {
                self.streams.end_late(data.stream);
            }
            return Ok(());
        };
        if data.end {
            return self.end_stream(index);
        }
        if data.padded {
            self.grant_stream(index);
        }
        Ok(())
    }

    /// END_STREAM on a live stream.
    fn end_stream(&mut self, index: u32) -> Result<(), Error> {
        let slot = self.streams.at(index);
        if matches!(slot.recv, Recv::Failed(_)) {
            slot.peer_closed = true;
            return Ok(());
        }
        match slot.end_body() {
            Err(reason) => {
                slot.peer_closed = true;
                self.stream_error(index, reason.into())
            }
            Ok(()) => {
                slot.peer_closed = true;
                self.streams.settle(index);
                self.streams.stir(index);
                Ok(())
            }
        }
    }

    /// HEADERS (section 6.2).
    fn headers(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        let mut fragment = unpad(header, payload)?;
        if header.has(flag::PRIORITY) {
            fragment = fragment.get(5..).ok_or(PeerMisbehaved::FrameSize)?;
        }
        let about = About::Message { end: header.has(flag::END_STREAM) };
        self.begin_block(header, about, fragment)
    }

    /// PUSH_PROMISE (section 6.6): refused, but its header block counts for the table.
    fn push_promise(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        if !self.local.push {
            return Err(PeerMisbehaved::UnwantedPush.into());
        }
        let payload = unpad(header, payload)?;
        let promised = frame::number(payload, 0).ok_or(PeerMisbehaved::FrameSize)? & MAX_WINDOW;
        // Section 5.1.1: a server's streams are even, and their numbers rise.
        if !promised.is_multiple_of(2) || promised <= self.streams.promised {
            return Err(PeerMisbehaved::StreamId.into());
        }
        // Section 6.6: on a stream of ours that is open to the server.
        match self.streams.find(header.stream) {
            Found::Live(_) | Found::Reset => {}
            found => self.late(found)?,
        }
        self.streams.promised = promised;
        self.begin_block(header, About::Promise { stream: promised }, &payload[4..])
    }

    fn begin_block(&mut self, header: Header, about: About, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.limits.header_block as usize {
            return Err(LimitExceeded::HeaderBlock.into());
        }
        if header.has(flag::END_HEADERS) {
            return self.block(header.stream, about, bytes);
        }
        let fragments = bytes.to_vec();
        self.block = Some(Block { stream: header.stream, about, frames: 0, fragments });
        Ok(())
    }

    /// CONTINUATION (section 6.10).
    fn continuation(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        let Some(mut block) = self.block.take() else {
            return Err(PeerMisbehaved::BrokenHeaderBlock.into());
        };
        block.frames += 1;
        if block.frames > self.limits.continuations {
            return Err(LimitExceeded::Continuations.into());
        }
        if block.fragments.len() + payload.len() > self.limits.header_block as usize {
            return Err(LimitExceeded::HeaderBlock.into());
        }
        block.fragments.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.block(block.stream, block.about, &block.fragments);
        }
        self.block = Some(block);
        Ok(())
    }

    /// RST_STREAM (section 6.4).
    fn rst_stream(&mut self, id: u32, payload: &[u8]) -> Result<(), Error> {
        let code = Code(frame::number(payload, 0).ok_or(PeerMisbehaved::FrameSize)?);
        let index = match self.streams.find(id) {
            Found::Live(index) => index,
            Found::Idle => return Err(PeerMisbehaved::FrameOnIdleStream.into()),
            Found::Reset | Found::Forgotten | Found::Closed => {
                self.streams.end_late(id);
                return self.spend(Ration::IdleFrames);
            }
        };
        let slot = self.streams.at(index);
        slot.peer_closed = true;
        match slot.recv {
            // Section 8.7: refused means that nothing was processed, which a head disproves.
            Recv::Head { .. } if code == Code::REFUSED_STREAM => {
                slot.recv = Recv::Failed(StreamError::NotProcessed(code));
                self.spend(Ration::Resets)?;
            }
            Recv::Head { .. } | Recv::Body { .. } => {
                slot.recv = Recv::Failed(StreamError::Reset(code));
                self.spend(Ration::Resets)?;
            }
            // Section 8.1: the response is whole, and the rest of the request is not wanted.
            Recv::Ended { .. } if !slot.closed => {}
            Recv::Ended { .. } | Recv::Failed(_) => self.spend(Ration::IdleFrames)?,
        }
        self.stop_sending(index);
        self.streams.stir(index);
        Ok(())
    }

    /// SETTINGS (section 6.5): applied in order, then acknowledged.
    fn settings(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.spend(Ration::Settings)?;
        self.peer_spoke = true;
        for setting in payload.chunks_exact(6) {
            let id = SettingId(u16::from_be_bytes([setting[0], setting[1]]));
            let value = frame::number(setting, 2).ok_or(PeerMisbehaved::FrameSize)?;
            match self.peer.apply(id, value)? {
                Change::Nothing => {}
                Change::Table(size) => self.writer.set_table(size),
                Change::Windows(by) => self.shift_windows(by)?,
            }
        }
        self.reply(frame::write_settings_ack)
    }

    /// Section 6.9.2: all streams' windows move, below zero if need be.
    fn shift_windows(&mut self, by: i64) -> Result<(), Error> {
        for index in self.streams.live() {
            self.streams.at(index).send_window.shift(by)?;
            self.reconsider(index);
        }
        Ok(())
    }

    /// The window of a stream changed: it may send again, or may not any more.
    fn reconsider(&mut self, index: u32) {
        let slot = self.streams.at(index);
        let open = matches!(slot.send, Send::Open);
        let ready = slot.outgoing_len > 0 && slot.send_window.available() > 0;
        match (ready, slot.ringed) {
            (true, false) => {
                slot.ringed = true;
                self.ring.push_back(index);
            }
            (false, true) => {
                slot.ringed = false;
                self.ring.retain(|&other| other != index);
            }
            _ => {}
        }
        if open {
            self.streams.stir(index);
        }
    }

    /// PING (section 6.7).
    fn ping(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        let payload: [u8; 8] = payload.try_into().map_err(|_| PeerMisbehaved::FrameSize)?;
        if !header.has(flag::ACK) {
            self.spend(Ration::Pings)?;
            return self.reply(|out| frame::write_ping(out, true, payload));
        }
        match self.timers.pong(payload, self.received) {
            Pong::Alive => {}
            Pong::Probe(bytes) => self.measured(bytes),
            Pong::Stray => self.spend(Ration::Pings)?,
        }
        Ok(())
    }

    /// GOAWAY (section 6.8). What a server says to explain itself is skipped.
    fn go_away(&mut self, payload: &[u8]) -> Result<(), Error> {
        let number = |at| frame::number(payload, at).ok_or(PeerMisbehaved::FrameSize);
        let (last, code) = (number(0)? & MAX_WINDOW, Code(number(4)?));
        if self.gone_away.is_some_and(|before| last > before.last) {
            return Err(PeerMisbehaved::GoAwayRaised.into());
        }
        if self.gone_away.is_some() {
            self.spend(Ration::IdleFrames)?;
        }
        self.gone_away = Some(GoneAway { last, code });
        self.leave_behind(last, code);
        Ok(())
    }

    /// WINDOW_UPDATE (section 6.9).
    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<(), Error> {
        let number = frame::number(payload, 0).ok_or(PeerMisbehaved::FrameSize)?;
        let increment = number & MAX_WINDOW;
        if id == 0 {
            // Section 6.9: of the connection.
            if increment == 0 {
                return Err(PeerMisbehaved::ZeroIncrement.into());
            }
            return Ok(self.send_window.shift(i64::from(increment))?);
        }
        let index = match self.streams.find(id) {
            Found::Live(index) => index,
            Found::Idle => return Err(PeerMisbehaved::FrameOnIdleStream.into()),
            // Section 5.1: they cross the end of a stream.
            _ => return self.spend(Ration::IdleFrames),
        };
        let slot = self.streams.at(index);
        if slot.closed {
            return self.spend(Ration::IdleFrames);
        }
        // Also of a stream that has nothing to send any more: it is a breach all the same.
        if increment == 0 {
            return self.stream_error(index, PeerMisbehaved::ZeroIncrement.into());
        }
        if let Err(reason) = slot.send_window.shift(i64::from(increment)) {
            return self.stream_error(index, reason.into());
        }
        if matches!(slot.send, Send::Ended | Send::Stopped) {
            return self.spend(Ration::IdleFrames);
        }
        self.reconsider(index);
        Ok(())
    }

    /// Whether no more can be read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Failed(_))
    }
}

/// Which frames are about a stream and which about the connection (RFC 9113 section 6).
fn check_stream(header: Header) -> Result<(), PeerMisbehaved> {
    let right = match header.kind {
        kind::DATA
        | kind::HEADERS
        | kind::PRIORITY
        | kind::RST_STREAM
        | kind::PUSH_PROMISE
        | kind::CONTINUATION => header.stream != 0,
        kind::SETTINGS | kind::PING | kind::GOAWAY => header.stream == 0,
        _ => true,
    };
    if right { Ok(()) } else { Err(PeerMisbehaved::StreamId) }
}

/// Takes the padding off (sections 6.1 and 6.2).
fn unpad(header: Header, payload: &[u8]) -> Result<&[u8], PeerMisbehaved> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(PeerMisbehaved::FrameSize)?;
    let content = rest.len().checked_sub(usize::from(padding)).ok_or(PeerMisbehaved::BadPadding)?;
    Ok(&rest[..content])
}
