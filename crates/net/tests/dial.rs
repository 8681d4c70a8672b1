//! From a plan to a connection, on every runtime.
#![cfg(all(feature = "tokio", feature = "smol"))]
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

mod bodies {
    use std::{
        error::Error,
        io,
        net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
        sync::Arc,
        thread,
        time::{Duration, Instant},
    };

    use mimus_net::{
        BoxFuture, DialError, DialErrorKind, Phase, Runtime, Wait,
        dial::{
            ConnectErrors, DialTimeouts, Dialed, Dialer, Host, Override, Plan, Resolve,
            StaticResolver,
        },
        rt::io as verbs,
    };

    use crate::support::{self, Rt, assert_took, ms, nobody, read_exactly, server};

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn name(name: &str) -> Host {
        Host::Name(name.into())
    }

    fn table(rt: Rt, ips: &[IpAddr]) -> Dialer {
        let table = StaticResolver::new().with("origin.test", ips.iter().copied());
        Dialer::new(rt).with_resolver(Arc::new(table))
    }

    async fn assert_echo(dialed: &mut Dialed) {
        verbs::write_all(&mut *dialed.socket, b"hello").await.unwrap();
        assert_eq!(read_exactly(&mut *dialed.socket, 5, Wait::Alone).await, b"hello");
    }

    fn failure(result: Result<Dialed, DialError>, phase: Phase, kind: DialErrorKind) -> DialError {
        let error = result.unwrap_err();
        assert_eq!((error.phase(), error.kind()), (phase, kind), "{error}");
        error
    }

    fn within(connect: Duration) -> DialTimeouts {
        DialTimeouts { connect: Some(connect), ..DialTimeouts::default() }
    }

    pub(super) async fn by_address_and_by_name(rt: Rt) {
        let addr = server(support::echo);
        let plan = Plan::new(Host::Addr(addr.ip(), 0), addr.port());
        let mut dialed =
            Dialer::new(rt.clone()).dial(&plan, &DialTimeouts::default()).await.unwrap();
        assert_echo(&mut dialed).await;
        assert!(dialed.timings.resolve.is_none() && dialed.timings.connect.is_some());
        assert!(dialed.timings.tls.is_none() && dialed.tls.is_none());

        let plan = Plan::new(name("localhost"), addr.port());
        let mut dialed = Dialer::new(rt).dial(&plan, &within(ms(5_000))).await.unwrap();
        assert_echo(&mut dialed).await;
        assert!(dialed.timings.resolve.is_some());
        assert_eq!(dialed.socket.peer_addr(), Some(addr));
    }

    pub(super) async fn overrides_come_first(rt: Rt) {
        let addr = server(support::echo);
        let to = |host: &str, port, addrs: &[SocketAddr]| Override {
            host: host.into(),
            port,
            addrs: addrs.to_vec(),
        };
        let dialer = table(rt, &[]).with_overrides(vec![
            to("origin.test", Some(1), &[nobody()]),
            to("origin.test", None, &[addr]),
            to("same-port.test", None, &[(V4, 0).into()]),
            to("nowhere.test", None, &[]),
        ]);
        let none = DialTimeouts::default();
        let plan = Plan::new(name("Origin.Test"), 443);
        assert_echo(&mut dialer.dial(&plan, &none).await.unwrap()).await;
        let plan = Plan::new(name("same-port.test"), addr.port());
        assert_echo(&mut dialer.dial(&plan, &none).await.unwrap()).await;
        let plan = Plan::new(name("nowhere.test"), 443);
        failure(dialer.dial(&plan, &none).await, Phase::Resolve, DialErrorKind::NameNotFound);
    }

    pub(super) async fn the_next_address_after_a_refusal(rt: Rt) {
        let addr = server(support::echo);
        // Nobody listens on 127.0.0.2 and ::1 with that port.
        let ips = [V6, [127, 0, 0, 2].into(), V4];
        let plan = Plan::new(name("origin.test"), addr.port());
        let start = Instant::now();
        let mut dialed = table(rt, &ips).dial(&plan, &DialTimeouts::default()).await.unwrap();
        assert!(start.elapsed() < ms(200), "waited although the others had failed");
        assert_echo(&mut dialed).await;
        assert_eq!(dialed.socket.peer_addr(), Some(addr));
    }

    pub(super) async fn the_next_address_beside_a_silent_one(rt: Rt) {
        let (silent, _held) = support::full_backlog();
        let served = TcpListener::bind(("127.0.0.3", silent.port())).unwrap();
        thread::spawn(move || support::echo(served.accept()?.0));
        let plan = Plan::new(name("origin.test"), silent.port());
        let start = Instant::now();
        let dialer = table(rt, &[V4, [127, 0, 0, 3].into()]);
        let mut dialed = dialer.dial(&plan, &within(ms(5_000))).await.unwrap();
        assert_took(start, ms(250));
        assert_echo(&mut dialed).await;
    }

    pub(super) async fn refused_by_one_and_by_all(rt: Rt) {
        let port = nobody().port();
        let plan = Plan::new(name("origin.test"), port);
        let none = DialTimeouts::default();
        let one = table(rt.clone(), &[V4]).dial(&plan, &none).await;
        let error = failure(one, Phase::Connect, DialErrorKind::Io);
        assert_eq!(error.to_string(), format!("origin.test:{port} (127.0.0.1)"));
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);

