use proptest::prelude::*;

use super::*;

fn v4(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 443).into()
}

fn v6(n: u16) -> SocketAddr {
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, n], 443).into()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The addresses a race tries when every attempt fails at once.
fn order(mut race: Race<()>, now: Instant) -> Vec<SocketAddr> {
    let mut order = Vec::new();
    while let Step::Connect(id, addr) = race.poll(now) {
        order.push(addr);
        race.failed(id, (), now);
    }
    assert_eq!(race.poll(now), Step::Failed);
    order
}

#[test]
fn families_alternate_from_the_first_address_family() {
    let now = Instant::now();
    let addrs = [v6(1), v6(2), v6(3), v4(1), v4(2)];
    assert_eq!(order(Race::new(addrs, now), now), [v6(1), v4(1), v6(2), v4(2), v6(3)]);
    let addrs = [v4(1), v4(2), v6(1)];
    assert_eq!(order(Race::new(addrs, now), now), [v4(1), v6(1), v4(2)]);
    let two_first = Race::new([v6(1), v6(2), v6(3), v4(1)], now).with_first_family_count(2);
    assert_eq!(order(two_first, now), [v6(1), v6(2), v4(1), v6(3)]);
}

#[test]
fn attempts_are_staggered_and_a_failure_cuts_the_wait() {
    let start = Instant::now();
    let mut race = Race::new([v6(1), v4(1), v6(2)], start);
    let Step::Connect(first, _) = race.poll(start) else { panic!("nothing to connect to") };
    assert_eq!(race.poll(start), Step::WaitUntil(start + ms(250)));
    assert_eq!(race.poll(start + ms(249)), Step::WaitUntil(start + ms(250)));
    race.failed(first, "refused", start + ms(100));
    let Step::Connect(second, addr) = race.poll(start + ms(100)) else { panic!("no fail-over") };
    assert_eq!(addr, v4(1));
    assert_eq!(race.poll(start + ms(100)), Step::WaitUntil(start + ms(350)));
    let Step::Connect(third, _) = race.poll(start + ms(350)) else { panic!("no third attempt") };
    assert_eq!(race.poll(start + ms(350)), Step::Wait);
    assert_eq!(race.running().collect::<Vec<_>>(), [v4(1), v6(2)]);
    race.failed(third, "reset", start + ms(400));
    assert_eq!(race.poll(start + ms(400)), Step::Wait);
    race.failed(second, "unreachable", start + ms(500));
    assert_eq!(race.poll(start + ms(500)), Step::Failed);
    assert_eq!(
        race.into_failures(),
        [(v6(1), "refused"), (v4(1), "unreachable"), (v6(2), "reset")]
    );
}

#[test]
fn late_addresses_join_and_revive() {
    let start = Instant::now();
    let mut race = Race::new([v4(1)], start).with_delay(ms(50));
    let Step::Connect(only, _) = race.poll(start) else { panic!("nothing to connect to") };
    assert_eq!(race.poll(start), Step::Wait);
    race.add([v4(1), v4(2), v6(1)]);
    assert_eq!(race.poll(start), Step::WaitUntil(start + ms(50)));
    assert!(matches!(race.poll(start + ms(50)), Step::Connect(id, addr)
        if addr == v6(1) && id != only));
    race.failed(only, (), start + ms(51));
    race.failed(only, (), start + ms(51));
    assert!(matches!(race.poll(start + ms(51)), Step::Connect(_, addr) if addr == v4(2)));

    let mut race = Race::<()>::new([], start);
    assert_eq!(race.poll(start), Step::Failed);
    race.add([v4(9)]);
    assert!(matches!(race.poll(start), Step::Connect(_, addr) if addr == v4(9)));
}

#[test]
fn a_name_with_too_many_addresses_is_cut_short() {
    let now = Instant::now();
    let race = Race::new((0..1000).map(v6), now);
    assert_eq!(order(race, now).len(), MAX_ADDRS);
}

#[test]
fn errors_name_each_address_and_stay_short() {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let errors = ConnectErrors(vec![(v4(1), refused()), (v6(1), io::Error::other("no route"))]);
    assert_eq!(errors.to_string(), "192.0.2.1: connection refused; 2001:db8::1: no route");
    let many = ConnectErrors((0..60).map(|n| (v4(n), refused())).collect());
    assert!(many.to_string().ends_with("192.0.2.7: connection refused; and 52 more"));
}

