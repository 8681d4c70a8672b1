//! Frames written by hand, and readers that are fed in pieces.

use bytes::BufMut;
use mimus_proto::Error;
use mimus_proto::ws::{Config, Connection, Header, Masking, Opcode, OwnedMessage, apply_mask};

/// The key of every frame that is written by hand.
pub const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame; masked if a client writes it.
pub fn frame(fin: bool, opcode: Opcode, payload: &[u8], masked: bool) -> Vec<u8> {
    let mask = masked.then_some(MASK);
    let mut wire = Vec::new();
    Header { fin, rsv: 0, opcode, mask, len: payload.len() as u64 }.write(&mut wire);
    let start = wire.len();
    wire.extend_from_slice(payload);
    if masked {
        apply_mask(&mut wire[start..], MASK);
    }
    wire
}

/// What a connection heard, and how it ended.
pub type Heard = (Vec<OwnedMessage>, Option<Error>);

/// Feeds `wire` in pieces that end at `cuts` (lengths, one after the other), each read to its end.
/// Every other piece is read by value.
pub fn feed<M: Masking>(to: &mut Connection<M>, wire: &[u8], cuts: &[usize]) -> Heard {
    let mut heard = Vec::new();
    let mut rest = wire;
    let mut cuts = cuts.iter();
    let mut by_value = false;
    loop {
        let len = cuts.next().map_or(rest.len(), |cut| (*cut).min(rest.len()));
        let (piece, behind) = rest.split_at(len);
        rest = behind;
        by_value = !by_value;
        if by_value {
            to.recv_buf().put_slice(piece);
        } else {
            to.recv(piece);
        }
        loop {
            let next = if by_value {
                to.poll_owned()
            } else {
                to.poll().map(|message| message.map(|message| message.to_owned()))
            };
            match next {
                Ok(Some(message)) => heard.push(message),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(to.poll(), Err(error), "an error stays");
                    return (heard, Some(error));
                }
            }
        }
        if rest.is_empty() && cuts.as_slice().is_empty() {
            return (heard, None);
        }
    }
}

/// A fresh connection that hears `wire` at once.
pub fn hear<M: Masking>(masking: M, wire: &[u8]) -> Heard {
    feed(&mut Connection::new(masking, Config::default()), wire, &[])
}

/// All that waits to be written.
pub fn take_output<M: Masking>(from: &mut Connection<M>) -> Vec<u8> {
    let mut wire = Vec::new();
    while from.pending() > 0 {
        let mut slices = [std::io::IoSlice::new(&[]); 4];
        let filled = from.poll_transmit(&mut slices);
        let count = slices[..filled].iter().map(|slice| slice.len()).sum();
        slices[..filled].iter().for_each(|slice| wire.extend_from_slice(slice));
        from.transmitted(count);
    }
    wire
}
