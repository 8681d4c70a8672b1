//! `mimus grpc`, against a server of a few lines that speaks gRPC over another's HTTP/2, and against
//! the origin.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{LazyLock, mpsc},
};

use bytes::{Buf, Bytes};
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use mimus_testkit::{Origin, Port};
use prost::{Message, Oneof};
use prost_types::FileDescriptorProto;
use serde_json::{Value, json};

use crate::rig::{Run, mimus, mimus_fed};

const PROTO: &str = r#"
syntax = "proto3";
package birds.v1;
import "google/protobuf/timestamp.proto";
enum Kind { KIND_UNSPECIFIED = 0; SONGBIRD = 1; }
message Bird {
  string name = 1;
  int64 wingspan_mm = 2;
  Kind kind = 3;
  repeated string songs = 4;
  map<string, int32> seen = 5;
  optional bool ringed = 6;
  oneof home { string nest = 7; uint32 box = 8; }
  google.protobuf.Timestamp hatched = 9;
}
service Birds {
  rpc Echo(Bird) returns (Bird);
  rpc Count(Bird) returns (stream Bird);
  rpc Sum(stream Bird) returns (Bird);
  rpc Talk(stream Bird) returns (stream Bird);
}
"#;

/// The definitions, as source and compiled.
struct Files {
    folder: tempfile::TempDir,
    set: Vec<FileDescriptorProto>,
}

impl Files {
    fn proto(&self) -> PathBuf {
        self.folder.path().join("birds.proto")
    }

    fn protoset(&self) -> PathBuf {
        self.folder.path().join("birds.pb")
    }
}

static FILES: LazyLock<Files> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("birds.proto"), PROTO).unwrap();
    let set = protox::compile(["birds.proto"], [folder.path()]).unwrap();
    std::fs::write(folder.path().join("birds.pb"), set.encode_to_vec()).unwrap();
    Files { folder, set: set.file }
});

/// As much of a bird as the server looks at.
#[derive(Clone, PartialEq, Message)]
struct Bird {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "2")]
    wingspan_mm: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(oneof = "About", tags = "3, 4, 7")]
    about: Option<About>,
}

#[derive(Clone, PartialEq, Oneof)]
enum About {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(string, tag = "7")]
    Services(String),
}

