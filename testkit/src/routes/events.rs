//! Event streams, as the HTML standard's section 9.2 has them, and the answers of language models as their
//! APIs stream them.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::{GET, Route, route};
use crate::conn::After;
use crate::exchange::{Begun, Exchange};
use crate::response::Response;

const POST: &[&str] = &["POST"];

pub(super) const ROUTES: &[Route] = &[
    route(
        "/sse",
        GET,
        "?count= events (5), ?ms= apart (10), from Last-Event-ID on; of ?total= in all, then 204; the \
         connection breaks inside the event behind ?cut= of them; ?split= bytes at a time; ?ends=crlf, cr; \
         ?done=1 says [DONE], with the end; ?retry= (50); ?status= and ?type= of the answer",
        |ex| Box::pin(events(ex)),
    ),
    route("/sse/comments", GET, "?count= comments (5), ?ms= apart (10), then one event", |ex| {
        Box::pin(comments(ex))
    }),
    route("/sse/every/{ms}", GET, "an event as often, until the client leaves", |ex| {
        Box::pin(endless(ex))
    }),
    route("/v1/chat/completions", POST, "says the prompt back, as OpenAI's API streams it", |ex| {
        Box::pin(openai(ex))
    }),
    route("/v1/messages", POST, "says the prompt back, as Anthropic's API streams it", |ex| {
        Box::pin(anthropic(ex))
    }),
];

/// A stream under way, and how it is written.
struct Writer {
    out: Begun,
    /// Bytes of one write; all of them when 0.
    split: usize,
    ends: &'static str,
}

impl Writer {
    /// Begins a stream, as the query wants it.
    async fn begin(ex: &mut Exchange) -> io::Result<Self> {
        let response = Response::of("text/event-stream", "").header("cache-control", "no-store");
        let ends = match ex.query("ends") {
            Some("crlf") => "\r\n",
            Some("cr") => "\r",
            _ => "\n",
        };
        let split = ex.query_or("split", 0);
        Ok(Writer { out: ex.begin(response).await?, split, ends })
    }

    /// Writes text whose lines end with LF here.
    async fn text(&mut self, ex: &mut Exchange, text: &str) -> io::Result<()> {
        let text = text.replace('\n', self.ends);
        let size = if self.split == 0 { text.len().max(1) } else { self.split };
        for piece in text.as_bytes().chunks(size) {
            self.out.chunk(ex, piece).await?;
        }
        Ok(())
    }

    async fn event(&mut self, ex: &mut Exchange, kind: &str, data: &Value) -> io::Result<()> {
        let kind = if kind.is_empty() { String::new() } else { format!("event: {kind}\n") };
        self.text(ex, &format!("{kind}data: {data}\n\n")).await
    }
}

/// The answer that is no stream, when the query wants one.
fn refusal(ex: &Exchange) -> Option<Response> {
    let status = ex.query_or("status", 200_u16);
    let kind = ex.query("type");
    if status == 200 && kind.is_none() {
        return None;
    }
    let says = json!({ "error": { "message": "no stream here", "status": status } });
    let kind = kind.unwrap_or("application/json").to_owned();
    Some(Response::of(&kind, says.to_string()).status(status))
}

async fn events(ex: &mut Exchange) -> io::Result<After> {
    if let Some(response) = refusal(ex) {
        return ex.reply(response).await;
    }
    let gap = ex.query_ms("ms", 10);
    let last = ex.request.header("last-event-id").and_then(|id| id.parse::<u64>().ok());
    let first = last.map_or(0, |id| id.saturating_add(1));
    let total = ex.query("total").and_then(|text| text.parse::<u64>().ok());
    if total.is_some_and(|total| first >= total) {
        return ex.reply(Response::of("text/event-stream", "").status(204)).await;
    }
    let end = match total {
        Some(total) => total,
        None => first.saturating_add(ex.query_or("count", 5)),
    };
    let cut = ex.query("cut").and_then(|text| text.parse::<u64>().ok());
    let cut = cut.map_or(end, |cut| first.saturating_add(cut));
    let retry = ex.query_or("retry", 50_u64);
    let mut out = Writer::begin(ex).await?;
    out.text(ex, &format!("retry: {retry}\n: a comment\n\n")).await?;
    for id in first..end {
        let event = format!("event: tick\nid: {id}\ndata: {{\"n\": {id}}}\ndata: second line\n\n");
        if id == cut {
            // Let what was whole arrive, in case an end of the connection overtakes it.
            out.text(ex, &event[..event.len() / 2]).await?;
            ex.pause(Duration::from_millis(5)).await?;
            return Ok(After::Drop);
        }
        out.text(ex, &event).await?;
        ex.pause(gap).await?;
    }
    match ex.query("done") {
        Some(_) => out.out.finish_with(ex, b"data: [DONE]\n\n").await,
        None => out.out.finish(ex, &[]).await,
    }
}

