//! A request's fields as they go on the wire.

use std::borrow::Cow;

use http::{HeaderValue, Method};
use mimus_net::proxy::Proxy;
use mimus_proto::{BodyLength, Fields};

use crate::{
    Result,
    body::accept_encoding,
    client::Inner,
    policy::redirect::Strip,
    request::{Request, invalid, set},
};

/// What a call adds to the user's own fields for one exchange.
#[derive(Debug, Default)]
pub(crate) struct Additions<'a> {
    /// The `Authorization` of credentials the user did not write as a field.
    pub(crate) authorization: Option<HeaderValue>,
    /// A redirect led away from the origin that the client's defaults are for.
    pub(crate) left_origin: bool,
    /// The proxy that forwards the request, to which it also has to authenticate.
    pub(crate) forwarding: Option<&'a Proxy>,
    pub(crate) expect_continue: bool,
}

/// Room for a field of ordinary size, in bytes.
const FIELD_SIZE: usize = 48;

/// `Host` first (RFC 9110 section 7.2 recommends it), the client's defaults, then the user's fields as
/// they were given.
pub(crate) fn fields(
    client: &Inner,
    request: &Request,
    length: BodyLength,
    additions: Additions<'_>,
) -> Result<Fields> {
    let user = &request.fields;
    let expected = user.len() + client.default_fields.len() + 4;
    let mut fields = Fields::with_capacity(expected, expected * FIELD_SIZE);
    let defaults = || default_fields(client, &additions);
    let given = user.iter().find(|(name, _)| is_host(name));
    let host = given.or_else(|| defaults().find(|(name, _)| is_host(name)));
    let (name, value) = host.unwrap_or(("Host", request.target.authority().as_bytes()));
    fields.append(name, value).map_err(|e| invalid(name, e))?;
    let mut unless_given =
        |name: &str, value: &[u8]| match user.contains(name) || fields.contains(name) {
            true => Ok(()),
            false => fields.append(name, value).map_err(|e| invalid(name, e)),
        };
    for (name, value) in defaults() {
        unless_given(name, value)?;
    }
    // A range of a coded body is of no use to somebody who wants a range of the decoded one.
    let codings = accept_encoding();
    if request.settings.decode.is_some() && !codings.is_empty() && !user.contains("range") {
        unless_given("Accept-Encoding", codings.as_bytes())?;
    }
    if let Some(value) = &additions.authorization {
        unless_given("Authorization", value.as_bytes())?;
    }
    if let Some(value) = additions.forwarding.and_then(Proxy::basic_auth) {
        unless_given("Proxy-Authorization", value.as_bytes())?;
    }
    if additions.expect_continue {
        unless_given("Expect", b"100-continue")?;
    }
    match given {
        None => fields.extend(user).map_err(|e| invalid("fields", e))?,
        Some(_) => {
            for (name, value) in user.iter().filter(|(name, _)| !is_host(name)) {
                fields.append(name, value).map_err(|e| invalid(name, e))?;
            }
        }
    }
    if let Some(store) = &client.cookies
        && let Some(kept) = store.cookies(&request.target.url)
    {
        let all: Vec<&[u8]> = fields.get_all("cookie").chain([&kept[..]]).collect();
        let all = all.join(&b"; "[..]);
        set(&mut fields, "Cookie", &all)?;
    }
    frame(&mut fields, length)?;
    Ok(fields)
}

/// The client's default fields that go with this exchange: none that would tell another origin what is
/// meant for the first, and none that credentials take the place of.
fn default_fields<'a>(
    client: &'a Inner,
    additions: &Additions<'_>,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let strip = Strip { cross_origin: additions.left_origin, body: false };
    let replaced = additions.authorization.is_some();
    client.default_fields.iter().filter(move |(name, _)| {
        let is_replaced = replaced && name.eq_ignore_ascii_case("authorization");
        !is_replaced && !strip.removes(name.as_bytes())
    })
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// How the body's length is announced. A method that expects content says so even when there is none
/// (RFC 9110 section 8.6).
pub(crate) fn body_length(request: &Request) -> BodyLength {
    let expects_content = matches!(request.method, Method::POST | Method::PUT | Method::PATCH);
    match request.body.length() {
        // RFC 9112 section 7.1.2: trailers need the chunked coding.
        _ if request.body.has_trailers() => BodyLength::Chunked,
        Some(0) if !expects_content => BodyLength::None,
        Some(n) => BodyLength::Known(n),
        None => BodyLength::Chunked,
    }
}

/// What frames the body (RFC 9112 section 6), unless the user wrote a field that does; whether that
/// one fits is checked where the head is written.
fn frame(fields: &mut Fields, length: BodyLength) -> Result<()> {
    if fields.contains("content-length") || fields.contains("transfer-encoding") {
        return Ok(());
    }
    match length {
        BodyLength::None => Ok(()),
        BodyLength::Known(n) => set(fields, "Content-Length", n.to_string().as_bytes()),
        BodyLength::Chunked => set(fields, "Transfer-Encoding", b"chunked"),
    }
}

/// The request target: absolute-form to a proxy that forwards (RFC 9112 section 3.2.2), else
/// origin-form; authority-form for CONNECT (section 3.2.3), port included. A server-wide `OPTIONS *`
/// has no URL of http, and so never arises.
pub(crate) fn target(request: &Request, forwarded: bool) -> Cow<'_, str> {
    let target = &request.target;
    if request.method == Method::CONNECT {
        let host = &target.url[url::Position::BeforeHost..url::Position::AfterHost];
        return format!("{host}:{}", target.port()).into();
    }
    match forwarded {
        true => target.url[..url::Position::AfterQuery].into(),
        false => target.origin_form().into(),
    }
}
