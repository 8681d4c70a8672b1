//! The table of routes, and how a request finds its row.

pub(crate) mod auth;
mod content;
mod cookies;
mod echo;
mod encoding;
mod events;
mod redirect;
mod stream;
mod wire;

use std::future::Future;
use std::io;
use std::pin::Pin;

pub use self::content::generated;
use crate::bad;
use crate::conn::After;
use crate::exchange::Exchange;
use crate::grpc;
use crate::request::decode;
use crate::response::Response;
use crate::ws;

/// What answers a route.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = io::Result<After>> + Send + 'a>>;
pub(crate) type Handler = for<'a> fn(&'a mut Exchange) -> Answer<'a>;

/// One row of the table of routes.
#[derive(Clone, Copy)]
pub struct Route {
    /// The path: `{name}` stands for one segment, a last `*` for any rest.
    pub pattern: &'static str,
    /// The methods it takes; none listed means any. `HEAD` goes wherever `GET` does.
    pub methods: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
    pub(crate) run: Handler,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Route").field(&self.pattern).finish()
    }
}

pub(crate) const GET: &[&str] = &["GET"];
pub(crate) const ANY: &[&str] = &[];

pub(crate) const fn route(
    pattern: &'static str,
    methods: &'static [&'static str],
    what: &'static str,
    run: Handler,
) -> Route {
    Route { pattern, methods, what, run }
}

const TABLES: &[&[Route]] = &[
    echo::ROUTES,
    redirect::ROUTES,
    cookies::ROUTES,
    auth::ROUTES,
    encoding::ROUTES,
    content::ROUTES,
    stream::ROUTES,
    events::ROUTES,
    wire::ROUTES,
];

/// Every method of gRPC, well-behaved or not; all are POST over HTTP/2 only.
pub fn grpc_routes() -> impl Iterator<Item = &'static Route> {
    grpc::TABLES.iter().copied().flatten()
}

/// Every WebSocket, by GET and Upgrade over HTTP/1.1 and by extended CONNECT over HTTP/2; the last row
/// leads to those that misbehave, which [`bad_ws`](crate::bad_ws()) lists.
pub fn ws_routes() -> impl Iterator<Item = &'static Route> {
    ws::ROUTES.iter()
}

/// Every well-behaved route, in the order of `--list`.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLES.iter().copied().flatten()
}

/// Every route that misbehaves; all lie under `/bad/`.
pub fn bad_routes() -> impl Iterator<Item = &'static Route> {
    bad::TABLES.iter().copied().flatten()
}

/// What the `{..}` of a pattern stand for in a path; `None` when it does not match.
fn matches(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    // Most rows are out by their fixed part already.
    let fixed = pattern.find(['{', '*']).map_or(pattern, |at| &pattern[..at]);
    if !path.starts_with(fixed) {
        return None;
    }
    let mut params = Vec::new();
    let mut have = path.split('/');
    for want in pattern.split('/') {
        if want == "*" {
            return have.next().map(|_| params);
        }
        let segment = have.next()?;
        match want.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !segment.is_empty() => params.push((name, decode(segment))),
            _ if want == segment => {}
            _ => return None,
        }
    }
    have.next().is_none().then_some(params)
}

/// Answers one request by its row, or with 404 or 405.
pub(crate) async fn answer(ex: &mut Exchange) -> io::Result<After> {
    let mut allowed = Vec::new();
    for route in routes().chain(bad_routes()).chain(grpc_routes()).chain(ws_routes()) {
        let Some(params) = matches(route.pattern, &ex.request.path) else {
            continue;
        };
        let method = if ex.is_head() { "GET" } else { &ex.request.method };
        if route.methods.is_empty() || route.methods.contains(&method) {
            ex.params = params;
            return (route.run)(ex).await;
        }
        allowed.extend_from_slice(route.methods);
    }
    if allowed.is_empty() {
        return ex
            .reply(Response::text(404, "no such route; mimus-origin --list has them\n"))
            .await;
    }
    let response = Response::text(405, "not with this method\n");
    ex.reply(response.header("allow", allowed.join(", "))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_segment_by_segment() {
        assert_eq!(matches("/get", "/get"), Some(vec![]));
        assert_eq!(matches("/get", "/get/"), None);
        assert_eq!(matches("/bytes/{n}", "/bytes/12"), Some(vec![("n", "12".to_owned())]));
        assert_eq!(matches("/bytes/{n}", "/bytes/"), None);
        assert_eq!(matches("/etag/{e}", "/etag/a%20b"), Some(vec![("e", "a b".to_owned())]));
        assert_eq!(matches("/anything/*", "/anything/a/b"), Some(vec![]));
        assert_eq!(matches("/anything/*", "/anything"), None);
    }

    #[test]
    fn no_two_rows_are_the_same() {
        let all: Vec<_> =
            routes().chain(bad_routes()).map(|row| (row.pattern, row.methods)).collect();
        for (at, row) in all.iter().enumerate() {
            assert!(!all[..at].contains(row), "{row:?}");
        }
        assert!(bad_routes().all(|route| route.pattern.starts_with("/bad/")));
    }
}
