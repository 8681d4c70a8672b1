//! The fields of a request as a browser has them.

use http::Method;
use mimus_net::proxy::Proxy;
use mimus_proto::{BodyLength, Fields};

use super::{Additions, default_goes, spare, too_large};
use crate::{
    Error, Result,
    client::Inner,
    profile::{Asked, Profile, Said, Way, kind_of},
    request::{Request, invalid},
    target::Target,
};

/// Whether nothing but its target sets a request apart that says nothing of its own.
pub(super) fn is_plain(client: &Inner, request: &Request) -> bool {
    let hints = client.hints.of(request.target.authority());
    request.ask.is_none() && request.method == Method::GET && hints == Default::default()
}

/// The fields in the order of the request's kind, the user's among them where that browser has theirs.
pub(super) fn assemble(
    client: &Inner,
    profile: &Profile,
    request: &Request,
    length: BodyLength,
    additions: Additions<'_>,
    cookies: Option<&[u8]>,
    http2: bool,
) -> Result<Fields> {
    let target = &request.target;
    let way = Way { secure: is_trustworthy(target), http2 };
    let unfit = |e| Error::request("the profile has no such request").caused_by(e);
    let template = profile.template(kind_of(request), way).map_err(unfit)?;
    let added = added(&additions)?;
    let said = Said {
        lists: [&request.fields, &client.default_fields, &added],
        default_goes: &|name| default_goes(name, &additions),
        host: &target.host_field,
        cookies,
        length,
        hints: client.hints.of(target.authority()),
    };
    let asked = Asked::new(request, |name| said.get(name));
    let mut fields = spare();
    template.fill(&mut fields, &said, &asked).map_err(too_large)?;
    Ok(fields)
}

/// What the call adds, for where the user's own fields stand.
fn added(additions: &Additions<'_>) -> Result<Fields> {
    let proxy = additions.forwarding.and_then(Proxy::basic_auth);
    let all = [
        ("Proxy-Authorization", proxy.as_ref().map(|value| value.as_bytes())),
        ("Authorization", additions.authorization.as_ref().map(http::HeaderValue::as_bytes)),
        ("Expect", additions.expect_continue.then_some(&b"100-continue"[..])),
    ];
    let mut fields = Fields::new();
    for (name, value) in all {
        if let Some(value) = value {
            fields.append(name, value).map_err(|e| invalid(name, e))?;
        }
    }
    Ok(fields)
}

/// Whether nobody on the way can have changed what comes from there (secure contexts, section 3.1).
fn is_trustworthy(target: &Target) -> bool {
    target.https
        || match target.url.host() {
            Some(url::Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                name == "localhost" || name.ends_with(".localhost")
            }
            Some(url::Host::Ipv4(addr)) => addr.is_loopback(),
            Some(url::Host::Ipv6(addr)) => addr.is_loopback(),
            None => false,
        }
}