        let all = table(rt, &[V4, [127, 0, 0, 2].into()]).dial(&plan, &none).await;
        let error = failure(all, Phase::Connect, DialErrorKind::Io);
        assert_eq!(error.to_string(), format!("origin.test:{port} (2 addresses)"));
        let cause = error.source().unwrap().downcast_ref::<ConnectErrors>().unwrap();
        assert_eq!(cause.iter().count(), 2);
        let text = cause.to_string();
        assert!(text.contains("127.0.0.1: ") && text.contains("127.0.0.2: "), "{text}");
    }

    pub(super) async fn connect_timeout(rt: Rt) {
        let (addr, _held) = support::full_backlog();
        let plan = Plan::new(name("origin.test"), addr.port());
        let dialer = table(rt, &[V4]);
        let start = Instant::now();
        let late = dialer.dial(&plan, &within(ms(200))).await;
        assert_took(start, ms(200));
        let error = failure(late, Phase::Connect, DialErrorKind::Timeout);
        assert!(error.to_string().contains("(127.0.0.1): not done within 200ms"), "{error}");

        let start = Instant::now();
        let total = DialTimeouts { total: Some(start + ms(100)), ..within(ms(5_000)) };
        let late = dialer.dial(&plan, &total).await;
        assert_took(start, ms(100));
        let error = failure(late, Phase::Connect, DialErrorKind::Timeout);
        assert!(error.to_string().contains("total"), "{error}");
    }

    #[derive(Debug)]
    struct Never;

    impl Resolve for Never {
        fn resolve<'a>(
            &'a self,
            _: &'a str,
            _: &'a dyn Runtime,
        ) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::pending())
        }
    }

    pub(super) async fn resolve_timeout_and_unknown_names(rt: Rt) {
        let plan = Plan::new(name("origin.test"), 80);
        let dialer = Dialer::new(rt.clone()).with_resolver(Arc::new(Never));
        let start = Instant::now();
        let short = DialTimeouts { resolve: Some(ms(60)), ..DialTimeouts::default() };
        let late = dialer.dial(&plan, &short).await;
        assert_took(start, ms(60));
        failure(late, Phase::Resolve, DialErrorKind::Timeout);

        let unknown = table(rt.clone(), &[]).dial(&plan, &short).await;
        failure(unknown, Phase::Resolve, DialErrorKind::NameNotFound);
        let bad = Plan::new(name("a\0b"), 80);
        let bad = Dialer::new(rt.clone()).dial(&bad, &DialTimeouts::default()).await;
        failure(bad, Phase::Resolve, DialErrorKind::Config);
        let forever = DialTimeouts { resolve: Some(Duration::MAX), ..within(Duration::MAX) };
        let addr = server(support::echo);
        let plan = Plan::new(name("origin.test"), addr.port());
        assert!(table(rt, &[V4]).dial(&plan, &forever).await.is_ok());
    }

    pub(super) async fn bound_sockets(rt: Rt) {
        let addr = server(support::echo);
        let mut plan = Plan::new(name("origin.test"), addr.port());
        plan.socket.bind = Some([127, 0, 0, 7].into());
        let dialer = table(rt, &[V6, V4]);
        let none = DialTimeouts::default();
        let mut dialed = dialer.dial(&plan, &none).await.unwrap();
        assert_eq!(dialed.socket.local_addr().unwrap().ip(), IpAddr::from([127, 0, 0, 7]));
        assert_echo(&mut dialed).await;

        // Not an address of this machine (TEST-NET-3): the plan is wrong, not the peer.
        plan.socket.bind = Some([203, 0, 113, 1].into());
        let error = failure(dialer.dial(&plan, &none).await, Phase::Connect, DialErrorKind::Config);
        assert!(error.source().unwrap().to_string().contains("bind (203.0.113.1)"));

        let v6_only = Plan::new(Host::Addr(V6, 0), addr.port());
        let mut plan = v6_only.clone();
        plan.socket.bind = Some(V4);
        failure(dialer.dial(&plan, &none).await, Phase::Resolve, DialErrorKind::NameNotFound);
    }

    pub(super) async fn over_ipv6_where_there_is_one(rt: Rt) {
        let Ok(listener) = TcpListener::bind((V6, 0)) else {
            return;
        };
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || support::echo(listener.accept()?.0));
        let plan = Plan::new(Host::Addr(V6, 0), port);
        let mut dialed = Dialer::new(rt).dial(&plan, &DialTimeouts::default()).await.unwrap();
        assert_echo(&mut dialed).await;
    }

    pub(super) async fn unix_in_place_of_the_host(rt: Rt) {
        let none = DialTimeouts::default();
        let mut plan = Plan::new(name("origin.test"), 80);
        plan.unix = Some(std::env::temp_dir().join("mimus-nobody-listens-here.sock"));
        let dialer = table(rt, &[]);
        let error = failure(dialer.dial(&plan, &none).await, Phase::Connect, DialErrorKind::Io);
        assert!(error.to_string().contains("mimus-nobody-listens-here.sock"), "{error}");
    }
}

on_every_runtime!(
    by_address_and_by_name,
    overrides_come_first,
    the_next_address_after_a_refusal,
    the_next_address_beside_a_silent_one,
    refused_by_one_and_by_all,
    connect_timeout,
    resolve_timeout_and_unknown_names,
    bound_sockets,
    over_ipv6_where_there_is_one,
    unix_in_place_of_the_host,
);
