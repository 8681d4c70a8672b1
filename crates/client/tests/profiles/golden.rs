//! Our bytes against those of the browsers.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use mimus::{
    Client, Method, TlsConfig, Version,
    profile::{Credentials, Kind, Mode, Profile},
};

use crate::{
    capture::{self, Asked, Frame},
    peer::{self, Peer, Speaks},
};

/// What the page asked for, by path.
fn kind_of(asked: &Asked) -> Kind {
    match asked.path() {
        "/" | "/ws" | "/wsplain" | "/form" => Kind::Navigate,
        "/formdone" => Kind::FormPost,
        "/r/frame.html" => Kind::Iframe,
        "/r/style.css" => Kind::Style,
        "/r/script.js" => Kind::Script,
        "/r/async.js" => Kind::AsyncScript,
        "/r/img.png" => Kind::Image,
        "/r/font.woff2" => Kind::Font,
        "/favicon.ico" => Kind::Favicon,
        "/f/xhr" => Kind::Xhr,
        "/f/beacon" => Kind::Beacon,
        "/f/warm" => Kind::Fetch { mode: Mode::NoCors, credentials: Credentials::Include },
        _ if asked.method() == "OPTIONS" => Kind::Preflight,
        _ => Kind::FETCH,
    }
}

/// Fields that the page itself said, or the form.
fn said(asked: &Asked) -> Vec<(&str, &str)> {
    let mut names = vec!["x-custom", "content-type"];
    if asked.method() == "OPTIONS" {
        names.extend(["access-control-request-method", "access-control-request-headers"]);
    }
    if asked.path() == "/f/custom" {
        names.push("accept");
    }
    let spelt =
        asked.fields.iter().filter(|(name, _)| names.contains(&&*name.to_ascii_lowercase()));
    spelt.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// A client of the profile that takes the peer for every host that was captured.
fn client(profile: &str, peer: &Peer, all: &[Asked]) -> Client {
    let tls = TlsConfig::builder().add_ca(peer.ca.as_bytes()).build().unwrap();
    let mut builder = Client::builder()
        .no_proxy()
        .tls(tls)
        .cookies(true)
        .timeout(Duration::from_secs(60))
        .profile(profile)
        // Others need a BoringSSL of which a build may lack some.
        .profile_client_hello(profile == "chromium-156-linux");
    for host in ["a.test", "b.test"] {
        builder = builder.resolve(host, None, [peer.addr]);
    }
    // Headless ones say so.
    let agent = all[0].get("user-agent").unwrap();
    let known = Profile::named(profile).unwrap().to_toml();
    if !known.contains(agent) {
        assert!(agent.contains("HeadlessChrome"));
        builder = builder.user_agent(agent);
    }
    builder.build().unwrap()
}

/// Asks for the same.
async fn ask(client: &Client, scheme: &str, asked: &Asked) {
    let method = Method::from_bytes(asked.method().as_bytes()).unwrap();
    let url = format!("{scheme}://{}{}", asked.authority(), asked.path());
    if method == Method::CONNECT {
        // A page says nothing of itself but its origin.
        let page = asked.get("origin").unwrap();
        let socket = client.websocket(url).subprotocols(["chat"]).version(Version::HTTP_2);
        let _ = socket.request(|request| request.initiator(page)).connect().await;
        return;
    }
    let mut request = client
        .request(method, url)
        .kind(kind_of(asked))
        .user_activated(asked.get("sec-fetch-user").is_some() || kind_of(asked) != Kind::FormPost);
    if let Some(page) = asked.get("referer") {
        request = request.initiator(page);
    }
    for (name, value) in said(asked) {
        request = request.header(name, value);
    }
    if !asked.body.is_empty() {
        request = request.body(asked.body.clone());
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap();
}

/// Which requests were under way together: those that depend on one of the same group.
fn groups(all: &[Asked]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for asked in all {
        match groups.last_mut().filter(|group| group.contains(&asked.depends_on)) {
            Some(group) => group.push(asked.stream),
            None => groups.push(vec![asked.stream]),
        }
    }
    groups
}

/// Replays a session over HTTP/2. Every frame must be the same, header blocks byte by byte: so it is the
/// state of the compression after each request too.
async fn replay_http2(profile: &str, file: &str) {
    let mut theirs = capture::frames(capture::load(file));
    let mut all = capture::requests(&theirs);
    // What is said on a WebSocket is masked by chance.
    if let Some(at) = all.iter().position(|asked| asked.method() == "CONNECT") {
        let id = all[at].stream;
        all.truncate(at + 1);
        let last = theirs.iter().position(|f| f.stream == id && f.kind != capture::HEADERS);
        let increment = theirs.iter().any(|f| f.stream == id && f.kind == 8);
        theirs.truncate(last.unwrap() + usize::from(increment));
    }
    let groups = groups(&all);
    let peer = Peer::start(Speaks::Http2, groups.clone(), peer::page);
    let client = client(profile, &peer, &all);
    for group in &groups {
        let members = all.iter().filter(|asked| group.contains(&asked.stream));
        let asking = join_all(members.map(|asked| ask(&client, "https", asked)));
        if group.iter().any(|id| all.last().is_some_and(|last| last.stream == *id))
            && all.last().is_some_and(|last| last.method() == "CONNECT")
        {
            // Nobody answers it.
            let sent = async { until(&peer, theirs.len()).await };
            tokio::select! { _ = asking => {}, () = sent => {} }
        } else {
            asking.await;
        }
    }
    until(&peer, theirs.len()).await;
    let heard = peer.heard.lock().unwrap();
    let mut ours = capture::frames(session(&heard).unwrap());
    if all.last().is_some_and(|last| last.method() == "CONNECT") {
        // Behind it comes that it was given up.
        ours.truncate(theirs.len());
    }
    for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(shown(ours), shown(theirs), "{profile}, {file}, frame {at}");
        assert_eq!(ours, theirs, "{profile}, {file}, frame {at}");
    }
    assert_eq!(ours.len(), theirs.len(), "{profile}, {file}");
    assert_eq!(heard.iter().filter(|bytes| !bytes.is_empty()).count(), 1);
}

/// What was said on the first connection that anything was said on: a spare one may stand before it.
fn session(heard: &[Vec<u8>]) -> Option<Vec<u8>> {
    heard.iter().find(|bytes| !bytes.is_empty()).cloned()
}

/// Waits until so many frames came.
async fn until(peer: &Peer, frames: usize) {
    for _ in 0..6000 {
        let heard = session(&peer.heard.lock().unwrap()).unwrap_or_default();
        if heard.len() > 24 && capture::frames(heard).len() >= frames {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no more frames came");
}

/// For reading where they differ.
fn shown(frame: &Frame) -> String {
    let block = frame.payload.escape_ascii();
    format!("kind {} flags {:#x} stream {}: {block}", frame.kind, frame.flags, frame.stream)
}

/// Sends the same requests over HTTP/1.1, one after the other, and compares all their bytes.
async fn replay_http1(profile: &str, file: &str, speaks: Speaks) {
    let mut bytes = capture::load(file);
    let mut theirs: Vec<Asked> = std::iter::from_fn(|| capture::next_request(&mut bytes)).collect();
    assert!(bytes.is_empty());
    theirs.retain(|asked| !asked.path().starts_with("/ws"));
    // The page sets the cookies.
    theirs.sort_by_key(|asked| kind_of(asked) != Kind::Navigate);
    let peer = Peer::start(speaks, Vec::new(), peer::page);
    let client = client(profile, &peer, &theirs);
    for asked in &theirs {
        ask(&client, if speaks == Speaks::Plain { "http" } else { "https" }, asked).await;
    }
    let mut ours: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for mut bytes in peer.heard.lock().unwrap().clone() {
        while let Some(asked) = capture::next_request(&mut bytes) {
            let wire = String::from_utf8(asked.wire).unwrap();
            ours.entry(asked.line).or_default().push(wire);
        }
    }
    for asked in &theirs {
        let ours = ours.get_mut(&asked.line).unwrap().remove(0);
        assert_eq!(ours, String::from_utf8(asked.wire.clone()).unwrap(), "{profile}, {file}");
    }
}

/// Begins the same WebSocket over HTTP/1.1: all but the key is the same.
async fn replay_websocket(profile: &str, file: &str) {
    let asked = capture::next_request(&mut capture::load(file)).unwrap();
    let peer = Peer::start(Speaks::Http1, Vec::new(), peer::page);
    let all = [asked];
    let client = client(profile, &peer, &all);
    let [asked] = all;
    let cookies = asked.get("cookie").unwrap();
    let url = format!("wss://{}{}", asked.authority(), asked.path());
    let page = asked.get("origin").unwrap();
    let socket = client.websocket(url).subprotocols(["chat"]).header("Cookie", cookies);
    // It is refused.
    assert!(socket.request(|request| request.initiator(page)).connect().await.is_err());
    let mut heard = peer.heard.lock().unwrap()[0].clone();
    let ours = capture::next_request(&mut heard).unwrap();
    let keyless = |asked: &Asked| {
        let key = asked.get("sec-websocket-key").unwrap();
        assert_eq!(key.len(), 24);
        String::from_utf8(asked.wire.clone()).unwrap().replace(key, "KEY")
    };
    assert_eq!(keyless(&ours), keyless(&asked), "{profile}, {file}");
}

macro_rules! golden {
    ($($test:ident: $replay:ident($profile:literal, $file:literal $(, $speaks:expr)?);)+) => {
        $(
            #[tokio::test]
            async fn $test() {
                $replay($profile, $file $(, $speaks)?).await;
            }
        )+
    };
}

golden! {
    chromium_156_over_http2: replay_http2("chromium-156-linux", "chromium-156/h2.bin");
    chromium_156_over_http2_by_cors: replay_http2("chromium-156-linux", "chromium-156/h2-cors.bin");
    chromium_156_over_http2_with_a_form: replay_http2("chromium-156-linux", "chromium-156/h2-form.bin");
    chromium_156_over_http1: replay_http1("chromium-156-linux", "chromium-156/h1.bin", Speaks::Http1);
    chromium_156_in_the_clear: replay_http1("chromium-156-linux", "chromium-156/plain.bin", Speaks::Plain);
    chromium_156_begins_a_websocket: replay_websocket("chromium-156-linux", "chromium-156/websocket.bin");
    chromium_150_over_http2: replay_http2("chromium-150-linux", "chromium-150/h2.bin");
    chromium_150_over_http2_by_cors: replay_http2("chromium-150-linux", "chromium-150/h2-cors.bin");
    chromium_150_over_http1: replay_http1("chromium-150-linux", "chromium-150/h1.bin", Speaks::Http1);
    chromium_150_begins_a_websocket: replay_websocket("chromium-150-linux", "chromium-150/websocket.bin");
    firefox_140_over_http2: replay_http2("firefox-140-linux", "firefox-140/h2.bin");
    firefox_140_over_http2_by_cors: replay_http2("firefox-140-linux", "firefox-140/h2-cors.bin");
    firefox_140_over_http1: replay_http1("firefox-140-linux", "firefox-140/h1.bin", Speaks::Http1);
    firefox_140_begins_a_websocket: replay_websocket("firefox-140-linux", "firefox-140/websocket.bin");
    firefox_159_over_http2: replay_http2("firefox-159-linux", "firefox-159/h2.bin");
    firefox_159_over_http2_by_cors: replay_http2("firefox-159-linux", "firefox-159/h2-cors.bin");
    firefox_159_over_http1: replay_http1("firefox-159-linux", "firefox-159/h1.bin", Speaks::Http1);
    firefox_159_begins_a_websocket: replay_websocket("firefox-159-linux", "firefox-159/websocket.bin");
    firefox_153_over_http2: replay_http2("firefox-153-linux", "firefox-153/h2.bin");
    firefox_153_over_http2_by_cors: replay_http2("firefox-153-linux", "firefox-153/h2-cors.bin");
    firefox_153_over_http2_with_a_form: replay_http2("firefox-153-linux", "firefox-153/h2-form.bin");
    firefox_153_over_http1: replay_http1("firefox-153-linux", "firefox-153/h1.bin", Speaks::Http1);
    firefox_153_in_the_clear: replay_http1("firefox-153-linux", "firefox-153/plain.bin", Speaks::Plain);
    firefox_153_begins_a_websocket: replay_websocket("firefox-153-linux", "firefox-153/websocket.bin");
}
