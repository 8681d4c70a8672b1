//! Server-sent events.

use mimus::{
    StatusCode,
    sse::{Refusal, Refused},
};
use serde_json::{Value, json};

use crate::setup::{Demo, Result, ensure};

pub async fn reconnect(demo: &Demo) -> Result {
    let url = demo.http("/sse?total=7&cut=3&ms=0&retry=5");
    let before = demo.origin.requests().len();
    let mut source = demo.client()?.event_source(url);
    let mut ids = Vec::new();
    while let Some(event) = source.next_event().await? {
        ids.push(event.id.to_string());
    }
    ensure!(ids == ["0", "1", "2", "3", "4", "5", "6"], "the events {ids:?} came");
    let asked = demo.origin.requests();
    let behind: Vec<_> =
        asked[before..].iter().filter_map(|seen| seen.header("last-event-id")).collect();
    ensure!(behind == ["2", "5", "6"], "it went on behind {behind:?}");
    Ok(format!(
        "7 events by {} connections, gone on behind {}; 204 ends it",
        source.connections(),
        behind.join(", ")
    ))
}

pub async fn splits(demo: &Demo) -> Result {
    let client = demo.client()?;
    let mut count = 0;
    for how in ["split=1", "split=3&ends=crlf", "split=7&ends=cr"] {
        let url = demo.https(&format!("/sse?count=5&ms=0&{how}"));
        let mut events = client.get(url).send().await?.into_events()?;
        for n in 0..5 {
            let event = events.next_event().await?.ok_or("an event is missing")?;
            let wanted = format!("{{\"n\": {n}}}\nsecond line");
            ensure!(event.data == wanted, "event {n} says {:?}", event.data);
            count += 1;
        }
        ensure!(events.next_event().await?.is_none(), "there is an event too many");
    }
    Ok(format!("{count} events, by 1, 3 and 7 bytes"))
}

pub async fn model(demo: &Demo) -> Result {
    let client = demo.client()?;
    let prompt = "the mockingbird sings in forty tongues";
    let asked = json!({ "stream": true, "messages": [{ "role": "user", "content": prompt }] });
    let before = demo.connections();
    for _ in 0..3 {
        let url = demo.http("/v1/chat/completions");
        let mut events = client.post(url).json(&asked).send().await?.into_events()?;
        let mut text = String::new();
        loop {
            let event = events.next_event().await?.ok_or("the stream ended without [DONE]")?;
            if event.data == "[DONE]" {
                break;
            }
            let chunk: Value = event.json()?;
            text.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
        ensure!(text == prompt, "the model said {text:?}");
    }
    // Each stream was left at [DONE], before its end was read. The end may still be on its way.
    while client.pool_stats().in_use > 0 {
        tokio::task::yield_now().await;
    }
    let connections = demo.connections() - before;
    ensure!(connections == 1, "it took {connections} connections");
    Ok("3 streams left at [DONE], 1 connection".to_owned())
}

pub async fn refused(demo: &Demo) -> Result {
    let client = demo.client()?;
    let url = demo.http("/sse?status=503");
    let refused = match client.get(&url).send().await?.into_events() {
        Ok(_) => return Err("it was taken for a stream".into()),
        Err(refused) => refused,
    };
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    ensure!(refused.why() == Refused::Status(unavailable), "{}", refused.why());
    let says: Value = refused.into_response().json().await?;
    let Err(error) = client.event_source(&url).next_event().await else {
        return Err("a source took it for a stream".into());
    };
    let refusal = Refusal::of(&error).ok_or("the error has no body")?;
    let message = says["error"]["message"].as_str().unwrap_or_default();
    ensure!(refusal.text().contains(message) && !message.is_empty(), "it says {refusal}");
    Ok(format!("{unavailable}: {message:?}"))
}
