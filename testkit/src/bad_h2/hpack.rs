//! Header compression, wrong or as a weapon (RFC 7541; RFC 9113 sections 4.3 and 10.5.1).

use super::peer::{OK, OK_FIELDS};
use super::{BadH2, Outcome, said};
use crate::h2::frame::{
    self, block, code, data, flag, frame as raw, headers, headers_in_pieces, indexed_literal,
    integer, kind,
};

/// No frame may be larger, unless the client says so.
const FRAME: usize = 16_384;

pub(super) fn rows() -> Vec<BadH2> {
    let mut all = right();
    all.extend(wrong());
    all.extend(weapons());
    all.extend(nothings());
    all
}

/// A right block whose first field this is.
fn with(field: &[u8]) -> Vec<u8> {
    [field, &block(OK_FIELDS)].concat()
}

fn answered(stream: u32, block: impl AsRef<[u8]>) -> Vec<u8> {
    [headers(stream, block, false), data(stream, OK, true)].concat()
}

fn right() -> Vec<BadH2> {
    vec![
        said("hpack-static", "an answer out of the static table (RFC 7541 6.1)", |stream| {
            // :status 200, whole; content-type by name.
            let mut fields = vec![0x88, 0x0f, 31 - 15];
            fields.extend(b"\x0atext/plain");
            answered(stream, fields)
        }),
        said(
            "hpack-table-evicts",
            "fields that drive each other out of the table (RFC 7541 4.4)",
            |stream| {
                let mut fields = vec![0x88];
                for byte in b'a'..=b'z' {
                    fields.extend(indexed_literal(b"x-turn", &[byte; 300]));
                }
                // The youngest entry, again.
                fields.push(0x80 | 62);
                answered(stream, fields)
            },
        ),
        said(
            "hpack-entry-large",
            "a field larger than the table, which empties it (RFC 7541 4.4)",
            |stream| {
                let mut fields = vec![0x88];
                fields.extend(indexed_literal(b"x-large", &[b'a'; 5000]));
                answered(stream, fields)
            },
        ),
        said(
            "hpack-size-zero-and-back",
            "table size 0, then 4096, at the head of a block (RFC 7541 4.2)",
            |stream| {
                let mut fields = vec![0x20];
                integer(0x20, 5, 4096, &mut fields);
                fields.extend(block(OK_FIELDS));
                answered(stream, fields)
            },
        ),
        said("hpack-never-indexed", "every field never indexed (RFC 7541 6.2.3)", |stream| {
            let mut fields = block(OK_FIELDS);
            // Literals without indexing begin with a 0 that is followed by a length.
            let mut at = 0;
            while at < fields.len() {
                fields[at] = 0x10;
                let name = usize::from(fields[at + 1]);
                let value = usize::from(fields[at + 2 + name]);
                at += 3 + name + value;
            }
            answered(stream, fields)
        }),
    ]
}

fn wrong() -> Vec<BadH2> {
    let rows: [(&str, &str, &[u8]); 11] = [
        ("hpack-index-zero", "index 0 (RFC 7541 6.1)", &[0x80]),
        ("hpack-index-beyond", "an index beyond the tables (RFC 7541 2.3.3)", &[0xff, 0xf0, 0x1f]),
        ("hpack-name-beyond", "a name's index beyond the tables", &[0x7f, 0xf0, 0x1f, 1, b'a']),
        (
            "hpack-integer-endless",
            "an integer that does not end (RFC 7541 5.1)",
            &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
        ),
        (
            "hpack-integer-overflow",
            "an integer over 2^64 (RFC 7541 5.1)",
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ),
        (
            "hpack-string-beyond",
            "a string longer than its block (RFC 7541 5.2)",
            &[0x00, 0x01, b'a', 0x7f, 0xff, 0xff, 0x03, b'b'],
        ),
        (
            "hpack-huffman-eos",
            "a Huffman string with EOS in it (RFC 7541 5.2)",
            &[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff],
        ),
        (
            "hpack-huffman-padding-long",
            "a Huffman string with 8 bits of padding (RFC 7541 5.2)",
            // `0` is 00000, then 3 + 8 ones.
            &[0x00, 0x01, b'a', 0x82, 0x07, 0xff],
        ),
        (
            "hpack-huffman-padding-zero",
            "a Huffman string padded with zeros (RFC 7541 5.2)",
            &[0x00, 0x01, b'a', 0x81, 0x00],
        ),
        (
            "hpack-size-above",
            "a table size over what was allowed (RFC 7541 6.3)",
            &[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x07],
        ),
        ("hpack-size-late", "a table size behind a field (RFC 7541 4.2)", &[0x88, 0x20]),
    ];
    let mut all: Vec<BadH2> = rows
        .into_iter()
        .map(|(name, what, field)| {
            let field = field.to_vec();
            said(name, what, move |stream| answered(stream, with(&field)))
                .breaks(code::COMPRESSION_ERROR)
        })
        .collect();
    all.push(
        said("hpack-truncated", "a block that ends within a field (RFC 9113 4.3)", |stream| {
            let whole = block(OK_FIELDS);
            answered(stream, &whole[..whole.len() - 1])
        })
        .breaks(code::COMPRESSION_ERROR),
    );
    all
}

