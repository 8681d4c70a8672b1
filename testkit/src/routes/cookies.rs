//! Cookies, set and shown (RFC 6265).

use std::io;

use serde_json::{Map, Value, json};

use super::{GET, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route("/cookies", GET, "says back the cookies", |ex| Box::pin(show(ex))),
    route(
        "/cookies/set",
        GET,
        "sets ?k=v…, then redirects to /cookies; ?_attrs= is appended",
        |ex| Box::pin(set(ex)),
    ),
    route("/cookies/delete", GET, "expires ?k…, then redirects to /cookies", |ex| {
        Box::pin(delete(ex))
    }),
];

async fn show(ex: &mut Exchange) -> io::Result<After> {
    let mut cookies = Map::new();
    for pair in ex.request.headers_of("cookie").flat_map(|line| line.split(';')) {
        let (name, value) = pair.trim().split_once('=').unwrap_or((pair.trim(), ""));
        cookies.insert(name.to_owned(), Value::String(value.to_owned()));
    }
    ex.reply(Response::json(&json!({ "cookies": cookies }))).await
}

async fn set(ex: &mut Exchange) -> io::Result<After> {
    let attributes = ex.query("_attrs").unwrap_or("Path=/").to_owned();
    let mut response = Response::new(302).header("location", "/cookies");
    for (name, value) in ex.request.query.iter().filter(|(name, _)| name != "_attrs") {
        response = response.header("set-cookie", format!("{name}={value}; {attributes}"));
    }
    ex.reply(response).await
}

async fn delete(ex: &mut Exchange) -> io::Result<After> {
    let mut response = Response::new(302).header("location", "/cookies");
    for (name, _) in &ex.request.query {
        response = response.header("set-cookie", format!("{name}=; Path=/; Max-Age=0"));
    }
    ex.reply(response).await
}