/// A field of bytes at this place, which is what most of an answer is.
fn field(tag: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_key(tag, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn reflect(question: &[u8]) -> Vec<u8> {
    let file = |wanted: &dyn Fn(&FileDescriptorProto) -> bool| {
        let found = FILES.set.iter().find(|file| wanted(file))?;
        Some(field(4, &field(1, &found.encode_to_vec())))
    };
    let found = match Question::decode(question).unwrap().about.unwrap() {
        About::Services(_) => Some(field(6, &field(1, &field(1, b"birds.v1.Birds")))),
        About::File(name) => file(&|file| file.name() == name),
        About::Symbol(name) if name.starts_with("birds.v1.") && !name.ends_with("Dodo") => {
            file(&|file| file.package() == "birds.v1")
        }
        About::Symbol(_) => None,
    };
    // NOT_FOUND
    found.unwrap_or_else(|| field(7, &[&[8, 5][..], &field(2, b"no such bird")].concat()))
}

/// One call, on a thread of its own.
struct Peer {
    /// The target, and the fields by lines.
    target: String,
    head: String,
    /// What of the body has come.
    body: mpsc::Receiver<Bytes>,
    unread: Bytes,
    answer: tokio::sync::mpsc::UnboundedSender<Said>,
}

/// A part of an answer.
enum Said {
    Head(Response<()>),
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Peer {
    fn read(&mut self, to: &mut [u8]) -> Option<()> {
        for byte in to {
            while self.unread.is_empty() {
                self.unread = self.body.recv().ok()?;
            }
            *byte = self.unread.get_u8();
        }
        Some(())
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut prefix = [0; 5];
        self.read(&mut prefix)?;
        let mut message = vec![0; u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize];
        self.read(&mut message)?;
        Some(message)
    }

    fn say(&mut self, said: Said) {
        // A client that left is the test's business.
        let _ = self.answer.send(said);
    }

    fn begin(&mut self) {
        let head = Response::builder().header("content-type", "application/grpc");
        self.say(Said::Head(head.header("x-flock", "7").body(()).unwrap()));
    }

    fn send(&mut self, message: &[u8]) {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        self.say(Said::Data([&[0], &length[..], message].concat().into()));
    }

    fn end(&mut self, trailers: &str) {
        let lines = trailers.lines().chain(["x-rest: none"]);
        let fields = lines.map(|line| {
            let (name, value) = line.trim().split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        self.say(Said::Trailers(fields.collect()));
    }

    fn serve(&mut self, v1: bool) {
        let ok = "grpc-status: 0\r\n";
        self.begin();
        match self.target.clone().as_str() {
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" if !v1 => {
                return self.end("grpc-status: 12\r\n");
            }
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
                while let Some(question) = self.receive() {
                    self.send(&reflect(&question));
                }
            }
            "/birds.v1.Birds/Echo" => {
                let bird = self.receive().unwrap();
                match &Bird::decode(&bird[..]).unwrap().name[..] {
                    "dodo" => {
                        let any = [field(1, b"x/birds.v1.Bird"), field(2, &bird)].concat();
                        let details = [vec![8, 5], field(3, &any)].concat();
                        let details = base64::Engine::encode(
                            &base64::engine::general_purpose::STANDARD,
                            details,
                        );
                        return self.end(&format!(
                            "grpc-status: 5\r\ngrpc-message: extinct%21\r\n\
                             grpc-status-details-bin: {details}\r\n"
                        ));
                    }
                    "sloth" => std::thread::sleep(std::time::Duration::from_secs(30)),
                    "head" => {
                        let name =
                            self.head.lines().filter(|line| line.starts_with("x-")).collect();
                        return {
                            self.send(&Bird { name, wingspan_mm: 0 }.encode_to_vec());
                            self.end(ok);
                        };
                    }
                    _ => {}
                }
                self.send(&bird);
            }
            "/birds.v1.Birds/Count" => {
                let bird = Bird::decode(&self.receive().unwrap()[..]).unwrap();
                for wingspan_mm in 1..=bird.wingspan_mm {
                    self.send(&Bird { wingspan_mm, ..bird.clone() }.encode_to_vec());
                }
            }
            "/birds.v1.Birds/Sum" => {
                let mut sum = Bird::default();
                while let Some(bird) = self.receive() {
                    sum.wingspan_mm += Bird::decode(&bird[..]).unwrap().wingspan_mm;
                }
                self.send(&sum.encode_to_vec());
            }
            "/birds.v1.Birds/Talk" => {
                while let Some(bird) = self.receive() {
                    self.send(&bird);
                }
            }
            _ => return self.end("grpc-status: 12\r\n"),
        }
        self.end(ok);
    }
}

/// Starts the server, with both versions of reflection or the older alone.
fn server(v1: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(connection(socket, v1));
            }
        });
    });
    address.to_string()
}

async fn connection(socket: tokio::net::TcpStream, v1: bool) {
    let Ok(mut calls) = h2::server::handshake(socket).await else { return };
    while let Some(Ok((request, respond))) = calls.accept().await {
        let (body_in, body) = mpsc::channel();
        let (answer, answer_out) = tokio::sync::mpsc::unbounded_channel();
        let (request, incoming) = request.into_parts();
        let request = Request::from_parts(request, ());
        let fields = request.headers().iter();
        let lines = fields.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
        let mut peer = Peer {
            target: request.uri().path().to_owned(),
            head: lines.collect(),
            body,
            unread: Bytes::new(),
            answer,
        };
        std::thread::spawn(move || peer.serve(v1));
        tokio::spawn(take(incoming, body_in));
        tokio::spawn(give(respond, answer_out));
    }
}

async fn take(mut body: RecvStream, to: mpsc::Sender<Bytes>) {
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        if to.send(data).is_err() {
            return;
        }
    }
}

