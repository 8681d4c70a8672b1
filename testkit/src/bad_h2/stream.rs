//! Frames where they must not be, of lengths they must not have (RFC 9113 sections 4, 5.1, 6).

use super::peer::{OK, OK_FIELDS, ok, ok_head, open_head};
use super::{Ask, BadH2, Outcome, play, row, said};
use crate::h2::frame::{self, block, code, data, flag, frame as raw, headers, kind};

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = places();
    all.extend(ends());
    all.extend(blocks());
    all.extend(lengths());
    all.extend(padding());
    all.extend(ignored());
    all
}

/// What breaks the protocol and is followed by a right answer, which must not be believed.
fn broken(name: &str, what: &str, bytes: fn(u32) -> Vec<u8>) -> BadH2 {
    said(name, what, move |stream| [bytes(stream), ok(stream)].concat())
        .breaks(code::PROTOCOL_ERROR)
}

fn places() -> Vec<BadH2> {
    vec![
        broken("data-on-connection", "DATA on stream 0 (6.1)", |_| data(0, OK, false)),
        broken("data-on-idle", "DATA on a stream nobody opened (5.1)", |stream| {
            data(stream + 100, OK, false)
        })
        .with(&[code::PROTOCOL_ERROR, code::STREAM_CLOSED]),
        broken("data-before-head", "DATA before HEADERS (8.1)", |stream| data(stream, OK, false)),
        broken("headers-on-connection", "HEADERS on stream 0 (6.2)", |_| {
            headers(0, block(OK_FIELDS), true)
        }),
        broken("headers-on-idle", "HEADERS on a stream nobody opened (5.1.1)", |stream| {
            headers(stream + 100, block(OK_FIELDS), true)
        })
        .with(&[code::PROTOCOL_ERROR, code::STREAM_CLOSED]),
        broken("headers-on-even", "HEADERS on a stream of the server (5.1.1)", |_| {
            headers(2, block(OK_FIELDS), true)
        }),
        broken("data-on-even", "DATA on a stream of the server (5.1)", |_| data(2, OK, true)),
        broken("ping-on-stream", "PING on the stream (6.7)", |stream| {
            raw(kind::PING, 0, stream, [0; 8])
        }),
        broken("priority-on-connection", "PRIORITY on stream 0 (6.3)", |_| {
            raw(kind::PRIORITY, 0, 0, [0, 0, 0, 1, 0])
        }),
        broken("push-promise", "PUSH_PROMISE, where push is off (6.6, 8.4)", |stream| {
            let promised = [vec![0, 0, 0, 2], block(&[(":method", "GET"), (":path", "/")])];
            raw(kind::PUSH_PROMISE, flag::END_HEADERS, stream, promised.concat())
        }),
        broken("continuation-alone", "CONTINUATION behind nothing (6.10)", |stream| {
            raw(kind::CONTINUATION, flag::END_HEADERS, stream, block(OK_FIELDS))
        }),
    ]
}

fn ends() -> Vec<BadH2> {
    use Outcome::{Answer, Protocol};
    let closed = [code::STREAM_CLOSED, code::PROTOCOL_ERROR];
    vec![
        said("data-after-end", "DATA behind the end of the stream (5.1)", |stream| {
            [ok(stream), data(stream, OK, true)].concat()
        })
        // The answer was whole before it went wrong.
        .ends(&[Answer, Protocol])
        .with(&closed),
        said("headers-after-end", "HEADERS behind the end of the stream (5.1)", |stream| {
            [ok(stream), headers(stream, block(OK_FIELDS), true)].concat()
        })
        .ends(&[Answer, Protocol])
        .with(&closed),
        row(
            "data-on-answered",
            "DATA on a stream that was answered long ago, before the next answer (5.1)",
            play!(|peer|
                peer.open(&[]).await?;
                let old = peer.answer().await?;
                let stream = peer.request().await?;
                peer.send([data(old, OK, true), ok(stream)].concat()).await?;
                peer.behave().await?;
            ),
        )
        .ask(Ask::Second)
        .ends(&[Protocol, Answer])
        .with(&closed),
        said("data-after-trailers", "trailers, then DATA (8.1)", |stream| {
            let trailers = headers(stream, block(&[("x-sum", "1")]), true);
            [open_head(stream), data(stream, OK, false), trailers, data(stream, OK, true)].concat()
        })
        .ends(&[Answer, Protocol])
        .with(&closed),
    ]
}

