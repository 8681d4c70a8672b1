//! Sockets behave alike on tokio (both flavours), smol and the blocking runtime.
#![cfg(all(feature = "tokio", feature = "smol"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

mod bodies {
    use std::{
        future::{Future, poll_fn},
        io::{self, Read, Write},
        os::unix::net::UnixListener,
        pin::pin,
        sync::{Arc, Mutex, mpsc},
        task::{Context, Poll, Waker},
        thread,
        time::{Duration, Instant},
    };

    use bytes::BytesMut;
    use mimus_net::{
        Socket, Wait,
        dial::SocketOptions,
        rt::{Endpoint, Probe, io as verbs},
    };

    use crate::support::{self, Rt, assert_took, connect, ms, read, read_exactly, server};

    const BOTH: [Wait; 2] = [Wait::Alone, Wait::Beside];

    pub(super) async fn echo(rt: Rt) {
        let addr = server(support::echo);
        for wait in BOTH {
            let mut socket = connect(&rt, addr).await.unwrap();
            assert_eq!(socket.peer_addr(), Some(addr));
            assert!(socket.local_addr().is_some_and(|a| a.ip() == addr.ip() && a != addr));
            for round in 0..20u8 {
                let sent = [round; 300];
                verbs::write_all(&mut *socket, &sent).await.unwrap();
                assert_eq!(read_exactly(&mut *socket, 300, wait).await, sent);
            }
            verbs::close(&mut *socket).await.unwrap();
            assert_eq!(read(&mut *socket, wait).await.unwrap(), b"");
            assert!(socket.is_stale(Probe::Free));
        }
    }

    pub(super) async fn gathered_write_and_empty_slices(rt: Rt) {
        let mut socket = connect(&rt, server(support::echo)).await.unwrap();
        let bufs = [&b""[..], b"GET ", b"", b"/", b""].map(io::IoSlice::new);
        let n = poll_fn(|cx| socket.poll_write(cx, &bufs)).await.unwrap();
        assert_eq!(n, 5);
        assert_eq!(poll_fn(|cx| socket.poll_write(cx, &bufs[..1])).await.unwrap(), 0);
        assert_eq!(read_exactly(&mut *socket, 5, Wait::Alone).await, b"GET /");
    }

