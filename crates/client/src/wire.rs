//! A request's fields as they go on the wire.

mod as_browser;

use std::{
    borrow::Cow,
    cell::Cell,
    sync::{Arc, LazyLock},
};

use http::{HeaderValue, Method};
use mimus_net::proxy::Proxy;
use mimus_proto::{BodyLength, Fields, InvalidField, h2};

use crate::{
    Error, Result,
    body::accept_encoding,
    client::Inner,
    policy::redirect::Strip,
    request::{Request, invalid, set},
    target::Target,
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

impl Additions<'_> {
    fn is_none(&self) -> bool {
        let Additions { authorization, left_origin, forwarding, expect_continue } = self;
        authorization.is_none() && !left_origin && forwarding.is_none() && !expect_continue
    }
}

/// How many fields may come from neither user nor client, and room for one of ordinary size, in bytes.
const ADDED: usize = 4;
const FIELD_SIZE: usize = 48;

/// The fields of a request to `target`, which is the request's. A request that says nothing of its own
/// has those of the last such request.
///
/// Only a profile has other fields for HTTP/2 than for HTTP/1.1.
pub(crate) fn fields<'t>(
    client: &Inner,
    target: &'t Target,
    request: &Request,
    length: BodyLength,
    additions: Additions<'_>,
    http2: bool,
) -> Result<Cow<'t, Fields>> {
    let cookies = client.cookies.as_ref().and_then(|store| store.cookies(&request.target.url));
    let cookies = cookies.as_deref();
    // A request that another client built has other settings than this one's.
    let plain = request.fields.is_empty()
        && length == BodyLength::None
        && additions.is_none()
        && cookies.is_none()
        && Arc::ptr_eq(&request.settings, &client.settings);
    let profile = request.settings.profile.as_ref();
    let plain = plain && (profile.is_none() || as_browser::is_plain(client, request));
    let assembled = |additions| match profile {
        None => assemble(client, request, length, additions, cookies),
        Some(profile) => {
            as_browser::assemble(client, profile, request, length, additions, cookies, http2)
        }
    };
    if !plain {
        return assembled(additions).map(Cow::Owned);
    }
    let known = &target.plain_fields[usize::from(http2)];
    if let Some(known) = known.get() {
        return Ok(Cow::Borrowed(known));
    }
    let fields = assembled(additions)?;
    Ok(Cow::Borrowed(known.get_or_init(|| fields)))
}

/// `Host` first (RFC 9110 section 7.2 recommends it), the client's defaults, then the user's fields as
/// they were given.
fn assemble(
    client: &Inner,
    request: &Request,
    length: BodyLength,
    additions: Additions<'_>,
    cookies: Option<&[u8]>,
) -> Result<Fields> {
    let (user, defaults) = (&request.fields, &client.default_fields);
    let host = &request.target.host_field;
    let parts = [user, defaults, host];
    let mut fields = spare();
    fields.reserve(
        parts.iter().map(|part| part.len()).sum::<usize>() + ADDED,
        parts.iter().map(|part| part.text_len()).sum::<usize>() + ADDED * FIELD_SIZE,
    );
    let goes = |name: &[u8]| default_goes(name, &additions);
    let (users_host, default_host) = (user.contains("host"), defaults.contains("host"));
    match (users_host, default_host) {
        (true, _) => fields.extend_where(user, |name, _| is_host(name)),
        (false, true) => fields.extend_where(defaults, |name, _| is_host(name)),
        (false, false) => fields.extend(host),
    }
    .map_err(too_large)?;
    fields
        .extend_where(defaults, |name, _| goes(name) && !is_host(name) && !user.contains(name))
        .map_err(too_large)?;
    add_own(&mut fields, client, request, &additions)?;
    match users_host {
        false => fields.extend(user),
        true => fields.extend_where(user, |name, _| !is_host(name)),
    }
    .map_err(too_large)?;
    if let Some(kept) = cookies {
        let all: Vec<&[u8]> = fields.get_all("cookie").chain([kept]).collect();
        let all = all.join(&b"; "[..]);
        set(&mut fields, "Cookie", &all)?;
    }
    frame(&mut fields, length)?;
    Ok(fields)
}

thread_local! {
    /// The fields of a request that was written, whose room serves the next.
    static SPARE: Cell<Fields> = Cell::default();
}