/// What only a limit stops; a client may also break the stream or the connection off for it.
fn heavy(row: BadH2) -> BadH2 {
    let codes = [
        code::PROTOCOL_ERROR,
        code::ENHANCE_YOUR_CALM,
        code::CANCEL,
        code::INTERNAL_ERROR,
        code::REFUSED_STREAM,
    ];
    row.ends(&[Outcome::Limit, Outcome::Protocol]).with(&codes)
}

fn weapons() -> Vec<BadH2> {
    vec![
        heavy(said(
            "hpack-bomb",
            "one field of 4 000 bytes, then 16 000 times its index: 62 MiB (10.5.1)",
            |stream| {
                let mut fields = vec![0x88];
                fields.extend(indexed_literal(b"x-bomb", &[b'a'; 4000]));
                fields.resize(FRAME, 0x80 | 62);
                answered(stream, fields)
            },
        )),
        heavy(said("hpack-bomb-continued", "the same over 64 frames: 4 GiB", |stream| {
            let mut fields = vec![0x88];
            fields.extend(indexed_literal(b"x-bomb", &[b'a'; 4000]));
            fields.resize(FRAME * 64, 0x80 | 62);
            let pieces = headers_in_pieces(stream, &fields, false, FRAME);
            [pieces, data(stream, OK, true)].concat()
        })),
        heavy(said("header-list-large", "a field of 1 MiB over 65 frames", |stream| {
            let long = "a".repeat(1 << 20);
            let whole = block(&[(":status", "200"), ("x-long", &long)]);
            [headers_in_pieces(stream, &whole, false, FRAME), data(stream, OK, true)].concat()
        })),
        heavy(said("header-list-many", "100 000 small fields", |stream| {
            let mut fields = block(&OK_FIELDS[..1]);
            let one = block(&[("x-a", "b")]);
            for _ in 0..100_000 {
                fields.extend_from_slice(&one);
            }
            [headers_in_pieces(stream, &fields, false, FRAME), data(stream, OK, true)].concat()
        })),
        heavy(said("trailer-list-large", "an answer whose trailers have 1 MiB", |stream| {
            let long = "a".repeat(1 << 20);
            let trailers = block(&[("x-long", &long)]);
            let head = headers(stream, block(&OK_FIELDS[..1]), false);
            [head, data(stream, OK, false), headers_in_pieces(stream, &trailers, true, FRAME)]
                .concat()
        })),
    ]
}

fn nothings() -> Vec<BadH2> {
    vec![
        said(
            "hpack-sizes-many",
            "8 000 table sizes at the head of a block (RFC 7541 4.2: two at most)",
            |stream| {
                let mut fields = [0x20, 0x21].repeat(4000);
                fields.extend(block(OK_FIELDS));
                answered(stream, fields)
            },
        )
        .ends(&[Outcome::Protocol, Outcome::Limit, Outcome::Answer])
        .with(&[code::COMPRESSION_ERROR, code::ENHANCE_YOUR_CALM]),
        heavy(said(
            "hpack-names-empty",
            "16 000 fields with neither name nor value, of 3 bytes each",
            |stream| {
                let mut fields = block(&OK_FIELDS[..1]);
                fields.extend([0, 0, 0].repeat(16_000));
                [headers_in_pieces(stream, &fields, false, FRAME), data(stream, OK, true)].concat()
            },
        )),
        said(
            "header-block-of-nothing",
            "HEADERS with an empty block (8.3.2: no :status)",
            |stream| {
                [
                    raw(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, []),
                    frame::ping(1),
                ]
                .concat()
            },
        )
        .ends(&[Outcome::Protocol]),
    ]
}