    pub(super) async fn a_buffer_without_room_is_a_mistake(rt: Rt) {
        let mut socket = connect(&rt, server(support::silence)).await.unwrap();
        for wait in BOTH {
            let error = verbs::read(&mut *socket, &mut BytesMut::new(), wait).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert!(!socket.is_stale(Probe::Thorough));
    }

    pub(super) async fn deadline_on_a_silent_peer(rt: Rt) {
        for wait in BOTH {
            for after in [20, 300] {
                let mut socket = connect(&rt, server(support::echo)).await.unwrap();
                let start = Instant::now();
                socket.set_deadline(Some(start + ms(after)));
                let error = read(&mut *socket, wait).await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                assert_took(start, ms(after));
                // A passed deadline fails again, at once; without one the socket works as before.
                assert!(read(&mut *socket, wait).await.is_err());
                assert_took(start, ms(after));
                socket.set_deadline(None);
                verbs::write_all(&mut *socket, b"still here").await.unwrap();
                assert_eq!(read_exactly(&mut *socket, 10, wait).await, b"still here");
            }
        }
    }

    pub(super) async fn deadline_on_a_dripping_peer(rt: Rt) {
        let addr = server(|mut stream| {
            loop {
                stream.write_all(b".")?;
                thread::sleep(ms(20));
            }
        });
        for wait in BOTH {
            let mut socket = connect(&rt, addr).await.unwrap();
            let start = Instant::now();
            socket.set_deadline(Some(start + ms(200)));
            let error = loop {
                if let Err(error) = read(&mut *socket, wait).await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_took(start, ms(200));
        }
    }

    pub(super) async fn deadlines_that_move(rt: Rt) {
        let addr = server(|mut stream| {
            for _ in 0..12 {
                thread::sleep(ms(25));
                stream.write_all(b".")?;
            }
            support::silence(stream)
        });
        for wait in BOTH {
            let mut socket = connect(&rt, addr).await.unwrap();
            // Each wait is shorter than its deadline, all of them together are longer.
            for _ in 0..12 {
                socket.set_deadline(Some(Instant::now() + ms(150)));
                assert_eq!(read(&mut *socket, wait).await.unwrap(), b".");
            }
            let start = Instant::now();
            socket.set_deadline(Some(start + ms(5_000)));
            socket.set_deadline(Some(start + ms(120)));
            assert!(read(&mut *socket, wait).await.is_err());
            assert_took(start, ms(120));
        }
    }

    pub(super) async fn deadlines_beyond_a_lifetime(rt: Rt) {
        let far = Instant::now() + Duration::from_secs(1 << 40);
        let addr = server(|mut stream| {
            thread::sleep(ms(30));
            stream.write_all(b"late")?;
            support::silence(stream)
        });
        for wait in BOTH {
            let mut socket = connect(&rt, addr).await.unwrap();
            socket.set_deadline(Some(far));
            assert_eq!(read(&mut *socket, wait).await.unwrap(), b"late");
        }
        let mut never = rt.sleep_until(far);
        let mut soon = rt.sleep_until(Instant::now() + ms(20));
        poll_fn(|cx| {
            assert!(never.as_mut().poll(cx).is_pending());
            soon.as_mut().poll(cx)
        })
        .await;
    }

    pub(super) async fn deadline_on_a_peer_that_does_not_read(rt: Rt) {
        let addr = server(|stream| {
            thread::sleep(ms(2_000));
            drop(stream);
            Ok(())
        });
        let mut socket = connect(&rt, addr).await.unwrap();
        let start = Instant::now();
        socket.set_deadline(Some(start + ms(200)));
        let error = verbs::write_all(&mut *socket, &vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_took(start, ms(200));
    }

    pub(super) async fn big_write_to_a_slow_reader(rt: Rt) {
        const SIZE: usize = 8 << 20;
        let (report, received) = mpsc::channel();
        let addr = server(move |mut stream| {
            let mut buf = vec![0; 256 << 10];
            let mut total = 0;
            loop {
                match stream.read(&mut buf)? {
                    0 => break,
                    n => total += n,
                }
                thread::sleep(ms(1));
            }
            report.send(total).map_err(io::Error::other)
        });
        let mut socket = connect(&rt, addr).await.unwrap();
        socket.set_deadline(Some(Instant::now() + ms(20_000)));
        verbs::write_all(&mut *socket, &vec![7; SIZE]).await.unwrap();
        verbs::close(&mut *socket).await.unwrap();
        assert_eq!(received.recv_timeout(ms(10_000)), Ok(SIZE));
    }

    /// An upload whose answer comes while it is still being sent: neither direction waits for the
    /// other.
    pub(super) async fn reading_beside_a_write_that_waits(rt: Rt) {
        let addr = server(|mut stream| {
            stream.write_all(b"413")?;
            thread::sleep(ms(100));
            support::silence(stream)
        });
        let mut socket = connect(&rt, addr).await.unwrap();
        let chunk = vec![0; 1 << 20];
        let (mut sent, mut answer) = (0, BytesMut::with_capacity(16));
        let done = poll_fn(|cx| {
            while sent < 32 << 20 {
                match socket.poll_write(cx, &[io::IoSlice::new(&chunk)]) {
                    Poll::Ready(n) => sent += n?,
                    Poll::Pending => break,
                }
            }
            let read = match socket.poll_read(cx, &mut answer, Wait::Beside) {
                Poll::Ready(n) => n? > 0,
                Poll::Pending => false,
            };
            let _ = read;
            if sent >= 32 << 20 && answer == b"413"[..] {
                return Poll::Ready(Ok::<_, io::Error>(()));
            }
            Poll::Pending
        });
        done.await.unwrap();
    }

    pub(super) async fn connection_refused(rt: Rt) {
        let error = connect(&rt, support::nobody()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    pub(super) async fn reset_while_reading(rt: Rt) {
        let addr = server(|stream| {
            thread::sleep(ms(30));
            socket2::SockRef::from(&stream).set_linger(Some(ms(0)))
        });
        for wait in BOTH {
            let mut socket = connect(&rt, addr).await.unwrap();
            let error = read(&mut *socket, wait).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            assert!(socket.is_stale(Probe::Free));
        }
    }

    pub(super) async fn unix_socket(rt: Rt) {
        let path = std::env::temp_dir().join(format!(
            "mimus-{}-{:?}.sock",
            std::process::id(),
            thread::current().id()
        ));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let serving = thread::spawn(move || support::echo(listener.accept()?.0));
        let to = Endpoint::Unix(path.clone());
        let mut socket = rt.connect(&to, &SocketOptions::default()).await.unwrap();
        assert_eq!((socket.peer_addr(), socket.local_addr()), (None, None));
        verbs::write_all(&mut *socket, b"over a file").await.unwrap();
        assert_eq!(read_exactly(&mut *socket, 11, Wait::Alone).await, b"over a file");
        drop(socket);
        serving.join().unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = rt.connect(&to, &SocketOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    pub(super) async fn staleness(rt: Rt) {
        let (close, closing) = mpsc::channel::<&'static [u8]>();
        let closing = Mutex::new(closing);
        let addr = server(move |mut stream| {
            let last = closing.lock().unwrap().recv().map_err(io::Error::other)?;
            stream.write_all(last)
        });
        for last in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\n\r\n"] {
            let mut socket = connect(&rt, addr).await.unwrap();
            assert!(!socket.is_stale(Probe::Free));
            assert!(!socket.is_stale(Probe::Thorough));
            close.send(last).unwrap();
            let patience = Instant::now() + ms(2_000);
            while !socket.is_stale(Probe::Thorough) {
                assert!(Instant::now() < patience, "the peer's end went unnoticed");
                rt.sleep_until(Instant::now() + ms(5)).await;
            }
        }
    }

    pub(super) async fn dropped_while_connecting(rt: Rt) {
        let (addr, _held) = support::full_backlog();
        for _ in 0..50 {
            let (to, options) = (Endpoint::Tcp(addr), SocketOptions::default());
            let mut attempt = rt.connect(&to, &options);
            let mut timer = rt.sleep_until(Instant::now() + ms(2));
            poll_fn(|cx| match attempt.as_mut().poll(cx) {
                Poll::Ready(done) => panic!("connected through a full backlog: {done:?}"),
                Poll::Pending => timer.as_mut().poll(cx),
            })
            .await;
        }
        assert!(connect(&rt, server(support::silence)).await.is_ok());
    }

    pub(super) async fn sleeping_and_blocking_work(rt: Rt) {
        let start = Instant::now();
        rt.sleep_until(start + ms(50)).await;
        assert_took(start, ms(50));
        rt.sleep_until(start).await;

        let shared = Arc::new(Mutex::new((None::<thread::ThreadId>, None::<Waker>)));
        let theirs = shared.clone();
        rt.spawn_blocking(Box::new(move || {
            thread::sleep(ms(30));
            let mut shared = theirs.lock().unwrap();
            shared.0 = Some(thread::current().id());
            if let Some(waker) = shared.1.take() {
                waker.wake();
            }
        }));
        let done = poll_fn(|cx| {
            let mut shared = shared.lock().unwrap();
            shared.1 = Some(cx.waker().clone());
            shared.0.map_or(Poll::Pending, Poll::Ready)
        });
        assert_ne!(done.await, thread::current().id());
    }

    /// A combinator that polls only the child that was woken: each child's own waker must be kept.
    pub(super) async fn children_with_wakers_of_their_own(rt: Rt) {
        let addr = server(support::echo);
        let mut first = connect(&rt, addr).await.unwrap();
        let mut second = connect(&rt, addr).await.unwrap();
        for socket in [&mut first, &mut second] {
            verbs::write_all(&mut **socket, b"x").await.unwrap();
        }
        let mut children = [Child::new(first), Child::new(second)];
        poll_fn(|cx| {
            children.iter_mut().for_each(|child| child.poll_if_woken(cx));
            let pending = children.iter().any(|c| c.got.is_none());
            if pending { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        assert!(children.iter().all(|c| c.got.as_deref() == Some(b"x")));
    }

    struct Child {
        socket: Box<dyn Socket>,
        wake: Arc<ChildWake>,
        got: Option<Vec<u8>>,
    }

    struct ChildWake {
        woken: std::sync::atomic::AtomicBool,
        parent: Mutex<Option<Waker>>,
    }

    impl std::task::Wake for ChildWake {
        fn wake(self: Arc<Self>) {
            self.woken.store(true, std::sync::atomic::Ordering::SeqCst);
            if let Some(parent) = &*self.parent.lock().unwrap() {
                parent.wake_by_ref();
            }
        }
    }

    impl Child {
        fn new(socket: Box<dyn Socket>) -> Self {
            let wake = ChildWake { woken: true.into(), parent: Mutex::new(None) };
            Child { socket, wake: Arc::new(wake), got: None }
        }

        fn poll_if_woken(&mut self, cx: &Context<'_>) {
            *self.wake.parent.lock().unwrap() = Some(cx.waker().clone());
            if !self.wake.woken.swap(false, std::sync::atomic::Ordering::SeqCst) {
                return;
            }
            let waker = Waker::from(self.wake.clone());
            let read = pin!(read(&mut *self.socket, Wait::Beside));
            if let Poll::Ready(got) = read.poll(&mut Context::from_waker(&waker)) {
                self.got = Some(got.unwrap());
            }
        }
    }
}

on_every_runtime!(
    echo,
    gathered_write_and_empty_slices,
    a_buffer_without_room_is_a_mistake,
    deadline_on_a_silent_peer,
    deadline_on_a_dripping_peer,
    deadlines_that_move,
    deadlines_beyond_a_lifetime,
    deadline_on_a_peer_that_does_not_read,
    big_write_to_a_slow_reader,
    reading_beside_a_write_that_waits,
    connection_refused,
    reset_while_reading,
    unix_socket,
    staleness,
    dropped_while_connecting,
    sleeping_and_blocking_work,
    children_with_wakers_of_their_own,
);

#[test]
fn tokio_wants_a_runtime_and_says_so() {
    assert!(mimus_net::rt::Tokio::current().is_err());
}
