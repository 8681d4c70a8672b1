//! Fingerprints that are given as texts, over a profile or by themselves.

use std::sync::Arc;

use mimus_net::tls::{ClientHello, ClientHelloError};
use mimus_proto::h2::{AkamaiError, Limits, Opening, SettingId};

use super::Profile;
use crate::options::Http2;

/// The hello of a JA3. What that does not say is `base`'s; without one, that of the profile compiled in whose
/// cipher suites and groups are nearest, among those that know of all its extensions.
pub(crate) fn hello_of(
    ja3: &str,
    base: Option<&ClientHello>,
) -> Result<ClientHello, ClientHelloError> {
    if let Some(base) = base {
        return ClientHello::from_ja3(ja3, base);
    }
    let mut candidates: Vec<(usize, ClientHello)> = builds()
        .filter_map(|name| Some(Profile::named(name).ok()?.client_hello()?.clone()))
        .map(|hello| (distance(ja3, &hello), hello))
        .collect();
    // Stable: of those that are as near, the newest.
    candidates.sort_by_key(|(distance, _)| *distance);
    let mut refused = None;
    for (_, base) in &candidates {
        match ClientHello::from_ja3(ja3, base) {
            Ok(hello) => return Ok(hello),
            // What the nearest lacks is told.
            Err(error) => refused.get_or_insert(error),
        };
    }
    match refused {
        Some(error) => Err(error),
        None => ClientHello::from_ja3(ja3, &ClientHello::default()),
    }
}

/// One name of each version of each browser, the newest versions first: platforms have the same hello.
fn builds() -> impl Iterator<Item = &'static str> {
    let build = |name: &'static str| name.rsplit_once('-').map_or(name, |(build, _)| build);
    let mut names: Vec<_> = Profile::names().collect();
    names.dedup_by_key(|name| build(name));
    names.into_iter().rev()
}

/// How many cipher suites and groups of the text the hello lacks, or has besides.
fn distance(ja3: &str, hello: &ClientHello) -> usize {
    let part = |at: usize| -> Vec<u16> {
        let text = ja3.split(',').nth(at).unwrap_or_default();
        text.split('-').filter_map(|number| number.trim().parse().ok()).collect()
    };
    let between = |a: Vec<u16>, b: Vec<u16>| {
        let lacks =
            |one: &[u16], other: &[u16]| one.iter().filter(|it| !other.contains(it)).count();
        lacks(&a, &b) + lacks(&b, &a)
    };
    let suites = hello.cipher_suites.iter().map(|suite| suite.0).collect();
    let groups = hello.groups.iter().map(|group| group.0).collect();
    between(part(1), suites) + between(part(3), groups)
}

/// Has connections open as an Akamai text says. What that does not say (priorities of requests, HPACK) stays as
/// it is.
pub(crate) fn open_as(akamai: &str, http2: &mut Http2) -> Result<(), AkamaiError> {
    let said = Opening::from_akamai(akamai)?;
    let opening = Arc::make_mut(&mut http2.opening);
    opening.settings = said.settings;
    opening.window_increment = said.window_increment;
    opening.pseudo = said.pseudo;
    // Streams that priorities are told of before they open are never opened.
    if let Some(last) = said.priorities.iter().map(|(stream, _)| *stream).max() {
        opening.first_stream = opening.first_stream.max(last.saturating_add(2));
    }
    opening.priorities = said.priorities;
    keep_to(&http2.opening, &mut http2.limits);
    Ok(())
}

/// Has limits be what the opening announces, so that its windows stay as they are.
pub(super) fn keep_to(opening: &Opening, limits: &mut Limits) {
    // RFC 9113 section 6.9.2.
    const INITIAL: u32 = 65_535;
    let setting = |id| opening.settings.iter().find(|(its, _)| *its == id).map(|(_, value)| *value);
    let stream = setting(SettingId::INITIAL_WINDOW_SIZE).unwrap_or(INITIAL);
    limits.stream_window = stream.saturating_add(opening.stream_window_increment.unwrap_or(0));
    limits.connection_window = INITIAL.saturating_add(opening.window_increment.unwrap_or(0));
    if let Some(most) = setting(SettingId::MAX_HEADER_LIST_SIZE) {
        limits.head_bytes = most;
        limits.header_block = most.saturating_mul(2);
    }
}
