use super::*;
use proptest::prelude::*;

fn shown(value: &[u8]) -> Vec<String> {
    challenges(value)
        .iter()
        .map(|challenge| {
            let mut text = challenge.scheme.to_owned();
            if let Some(token) = challenge.token68 {
                text += &format!(" <{token}>");
            }
            for (name, value) in &challenge.params {
                text += &format!(" {name}=[{}]", String::from_utf8_lossy(value));
            }
            text
        })
        .collect()
}

#[test]
fn challenge_lists() {
    let table: [(&[u8], &[&str]); 20] = [
        (b"", &[]),
        (b"  , ,, ", &[]),
        (b"Basic", &["Basic"]),
        (b"Basic realm=\"x y\"", &["Basic realm=[x y]"]),
        (b"Basic realm = \"x\"", &["Basic realm=[x]"]),
        (b"Basic realm=x", &["Basic realm=[x]"]),
        (b"Basic realm=", &["Basic <realm=>"]),
        (b"Basic realm=\"\"", &["Basic realm=[]"]),
        (b"Basic realm=\"a\\\"b\\\\c\"", &["Basic realm=[a\"b\\c]"]),
        (b"Basic realm=\"a, b=c\", charset=\"UTF-8\"", &["Basic realm=[a, b=c] charset=[UTF-8]"]),
        // The example of RFC 9110, section 11.6.1.
        (
            b"Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\"",
            &["Basic realm=[simple]", "Newauth realm=[apps] type=[1] title=[Login to \"apps\"]"],
        ),
        (b"Negotiate, NTLM", &["Negotiate", "NTLM"]),
        (b"Negotiate YIIB+/a== , Basic realm=\"x\"", &["Negotiate <YIIB+/a==>", "Basic realm=[x]"]),
        (b"Digest nonce=a/b+c==, realm=\"r\"", &["Digest nonce=[a/b+c==] realm=[r]"]),
        (b",Basic realm=\"x\",,Digest nonce=\"n\"", &["Basic realm=[x]", "Digest nonce=[n]"]),
        (b"Basic realm=\"caf\xe9\"", &["Basic realm=[caf\u{fffd}]"]),
        (b"Basic realm=\"open", &["Basic"]),
        (b"Basic realm=\"open\\", &["Basic"]),
        (b"realm=\"x\", Basic", &[]),
        (b"Basic realm=\"x\", \xff\xff, Digest nonce=1", &["Basic realm=[x]"]),
    ];
    for (value, expected) in table {
        assert_eq!(shown(value), expected, "{}", String::from_utf8_lossy(value));
    }
}

#[test]
fn names_are_found_in_any_case() {
    let list = challenges(b"bAsIc REALM=x, realm=y");
    assert!(list[0].is("Basic"));
    assert_eq!(list[0].param("Realm"), Some(&b"x"[..]));
    assert_eq!(list[0].param("charset"), None);
}

#[test]
fn authentication_info() {
    let value = b"rspauth=\"1\", nextnonce = \"a\\\"b\"";
    assert_eq!(info_param(value, "nextnonce"), Some(b"a\"b".to_vec()));
    assert_eq!(info_param(b"Digest nextnonce=x", "nextnonce"), None);
    assert_eq!(info_param(b"", "nextnonce"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_to_an_end(value in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = challenges(&value);
        let _ = info_param(&value, "nextnonce");
    }

    #[test]
    fn challenge_like_bytes_are_parsed_to_an_end(value in "[Ba =,\"\\\\]{0,60}") {
        for challenge in challenges(value.as_bytes()) {
            prop_assert!(!challenge.scheme.is_empty());
        }
    }
}

#[test]
fn basic_credentials() {
    // The examples of RFC 7617, sections 2 and 2.1.
    let value = basic("Aladdin", "open sesame").unwrap();
    assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert!(value.is_sensitive());
    assert_eq!(basic("test", "123\u{a3}").unwrap(), "Basic dGVzdDoxMjPCow==");
    assert_eq!(basic("", "").unwrap(), "Basic Og==");
    assert_eq!(basic("u", "p:w").unwrap(), "Basic dTpwOnc=");
    assert_eq!(basic("a:b", "c"), Err(AuthError::ColonInUser));
    assert_eq!(basic("a\r\n", "c"), Err(AuthError::ControlCharacter));
    assert_eq!(basic("a", "c\0"), Err(AuthError::ControlCharacter));
}

#[test]
fn bearer_credentials() {
    let value = bearer("mF_9.B5f-4.1JqM").unwrap();
    assert_eq!(value, "Bearer mF_9.B5f-4.1JqM");
    assert!(value.is_sensitive());
    for bad in ["", "a b", "a\n", "\u{e9}"] {
        assert_eq!(bearer(bad), Err(AuthError::Token));
    }
}

#[test]
fn secrets_do_not_show() {
    let (user, password) = ("ann".to_owned(), Secret::from("hunter2"));
    let all = [
        Credentials::Basic { user: user.clone(), password: password.clone() },
        Credentials::Bearer(password.clone()),
        Credentials::Digest { user, password },
    ];
    for credentials in all {
        assert!(!format!("{credentials:?}").contains("hunter2"));
        let value = credentials.preemptive().unwrap();
        assert_eq!(value.is_none(), matches!(credentials, Credentials::Digest { .. }));
        assert!(value.is_none_or(|value| format!("{value:?}") == "Sensitive"));
    }
}
