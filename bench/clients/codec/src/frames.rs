//! WebSocket frames.

use std::{hint::black_box, io::IoSlice};

use mimus_bench_kit::{
    PeerError,
    codec::{Bench, Input, KEY, Kind},
};
use mimus_proto::ws::{
    Keys, Limits, Masking, Message, Reader, Role, Unmasked, Writer, apply_mask, as_text,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

fn reader(masked: bool) -> Reader {
    Reader::new(if masked { Role::Server } else { Role::Client }, Limits::default())
}

/// Keys as the client draws them, but for the seed.
fn keys() -> impl Masking {
    let mut generator = StdRng::seed_from_u64(1);
    Keys::new(move |bytes: &mut [u8]| generator.fill_bytes(bytes))
}

fn message<'a>(kind: Kind, input: &'a Input, text: &'a str) -> Message<'a> {
    match kind {
        Kind::Text => Message::Text(text),
        Kind::Binary => Message::Binary(&input.payload),
    }
}

/// Takes a message out and has it used; `owned` or lent.
#[inline]
fn next(reader: &mut Reader, owned: bool) {
    match owned {
        true => match reader.poll_owned() {
            Ok(Some(message)) => drop(black_box(message)),
            other => panic!("no message: {other:?}"),
        },
        false => match reader.poll() {
            Ok(Some(message)) => {
                black_box(message);
            }
            other => panic!("no message: {other:?}"),
        },
    }
}

/// Has one message checked.
fn check(
    reader: &mut Reader,
    frame: &[u8],
    owned: bool,
    bench: &mut Bench,
) -> Result<(), PeerError> {
    reader.recv(frame);
    let kept = match owned {
        true => reader.poll_owned()?,
        false => reader.poll()?.map(|message| message.to_owned()),
    };
    match kept.as_ref().map(|message| message.as_message()) {
        Some(Message::Text(text)) => bench.came(text.as_bytes()),
        Some(Message::Binary(bytes)) => bench.came(bytes),
        _ => return Err("no message".into()),
    }
    Ok(())
}

/// Out of a buffer that holds a batch.
pub(crate) fn parse(masked: bool, owned: bool, bench: &mut Bench) -> Result<(), PeerError> {
    let mut reader = reader(masked);
    let frame = bench.input().frames(1).to_vec();
    check(&mut reader, &frame, owned, bench)?;
    bench.measure(
        &mut reader,
        |reader, input, n| reader.recv(input.frames(n)),
        |reader, _, n| (0..n).for_each(|_| next(reader, owned)),
    )
}

/// The same, and the batch is copied to the buffer first.
pub(crate) fn receive(masked: bool, owned: bool, bench: &mut Bench) -> Result<(), PeerError> {
    let mut reader = reader(masked);
    let frame = bench.input().frames(1).to_vec();
    check(&mut reader, &frame, owned, bench)?;
    bench.measure(
        &mut reader,
        |_, _, _| {},
        |reader, input, n| {
            reader.recv(black_box(input.frames(n)));
            (0..n).for_each(|_| next(reader, owned));
        },
    )
}

/// Hands what waits to be sent to `take`, and has it sent.
fn drain<M: Masking>(writer: &mut Writer<M>, mut take: impl FnMut(&[u8])) {
    while writer.pending() > 0 {
        let mut slices = [IoSlice::new(&[]); 4];
        let used = writer.poll_transmit(&mut slices);
        let sent = slices[..used].iter().map(|slice| slice.len()).sum();
        slices[..used].iter().for_each(|slice| take(slice));
        writer.transmitted(sent);
    }
}

fn send<M: Masking>(writer: &mut Writer<M>, message: Message<'_>) {
    if let Err(misuse) = writer.send(message) {
        panic!("{misuse}");
    }
}

/// Into the writer's buffer, which is emptied between batches.
pub(crate) fn encode(kind: Kind, masked: bool, bench: &mut Bench) -> Result<(), PeerError> {
    match masked {
        true => encode_by(Writer::new(keys()), kind, bench),
        false => encode_by(Writer::new(Unmasked), kind, bench),
    }
}

fn encode_by<M: Masking>(
    mut writer: Writer<M>,
    kind: Kind,
    bench: &mut Bench,
) -> Result<(), PeerError> {
    let text = bench.input().text().to_owned();
    send(&mut writer, message(kind, bench.input(), &text));
    let mut frame = Vec::new();
    drain(&mut writer, |bytes| frame.extend_from_slice(bytes));
    bench.wrote(&frame);
    bench.measure(
        &mut writer,
        |writer, _, _| drain(writer, |_| {}),
        |writer, input, n| {
            for _ in 0..n {
                send(writer, black_box(message(kind, input, &text)));
            }
        },
    )
}

/// From a writer to a reader.
pub(crate) fn round_trip(
    kind: Kind,
    masked: bool,
    owned: bool,
    bench: &mut Bench,
) -> Result<(), PeerError> {
    match masked {
        true => round_trip_by(Writer::new(keys()), reader(true), kind, owned, bench),
        false => round_trip_by(Writer::new(Unmasked), reader(false), kind, owned, bench),
    }
}

fn round_trip_by<M: Masking>(
    mut writer: Writer<M>,
    mut reader: Reader,
    kind: Kind,
    owned: bool,
    bench: &mut Bench,
) -> Result<(), PeerError> {
    let text = bench.input().text().to_owned();
    send(&mut writer, message(kind, bench.input(), &text));
    let mut frame = Vec::new();
    drain(&mut writer, |bytes| frame.extend_from_slice(bytes));
    check(&mut reader, &frame, owned, bench)?;
    bench.measure(
        &mut (writer, reader),
        |_, _, _| {},
        |(writer, reader), input, n| {
            for _ in 0..n {
                send(writer, black_box(message(kind, input, &text)));
                drain(writer, |bytes| reader.recv(bytes));
                next(reader, owned);
            }
        },
    )
}

/// In place.
pub(crate) fn mask(bench: &mut Bench) -> Result<(), PeerError> {
    let mut buffer = bench.input().payload.clone();
    apply_mask(&mut buffer, KEY);
    bench.masked(&buffer);
    bench.measure(
        &mut buffer,
        |_, _, _| {},
        |buffer, _, n| {
            for _ in 0..n {
                apply_mask(black_box(buffer), black_box(KEY));
            }
        },
    )
}

/// Of bytes that are lent, like the messages.
pub(crate) fn utf8(bench: &mut Bench) -> Result<(), PeerError> {
    let mut bytes = bench.input().payload.clone();
    let mut bad = bytes.clone();
    if let Some(last) = bad.last_mut() {
        *last = 0xff;
    }
    bench.told_apart(as_text(&bytes).is_ok(), as_text(&bad).is_ok());
    bench.measure(
        &mut bytes,
        |_, _, _| {},
        |bytes, _, n| {
            for _ in 0..n {
                if black_box(as_text(black_box(bytes))).is_err() {
                    panic!("it is text");
                }
            }
        },
    )
}