/// An empty list, which may have room.
fn spare() -> Fields {
    // There is none while the thread ends.
    let mut fields = SPARE.try_with(Cell::take).unwrap_or_default();
    fields.clear();
    fields
}

/// The most room that is kept for the next request, in bytes.
const SPARE_MAX: usize = 4096;

/// Takes fields back that were written.
pub(crate) fn recycle(fields: Cow<'_, Fields>) {
    if let Cow::Owned(fields) = fields
        && fields.text_capacity() <= SPARE_MAX
    {
        let _ = SPARE.try_with(|spare| spare.set(fields));
    }
}

/// What Mimus itself has to say, unless user or client said it.
fn add_own(
    fields: &mut Fields,
    client: &Inner,
    request: &Request,
    additions: &Additions<'_>,
) -> Result<()> {
    let user = &request.fields;
    let given = |fields: &Fields, name: &str| user.contains(name) || fields.contains(name);
    // A range of a coded body is of no use to somebody who wants a range of the decoded one.
    let decodes =
        client.names_codings && request.settings.decode.is_some() && !user.contains("range");
    if decodes && !given(fields, "accept-encoding") {
        fields.extend(&ACCEPT_ENCODING).map_err(too_large)?;
    }
    let proxy = additions.forwarding.and_then(Proxy::basic_auth);
    let own = [
        ("Authorization", additions.authorization.as_ref().map(HeaderValue::as_bytes)),
        ("Proxy-Authorization", proxy.as_ref().map(|value| value.as_bytes())),
        ("Expect", additions.expect_continue.then_some(&b"100-continue"[..])),
    ];
    for (name, value) in own {
        if let Some(value) = value
            && !given(fields, name)
        {
            fields.append(name, value).map_err(|e| invalid(name, e))?;
        }
    }
    Ok(())
}

/// The codings that this build can decode; nothing when there are none.
static ACCEPT_ENCODING: LazyLock<Fields> = LazyLock::new(|| {
    let mut fields = Fields::new();
    let codings = accept_encoding();
    if !codings.is_empty() {
        // A list of tokens is a valid value.
        let _ = fields.append("Accept-Encoding", codings);
    }
    fields
});

/// Whether a default field of the client goes with this exchange: none that would tell another origin
/// what is meant for the first, and none that credentials take the place of.
fn default_goes(name: &[u8], additions: &Additions<'_>) -> bool {
    let strip = Strip { cross_origin: additions.left_origin, body: false };
    let replaced = additions.authorization.is_some() && name.eq_ignore_ascii_case(b"authorization");
    !replaced && !strip.removes(name)
}

fn is_host(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"host")
}

fn too_large(error: InvalidField) -> Error {
    invalid("fields", error)
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
    let framed =
        |fields: &Fields| fields.contains("content-length") || fields.contains("transfer-encoding");
    match length {
        BodyLength::None => Ok(()),
        _ if framed(fields) => Ok(()),
        BodyLength::Known(n) => set(fields, "Content-Length", n.to_string().as_bytes()),
        BodyLength::Chunked => set(fields, "Transfer-Encoding", b"chunked"),
    }
}

/// Takes out what HTTP/2 has no place for, because it speaks of the connection or frames the body
/// (RFC 9113 section 8.2.2). `fields` are those of [`fields`] for `target`.
pub(crate) fn suit_http2(fields: &mut Cow<'_, Fields>, target: &Target) {
    let suited = match fields {
        Cow::Borrowed(plain) => *target.plain_suits_http2.get_or_init(|| h2::can_carry(plain)),
        Cow::Owned(fields) => h2::can_carry(fields),
    };
    if !suited {
        fields.to_mut().retain(|name, value| h2::can_carry_field(name.as_bytes(), value));
    }
}

/// The request target: absolute-form to a proxy that forwards (RFC 9112 section 3.2.2), else
/// origin-form; authority-form for CONNECT (section 3.2.3), port included; asterisk-form for an OPTIONS
/// about the server as a whole (section 3.2.4), which a proxy is told by a URL without a path.
pub(crate) fn target(request: &Request, forwarded: bool) -> Cow<'_, str> {
    let target = &request.target;
    if request.method == Method::CONNECT && request.protocol.is_none() {
        return format!("{}:{}", target.host(), target.port).into();
    }
    match forwarded {
        _ if request.server_wide => target.asterisk_form(forwarded).into(),
        true => target.absolute_form().into(),
        false => target.origin_form().into(),
    }
}