fn blocks() -> Vec<BadH2> {
    // A head that goes on, and what must not come before it does.
    let within = |name: &str, what: &str, between: fn(u32) -> Vec<u8>| {
        said(name, what, move |stream| {
            let (begin, end) = (block(&OK_FIELDS[..1]), block(&OK_FIELDS[1..]));
            let first = raw(kind::HEADERS, 0, stream, begin);
            let last = raw(kind::CONTINUATION, flag::END_HEADERS, stream, end);
            [first, between(stream), last, data(stream, OK, true)].concat()
        })
        .breaks(code::PROTOCOL_ERROR)
    };
    vec![
        within("block-with-data", "DATA within a header block (6.10)", |stream| {
            data(stream, OK, false)
        }),
        within("block-with-ping", "PING within a header block (6.10)", |_| frame::ping(1)),
        within("block-with-headers", "HEADERS within a header block (6.10)", |stream| {
            raw(kind::HEADERS, 0, stream, block(&[("x-a", "b")]))
        }),
        within("block-with-unknown", "an unknown frame within a header block (5.5)", |_| {
            raw(0xfa, 0, 0, [])
        }),
        within("block-of-another", "CONTINUATION of another stream (6.10)", |stream| {
            raw(kind::CONTINUATION, 0, stream + 2, block(&[("x-a", "b")]))
        }),
        said(
            "block-in-pieces",
            "a header block in frames of 20 bytes, and an empty one last",
            |stream| {
                let whole = block(OK_FIELDS);
                let mut bytes = frame::headers_in_pieces(stream, &whole, false, 20);
                // END_HEADERS moves from the last frame to one without a payload.
                let last = bytes.len() - (whole.len() - 1) % 20 - 1 - frame::HEAD;
                bytes[last + 4] = 0;
                bytes.extend(raw(kind::CONTINUATION, flag::END_HEADERS, stream, []));
                [bytes, data(stream, OK, true)].concat()
            },
        ),
    ]
}

fn lengths() -> Vec<BadH2> {
    let rows = [
        broken("ping-short", "PING of 7 bytes (6.7)", |_| raw(kind::PING, 0, 0, [0; 7])),
        broken("ping-long", "PING of 9 bytes (6.7)", |_| raw(kind::PING, 0, 0, [0; 9])),
        broken("frame-oversized-data", "DATA that announces 2^24-1 bytes (4.2)", |stream| {
            [open_head(stream), frame::head(0xff_ffff, kind::DATA, 0, stream), vec![0; 60_000]]
                .concat()
        }),
        broken("frame-oversized-headers", "HEADERS that announce 2^24-1 bytes (4.2)", |stream| {
            [frame::head(0xff_ffff, kind::HEADERS, flag::END_HEADERS, stream), vec![0; 60_000]]
                .concat()
        }),
        broken(
            "frame-oversized-unknown",
            "an unknown frame that announces 2^24-1 bytes (4.2)",
            |_| [frame::head(0xff_ffff, 0xfa, 0, 0), vec![0; 60_000]].concat(),
        ),
        broken("headers-priority-short", "HEADERS with PRIORITY set and 4 bytes (6.2)", |stream| {
            raw(kind::HEADERS, flag::END_HEADERS | flag::PRIORITY, stream, [0; 4])
        })
        .with(&[code::FRAME_SIZE_ERROR, code::PROTOCOL_ERROR]),
    ];
    let mut all: Vec<BadH2> = rows
        .into_iter()
        .map(|row| if row.codes.len() == 1 { row.with(&[code::FRAME_SIZE_ERROR]) } else { row })
        .collect();
    all.push(
        said("priority-short", "PRIORITY of 4 bytes (6.3: a stream error)", |stream| {
            [raw(kind::PRIORITY, 0, stream, [0; 4]), ok(stream)].concat()
        })
        // RFC 9113 has deprecated what is in it; nghttp2 and others do not look.
        .ends(&[Outcome::Protocol, Outcome::Answer])
        .with(&[code::FRAME_SIZE_ERROR]),
    );
    all
}

