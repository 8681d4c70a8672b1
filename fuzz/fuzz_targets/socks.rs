//! Whatever a SOCKS proxy answers means the same however it is split, what comes behind the answer
//! is left alone, and no name, user or password adds to what is asked.

#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::BytesMut;
use mimus_fuzz::{Choices, fuzz};
use mimus_net::dial::Host;
use mimus_net::proxy::ProxyKind;
use mimus_net::proxy::socks::{Progress, Socks, SocksError};

/// The longest answer: a SOCKS5 reply with a name of 255 bytes.
const LONGEST_ANSWER: usize = 4 + 1 + 255 + 2;

const PORT: u16 = 0x1f90;

/// What is said to the proxy: the kind of conversation, and the words in it.
struct Asked {
    kind: ProxyKind,
    auth: Option<(String, String)>,
    target: Host,
}

impl Asked {
    fn chosen(choices: &mut Choices<'_>) -> Self {
        const KINDS: [ProxyKind; 5] = [
            ProxyKind::Socks4,
            ProxyKind::Socks4a,
            ProxyKind::Socks5,
            ProxyKind::Socks5h,
            ProxyKind::Http,
        ];
        let choice = choices.byte();
        let kind = KINDS[usize::from(choice & 0x0f) % KINDS.len()];
        let auth = (choice & 0x10 != 0).then(|| (choices.text(), choices.text()));
        let target = match choice >> 5 & 3 {
            0 => Host::Addr([192, 0, 2, 1].into(), 0),
            1 => Host::Addr([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(), 0),
            _ => Host::Name(choices.text()),
        };
        Asked { kind, auth, target }
    }

    fn machine(&self) -> Result<Socks, SocksError> {
        Socks::new(self.kind, self.auth.as_ref(), &self.target, PORT)
    }
}

/// How a conversation went.
#[derive(Debug, PartialEq)]
struct Outcome {
    written: Vec<Vec<u8>>,
    /// What came behind the proxy's answers, if the tunnel is made; whether there is one yet.
    end: Result<Option<Vec<u8>>, SocksError>,
}

fn converse(mut machine: Socks, input: &[u8], cuts: &[usize]) -> Outcome {
    let (mut rest, mut cuts) = (input, cuts.iter());
    let mut unread = BytesMut::new();
    let mut written = Vec::new();
    let end = loop {
        match machine.poll(&mut unread) {
            Err(error) => break Err(error),
            Ok(Progress::Write(bytes)) => written.push(bytes),
            Ok(Progress::Read) => {
                assert!(unread.len() < LONGEST_ANSWER, "wants more than any answer has");
                if rest.is_empty() {
                    break Ok(None);
                }
                let most = cuts.next().copied().unwrap_or(rest.len());
                let (now, later) = rest.split_at(most.clamp(1, rest.len()));
                unread.extend_from_slice(now);
                rest = later;
            }
            Ok(Progress::Done) => break Ok(Some([&unread[..], rest].concat())),
        }
        assert!(written.len() <= 3, "a greeting, credentials, a request: no more");
    };
    if let Ok(Some(behind)) = &end {
        assert!(input.ends_with(behind), "took what came through the tunnel");
    }
    Outcome { written, end }
}

/// Each message must be exactly as long as its own lengths and terminators say.
fn check_request(asked: &Asked, message: &[u8]) {
    let name = match &asked.target {
        Host::Name(name) => Some(name.as_bytes()),
        Host::Addr(..) => None,
    };
    match asked.kind {
        ProxyKind::Socks4 | ProxyKind::Socks4a => {
            assert_eq!(message[..4], [4, 1, 0x1f, 0x90]);
            let texts: Vec<&[u8]> = message[8..].split(|&byte| byte == 0).collect();
            let user = asked.auth.as_ref().map_or("", |(user, _)| user);
            let expected = [user.as_bytes()].into_iter().chain(name).chain([&b""[..]]);
            assert_eq!(texts, expected.collect::<Vec<_>>());
        }
        _ => {
            assert_eq!(message[..3], [5, 1, 0]);
            let address = match message[3] {
                1 => 4,
                3 => 1 + usize::from(message[4]),
                4 => 16,
                other => panic!("there is no address type {other}"),
            };
            assert_eq!(message.len(), 4 + address + 2);
            assert!(name.is_none_or(|name| message[5..].starts_with(name)));
        }
    }
}

fuzz!("socks", |data| {
    let mut choices = Choices::new(data);
    let asked = Asked::chosen(&mut choices);
    let (cuts, input) = (choices.cuts(), choices.rest());
    let Ok(machine) = asked.machine() else {
        return;
    };
    let again = || asked.machine().expect("it was accepted once");
    let whole = converse(machine, input, &[]);
    assert_eq!(whole, converse(again(), input, &cuts));
    assert_eq!(whole, converse(again(), input, &vec![1; input.len()]));
    if matches!(whole.end, Ok(Some(_))) {
        check_request(&asked, whole.written.last().expect("a tunnel was asked for"));
    }
});
