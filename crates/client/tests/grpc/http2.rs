//! Calls over HTTP/2, against the origin's echo service and its ways to go wrong.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, future::join_all, stream};
use mimus::{
    Client, ClientBuilder, TlsConfig,
    grpc::{Channel, Code, Prost, Raw},
    rt,
};
use mimus_testkit::{Origin, Port, SeenH2, grpc_bad};

use crate::rig::{client, soon};

/// As much as these tests need of the service's request.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(bytes = "vec", tag = "2")]
    payload: Vec<u8>,
    #[prost(uint32, tag = "3")]
    count: u32,
    #[prost(uint32, tag = "4")]
    delay_ms: u32,
    #[prost(message, optional, tag = "5")]
    fail: Option<Fail>,
    #[prost(uint32, tag = "6")]
    reply_bytes: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Fail {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(uint32, tag = "3")]
    after: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Told {
    #[prost(message, optional, tag = "1")]
    request: Option<Ask>,
    #[prost(uint32, tag = "2")]
    index: u32,
    #[prost(uint32, tag = "3")]
    received: u32,
    #[prost(uint64, tag = "4")]
    bytes: u64,
    #[prost(uint64, tag = "6")]
    timeout_ms: u64,
    #[prost(bytes = "vec", tag = "7")]
    filler: Vec<u8>,
}

const ECHO: Prost<Ask, Told> = Prost::new();

fn ask(text: &str, count: u32) -> Ask {
    Ask { text: text.to_owned(), count, ..Ask::default() }
}

fn path(method: &str) -> String {
    format!("mimus.test.v1.Echo/{method}")
}

fn channel(origin: &Origin) -> Channel {
    client().grpc(origin.url(Port::H2c, "/").unwrap()).unwrap()
}

fn trusting(origin: &Origin) -> ClientBuilder {
    let tls = TlsConfig::builder().add_ca(origin.ca_pem().as_bytes()).build().unwrap();
    Client::builder().no_proxy().tls(tls)
}

