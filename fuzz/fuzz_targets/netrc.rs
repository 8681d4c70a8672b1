//! Any text is a netrc file or an error that gives a line of it; what is written quoted is read back.

#![cfg_attr(feature = "libfuzzer", no_main)]

use mimus::auth::{Credentials, Netrc, NetrcError};
use mimus_fuzz::{Choices, fuzz};

const HOSTS: [&str; 3] = ["example.com", "h", ""];

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("\"{escaped}\"")
}

/// A file of arbitrary logins: the first of a host is the one that is found.
fn check_written(choices: &mut Choices<'_>) {
    let mut logins: Vec<[String; 3]> = Vec::new();
    while !choices.is_empty() && logins.len() < 4 {
        logins.push([choices.text(), choices.text(), choices.text()]);
    }
    let mut text = String::new();
    for [host, user, password] in &logins {
        let [host, user, password] = [host, user, password].map(|word| quoted(word));
        text += &format!("machine {host} login {user}\n\tpassword {password} # {host}\n");
    }
    let netrc: Netrc = text.parse().unwrap_or_else(|e| panic!("{e}: {text:?}"));
    for [host, ..] in &logins {
        let own = |login: &&[String; 3]| login[0].eq_ignore_ascii_case(host);
        let expected = logins.iter().find(own).map(|[_, user, password]| Credentials::Basic {
            user: user.clone(),
            password: password.as_str().into(),
        });
        assert_eq!(netrc.lookup(host), expected);
    }
}

fn looked_up(text: &str) -> Result<Vec<Option<Credentials>>, NetrcError> {
    let netrc: Netrc = text.parse()?;
    Ok(HOSTS.iter().map(|host| netrc.lookup(host)).collect())
}

fuzz!("netrc", |data| {
    let text = String::from_utf8_lossy(data);
    let found = looked_up(&text);
    if let Err(error) = &found {
        let lines = text.matches('\n').count() + 1;
        assert!((1..=lines).contains(&error.line()), "{error}: {text:?}");
    }
    // Windows' line ends change nothing, except in a quoted word.
    if !text.contains(['"', '\r']) {
        assert_eq!(looked_up(&text.replace('\n', "\r\n")), found);
    }
    if let Ok(found) = &found {
        assert_eq!(
            format!("{found:?}").matches("password: ***").count(),
            found.iter().flatten().count()
        );
    }
    check_written(&mut Choices::new(data));
});