fn padding() -> Vec<BadH2> {
    vec![
        said(
            "padding-right",
            "HEADERS and DATA with padding, which is not all zeros (6.1)",
            |stream| {
                let mut head = vec![3];
                head.extend(block(OK_FIELDS));
                head.extend([1, 2, 3]);
                let flags = flag::END_HEADERS | flag::PADDED;
                let body = [&[5][..], OK, &[9; 5]].concat();
                let last = raw(kind::DATA, flag::END_STREAM | flag::PADDED, stream, body);
                [raw(kind::HEADERS, flags, stream, head), last].concat()
            },
        ),
        said("padding-with-priority", "HEADERS with padding and priority (6.2)", |stream| {
            let mut head = vec![2, 0, 0, 0, 0, 16];
            head.extend(block(OK_FIELDS));
            head.extend([0, 0]);
            let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
            [raw(kind::HEADERS, flags, stream, head), data(stream, OK, true)].concat()
        }),
        said("padding-long-data", "DATA with as much padding as payload (6.1)", |stream| {
            let body = raw(kind::DATA, flag::PADDED | flag::END_STREAM, stream, [3, b'o', b'k']);
            [open_head(stream), body].concat()
        })
        .breaks(code::PROTOCOL_ERROR),
        said("padding-long-headers", "HEADERS with more padding than payload (6.2)", |stream| {
            let flags = flag::END_HEADERS | flag::PADDED | flag::END_STREAM;
            raw(kind::HEADERS, flags, stream, [&[200][..], &block(&OK_FIELDS[..1])].concat())
        })
        .breaks(code::PROTOCOL_ERROR),
        said("padding-empty", "DATA that is PADDED, and has no payload (6.1)", |stream| {
            [open_head(stream), raw(kind::DATA, flag::PADDED | flag::END_STREAM, stream, [])]
                .concat()
        })
        .breaks(code::PROTOCOL_ERROR)
        .with(&[code::PROTOCOL_ERROR, code::FRAME_SIZE_ERROR]),
    ]
}

fn ignored() -> Vec<BadH2> {
    vec![
        said("unknown-frames", "frames of unknown types everywhere (5.5: ignored)", |stream| {
            let odd = |at: u32| raw(0xf0 + at as u8, 0xff, at * stream, [7; 40]);
            [odd(0), ok_head(stream), odd(1), odd(2), data(stream, OK, true), odd(1)].concat()
        }),
        said(
            "unknown-flags",
            "frames with every flag that means nothing (4.1: ignored)",
            |stream| {
                let head = raw(kind::HEADERS, flag::END_HEADERS | 0xd2, stream, block(OK_FIELDS));
                [head, raw(kind::DATA, flag::END_STREAM | 0xf6, stream, OK)].concat()
            },
        ),
        said(
            "reserved-bit",
            "frames with the reserved bit of the stream set (4.1: ignored)",
            |stream| {
                let set = |mut bytes: Vec<u8>| {
                    bytes[5] |= 0x80;
                    bytes
                };
                [set(ok_head(stream)), set(data(stream, OK, true))].concat()
            },
        ),
        said("pong-unasked", "the answer to a PING nobody sent, once (6.7)", |stream| {
            [raw(kind::PING, flag::ACK, 0, [9; 8]), ok(stream)].concat()
        }),
        said("priority", "PRIORITY, which is advice", |stream| {
            [raw(kind::PRIORITY, 0, stream + 2, [0, 0, 0, 0, 16]), ok(stream)].concat()
        }),
        said(
            "priority-update",
            "PRIORITY_UPDATE, which no server sends (RFC 9218, 7.1)",
            |stream| {
                let update = raw(0x10, 0, 0, [&stream.to_be_bytes()[..], b"u=1, i"].concat());
                [update, ok(stream)].concat()
            },
        )
        .ends(&[Outcome::Protocol, Outcome::Answer]),
        said("altsvc-origin", "ALTSVC and ORIGIN frames (RFC 7838, 8336)", |stream| {
            let origin = raw(0xc, 0, 0, [&[0, 9][..], b"https://a"].concat());
            [raw(0xa, 0, stream, [&[0, 0][..], b"h2=\":1\""].concat()), origin, ok(stream)].concat()
        }),
    ]
}