/// What the origin saw of the only connection, once `enough` of it is there.
async fn seen(origin: &Origin, enough: impl Fn(&SeenH2) -> bool) -> SeenH2 {
    let found = async {
        loop {
            let connections = origin.connections();
            assert!(connections.len() < 2, "{connections:?}");
            let h2 = connections.into_iter().next().and_then(|connection| connection.h2);
            if let Some(h2) = h2.filter(&enough) {
                return h2;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(found).await
}

const CANCEL: u32 = 8;

async fn four_kinds(channel: &Channel) {
    let reply = soon(channel.method(&path("Unary"), ECHO).unary(ask("é", 0))).await.unwrap();
    assert_eq!(reply.message().request, Some(ask("é", 0)));

    let mut replies = channel.method(&path("ServerStream"), ECHO).server_streaming(ask("", 300));
    for index in 0..300 {
        assert_eq!(soon(replies.message()).await.unwrap().unwrap().index, index);
    }
    assert_eq!(soon(replies.message()).await.unwrap(), None);

    let requests = stream::iter((0..300).map(|number| ask("", number)));
    let method = channel.method(&path("ClientStream"), ECHO);
    let reply = soon(method.client_streaming(requests)).await.unwrap();
    assert_eq!(reply.message().received, 300);

    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let requests = stream::unfold(receiver, |mut r| async move { Some((r.recv().await?, r)) });
    let mut replies = channel.method(&path("BidiStream"), ECHO).bidi(requests);
    for index in 0..20 {
        soon(sender.send(ask("ping", 1))).await.unwrap();
        assert_eq!(soon(replies.message()).await.unwrap().unwrap().index, index);
    }
    drop(sender);
    assert_eq!(soon(replies.message()).await.unwrap(), None);
}

#[tokio::test]
async fn all_four_kinds_by_prior_knowledge_and_over_tls() {
    let origin = Origin::start().unwrap();
    for port in [Port::H2c, Port::H2, Port::H2OrHttp1] {
        let client = trusting(&origin).build().unwrap();
        four_kinds(&client.grpc(origin.url(port, "/").unwrap()).unwrap()).await;
        assert_eq!(origin.accepted(port), 1, "{port:?}");
    }
}

#[tokio::test]
async fn a_server_without_http2_is_unavailable_or_broken() {
    let origin = Origin::start().unwrap();
    let client = trusting(&origin).build().unwrap();
    for (url, code) in
        [(origin.http_url("/"), Code::Internal), (origin.https_url("/"), Code::Unavailable)]
    {
        let method = client.grpc(&url).unwrap().method(&path("Unary"), ECHO);
        let status = soon(method.unary(ask("", 0))).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:#}");
    }
}

#[tokio::test]
async fn every_way_to_go_wrong_has_its_code() {
    let origin = Origin::start().unwrap();
    let channel = channel(&origin);
    for row in grpc_bad() {
        let method = channel.method(row.path, ECHO);
        let patience = if row.codes == [4] { 200 } else { 15_000 };
        let method = method.timeout(Duration::from_millis(patience));
        let status = soon(method.unary(ask("", 0))).await.expect_err(row.path);
        let code = status.code().number();
        assert!(row.codes.contains(&code), "{} ({}): {status:#}", row.path, row.what);
    }
    // A call that fails costs no connection, but for two that end by their deadline: a connection that
    // is silent then is not used until it has answered a PING.
    let opened = origin.accepted(Port::H2c);
    assert!(opened <= 3, "{opened} connections");
}

#[tokio::test]
async fn calls_share_a_connection() {
    let origin = Origin::start().unwrap();
    let method = channel(&origin).method(&path("Unary"), ECHO);
    let asked = Ask { delay_ms: 300, ..ask("at once", 0) };
    let started = Instant::now();
    let replies = soon(join_all((0..50).map(|_| method.unary(asked.clone())))).await;
    assert!(replies.into_iter().all(|reply| reply.is_ok()));
    assert!(started.elapsed() < Duration::from_secs(10), "they waited for each other");
    assert_eq!(seen(&origin, |h2| h2.streams >= 50).await.streams, 50);
}

#[tokio::test]
async fn a_large_message_goes_both_ways() {
    let origin = Origin::start().unwrap();
    let method = channel(&origin).method(&path("Unary"), ECHO).max_receive(32 << 20);
    let asked = Ask { payload: vec![7; 8 << 20], reply_bytes: 8 << 20, ..Ask::default() };
    let told = soon(method.unary(asked.clone())).await.unwrap().into_message();
    assert!(told.request == Some(asked) && told.filler.len() == 8 << 20);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_reset() {
    let origin = Origin::start().unwrap();
    let channel = channel(&origin);
    let short = Duration::from_millis(200);
    let slow = Ask { delay_ms: 60_000, ..ask("", 1) };
    let unary = channel.method(&path("Unary"), ECHO);
    assert!(tokio::time::timeout(short, unary.unary(slow)).await.is_err());
    assert_eq!(seen(&origin, |h2| !h2.resets.is_empty()).await.resets, [(1, CANCEL)]);

    let mut replies = channel.method(&path("ServerStream"), ECHO).server_streaming(ask("", 1000));
    assert!(soon(replies.message()).await.unwrap().is_some());
    drop(replies);
    let endless = stream::iter([ask("", 1)]).chain(stream::pending());
    let mut replies = channel.method(&path("BidiStream"), ECHO).bidi(endless);
    assert!(soon(replies.message()).await.unwrap().is_some());
    drop(replies);
    let resets = seen(&origin, |h2| h2.resets.iter().any(|&(stream, _)| stream == 5)).await.resets;
    assert!(resets.contains(&(5, CANCEL)), "{resets:?}");
    // The connection is as good as before.
    soon(unary.unary(ask("", 0))).await.unwrap();
    assert_eq!(origin.accepted(Port::H2c), 1);
}

#[tokio::test]
async fn a_deadline_is_told_and_holds_while_messages_come() {
    let origin = Origin::start().unwrap();
    let channel = channel(&origin);
    let limit = Duration::from_millis(400);
    let method = channel.method(&path("Unary"), ECHO).timeout(limit);
    assert_eq!(soon(method.unary(ask("", 0))).await.unwrap().message().timeout_ms, 400);

    let asked = Ask { delay_ms: 10, ..ask("", 100_000) };
    let started = Instant::now();
    let mut replies =
        channel.method(&path("ServerStream"), ECHO).timeout(limit).server_streaming(asked);
    let mut count = 0;
    let status = loop {
        match soon(replies.message()).await {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("it has no end"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:#}");
    assert!(count > 1 && started.elapsed() < limit * 20, "{count}, {:?}", started.elapsed());
}

#[tokio::test]
async fn a_deadline_that_the_server_ignores_resets_the_call() {
    let origin = Origin::start().unwrap();
    let limit = Duration::from_millis(200);
    let method = channel(&origin).method("mimus.test.v1.Bad/Stalled", Raw).timeout(limit);
    let status = soon(method.server_streaming("".into()).message()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:#}");
    assert_eq!(seen(&origin, |h2| !h2.resets.is_empty()).await.resets, [(1, CANCEL)]);
}

#[tokio::test]
async fn a_server_that_ends_early_is_heard() {
    let origin = Origin::start().unwrap();
    let channel = channel(&origin);
    let fail = Fail { code: 8, message: "enough".to_owned(), after: 1 };
    let endless = || {
        let first = Ask { fail: Some(fail.clone()), ..ask("", 1) };
        stream::iter([first]).chain(stream::pending())
    };
    let mut replies = channel.method(&path("BidiStream"), ECHO).bidi(endless());
    assert!(soon(replies.message()).await.unwrap().is_some());
    let status = soon(replies.message()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "enough"));
    // While more is sent than the windows take.
    let flood = stream::repeat_with(|| Ask { payload: vec![1; 100_000], ..ask("", 1) });
    let status = soon(channel.method(&path("None"), ECHO).client_streaming(flood)).await;
    assert_eq!(status.unwrap_err().code(), Code::Unimplemented);
    soon(channel.method(&path("Unary"), ECHO).unary(ask("", 0))).await.unwrap();
    assert_eq!(origin.accepted(Port::H2c), 1);
}

#[test]
fn any_runtime_and_none() {
    async fn echoed(client: Client, url: String) {
        let method = client.grpc(url).unwrap().method(&path("Unary"), ECHO);
        let reply = method.timeout(Duration::from_secs(20)).unary(ask("any", 0)).await.unwrap();
        assert_eq!(reply.into_message().request, Some(ask("any", 0)));
    }
    let origin = Origin::start().unwrap();
    for port in [Port::H2c, Port::H2] {
        let url = || origin.url(port, "/").unwrap();
        let smol = trusting(&origin).runtime(rt::Smol).build().unwrap();
        smol::block_on(echoed(smol, url()));
        let none = trusting(&origin).runtime(rt::Blocking).build().unwrap();
        rt::Blocking::block_on(echoed(none, url()));
    }
    let client = mimus::blocking::Client::builder().no_proxy().build().unwrap();
    let channel = client.grpc(origin.url(Port::H2c, "/").unwrap()).unwrap();
    let method = channel.method(&path("Unary"), ECHO);
    let reply = rt::Blocking::block_on(method.unary(ask("blocking", 0))).unwrap();
    assert_eq!(reply.message().received, 1);
}
