//! Whatever is given as URL, field or query: it is refused, or makes one request head of exactly its
//! own lines, and a password in it is not shown.

#![cfg_attr(feature = "libfuzzer", no_main)]

use http::Method;
use mimus::blocking::Client;
use mimus::{Fields, Request, Url};
use mimus_fuzz::rig::written;
use mimus_fuzz::{Choices, fuzz};
use mimus_proto::{BodyLength, h1};
use url::Position;

const PASSWORD: &str = "hunter2hunter2";

const SCHEMES: [&str; 4] = ["http", "https", "HTTP", "ftp"];

/// The head of `request` as it goes to an origin.
fn head(request: &Request) -> Vec<u8> {
    let url = request.url();
    let mut fields = Fields::new();
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    fields.append("Host", authority).expect("an authority is a field value");
    fields.extend(request.fields()).expect("the fields were checked");
    let mut client = h1::Client::new(h1::Limits::default());
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let sent = client.send_head(&Method::GET, target, &fields, BodyLength::None);
    sent.unwrap_or_else(|e| panic!("{target:?}: {e}"));
    written(&mut client, 4)
}

fn check(request: &Request) {
    let url = request.url();
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.host_str().is_some_and(|host| !host.is_empty()));
    assert!(url.username().is_empty() && url.password().is_none());
    let shown = &url[..Position::AfterQuery];
    assert!(shown.bytes().all(|byte| byte.is_ascii_graphic()), "{shown:?}");

    let head = head(request);
    let lines: Vec<&[u8]> = head.split(|&byte| byte == b'\n').collect();
    // The request line, Host, the fields, the empty line, and nothing.
    assert_eq!(lines.len(), 4 + request.fields().len(), "{}", head.escape_ascii());
    assert_eq!(lines[0].iter().filter(|byte| **byte == b' ').count(), 2);
    assert_eq!(head.iter().filter(|byte| **byte == b'\r').count(), lines.len() - 1);
    assert!(!head.contains(&0));
}

/// A password where it belongs never shows, whether or not the URL around it is one.
fn check_secret(client: &Client, scheme: &str, rest: &str) {
    let url = format!("{scheme}://user:{PASSWORD}@{rest}");
    let built = client.get(&url).build();
    assert!(!format!("{built:?}").contains(PASSWORD), "{url:?}: {built:?}");
    match built {
        Ok(request) => check(&request),
        Err(error) => assert!(!format!("{error} {error:#}").contains(PASSWORD), "{url:?}"),
    }
}

fuzz!("target", |data| {
    let mut choices = Choices::new(data);
    let choice = usize::from(choices.byte());
    let (name, value) = (choices.text(), choices.bytes());
    let pair = [(choices.text(), choices.text())];
    let rest = String::from_utf8_lossy(choices.rest());

    let client = Client::builder().no_proxy();
    let client = match choice & 4 {
        0 => client.base_url("http://base.example/dir/?query"),
        _ => client,
    };
    let client = client.build().expect("a client of constants");
    if let Ok(request) = client.get(&*rest).build() {
        check(&request);
        let again = client.get(request.url()).build().expect("what was built once");
        assert_eq!(again.url(), request.url());
        assert_eq!(Url::parse(request.url().as_str()).as_ref(), Ok(request.url()));
    }
    let with_more = client.get(&*rest).query(&pair).header(name, value);
    if let Ok(request) = with_more.build() {
        assert_eq!(request.fields().len(), 1);
        check(&request);
    }
    check_secret(&client, SCHEMES[choice & 3], &rest);
});
