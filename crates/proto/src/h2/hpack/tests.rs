//! RFC 7541 appendix C, and what the tables of both sides do between blocks.

use super::*;

type List = Vec<(String, String)>;
type Row = (&'static [(&'static str, &'static str)], &'static str, usize);

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn list(fields: &[(&str, &str)]) -> List {
    fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<List, Error> {
    let mut fields = List::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |name, value| {
        fields.push((text(name), text(value)));
        Ok::<(), Error>(())
    })?;
    Ok(fields)
}

fn encoded(
    encoder: &mut Encoder,
    fields: &[(&str, &str)],
    how: Indexing,
    huffman: Huffman,
) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), how, huffman, &mut block);
    }
    block
}

/// RFC 7541 appendix C.2.
#[test]
fn single_fields_of_the_rfc() {
    let rows = [
        (
            ("custom-key", "custom-header"),
            Indexing::Incremental,
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        ),
        ((":path", "/sample/path"), Indexing::Without, "040c 2f73 616d 706c 652f 7061 7468"),
        (("password", "secret"), Indexing::Never, "1008 7061 7373 776f 7264 0673 6563 7265 74"),
        ((":method", "GET"), Indexing::Incremental, "82"),
    ];
    for (field, how, block) in rows {
        let mut encoder = Encoder::new(4096);
        assert_eq!(encoded(&mut encoder, &[field], how, Huffman::Never), hex(block));
        assert_eq!(decoded(&mut Decoder::new(4096), &hex(block)), Ok(list(&[field])));
    }
}

/// Encodes and decodes lists in one connection; the blocks must be these, and the sizes of the table
/// behind each.
fn check(table: u32, huffman: Huffman, exchange: &[Row]) {
    let (mut encoder, mut decoder) = (Encoder::new(table), Decoder::new(table));
    // The appendix takes the size of the table as agreed; here it is said in a block without fields.
    let agreed = encoded(&mut encoder, &[], Indexing::Incremental, huffman);
    assert_eq!(decoded(&mut decoder, &agreed), Ok(List::new()));
    for &(fields, block, size) in exchange {
        assert_eq!(encoded(&mut encoder, fields, Indexing::Incremental, huffman), hex(block));
        assert_eq!(decoded(&mut decoder, &hex(block)), Ok(list(fields)));
        assert_eq!((encoder.table_size(), decoder.table_size()), (size, size));
    }
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const RESPONSES: [&[(&str, &str)]; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
    ],
];

/// RFC 7541 appendix C.3.
#[test]
fn requests_of_the_rfc_without_huffman_coding() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let sizes = [57, 110, 164];
    let rows = [0, 1, 2].map(|at| (REQUESTS[at], blocks[at], sizes[at]));
    check(4096, Huffman::Never, &rows);
}

/// RFC 7541 appendix C.4.
#[test]
fn requests_of_the_rfc_with_huffman_coding() {
    let blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let sizes = [57, 110, 164];
    let rows = [0, 1, 2].map(|at| (REQUESTS[at], blocks[at], sizes[at]));
    check(4096, Huffman::Shorter, &rows);
}

/// RFC 7541 appendix C.5: with evictions.
#[test]
fn responses_of_the_rfc_without_huffman_coding() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
         6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
         3d31",
    ];
    let sizes = [222, 222, 215];
    let rows = [0, 1, 2].map(|at| (RESPONSES[at], blocks[at], sizes[at]));
    check(256, Huffman::Never, &rows);
}

/// RFC 7541 appendix C.6: with evictions. It codes "307", which gets no shorter.
#[test]
fn responses_of_the_rfc_with_huffman_coding() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    let sizes = [222, 222, 215];
    let rows = [0, 1, 2].map(|at| (RESPONSES[at], blocks[at], sizes[at]));
    check(256, Huffman::Always, &rows);
}
