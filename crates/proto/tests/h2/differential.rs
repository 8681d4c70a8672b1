//! Whole exchanges with a server that shares no code with us: the one of crate `h2`.

use std::io::IoSlice;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use mimus_proto::h2::{Client, Limits, Opening, RequestLine, SettingId, Stream};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::rig::{Seen, drain, fields};

/// One exchange as it is asked for.
#[derive(Debug, Clone)]
struct Ask {
    path: String,
    /// Bytes of request body, which come back; none: a GET.
    body: Option<usize>,
    trailers: bool,
    /// Bytes of one request field, which comes back, too.
    field: usize,
}

/// How both sides set the connection up.
#[derive(Debug, Clone)]
struct Setup {
    window: u32,
    server_window: u32,
    server_frame: u32,
    streams: u32,
    table: u32,
    pipe: usize,
}

async fn echo(request: Request<h2::RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let mut response = Response::builder().status(200).header("x-path", head.uri.path());
    response = response.header("x-method", head.method.as_str());
    if let Some(value) = head.headers.get("x-field") {
        response = response.header("x-field", value);
    }
    let response = response.body(()).expect("a response");
    let mut stream = respond.send_response(response, false).expect("an open stream");
    while let Some(piece) = body.data().await {
        let piece = piece.expect("a body");
        body.flow_control().release_capacity(piece.len()).expect("what came");
        stream.send_data(piece, false).expect("an open stream");
    }
    match body.trailers().await.expect("a message") {
        Some(trailers) => stream.send_trailers(trailers).expect("an open stream"),
        None => stream.send_trailers(HeaderMap::new()).expect("an open stream"),
    }
}

async fn serve(pipe: DuplexStream, setup: Setup) {
    let mut server = h2::server::Builder::new();
    server.initial_window_size(setup.server_window).max_frame_size(setup.server_frame);
    server.max_concurrent_streams(setup.streams).header_table_size(setup.table);
    let mut server = server.handshake(pipe).await.expect("a preface");
    while let Some(accepted) = server.accept().await {
        let (request, respond) = accepted.expect("a request");
        tokio::spawn(echo(request, respond));
    }
}

/// A stream on its way.
struct Exchange {
    index: usize,
    stream: Stream,
    left: usize,
    ended: bool,
    log: Vec<Seen>,
}

struct Driver {
    client: Client,
    pipe: DuplexStream,
    asks: Vec<Ask>,
    next: usize,
    going: Vec<Exchange>,
    logs: Vec<Vec<Seen>>,
}

impl Driver {
    fn open(&mut self) {
        // Before the server's SETTINGS, more might be opened than it takes.
        let ready = self.client.peer_settings().is_some();
        while ready && self.next < self.asks.len() && self.client.can_open().is_ok() {
            let ask = &self.asks[self.next];
            let field = "f".repeat(ask.field);
            let fields = fields([("X-Field", field.as_str()), ("Cookie", "a=b; c=d")]);
            let stream = self.client.open(&RequestLine {
                method: if ask.body.is_some() { &Method::POST } else { &Method::GET },
                scheme: "http",
                authority: "example.com",
                path: &ask.path,
                protocol: None,
                fields: &fields,
                end: ask.body.is_none(),
                weight: None,
            });
            self.going.push(Exchange {
                index: self.next,
                stream: stream.expect("it can open"),
                left: ask.body.unwrap_or(0),
                ended: ask.body.is_none(),
                log: Vec::new(),
            });
            self.next += 1;
        }
    }

    /// Sends what there is room for, takes what came.
    fn advance(&mut self) {
        for exchange in &mut self.going {
            while exchange.left > 0 {
                let room = self.client.capacity(exchange.stream).min(exchange.left);
                if room == 0 {
                    break;
                }
                let piece = Bytes::from(vec![exchange.index as u8; room]);
                self.client.send_data(exchange.stream, piece).expect("an open body");
                exchange.left -= room;
            }
            if exchange.left == 0 && !exchange.ended {
                let trailers = fields([("x-sum", "1")]);
                let trailers = self.asks[exchange.index].trailers.then_some(&trailers);
                self.client.send_end(exchange.stream, trailers).expect("an open body");
                exchange.ended = true;
            }
            drain(&mut self.client, exchange.stream, &mut exchange.log);
        }
        let over = |log: &[Seen]| matches!(log.last(), Some(Seen::End | Seen::Error(_)));
        for exchange in self.going.extract_if(.., |exchange| over(&exchange.log)) {
            self.client.reset(exchange.stream, mimus_proto::h2::Code::NO_ERROR);
            self.logs[exchange.index] = exchange.log;
        }
    }

