//! Routes that answer with a status, or point elsewhere.

use std::io;

use super::{ANY, Route, route};
use crate::conn::After;
use crate::exchange::Exchange;
use crate::response::{Response, reason};

pub(super) const ROUTES: &[Route] = &[
    route("/status/{code}", ANY, "answers with that status, 200 to 599", |ex| Box::pin(status(ex))),
    route("/redirect/{n}", ANY, "n relative redirects, then /get; ?status_code=", |ex| {
        Box::pin(countdown(ex, Form::Relative))
    }),
    route("/absolute-redirect/{n}", ANY, "n absolute redirects, then /get; ?status_code=", |ex| {
        Box::pin(countdown(ex, Form::Absolute))
    }),
    route("/redirect-to", ANY, "redirects to ?url=, with ?status_code= (302)", |ex| {
        Box::pin(redirect_to(ex))
    }),
    route("/redirect-loop", ANY, "redirects to itself", |ex| {
        Box::pin(redirect(ex, "/redirect-loop".to_owned()))
    }),
];

#[derive(Clone, Copy)]
enum Form {
    Relative,
    Absolute,
}

async fn status(ex: &mut Exchange) -> io::Result<After> {
    let Some(code @ 200..=599) = ex.param_as::<u16>("code") else {
        return ex.reply(Response::text(400, "a status from 200 to 599\n")).await;
    };
    let location = matches!(code, 301..=303 | 307 | 308).then_some("/get");
    let mut response = Response::text(code, format!("{code} {}\n", reason(code)));
    if let Some(location) = location {
        response = response.header("location", location);
    }
    if matches!(code, 401) {
        response = response.header("www-authenticate", "Basic realm=\"origin\"");
    }
    ex.reply(response).await
}

async fn countdown(ex: &mut Exchange, form: Form) -> io::Result<After> {
    let Some(n) = ex.param_as::<u32>("n") else {
        return ex.reply(Response::text(400, "not a number\n")).await;
    };
    let code = ex.query("status_code").map(|code| format!("?status_code={code}"));
    let code = code.unwrap_or_default();
    let (step, host) = match form {
        Form::Relative => ("redirect", String::new()),
        Form::Absolute => {
            let scheme = ex.about.scheme();
            let host = ex.request.host();
            ("absolute-redirect", format!("{scheme}://{host}"))
        }
    };
    let next = match n {
        0 | 1 => format!("{host}/get"),
        n => format!("{host}/{step}/{}{code}", n - 1),
    };
    redirect(ex, next).await
}

async fn redirect_to(ex: &mut Exchange) -> io::Result<After> {
    let Some(url) = ex.query("url").map(str::to_owned) else {
        return ex.reply(Response::text(400, "?url= is missing\n")).await;
    };
    redirect(ex, url).await
}

async fn redirect(ex: &mut Exchange, location: String) -> io::Result<After> {
    let code = ex.query_or("status_code", 302u16).clamp(300, 399);
    // The body makes a client that forgets to read it lose its connection.
    let response = Response::text(code, format!("see {location}\n")).header("location", location);
    ex.reply(response).await
}
