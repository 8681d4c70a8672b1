//! What only the blocking runtime has to get right: whose thread it is, and who may wake it.
#![cfg(all(feature = "tokio", feature = "smol"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Instant,
};

use bytes::BytesMut;
use mimus_net::{
    Wait,
    rt::{Blocking, io as verbs},
};
use support::{Rt, assert_took, connect, ms, read, read_exactly, server};

fn rt() -> Rt {
    Arc::new(Blocking)
}

/// A flag that another thread raises after `after`, waking whoever waits for it.
fn raised_after(after: std::time::Duration) -> impl Future<Output = ()> {
    let shared = Arc::new((AtomicBool::new(false), Mutex::new(None::<Waker>)));
    let theirs = shared.clone();
    thread::spawn(move || {
        thread::sleep(after);
        theirs.0.store(true, Ordering::SeqCst);
        if let Some(waker) = theirs.1.lock().unwrap().take() {
            waker.wake();
        }
    });
    poll_fn(move |cx| {
        *shared.1.lock().unwrap() = Some(cx.waker().clone());
        if shared.0.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    })
}

async fn echo_once(addr: std::net::SocketAddr) {
    let mut socket = connect(&rt(), addr).await.unwrap();
    verbs::write_all(&mut *socket, b"hello").await.unwrap();
    assert_eq!(read_exactly(&mut *socket, 5, Wait::Alone).await, b"hello");
}

#[test]
fn woken_from_another_thread() {
    let start = Instant::now();
    Blocking::block_on(raised_after(ms(50)));
    assert_took(start, ms(50));
}

#[test]
fn woken_from_another_thread_while_a_socket_is_pending() {
    Blocking::block_on(async {
        let mut socket = connect(&rt(), server(support::silence)).await.unwrap();
        for _ in 0..3 {
            let start = Instant::now();
            let mut flag = pin!(raised_after(ms(50)));
            let mut buf = BytesMut::with_capacity(16);
            poll_fn(|cx| {
                assert!(socket.poll_read(cx, &mut buf, Wait::Beside).is_pending());
                flag.as_mut().poll(cx)
            })
            .await;
            assert_took(start, ms(50));
        }
    });
}

#[test]
fn one_of_several_does_not_put_the_thread_to_sleep() {
    Blocking::block_on(async {
        let mut silent = connect(&rt(), server(support::silence)).await.unwrap();
        let mut flag = pin!(raised_after(ms(50)));
        let mut buf = BytesMut::with_capacity(16);
        // Alone it would sleep for as long as nothing comes, which is for ever.
        poll_fn(|cx| {
            let read = Blocking::beside(|| silent.poll_read(cx, &mut buf, Wait::Alone));
            assert!(read.is_pending());
            flag.as_mut().poll(cx)
        })
        .await;
    });
}

#[test]
fn thousands_of_wakes_lose_none() {
    Blocking::block_on(async {
        let mut socket = connect(&rt(), server(support::silence)).await.unwrap();
        let mut buf = BytesMut::with_capacity(16);
        for round in 0..2_000u32 {
            let mut flag =
                pin!(raised_after(std::time::Duration::from_micros(u64::from(round % 60))));
            poll_fn(|cx| {
                if round % 2 == 0 {
                    assert!(socket.poll_read(cx, &mut buf, Wait::Beside).is_pending());
                }
                flag.as_mut().poll(cx)
            })
            .await;
        }
    });
}

#[test]
fn a_future_that_wakes_itself_runs_again() {
    let mut left = 1_000;
    Blocking::block_on(poll_fn(|cx| {
        left -= 1;
        cx.waker().wake_by_ref();
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }));
}

#[test]
fn inside_a_tokio_runtime() {
    let addr = server(support::echo);
    support::current_thread(|_| async move { Blocking::block_on(echo_once(addr)) });
    support::multi_thread(|_| async move { Blocking::block_on(echo_once(addr)) });
}

#[test]
fn inside_itself() {
    let addr = server(support::echo);
    Blocking::block_on(async {
        let mut outer = connect(&rt(), addr).await.unwrap();
        verbs::write_all(&mut *outer, b"outer").await.unwrap();
        let mut buf = BytesMut::with_capacity(16);
        let start = Instant::now();
        let mut timer = rt().sleep_until(start + ms(60));
        let mut nested = false;
        poll_fn(|cx| {
            let timer = timer.as_mut().poll(cx);
            // What the outer future waits for must survive the inner one's waiting.
            if !std::mem::replace(&mut nested, true) {
                Blocking::block_on(echo_once(addr));
                Blocking::block_on(rt().sleep_until(Instant::now() + ms(10)));
            }
            timer
        })
        .await;
        assert_took(start, ms(60));
        verbs::read(&mut *outer, &mut buf, Wait::Beside).await.unwrap();
        assert_eq!(buf, b"outer"[..]);
    });
}

#[test]
fn waiting_outside_of_block_on_is_an_error_and_no_hang() {
    let noop = || Context::from_waker(Waker::noop());
    let addr = server(support::silence);
    let mut socket = Blocking::block_on(connect(&rt(), addr)).unwrap();
    for wait in [Wait::Alone, Wait::Beside] {
        let mut buf = BytesMut::with_capacity(16);
        let Poll::Ready(Err(error)) = socket.poll_read(&mut noop(), &mut buf, wait) else {
            panic!("read outside of block_on")
        };
        assert!(error.to_string().contains("block_on"), "{error}");
    }
    // What need not wait is done.
    let write = socket.poll_write(&mut noop(), &[std::io::IoSlice::new(b"x")]);
    assert!(matches!(write, Poll::Ready(Ok(1))));
    assert!(smol::block_on(connect(&rt(), addr)).is_err());

    let start = Instant::now();
    smol::block_on(rt().sleep_until(start + ms(30)));
    assert_took(start, ms(30));
}

#[test]
fn a_socket_may_move_between_threads() {
    let mut socket = Blocking::block_on(connect(&rt(), server(support::echo))).unwrap();
    // Leaves interest behind in this thread's reactor.
    Blocking::block_on(async {
        let mut buf = BytesMut::with_capacity(16);
        poll_fn(|cx| {
            assert!(socket.poll_read(cx, &mut buf, Wait::Beside).is_pending());
            Poll::Ready(())
        })
        .await;
    });
    let moved = thread::spawn(move || {
        Blocking::block_on(async {
            verbs::write_all(&mut *socket, b"moved").await.unwrap();
            read(&mut *socket, Wait::Beside).await.unwrap()
        })
    });
    assert_eq!(moved.join().unwrap(), b"moved");
}

#[test]
fn a_panic_leaves_the_thread_usable() {
    let addr = server(support::echo);
    let result = thread::spawn(move || {
        let panicked = std::panic::catch_unwind(|| {
            Blocking::block_on(async { panic!("of the user's") });
        });
        assert!(panicked.is_err());
        assert!(smol::block_on(connect(&rt(), addr)).is_err(), "still thinks it is inside");
        Blocking::block_on(echo_once(addr));
    });
    result.join().unwrap();
}

#[test]
fn a_timer_beside_what_never_comes() {
    let start = Instant::now();
    Blocking::block_on(async {
        let mut never = pin!(pending::<()>());
        let mut timer = rt().sleep_until(start + ms(40));
        poll_fn(|cx| {
            assert!(never.as_mut().poll(cx).is_pending());
            timer.as_mut().poll(cx)
        })
        .await;
    });
    assert_took(start, ms(40));
}
