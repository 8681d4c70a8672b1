//! Streams that are left at their last word, and what their servers make of that.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use mimus::Client;

use crate::support::{Bench, on_every_runtime};

on_every_runtime!(
    the_end_that_is_due_is_read_off_by_the_next_call,
    who_owes_the_end_delays_nobody,
    what_comes_behind_the_end_is_nobodys_answer,
    what_comes_in_place_of_the_end_is_not_read_on_and_on,
    a_stream_left_midway_is_closed_at_once,
);

/// A server whose streams are in the test's hands: what follows each last word comes when the test says so.
struct Server {
    addr: SocketAddr,
    /// What is to be sent on the connection whose stream was left.
    say: Sender<Vec<u8>>,
    /// That it was sent.
    said: Mutex<Receiver<()>>,
}

impl Server {
    /// GET /chat streams up to the last word, and then what it is told; all else says which connection serves it.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (say, to_say) = channel::<Vec<u8>>();
        let (has_said, said) = channel();
        thread::spawn(move || {
            let mut to_say = Some(to_say);
            for (number, stream) in listener.incoming().enumerate() {
                let (stream, has_said) = (stream.unwrap(), has_said.clone());
                // What is sent is there at once, as every server of streams has it.
                stream.set_nodelay(true).unwrap();
                let to_say = to_say.take();
                thread::spawn(move || talk(number, stream, to_say.as_ref(), &has_said));
            }
        });
        Server { addr, say, said: Mutex::new(said) }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Has it go on behind the last word, and waits until it has.
    fn say(&self, what: &[u8]) {
        self.say.send(what.to_vec()).unwrap();
        self.said.lock().unwrap().recv().unwrap();
    }
}

fn talk(
    number: usize,
    mut stream: TcpStream,
    to_say: Option<&Receiver<Vec<u8>>>,
    said: &Sender<()>,
) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        if !head.starts_with(b"GET /chat") {
            let body = number.to_string();
            let length = body.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            continue;
        }
        let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(begin.as_bytes()).unwrap();
        stream.write_all(b"e\r\ndata: \"word\"\n\n\r\ne\r\ndata: [DONE]\n\n\r\n").unwrap();
        let Some(what) = to_say.and_then(|to_say| to_say.recv().ok()) else { return };
        // The client may have closed already.
        let _ = stream.write_all(&what);
        said.send(()).unwrap();
    }
}

/// Reads a stream up to its last word, and leaves.
async fn hear(client: &Client, server: &Server) {
    let mut response = client.get(server.url("/chat")).send().await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"[DONE]\n\n") {
        let piece = response.chunk().await.unwrap();
        heard.extend_from_slice(&piece.expect("the stream goes on to its last word"));
    }
}

/// The connection that serves the next call.
async fn next(client: &Client, server: &Server) -> String {
    client.get(server.url("/next")).send().await.unwrap().text().await.unwrap()
}

async fn the_end_that_is_due_is_read_off_by_the_next_call(b: Bench) {
    // A task awaits it otherwise, though not for long.
    if b.has_tasks() {
        return;
    }
    let (client, server) = (b.client(), Server::start());
    for _ in 0..3 {
        hear(&client, &server).await;
        server.say(b"0\r\n\r\n");
        assert_eq!(client.pool_stats().idle, 1);
        assert_eq!(next(&client, &server).await, "0");
    }
}

/// There the thread that leaves a stream is in no call.
#[test]
fn a_call_that_blocks_reads_off_the_end_that_is_due() {
    let client = mimus::blocking::Client::builder().no_proxy().build().unwrap();
    let server = Server::start();
    for _ in 0..3 {
        let mut response = client.get(server.url("/chat")).send().unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"[DONE]\n\n") {
            heard.extend_from_slice(&response.chunk().unwrap().unwrap());
        }
        drop(response);
        server.say(b"0\r\n\r\n");
        assert_eq!(client.get(server.url("/next")).send().unwrap().text().unwrap(), "0");
    }
}

async fn who_owes_the_end_delays_nobody(b: Bench) {
    let (client, server) = (b.client(), Server::start());
    hear(&client, &server).await;
    // Nothing more comes on that connection: another serves.
    assert_eq!(next(&client, &server).await, "1");
    assert_eq!(next(&client, &server).await, "1");
    if !b.has_tasks() {
        assert_eq!(client.pool_stats().open(), 1, "the one that owes is closed");
    }
}

async fn what_comes_behind_the_end_is_nobodys_answer(b: Bench) {
    let (client, server) = (b.client(), Server::start());
    hear(&client, &server).await;
    server.say(b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
    assert_eq!(next(&client, &server).await, "1");
    assert_eq!(next(&client, &server).await, "1");
}

async fn what_comes_in_place_of_the_end_is_not_read_on_and_on(b: Bench) {
    let (client, server) = (b.client(), Server::start());
    hear(&client, &server).await;
    let mut more = b"ffff\r\n".to_vec();
    more.resize(more.len() + 0xffff, b'x');
    more.extend_from_slice(b"\r\n2\r\nxx\r\n0\r\n\r\n");
    server.say(&more);
    assert_eq!(next(&client, &server).await, "1");
}

async fn a_stream_left_midway_is_closed_at_once(b: Bench) {
    let client = b.client();
    let mut response = client.get(b.http("/sse/every/1")).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    assert_eq!(client.pool_stats().open(), 0);
    b.all_closed().await;
}
