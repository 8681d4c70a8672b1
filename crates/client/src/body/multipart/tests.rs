use std::io::{self, Write};

use futures_util::stream;

use super::*;
use crate::body::send::test_pool::Pool;

/// Name, file name, media type and contents of each part, as another library reads them.
type Parsed = Vec<(Option<String>, Option<String>, Option<String>, Vec<u8>)>;

fn encoded(form: Form) -> Vec<u8> {
    let length = form.content_length();
    let body = form.into_body();
    assert_eq!(body.length(), length);
    let frames = body.into_frames(std::sync::Arc::new(Pool::Thread));
    let bytes = pollster::block_on(http_body_util::BodyExt::collect(frames)).unwrap().to_bytes();
    assert!(length.is_none_or(|length| length == bytes.len() as u64));
    bytes.into()
}

fn parsed(form: Form) -> Parsed {
    let content_type = form.content_type();
    let boundary = multer::parse_boundary(content_type.to_str().unwrap()).unwrap();
    assert_eq!(boundary, form.boundary());
    let bytes = encoded(form);
    let whole = stream::iter([Ok::<_, io::Error>(Bytes::from(bytes))]);
    let mut reader = multer::Multipart::new(whole, boundary);
    let mut parts = Vec::new();
    while let Some(field) = pollster::block_on(reader.next_field()).unwrap() {
        let name = field.name().map(str::to_owned);
        let file_name = field.file_name().map(str::to_owned);
        let media_type = field.content_type().map(ToString::to_string);
        let contents = pollster::block_on(field.bytes()).unwrap();
        parts.push((name, file_name, media_type, contents.into()));
    }
    parts
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_form_is_written_as_browsers_write_it() {
    let form = Form::new()
        .with_boundary("----B")
        .unwrap()
        .text("a", "1\r\n2")
        .part("f", Part::bytes("{}").file_name("x.json"));
    let expected = "------B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n\
                    ------B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.json\"\r\n\
                    Content-Type: application/json\r\n\r\n{}\r\n------B--\r\n";
    assert_eq!(String::from_utf8(encoded(form)).unwrap(), expected);
    let empty = Form::new().with_boundary("B").unwrap();
    assert_eq!(encoded(empty), b"--B--\r\n");
}

#[test]
fn another_library_reads_every_kind_of_part() {
    let mut file = tempfile::Builder::new().suffix(".PNG").tempfile().unwrap();
    let contents: Vec<u8> = (0..200_000_u32).map(|n| (n % 255) as u8).collect();
    file.write_all(&contents).unwrap();
    let pieces = stream::iter([Ok::<_, io::Error>("str"), Ok("eam")]);
    let form = Form::new()
        .text("text", "grüße\r\n--not a boundary")
        .text("text", "")
        .part("bytes", Part::bytes(vec![0, 255]).media_type("x/y; z=1").unwrap())
        .file("file", file.path())
        .unwrap()
        .part("stream", Part::new(Body::stream(pieces)).file_name("no extension"))
        .part("reader", Part::new(Body::sized_reader(&b"read"[..], 4)));
    assert_eq!(form.content_length(), None);
    let name = file.path().file_name().unwrap().to_str().unwrap();
    let stream_type = some("application/octet-stream");
    let expected: Parsed = vec![
        (some("text"), None, None, "grüße\r\n--not a boundary".into()),
        (some("text"), None, None, vec![]),
        (some("bytes"), None, some("x/y; z=1"), vec![0, 255]),
        (some("file"), some(name), some("image/png"), contents),
        (some("stream"), some("no extension"), stream_type, b"stream".to_vec()),
        (some("reader"), None, None, b"read".to_vec()),
    ];
    assert_eq!(parsed(form), expected);
}

#[test]
fn names_cannot_break_out_of_their_quotes() {
    let form = Form::new()
        .part("a\"; filename=\"x\r\nEvil: 1", Part::text("v").file_name("b\"\n.txt%22\\"));
    let text = String::from_utf8(encoded(form)).unwrap();
    assert!(
        text.contains(
            "name=\"a%22; filename=%22x%0D%0AEvil: 1\"; filename=\"b%22%0A.txt%22\\\"\r\n"
        )
    );
}

#[test]
fn a_parts_own_fields_follow() {
    let name = HeaderName::from_static("x-part");
    let form = Form::new().part("a", Part::text("v").header(name, HeaderValue::from_static("7")));
    let text = String::from_utf8(encoded(form)).unwrap();
    assert!(text.contains("name=\"a\"\r\nx-part: 7\r\n\r\nv\r\n"));
}

#[test]
fn boundaries_are_random_and_checked() {
    assert_ne!(Form::new().boundary(), Form::new().boundary());
    let try_boundary = |text: &str| Form::new().with_boundary(text).map(drop);
    assert_eq!(try_boundary(&"x".repeat(70)), Ok(()));
    for bad in ["", &"x".repeat(71), "a b", "a\"b", "a\r\nb", "ä"] {
        assert_eq!(try_boundary(bad), Err(InvalidBoundary), "{bad:?}");
    }
}

#[test]
fn a_form_of_memory_and_files_can_be_sent_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let form = Form::new().text("a", "b").file("f", file.path()).unwrap();
    assert!(form.into_body().is_replayable());
    let once = Form::new().part("r", Part::new(Body::reader(io::empty())));
    assert!(!once.into_body().is_replayable());
}

#[test]
fn a_large_file_never_sits_in_memory() {
    let mut file = tempfile::tempfile().unwrap();
    file.set_len(1 << 27).unwrap();
    file.write_all(b"start").unwrap();
    io::Seek::rewind(&mut file).unwrap();
    let form = Form::new().part("f", Part::new(Body::from(file)));
    let length = form.content_length().unwrap();
    assert!(length > 1 << 27);
    let mut body = form.into_body();
    let mut sent = 0;
    let next = |body: &mut Body| {
        pollster::block_on(std::future::poll_fn(|cx| body.poll_next(cx, &Pool::Inline)))
    };
    while let Some(piece) = next(&mut body) {
        let piece = piece.unwrap();
        assert!(piece.len() <= 64 * 1024);
        sent += piece.len() as u64;
    }
    assert_eq!(sent, length);
}

#[test]
fn debug_shows_no_contents() {
    let form = Form::new().text("password", "hunter2");
    let shown = format!("{form:?}");
    assert!(shown.contains("password") && !shown.contains("hunter2"));
}
