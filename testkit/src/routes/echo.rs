//! Routes that say back what was sent.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{ANY, GET, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::Response;

pub(super) const ROUTES: &[Route] = &[
    route("/get", GET, "says back the request", |ex| Box::pin(echo(ex))),
    route("/post", &["POST"], "says back the request and its body", |ex| Box::pin(echo(ex))),
    route("/put", &["PUT"], "says back the request and its body", |ex| Box::pin(echo(ex))),
    route("/patch", &["PATCH"], "says back the request and its body", |ex| Box::pin(echo(ex))),
    route("/delete", &["DELETE"], "says back the request and its body", |ex| Box::pin(echo(ex))),
    route("/head", GET, "GET's head without a body, when asked with HEAD", |ex| Box::pin(echo(ex))),
    route("/anything", ANY, "says back the request, whatever its method", |ex| Box::pin(echo(ex))),
    route("/anything/*", ANY, "the same, on any path", |ex| Box::pin(echo(ex))),
    route("/headers", GET, "says back the field lines", |ex| Box::pin(headers(ex))),
    route("/ip", GET, "says back the client's address", |ex| Box::pin(ip(ex))),
    route("/user-agent", GET, "says back User-Agent", |ex| Box::pin(user_agent(ex))),
    route("/forms", GET, "an HTML form", |ex| Box::pin(form(ex))),
    route("/forms", &["POST"], "says back what the form sent", |ex| Box::pin(echo(ex))),
];

fn header_pairs(ex: &Exchange) -> Value {
    ex.request.headers.iter().map(|(name, value)| json!([name, value])).collect()
}

/// Pairs as an object; a name that comes again makes its value a list.
fn object(pairs: impl Iterator<Item = (String, String)>) -> Value {
    let mut map = Map::new();
    for (name, value) in pairs {
        match map.get_mut(&name) {
            None => {
                map.insert(name, Value::String(value));
            }
            Some(Value::Array(list)) => list.push(Value::String(value)),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    Value::Object(map)
}

/// The whole request as JSON.
async fn echo(ex: &mut Exchange) -> io::Result<After> {
    let body = ex.body_bytes().await?;
    let kind = ex.request.header("content-type").unwrap_or_default().to_owned();
    let (form, files) = forms(&kind, &body).await?;
    let scheme = ex.about.scheme();
    let host = ex.request.host();
    let url = match ex.request.target.contains("://") {
        true => ex.request.target.clone(),
        false => format!("{scheme}://{host}{}", ex.request.target),
    };
    let value = json!({
        "method": ex.request.method,
        "url": url,
        "target": ex.request.target,
        "version": ex.request.version.name(),
        "args": object(ex.request.query.iter().cloned()),
        "headers": header_pairs(ex),
        "data": text_or_data_url(&body),
        "form": form,
        "files": files,
        "json": serde_json::from_slice::<Value>(&body).unwrap_or(Value::Null),
        "trailers": ex.trailers(),
        "body_length": body.len(),
        "connection": ex.about.id,
        "request_number": ex.seq,
        "origin": ex.about.peer.map(|peer| peer.ip().to_string()),
        "sni": ex.about.tls.as_ref().and_then(|tls| tls.sni.clone()),
        "tls_resumed": ex.about.tls.as_ref().map(|tls| tls.resumed),
    });
    ex.reply(Response::json(&value)).await
}

fn text_or_data_url(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("data:application/octet-stream;base64,{}", STANDARD.encode(body)),
    }
}

/// The fields and the files of a form body of either media type.
async fn forms(kind: &str, body: &[u8]) -> io::Result<(Value, Value)> {
    if kind.starts_with("application/x-www-form-urlencoded") {
        let pairs = url::form_urlencoded::parse(body).into_owned();
        return Ok((object(pairs), json!([])));
    }
    if !kind.starts_with("multipart/form-data") {
        return Ok((json!({}), json!([])));
    }
    let bad = |error: multer::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let boundary = multer::parse_boundary(kind).map_err(bad)?;
    let whole = bytes::Bytes::copy_from_slice(body);
    let once = futures_util::stream::iter([Ok::<_, io::Error>(whole)]);
    let mut parts = multer::Multipart::new(once, boundary);
    let (mut fields, mut files) = (Vec::new(), Vec::new());
    while let Some(part) = parts.next_field().await.map_err(bad)? {
        let name = part.name().unwrap_or_default().to_owned();
        let filename = part.file_name().map(str::to_owned);
        let content_type = part.content_type().map(ToString::to_string);
        let data = text_or_data_url(&part.bytes().await.map_err(bad)?);
        match filename {
            None => fields.push((name, data)),
            Some(filename) => files.push(json!({
                "name": name,
                "filename": filename,
                "content_type": content_type,
                "data": data,
            })),
        }
    }
    Ok((object(fields.into_iter()), Value::Array(files)))
}

async fn headers(ex: &mut Exchange) -> io::Result<After> {
    let value = json!({ "headers": header_pairs(ex) });
    ex.reply(Response::json(&value)).await
}

async fn ip(ex: &mut Exchange) -> io::Result<After> {
    let value = json!({ "origin": ex.about.peer.map(|peer| peer.ip().to_string()) });
    ex.reply(Response::json(&value)).await
}

async fn user_agent(ex: &mut Exchange) -> io::Result<After> {
    let value = json!({ "user-agent": ex.request.header("user-agent") });
    ex.reply(Response::json(&value)).await
}

async fn form(ex: &mut Exchange) -> io::Result<After> {
    const PAGE: &str = "<!doctype html><title>A form</title>\
        <form method=post action=/forms enctype=multipart/form-data>\
        <input name=name><input name=file type=file><button>Send</button></form>\n";
    ex.reply(Response::of("text/html; charset=utf-8", PAGE)).await
}