async fn give(
    mut respond: SendResponse<Bytes>,
    mut from: tokio::sync::mpsc::UnboundedReceiver<Said>,
) {
    let mut stream = None;
    while let Some(said) = from.recv().await {
        let given = match (said, &mut stream) {
            (Said::Head(head), _) => {
                respond.send_response(head, false).map(|opened| stream = Some(opened))
            }
            (Said::Data(data), Some(stream)) => stream.send_data(data, false),
            (Said::Trailers(trailers), Some(stream)) => stream.send_trailers(trailers),
            (_, None) => return,
        };
        if given.is_err() {
            return;
        }
    }
}

fn grpc(words: &[&str]) -> Run {
    mimus(&[&["grpc"], words].concat())
}

/// The documents that a run wrote.
fn documents(run: &Run) -> Vec<Value> {
    let values = serde_json::Deserializer::from_slice(&run.stdout).into_iter();
    values.collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_method_is_called_by_what_the_server_says_of_it() {
    for v1 in [true, false] {
        let url = server(v1);
        let bird = json!({
            "name": "Zaunkönig", "wingspanMm": "150", "kind": "SONGBIRD", "songs": ["a", "b"],
            "seen": {"here": 3}, "ringed": false, "box": 7, "hatched": "2026-05-01T04:00:00Z",
        });
        let run = grpc(&["-d", &bird.to_string(), &url, "birds.v1.Birds/Echo"]).ok();
        assert_eq!(run.json(), bird);
        assert!(run.text().lines().count() > 5);
        let compact = grpc(&["-c", "-d", "{\"name\":\"x\"}", &url, "birds.v1.Birds.Echo"]).ok();
        assert_eq!(compact.text(), "{\"name\":\"x\"}\n");
    }
}

#[test]
fn definitions_come_from_files_too() {
    let url = server(false);
    let set = FILES.protoset();
    let proto = FILES.proto();
    for flags in [["--protoset", set.to_str().unwrap()], ["--proto", proto.to_str().unwrap()]] {
        let call = ["-d", "{\"name\":\"wren\"}", &url, "birds.v1.Birds/Echo"];
        let run = grpc(&[&flags[..], &call[..]].concat()).ok();
        assert_eq!(run.json(), json!({"name": "wren"}));
        // Without a server.
        let run = grpc(&[&flags[..], &["list", "birds.v1.Birds"]].concat()).ok();
        let methods = ["Count", "Echo", "Sum", "Talk"].map(|name| format!("birds.v1.Birds/{name}"));
        assert_eq!(run.text().lines().collect::<Vec<_>>(), methods);
    }
    let missing = Path::new("/nonexistent.proto").to_str().unwrap();
    grpc(&["--protoset", missing, "list"]).failed(26);
    assert_eq!(grpc(&["--proto", missing, "list"]).code, Some(26));
}

#[test]
fn services_are_listed_and_described() {
    let url = server(true);
    assert_eq!(grpc(&[&url, "list"]).ok().text(), "birds.v1.Birds\n");
    let service = grpc(&[&url, "describe"]).ok();
    assert!(
        service
            .text()
            .contains("  rpc Talk(stream .birds.v1.Bird) returns (stream .birds.v1.Bird);")
    );
    assert!(service.text().contains("  rpc Echo(.birds.v1.Bird) returns (.birds.v1.Bird);"));
    let message = grpc(&[&url, "describe", "birds.v1.Bird"]).ok();
    let expected = "message birds.v1.Bird {\n  oneof home {\n    string nest = 7;\n    \
                    uint32 box = 8;\n  }\n  string name = 1;\n  int64 wingspan_mm = 2;\n  \
                    .birds.v1.Kind kind = 3;\n  repeated string songs = 4;\n  \
                    map<string, int32> seen = 5;\n  optional bool ringed = 6;\n  \
                    .google.protobuf.Timestamp hatched = 9;\n}\n";
    assert_eq!(message.text(), expected);
    let kind = grpc(&[&url, "describe", "birds.v1.Kind"]).ok();
    assert_eq!(kind.text(), "enum birds.v1.Kind {\n  KIND_UNSPECIFIED = 0;\n  SONGBIRD = 1;\n}\n");
    let method = grpc(&[&url, "describe", "birds.v1.Birds.Sum"]).ok();
    assert_eq!(method.text(), "rpc Sum(stream .birds.v1.Bird) returns (.birds.v1.Bird);\n");
    let none = grpc(&[&url, "describe", "birds.v1.Dodo"]).failed(105);
    assert!(none.stderr.contains("no such bird"), "{}", none.stderr);
    grpc(&[&url, "birds.v1.Birds/Fly"]).failed(2);
}

#[test]
fn streams_go_both_ways() {
    let url = server(true);
    let three = r#"{"wingspanMm": 1} {"wingspanMm": 20}{"wingspanMm": "300"}"#;
    let sum = grpc(&["-d", three, &url, "birds.v1.Birds/Sum"]).ok();
    assert_eq!(sum.json(), json!({"wingspanMm": "321"}));
    let none = grpc(&["--emit-defaults", &url, "birds.v1.Birds/Sum"]).ok();
    assert_eq!(none.json()["wingspanMm"], "0");
    let count = grpc(&["-d", "{\"wingspanMm\": 3}", &url, "birds.v1.Birds/Count"]).ok();
    assert_eq!(documents(&count).len(), 3);
    let talk = mimus_fed(three.as_bytes(), &["grpc", "-d", "@", &url, "birds.v1.Birds/Talk"]).ok();
    assert_eq!(documents(&talk)[2], json!({"wingspanMm": "300"}));
}

#[test]
fn a_stream_is_answered_while_it_is_typed() {
    let url = server(true);
    let words = ["grpc", "-c", "-d", "@", &url, "birds.v1.Birds/Talk"];
    let mut child = crate::rig::command(&words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for name in ["wren", "rook"] {
        // A document of braces is over when it is closed: no line end, nothing behind it.
        write!(input, "{{\"name\": \"{name}\"}}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{{\"name\":\"{name}\"}}\n"));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_is_no_message_is_not_sent() {
    let url = server(true);
    for (data, method) in [
        ("{\"nme\": 1}", "Echo"),
        ("{", "Echo"),
        ("", "Echo"),
        ("{}{}", "Echo"),
        ("{} {\"name\": 1}", "Sum"),
        ("{} x", "Talk"),
    ] {
        let run = grpc(&["-d", data, &url, &format!("birds.v1.Birds/{method}")]);
        run.failed(2);
    }
    grpc(&["-d", "@/nonexistent", &url, "birds.v1.Birds/Echo"]).failed(26);
}

#[test]
fn a_status_is_told_with_its_details_and_is_the_exit_code() {
    let url = server(true);
    let run = grpc(&["-d", "{\"name\": \"dodo\"}", &url, "birds.v1.Birds/Echo"]);
    assert_eq!(run.code, Some(105), "{run:?}");
    assert_eq!(
        run.stderr,
        "mimus: (105) NOT_FOUND: extinct!\n  birds.v1.Bird {\"name\":\"dodo\"}\n"
    );
    let late = grpc(&["-m", "0.3", "-d", "{\"name\": \"sloth\"}", &url, "birds.v1.Birds/Echo"]);
    late.failed(104);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    grpc(&[&closed, "list"]).failed(7);
}

#[test]
fn metadata_goes_and_comes() {
    let url = server(true);
    let words =
        ["-v", "-H", "X-Token: a b", "-H", "x-trace-bin: AP8=", "-d", "{\"name\":\"head\"}"];
    let run = grpc(&[&words[..], &[&url, "birds.v1.Birds/Echo"]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.json()["name"], "x-token: a bx-trace-bin: AP8");
    assert!(run.stderr.contains("< x-flock: 7\n") && run.stderr.contains("< x-rest: none\n"));
    for field in ["grpc-timeout: 1S", "x-bin: *", "Accept:"] {
        grpc(&["-H", field, &url, "birds.v1.Birds/Echo"]).failed(2);
    }
}

/// Over HTTP/2, which is how gRPC is spoken unless one asks for something else.
fn over_http2(words: &[&str]) -> Run {
    mimus(&[&["grpc"], words].concat())
}

const ECHO: &str = "mimus.test.v1.Echo";

#[test]
fn the_origin_says_what_it_serves() {
    let origin = Origin::start().unwrap();
    let url = origin.url(Port::H2c, "").unwrap();
    let services = over_http2(&[&url, "list"]).ok();
    assert!(services.text().lines().any(|line| line == ECHO), "{}", services.text());
    let methods = over_http2(&[&url, "list", ECHO]).ok();
    let names = ["BidiStream", "ClientStream", "ServerStream", "Unary"];
    assert_eq!(
        methods.text().lines().collect::<Vec<_>>(),
        names.map(|name| format!("{ECHO}/{name}"))
    );
    let described = over_http2(&[&url, "describe", "mimus.test.v1.EchoRequest"]).ok();
    assert!(described.text().contains("map<string, int64> scores = 8;"), "{}", described.text());
}

#[test]
fn the_origin_is_called_by_prior_knowledge_and_over_tls() {
    let origin = Origin::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, origin.ca_pem()).unwrap();
    let sent = json!({
        "text": "Zaunkönig", "tags": ["a", "b"], "scores": {"wren": "7"}, "big": "-9007199254740993",
        "ratio": 0.5, "word": "x", "numbers": [1, -2],
    });
    for port in [Port::H2c, Port::H2, Port::H2OrHttp1] {
        let url = origin.url(port, "").unwrap();
        let words = ["--cacert", ca.to_str().unwrap(), "-d", &sent.to_string(), &url];
        let run = over_http2(&[&words[..], &[&format!("{ECHO}/Unary")]].concat()).ok();
        assert_eq!(run.json()["request"], sent, "{port:?}");
        assert_eq!(origin.accepted(port), 1, "{port:?}: reflection and call share a connection");
    }
    let without = over_http2(&[&origin.url(Port::H2, "").unwrap(), "list"]);
    without.failed(60);
}

#[test]
fn the_origin_streams_both_ways_and_fails_when_told_to() {
    let origin = Origin::start().unwrap();
    let url = origin.url(Port::H2c, "").unwrap();
    let three = r#"{"text": "a"} {"text": "b"} {"text": "c"}"#;
    let call = |data: &str, method: &str, more: &[&str]| {
        over_http2(&[more, &["-d", data, &url, &format!("{ECHO}/{method}")]].concat())
    };
    assert_eq!(call(three, "ClientStream", &["--gzip"]).ok().json()["received"], 3);
    let replies = documents(&call(three, "BidiStream", &["-c"]).ok());
    let texts: Vec<_> = replies.iter().map(|reply| &reply["request"]["text"]).collect();
    assert_eq!(texts, ["a", "b", "c"]);
    assert_eq!(documents(&call(r#"{"count": 50}"#, "ServerStream", &[]).ok()).len(), 50);

    let fail = r#"{"count": 3, "fail": {"code": 5, "message": "no bird", "after": 2, "withDetails": true}}"#;
    let run = call(fail, "ServerStream", &[]);
    assert_eq!((run.code, documents(&run).len()), (Some(105), 2), "{run:?}");
    assert!(run.stderr.starts_with("mimus: (105) NOT_FOUND: no bird\n"), "{run:?}");
    assert!(run.stderr.contains("it was asked for"), "{run:?}");
    call(r#"{"delayMs": 60000}"#, "Unary", &["-m", "0.3"]).failed(104);
    let sent = call("{}", "Unary", &["-v", "-H", "echo-flock: 7", "-H", "echo-trailer-rest: 8"]);
    assert!(sent.stderr.contains("< echo-flock: 7\n"), "{sent:?}");
    assert!(sent.stderr.contains("< echo-trailer-rest: 8\n"), "{sent:?}");
}

#[test]
fn help_man_and_completions() {
    assert!(grpc(&["--help"]).ok().text().contains("SERVICE/METHOD"));
    assert!(grpc(&["--help", "all"]).ok().text().contains("--protoset"));
    assert!(grpc(&["--man"]).ok().text().contains("mimus\\-grpc"));
    let completions = mimus(&["--completions", "bash"]).ok();
    assert!(
        completions.text().contains("mimus,grpc)") && completions.text().contains("--protoset")
    );
    assert_eq!(grpc(&[]).code, Some(2));
}