/// What the network does with an attempt, in milliseconds after its start.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Connects(u64),
    Fails(u64),
    Silent,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => (0..900u64).prop_map(Fate::Connects),
        5 => (0..900u64).prop_map(Fate::Fails),
        2 => Just(Fate::Silent),
    ]
}

struct Begun {
    id: AttemptId,
    addr: SocketAddr,
    at: u64,
    fate: Fate,
    over: bool,
}

/// A race on a virtual clock, to its end: what was begun when, the failures' instants, the winner.
fn run(addrs: &[(SocketAddr, Fate)]) -> (Vec<Begun>, Vec<u64>, Option<SocketAddr>) {
    let start = Instant::now();
    let mut race = Race::new(addrs.iter().map(|(addr, _)| *addr), start);
    let (mut begun, mut failures, mut now) = (Vec::<Begun>::new(), Vec::new(), 0);
    loop {
        let wake = match race.poll(start + ms(now)) {
            Step::Connect(id, addr) => {
                let fate = addrs.iter().find(|(a, _)| *a == addr).unwrap().1;
                begun.push(Begun { id, addr, at: now, fate, over: false });
                continue;
            }
            Step::WaitUntil(at) => {
                assert!(at > start + ms(now), "told to wait for the past");
                Some((at - start).as_millis() as u64)
            }
            Step::Wait => None,
            Step::Failed => {
                assert!(begun.iter().all(|b| b.over), "gave up on an attempt under way");
                return (begun, failures, None);
            }
        };
        let ends = |b: &Begun| match b.fate {
            Fate::Connects(after) | Fate::Fails(after) if !b.over => Some(b.at + after),
            _ => None,
        };
        let next = begun.iter_mut().filter_map(|b| Some((ends(b)?, b))).min_by_key(|(at, _)| *at);
        match next {
            Some((at, attempt)) if wake.is_none_or(|wake| at <= wake) => {
                now = at;
                attempt.over = true;
                if let Fate::Connects(_) = attempt.fate {
                    let winner = attempt.addr;
                    return (begun, failures, Some(winner));
                }
                failures.push(now);
                race.failed(attempt.id, (), start + ms(now));
            }
            _ => match wake {
                Some(wake) => now = wake,
                // Only silent ones are left: the driver's deadline ends it.
                None => return (begun, failures, None),
            },
        }
    }
}

proptest! {
    #[test]
    fn races_keep_the_rules(
        hosts in proptest::collection::vec((any::<bool>(), fate()), 1..12)
    ) {
        let addrs: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(n, (six, fate))| (if *six { v6(n as u16) } else { v4(n as u8) }, *fate))
            .collect();
        let (begun, failures, winner) = run(&addrs);

        prop_assert_eq!(begun[0].addr, addrs[0].0);
        for (i, attempt) in begun.iter().enumerate() {
            prop_assert!(begun[..i].iter().all(|b| b.addr != attempt.addr), "tried twice");
        }
        for pair in begun.windows(2) {
            let early = pair[1].at < pair[0].at + 250;
            prop_assert!(!early || failures.contains(&pair[1].at), "begun early for no reason");
            prop_assert!(pair[1].at <= pair[0].at + 250, "begun late");
        }
        for failure in failures {
            prop_assert!(
                begun.iter().all(|b| b.at <= failure) || begun.iter().any(|b| b.at == failure),
                "a failure did not bring the next attempt forward"
            );
        }
        for i in 1..begun.len() {
            let last_is_v6 = begun[i - 1].addr.is_ipv6();
            let other_left = addrs.iter().any(|(addr, _)| {
                addr.is_ipv6() != last_is_v6 && begun[..i].iter().all(|b| b.addr != *addr)
            });
            prop_assert!(
                !other_left || begun[i].addr.is_ipv6() != last_is_v6,
                "the families do not alternate"
            );
        }
        match winner {
            Some(winner) => prop_assert!(begun.iter().any(|b| b.addr == winner)),
            None => {
                prop_assert_eq!(begun.len(), addrs.len(), "an address was never tried");
                let connects = |(_, fate): &(_, Fate)| matches!(fate, Fate::Connects(_));
                prop_assert!(!addrs.iter().any(connects), "a connection was missed");
            }
        }
    }
}