async fn comments(ex: &mut Exchange) -> io::Result<After> {
    let gap = ex.query_ms("ms", 10);
    let mut out = Writer::begin(ex).await?;
    for _ in 0..ex.query_or("count", 5_u32) {
        out.text(ex, ":\n").await?;
        ex.pause(gap).await?;
    }
    out.event(ex, "", &json!("after the comments")).await?;
    out.out.finish(ex, &[]).await
}

async fn endless(ex: &mut Exchange) -> io::Result<After> {
    let gap = Duration::from_millis(ex.param_as("ms").unwrap_or(10).max(1));
    let mut out = Writer::begin(ex).await?;
    for n in 0_u64.. {
        out.event(ex, "", &json!({ "n": n })).await?;
        ex.pause(gap).await?;
    }
    out.out.finish(ex, &[]).await
}

/// What is asked, of the last message that says something.
async fn prompt(ex: &mut Exchange) -> io::Result<Result<String, Response>> {
    let asked: Value = serde_json::from_slice(&ex.body_bytes().await?).unwrap_or_default();
    if asked["stream"] != true {
        return Ok(Err(refused(400, "only streams are spoken here")));
    }
    let messages = asked["messages"].as_array().map_or(&[][..], Vec::as_slice);
    match messages.iter().rev().find_map(|message| message["content"].as_str()) {
        Some(prompt) => Ok(Ok(prompt.to_owned())),
        None => Ok(Err(refused(400, "no message has content"))),
    }
}

fn refused(status: u16, message: &str) -> Response {
    let says = json!({ "error": { "type": "invalid_request_error", "message": message } });
    Response::json(&says).status(status)
}

/// A text in the pieces in which a model would say it.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

async fn openai(ex: &mut Exchange) -> io::Result<After> {
    let prompt = match prompt(ex).await? {
        Ok(prompt) => prompt,
        Err(response) => return ex.reply(response).await,
    };
    let chunk = |delta: Value, end: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice] })
    };
    let mut out = Writer::begin(ex).await?;
    out.event(ex, "", &chunk(json!({ "role": "assistant" }), Value::Null)).await?;
    for token in tokens(&prompt) {
        out.event(ex, "", &chunk(json!({ "content": token }), Value::Null)).await?;
    }
    out.event(ex, "", &chunk(json!({}), json!("stop"))).await?;
    out.out.finish_with(ex, b"data: [DONE]\n\n").await
}

async fn anthropic(ex: &mut Exchange) -> io::Result<After> {
    let prompt = match prompt(ex).await? {
        Ok(prompt) => prompt,
        Err(response) => return ex.reply(response).await,
    };
    let mut out = Writer::begin(ex).await?;
    let event = |mut event: Value, kind: &str| {
        event["type"] = json!(kind);
        event
    };
    let start = json!({ "message": { "id": "msg_1", "role": "assistant", "content": [] } });
    out.event(ex, "message_start", &event(start, "message_start")).await?;
    let block = json!({ "index": 0, "content_block": { "type": "text", "text": "" } });
    out.event(ex, "content_block_start", &event(block, "content_block_start")).await?;
    out.event(ex, "ping", &event(json!({}), "ping")).await?;
    for token in tokens(&prompt) {
        let delta = json!({ "index": 0, "delta": { "type": "text_delta", "text": token } });
        out.event(ex, "content_block_delta", &event(delta, "content_block_delta")).await?;
    }
    out.event(ex, "content_block_stop", &event(json!({ "index": 0 }), "content_block_stop"))
        .await?;
    let end = json!({ "delta": { "stop_reason": "end_turn" } });
    out.event(ex, "message_delta", &event(end, "message_delta")).await?;
    out.event(ex, "message_stop", &event(json!({}), "message_stop")).await?;
    out.out.finish(ex, &[]).await
}
