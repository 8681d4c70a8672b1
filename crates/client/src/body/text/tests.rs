use proptest::prelude::*;

use super::*;

fn charset(content_type: &str) -> Option<String> {
    charset_of(content_type)
}

#[test]
fn charsets_are_found_in_sloppy_values() {
    for value in [
        "text/html; charset=utf-8",
        "text/html;charset=utf-8;",
        "text/html ; Charset = utf-8 ",
        "text/html; a=b; charset=\"utf-8\"; charset=latin1",
        "text/html; a=\"; charset=x\"; charset=utf-8",
        "text/html;; flag; charset=; charset=\"utf\\-8\"",
        "; charset=\"utf-8",
    ] {
        assert_eq!(charset(value).as_deref(), Some("utf-8"), "{value}");
    }
    for value in
        ["", "text/html", "charset=utf-8", "text/html; charset", "a/b; xcharset=x", "a;\"\\"]
    {
        assert_eq!(charset(value), None, "{value}");
    }
}

fn text(body: &[u8], content_type: &str, fallback: Option<&str>) -> String {
    let whole = decode_text(Bytes::copy_from_slice(body), Some(content_type), fallback);
    let mut decoder = TextDecoder::new(Some(content_type), fallback);
    let mut streamed: String = body.chunks(1).map(|byte| decoder.decode(byte)).collect();
    streamed.push_str(&decoder.finish());
    assert_eq!(whole, streamed);
    whole
}

#[test]
fn encodings_are_chosen_by_mark_then_label_then_fallback_then_utf8() {
    let html = "text/html";
    assert_eq!(text("grüße €".as_bytes(), html, None), "grüße €");
    assert_eq!(text(b"gr\xfc\xdfe \x80", "a/b; charset=ISO-8859-1", None), "grüße €");
    assert_eq!(text(b"gr\xfc\xdfe", html, Some("windows-1252")), "grüße");
    assert_eq!(text(b"\x93\xfa\x96\x7b", "a/b; charset=shift_jis", None), "日本");
    assert_eq!(text(b"\xc8\xd5\xb1\xbe", "a/b; charset=gb2312", None), "日本");
    assert_eq!(text(b"\xff\xfeh\0i\0", "a/b; charset=utf-8", None), "hi");
    assert_eq!(text(b"\xfe\xff\0h\0i", "a/b; charset=latin1", None), "hi");
    assert_eq!(text(b"\xef\xbb\xbfhi", "a/b; charset=latin1", None), "hi");
    assert_eq!(text(b"ok", "a/b; charset=klingon", Some("nor this")), "ok");
    assert_eq!(text(b"", html, None), "");
}

#[test]
fn malformed_text_is_replaced_not_refused() {
    assert_eq!(text(b"a\xff\xc3", "a/b", None), "a\u{fffd}\u{fffd}");
    let mut decoder = TextDecoder::new(None, None);
    assert_eq!(decoder.decode(b"\xe2\x82"), "");
    assert!(!decoder.is_malformed());
    assert_eq!(decoder.decode(b"\xac\xff"), "€\u{fffd}");
    assert!(decoder.is_malformed());
    assert_eq!(decoder.encoding(), "UTF-8");
}

#[test]
fn whole_utf8_is_not_copied() {
    let bytes = Bytes::from("x".repeat(1000).into_bytes());
    let address = bytes.as_ptr();
    let text = decode_text(bytes, None, None);
    assert_eq!(text.as_ptr(), address);
}

fn lines(pieces: &[&str], limit: usize) -> Result<Vec<String>, LineTooLong> {
    let mut splitter = LineSplitter::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        splitter.push(piece);
        while let Some(line) = splitter.next_line()? {
            lines.push(line);
        }
    }
    lines.extend(splitter.finish()?);
    Ok(lines)
}

#[test]
fn lines_end_with_lf_or_crlf_even_across_pieces() {
    assert_eq!(lines(&["a\nb\r", "\n\nc\rd", "\n"], 9).unwrap(), ["a", "b", "", "c\rd"]);
    assert_eq!(lines(&["a\n", "last"], 9).unwrap(), ["a", "last"]);
    assert_eq!(lines(&[], 9).unwrap(), [""; 0]);
}

#[test]
fn a_line_over_the_limit_fails_before_its_end() {
    assert_eq!(lines(&["abc\r\nabc\n"], 3).unwrap(), ["abc", "abc"]);
    assert_eq!(lines(&["abc\r", "\n"], 3).unwrap(), ["abc"]);
    let limit = 3;
    assert_eq!(lines(&["abcd\n"], 3), Err(LineTooLong { limit }));
    let mut splitter = LineSplitter::new(3);
    splitter.push("ok\nabcd");
    assert_eq!(splitter.next_line(), Ok(Some("ok".to_owned())));
    for _ in 0..2 {
        assert_eq!(splitter.next_line(), Err(LineTooLong { limit }));
    }
}

proptest! {
    #[test]
    fn charset_of_takes_anything(value in ".*") {
        let _ = charset_of(&value);
    }

    #[test]
    fn text_is_independent_of_splits(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        label in prop::sample::select(vec!["utf-8", "shift_jis", "utf-16le", "gb18030", "iso-2022-jp"]),
    ) {
        text(&body, &format!("a/b; charset={label}"), None);
    }

    #[test]
    fn lines_are_independent_of_splits(text in "[a-c\r\n]{0,60}", size in 1_usize..9) {
        let pieces: Vec<_> = text
            .as_bytes()
            .chunks(size)
            .map(|piece| std::str::from_utf8(piece).unwrap())
            .collect();
        let whole: Vec<_> = text.lines().map(str::to_owned).collect();
        prop_assert_eq!(lines(&pieces, 100).unwrap(), whole);
    }
}
