//! Bodies out: DATA frames made when there is room for them, in turn between the streams.

use super::conn::Conn;
use super::frame::{Header, flag, kind};
use super::stream::Send;

/// DATA is made only while less than this waits to be written: what comes later and matters more
/// (control frames, heads) stands behind no more than this, and one write still carries much.
const COMMITTED: usize = 128 * 1024;

/// The largest DATA frame, whatever the server takes: another stream's turn comes behind it.
const LARGEST: usize = 64 * 1024;

impl Conn {
    /// Makes DATA frames as windows and room allow, one for each stream in turn.
    pub(super) fn commit(&mut self) {
        while self.out.pending() < COMMITTED && self.send_window.available() > 0 {
            let Some(index) = self.ring.pop_front() else {
                return;
            };
            self.data_frame(index);
            let slot = self.streams.at(index);
            if slot.outgoing_len > 0 && slot.send_window.available() > 0 {
                self.ring.push_back(index);
            } else {
                slot.ringed = false;
            }
        }
    }

    /// One DATA frame of a stream that has data and a window, and its end if that was all.
    fn data_frame(&mut self, index: u32) {
        let slot = self.streams.at(index);
        let most = (self.peer.max_frame_size as usize)
            .min(LARGEST)
            .min(self.send_window.available())
            .min(slot.send_window.available());
        let len = slot.outgoing_len.min(most);
        let last = len == slot.outgoing_len;
        let ends = last && matches!(slot.send, Send::Finishing(None));
        let flags = if ends { flag::END_STREAM } else { 0 };
        Header { len: len as u32, kind: kind::DATA, flags, stream: slot.id }.write(self.out.text());
        let mut left = len;
        while left > 0 {
            let Some(front) = slot.outgoing.front_mut() else { break };
            let piece = front.split_to(left.min(front.len()));
            if front.is_empty() {
                slot.outgoing.pop_front();
            }
            left -= piece.len();
            self.out.data(piece);
        }
        slot.outgoing_len -= len;
        slot.framed_to = self.out.end();
        slot.send_window.spend(len);
        self.send_window.spend(len);
        self.floods.earn();
        let slot = self.streams.at(index);
        let room = slot.outgoing_len < self.limits.send_queue as usize / 2;
        match slot.send {
            Send::Finishing(_) if last => self.finish(index, ends),
            Send::Open if room => self.streams.stir(index),
            _ => {}
        }
    }

    /// Ends a body whose data is all in the outbox. `told`: END_STREAM is there, too.
    pub(super) fn finish(&mut self, index: u32, told: bool) {
        let slot = self.streams.at(index);
        let id = slot.id;
        let trailers = match std::mem::replace(&mut slot.send, Send::Ended) {
            Send::Finishing(trailers) => trailers,
            _ => None,
        };
        match trailers {
            Some(trailers) => {
                let max = self.peer.max_frame_size as usize;
                self.writer.trailers(self.out.text(), id, &trailers, max);
            }
            None if told => {}
            None => {
                let end = Header { len: 0, kind: kind::DATA, flags: flag::END_STREAM, stream: id };
                end.write(self.out.text());
            }
        }
        let slot = self.streams.at(index);
        slot.ends_at = self.out.end();
        slot.framed_to = slot.ends_at;
        self.streams.settle(index);
        self.streams.stir(index);
    }
}