    async fn run(mut self) -> Vec<Vec<Seen>> {
        loop {
            self.open();
            self.advance();
            if self.going.is_empty() && self.next == self.asks.len() {
                return self.logs;
            }
            let mut slices = [IoSlice::new(&[]); 7];
            let filled = self.client.poll_transmit(&mut slices);
            let out: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            let buf = self.client.recv_buf();
            buf.reserve(16 * 1024);
            // Whichever is possible: the pipe is narrow, and the other side may be stuck, too.
            let mut room = std::mem::take(buf);
            let (mut reader, mut writer) = tokio::io::split(&mut self.pipe);
            let read = std::pin::pin!(reader.read_buf(&mut room));
            if out.is_empty() {
                read.await.expect("a pipe");
                *self.client.recv_buf() = room;
            } else {
                let written = {
                    let write = std::pin::pin!(writer.write(&out));
                    either(write, read).await
                };
                *self.client.recv_buf() = room;
                self.client.transmitted(written);
            }
            self.client.process(Instant::now()).expect("the connection goes on");
        }
    }
}

/// Waits for one of a write and a read; gives how much was written.
async fn either(
    mut write: std::pin::Pin<&mut impl Future<Output = std::io::Result<usize>>>,
    mut read: std::pin::Pin<&mut impl Future<Output = std::io::Result<usize>>>,
) -> usize {
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(written) = write.as_mut().poll(context) {
            return std::task::Poll::Ready(written.expect("a pipe"));
        }
        read.as_mut().poll(context).map(|read| {
            read.expect("a pipe");
            0
        })
    })
    .await
}

fn exchange(setup: &Setup, asks: &[Ask]) -> Vec<Vec<Seen>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(setup.pipe);
        tokio::spawn(serve(theirs, setup.clone()));
        let mut opening = Opening::default();
        opening.settings = vec![
            (SettingId::HEADER_TABLE_SIZE, setup.table),
            (SettingId::ENABLE_PUSH, 0),
            (SettingId::INITIAL_WINDOW_SIZE, setup.window),
        ];
        opening.window_increment = None;
        let client = Client::new(&opening, Limits::default(), Instant::now());
        let driver = Driver {
            client,
            pipe: ours,
            asks: asks.to_vec(),
            next: 0,
            going: Vec::new(),
            logs: vec![Vec::new(); asks.len()],
        };
        driver.run().await
    })
}

/// What an exchange has to give.
fn expected(index: usize, ask: &Ask) -> Vec<Seen> {
    let method = if ask.body.is_some() { "POST" } else { "GET" };
    let said = vec![
        ("x-path".to_owned(), ask.path.clone().into_bytes()),
        ("x-method".to_owned(), method.into()),
        ("x-field".to_owned(), vec![b'f'; ask.field]),
    ];
    let mut log = vec![Seen::Head(200, said)];
    if let Some(len) = ask.body.filter(|len| *len > 0) {
        log.push(Seen::Data(vec![index as u8; len]));
    }
    if ask.trailers && ask.body.is_some() {
        log.push(Seen::Trailers(vec![("x-sum".to_owned(), b"1".into())]));
    }
    log.push(Seen::End);
    log
}

fn check(setup: &Setup, asks: &[Ask]) {
    for (index, (log, ask)) in exchange(setup, asks).into_iter().zip(asks).enumerate() {
        assert_eq!(log, expected(index, ask), "{ask:?}");
    }
}

fn setup() -> impl Strategy<Value = Setup> {
    let windows = || prop::sample::select(vec![1, 100, 20_000, 65_535, 1 << 20]);
    let frames = prop::sample::select(vec![16_384, 20_000, 1 << 20]);
    let tables = prop::sample::select(vec![0, 100, 4096, 65_536]);
    let pipes = prop::sample::select(vec![60, 4096, 1 << 16]);
    (windows(), windows(), frames, 1_u32..6, tables, pipes).prop_map(
        |(window, server_window, server_frame, streams, table, pipe)| Setup {
            window: window.max(100),
            server_window: server_window.max(100),
            server_frame,
            streams,
            table,
            pipe,
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let body = prop::option::of(prop_oneof![0_usize..100, 0_usize..150_000]);
    let field = prop_oneof![9 => 0_usize..50, 1 => 10_000_usize..14_000];
    ("/[a-z]{0,8}", body, any::<bool>(), field).prop_map(|(path, body, trailers, field)| Ask {
        path,
        body,
        trailers,
        field,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn whole_exchanges_with_an_independent_server(
        setup in setup(), asks in prop::collection::vec(ask(), 1..12),
    ) {
        // Small windows take many turns.
        let most = setup.window.min(setup.server_window).min(setup.pipe as u32) as usize * 50;
        let mut asks = asks;
        asks.iter_mut().for_each(|ask| ask.body = ask.body.map(|len| len.min(most)));
        check(&setup, &asks);
    }
}

#[test]
fn a_hundred_exchanges_on_few_streams() {
    let setup = Setup {
        window: 65_535,
        server_window: 65_535,
        server_frame: 16_384,
        streams: 7,
        table: 4096,
        pipe: 4096,
    };
    let ask = |index: usize| Ask {
        path: format!("/{index}"),
        body: (!index.is_multiple_of(3)).then_some(index * 100),
        trailers: index.is_multiple_of(2),
        field: index % 40,
    };
    check(&setup, &(0..100).map(ask).collect::<Vec<_>>());
}
