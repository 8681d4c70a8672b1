//! `mimus ws` as a person at a terminal meets it.

use std::{
    fs::{File, OpenOptions},
    io::{BufReader, Read, Write},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use mimus_testkit::Origin;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::rig::command;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program at a terminal of its own.
struct Session {
    child: Child,
    keys: File,
    shown: Receiver<u8>,
}

impl Session {
    fn begin(args: &[&str]) -> Session {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&name).map(Stdio::from);
        let mut command = command(args);
        command.env("TERM", "xterm").stdin(open().unwrap());
        command.stdout(open().unwrap()).stderr(open().unwrap());
        let child = command.spawn().unwrap();
        let keys = File::from(keyboard);
        let (tell, shown) = channel();
        let screen = keys.try_clone().unwrap();
        // Ends with the program: the terminal then has nobody on its other side.
        let screen = BufReader::new(screen);
        thread::spawn(move || screen.bytes().map_while(Result::ok).try_for_each(|b| tell.send(b)));
        Session { child, keys, shown }
    }

    /// Presses a key and waits until `shown` is: with keys that come together, the line editor shows the
    /// second when the third comes.
    #[track_caller]
    fn press(&mut self, key: &str, shown: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
        self.sees(shown);
    }

    /// Waits until `text` is shown.
    #[track_caller]
    fn sees(&mut self, text: &str) {
        let mut seen = Vec::new();
        while !seen.ends_with(text.as_bytes()) {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(byte) => seen.push(byte),
                Err(_) => panic!("no {text:?} in {:?}", String::from_utf8_lossy(&seen)),
            }
        }
    }

    /// Presses a key, and waits for the end that it makes.
    #[track_caller]
    fn ends(mut self, key: &str, code: i32) {
        self.keys.write_all(key.as_bytes()).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(code));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Of a test that failed: nothing, if it has ended.
        let _ = self.child.kill();
    }
}

fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}

const BACKSPACE: &str = "\x7f";
const HOME: &str = "\x1b[H";
const UP: &str = "\x1b[A";
const ENTER: &str = "\r";
/// What the editor writes to take off the end of a line.
const SHORTER: &str = "\x1b[K";

fn messages(origin: &Origin) -> u64 {
    let last = origin.requests().into_iter().rev().find_map(|seen| seen.ws);
    last.expect("a socket was opened").messages
}

#[test]
fn a_line_can_be_edited_and_had_again() {
    let origin = Origin::start().unwrap();
    let url = origin.http_url("/ws/echo").replace("http://", "ws://");
    let mut session = Session::begin(&["ws", &url]);
    session.sees("> ");
    session.press(&pasted("irdx"), "irdx");
    session.press(BACKSPACE, SHORTER);
    session.press("s", "s");
    session.press(HOME, "D");
    session.press("b", "birds");
    session.press(ENTER, "birds\r\n");
    session.sees("> ");
    session.press(UP, "birds");
    session.press(BACKSPACE, SHORTER);
    session.press(ENTER, "bird\r\n");
    session.sees("> ");
    session.ends("\x04", 0);
    assert_eq!(messages(&origin), 2);
}

#[test]
fn ctrl_c_at_the_prompt_closes_in_order() {
    let origin = Origin::start().unwrap();
    let url = origin.http_url("/ws/echo").replace("http://", "ws://");
    let mut session = Session::begin(&["ws", &url]);
    session.sees("> ");
    session.press(&pasted("unsent"), "unsent");
    session.ends("\x03", 130);
    assert_eq!(messages(&origin), 0);
}
