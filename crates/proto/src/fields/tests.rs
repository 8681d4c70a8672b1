use super::*;

#[test]
fn control_bytes_are_found_at_every_place() {
    for len in 0..40 {
        for byte in 0..=255_u8 {
            let expected = is_control(byte);
            for at in 0..len {
                let mut text = vec![b'\xe4'; len];
                text[at] = byte;
                assert_eq!(has_control(&text), expected, "byte {byte:#x} at {at} of {len}");
                text.fill(b'\t');
                text[at] = byte;
                assert_eq!(has_control(&text), expected, "byte {byte:#x} at {at} of {len} tabs");
            }
        }
    }
}

#[test]
fn token_bytes_are_those_of_the_grammar() {
    const TCHAR: &[u8] =
        b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for byte in 0..=255_u8 {
        assert_eq!(is_token(&[byte]), TCHAR.contains(&byte), "{byte:#x}");
    }
    assert!(!is_token(b""));
}

#[test]
fn names_are_compared_without_case_and_exactly() {
    for byte in (0..=255_u8).filter(|&byte| is_token(&[byte])) {
        for (at, expected) in b"te-x".iter().enumerate() {
            let mut name = *b"TE-x";
            name[at] = byte;
            let same = byte.eq_ignore_ascii_case(expected);
            assert_eq!(is_named(&name, b"te-x"), same, "{byte:#x} at {at}");
        }
    }
    assert!(!is_named(b"te-", b"te-x"));
}

#[test]
fn the_first_control_byte_is_found() {
    assert_eq!(text_len(b"0123456789\x1f\x01"), 10);
    assert_eq!(text_len(b"\t\t\t\t\x7f\x00\x00\x00"), 4);
    assert_eq!(text_len(b"\t\t\t\t\t\t\t\t\t\t\ttext and \r\n"), 20);
    assert_eq!(text_len(b"\xff\x80\x9f\xa0 \x7e\x20\x21"), 8);
}
