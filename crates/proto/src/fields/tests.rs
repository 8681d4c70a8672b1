use super::*;

#[test]
fn control_bytes_are_found_at_every_place() {
    for len in 0..40 {
        for byte in 0..=255_u8 {
            let expected = is_control(byte);
            for at in 0..len {
                let mut text = vec![b'\xe4'; len];
                text[at] = byte;
                assert_eq!(
                    has_control(&text),
                    expected,
                    "byte {byte:#x} at {at} of {len}"
                );
                text.fill(b'\t');
                text[at] = byte;
                assert_eq!(
                    has_control(&text),
                    expected,
                    "byte {byte:#x} at {at} of {len} tabs"
                );
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
