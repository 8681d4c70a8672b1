//! Help, man page, completions and version: all made from the flags.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use crate::{
    exit::{Exit, Failure},
    flags::{
        AboutFlags, Flags, HelpTopic, fingerprint::FingerprintFlags, grpc::GrpcFlags,
        profile::ProfileFlags, sse::SseFlags, ws::WsFlags,
    },
    output::{to_stdout, variable_names},
};

/// What follows the short help.
const MORE: &str =
    "Every flag, the exit codes and the environment: mimus --help all. The man page: mimus --man.
gRPC: mimus grpc --help. Server-sent events: mimus sse --help. WebSockets: mimus ws --help.
Fingerprints: mimus fingerprint --help. Browser profiles: mimus profile --help.";

/// What the environment can say.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("http_proxy, HTTPS_PROXY, ALL_PROXY", "The proxy to use, when there is no -x."),
    ("NO_PROXY", "The hosts to go to without a proxy."),
    ("NETRC", "The netrc file of -n."),
    ("SSL_CERT_FILE, SSL_CERT_DIR", "The trusted certificates, when there is no --cacert."),
    ("SSLKEYLOGFILE", "The file to write the secrets of TLS sessions to, for debugging."),
    ("PAGER", "The pager; less by default, cat or nothing for none."),
    ("NO_COLOR", "No colours, when it is not empty."),
];

/// What people do with it.
const EXAMPLES: &[(&str, &str)] = &[
    ("Show a page's head and body.", "mimus -i https://example.com/"),
    (
        "Send JSON, and see what comes back.",
        "mimus --json '{\"name\": \"value\"}' localhost:8080/api",
    ),
    ("Upload a file in a form.", "mimus -F photo=@cat.jpg -F title=Cat localhost:8080/upload"),
    ("Go on with a download that broke.", "mimus -C - -O https://example.com/large.iso"),
    (
        "Speak HTTP/2 to a server without TLS.",
        "mimus -v --http2-prior-knowledge http://localhost:8080/",
    ),
    (
        "Measure.",
        "mimus -s -o /dev/null -w '%{time_connect} %{time_total}\\n' https://example.com/",
    ),
];

/// A word in front of the others that makes this another program, and what its own help says.
struct Subject {
    command: fn() -> Command,
    /// What follows the short help.
    more: &'static str,
    /// What the man page says of it.
    about: &'static str,
    /// What people do with it.
    examples: &'static [(&'static str, &'static str)],
}

const GRPC: Subject = Subject {
    command: GrpcFlags::command,
    more: "Every flag and the exit codes: mimus grpc --help all. The man page: mimus grpc --man.",
    about: "mimus grpc calls a method with JSON and shows its replies as JSON. What the messages \
            are is asked of the server (gRPC reflection), or read from a descriptor set or from \
            .proto files. Replies go to the standard output, everything else to the standard \
            error; a call that failed exits with 100 and the number of its status.",
    examples: &[
        ("See what a server offers.", "mimus grpc localhost:50051 list"),
        (
            "Call a method.",
            "mimus grpc -d '{\"name\": \"wren\"}' localhost:50051 helloworld.Greeter/SayHello",
        ),
        (
            "Send a stream of messages as they are typed, by definitions of one's own.",
            "mimus grpc --proto chat.proto -d @ https://chat.example chat.Chat/Talk",
        ),
    ],
};

const SSE: Subject = Subject {
    command: SseFlags::command,
    more: "Every flag and the exit codes: mimus sse --help all. The man page: mimus sse --man.",
    about: "mimus sse shows the data of server-sent events as they come. When the stream ends or its \
            connection breaks, it connects again behind the last event, as browsers do: after the time \
            that the server names, and after longer where that fails. It ends when the server answers \
            204, and with --count, --no-reconnect or Ctrl-C. Data goes to the standard output, everything \
            else to the standard error.",
    examples: &[
        ("Follow a source.", "mimus sse https://example.com/events"),
        (
            "Take one type of events apart.",
            "mimus sse --event price --jsonl https://example.com/events | jq -r .data",
        ),
        (
            "See when the words of a model come.",
            "mimus sse --timing --json @prompt.json --bearer \"$KEY\" https://llm.example/v1/chat",
        ),
    ],
};

const WS: Subject = Subject {
    command: WsFlags::command,
    more: "Every flag and the exit codes: mimus ws --help all. The man page: mimus ws --man.",
    about: "mimus ws opens a WebSocket, sends each line of its input as a message, and shows each message \
            that comes. On a terminal lines can be edited and recalled. At the end of the input, or with \
            Ctrl-C, the socket is closed in order, and what comes until the server has closed too is \
            shown. Messages go to the standard output, text with a line end behind it, bytes as they are, \
            or on a terminal in hex; everything else goes to the standard error.",
    examples: &[
        ("Talk.", "mimus ws wss://echo.example/"),
        ("Ask one thing.", "echo '{\"op\": \"ping\"}' | mimus ws -1 wss://api.example/v1"),
        ("Listen.", "mimus ws --no-close --timing wss://feed.example/ </dev/null"),
    ],
};

const FINGERPRINT: Subject = Subject {
    command: FingerprintFlags::command,
    more: "Every flag and the exit codes: mimus fingerprint --help all. The man page: mimus \
           fingerprint --man.",
    about: "mimus fingerprint shows what a client looks like to a server: JA3, JA3N, JA4 and peetprint of \
            its ClientHello, Akamai's text of its HTTP/2 connection, and the order of its fields. With a \
            URL it shows this program: the request is really sent, but to a server of its own on this \
            machine that goes by the URL's name, so nobody else hears of it. With --listen it shows \
            whoever connects, and answers with what it saw, in JSON.",
    examples: &[
        ("See what a server would see.", "mimus fingerprint https://example.com/"),
        (
            "Watch a browser: trust ca.pem in it, or go on past its warning.",
            "mimus fingerprint --listen 127.0.0.1:8443 --ca-file ca.pem",
        ),
        ("Compare two clients.", "mimus fingerprint --jsonl https://example.com/ | jq .tls.ja4"),
    ],
};

const PROFILE: Subject = Subject {
    command: ProfileFlags::command,
    more: "Flags of capture: mimus profile capture --help. The exit codes: mimus profile --help all. The man \
           page: mimus profile --man.",
    about: "mimus profile shows the browsers that this program can look like with --as: what each says in \
            TLS, in HTTP/2 and in the fields of every kind of request, where that comes from, and how far \
            it was compared with the browser itself.",
    examples: &[
        ("See which there are.", "mimus profile list"),
        ("See all that one says.", "mimus profile show chrome"),
        ("See where two differ.", "mimus profile diff firefox-140 firefox-159"),
        ("Make one of a browser.", "mimus profile capture --browser firefox --out own.toml"),
        ("Look like one, and see what is sent.", "mimus --as chrome -v https://example.com/"),
    ],
};

/// Answers the flags that only ask about this program. `None` when there is work to do.
pub(crate) fn answer(about: &AboutFlags) -> Option<Result<(), Failure>> {
    if let Some(topic) = about.help {
        return Some(to_stdout(help(topic).as_bytes()));
    }
    if about.version {
        return Some(to_stdout(version().as_bytes()));
    }
    if about.man {
        let page = man().map_err(|e| Failure::write("the man page", &e));
        return Some(page.and_then(|page| to_stdout(&page)));
    }
    let shell = about.completions?;
    let mut script = Vec::new();
    // Completed as the subcommand that it looks like.
    let mut whole = Flags::command()
        .disable_help_subcommand(true)
        .subcommand(GrpcFlags::command().name("grpc"))
        .subcommand(SseFlags::command().name("sse"))
        .subcommand(WsFlags::command().name("ws"))
        .subcommand(FingerprintFlags::command().name("fingerprint"))
        .subcommand(ProfileFlags::command().name("profile"));
    clap_complete::generate(shell, &mut whole, "mimus", &mut script);
    Some(to_stdout(&script))
}

/// The same for `mimus grpc`.
pub(crate) fn answer_grpc(about: &AboutFlags) -> Option<Result<(), Failure>> {
    GRPC.answer(about)
}

/// The same for `mimus sse`.
pub(crate) fn answer_sse(about: &AboutFlags) -> Option<Result<(), Failure>> {
    SSE.answer(about)
}

/// The same for `mimus ws`.
pub(crate) fn answer_ws(about: &AboutFlags) -> Option<Result<(), Failure>> {
    WS.answer(about)
}

/// The same for `mimus fingerprint`.
pub(crate) fn answer_fingerprint(about: &AboutFlags) -> Option<Result<(), Failure>> {
    FINGERPRINT.answer(about)
}

/// The same for `mimus profile`.
pub(crate) fn answer_profile(about: &AboutFlags) -> Option<Result<(), Failure>> {
    PROFILE.answer(about)
}

impl Subject {
    /// Completions are those of the whole program.
    fn answer(&self, about: &AboutFlags) -> Option<Result<(), Failure>> {
        if let Some(topic) = about.help {
            return Some(to_stdout(self.help(topic).as_bytes()));
        }
        if about.man {
            let page = self.man().map_err(|e| Failure::write("the man page", &e));
            return Some(page.and_then(|page| to_stdout(&page)));
        }
        answer(about)
    }

    fn help(&self, topic: HelpTopic) -> String {
        let mut command = (self.command)();
        match topic {
            HelpTopic::Short => command.after_help(self.more).render_help().to_string(),
            HelpTopic::All => {
                let after =
                    [section("Exit codes", &exit_codes()), section("Environment", &environment())];
                command = command.after_long_help(after.join("\n"));
                command.render_long_help().to_string()
            }
        }
    }

    fn man(&self) -> io::Result<Vec<u8>> {
        let command = (self.command)().long_about(self.about);
        let man = Man::new(command.mut_args(|arg| arg.hide_short_help(false)));
        let mut page = Vec::new();
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        let mut extra = Roff::new();
        list(&mut extra, "EXIT STATUS", &exit_codes());
        list(&mut extra, "ENVIRONMENT", &environment());
        list(&mut extra, "EXAMPLES", &examples(self.examples));
        extra.to_writer(&mut page)?;
        Ok(page)
    }
}

fn examples(table: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    table.iter().map(|(what, line)| ((*what).to_owned(), *line)).collect()
}

fn help(topic: HelpTopic) -> String {
    let mut command = Flags::command();
    match topic {
        HelpTopic::Short => command.after_help(MORE).render_help().to_string(),
        HelpTopic::All => {
            let after =
                [section("Exit codes", &exit_codes()), section("Environment", &environment())];
            let after = [&after[..], &[variables()]].concat().join("\n");
            command = command.after_long_help(after);
            command.render_long_help().to_string()
        }
    }
}

fn exit_codes() -> Vec<(String, &'static str)> {
    Exit::TABLE.iter().map(|(code, meaning)| (code.to_string(), meaning.trim())).collect()
}

fn environment() -> Vec<(String, &'static str)> {
    ENVIRONMENT.iter().map(|(name, meaning)| ((*name).to_owned(), *meaning)).collect()
}

fn section(title: &str, rows: &[(String, &str)]) -> String {
    let mut text = format!("{title}:\n");
    for (name, meaning) in rows {
        let line = match name.len() {
            ..4 => format!("  {name:>3}  {meaning}\n"),
            _ => format!("  {name}\n          {meaning}\n"),
        };
        text.push_str(&line);
    }
    text
}

fn variables() -> String {
    let names: Vec<&str> = variable_names().collect();
    let lines: Vec<String> = names.chunks(5).map(|row| format!("  {}", row.join(", "))).collect();
    format!("Names for -w:\n{}\n", lines.join(",\n"))
}

fn version() -> String {
    let protocols = "HTTP/1.0, HTTP/1.1, HTTP/2, gRPC, server-sent events, WebSocket";
    let rest = "TLS 1.2 and 1.3, gzip, deflate, br, zstd, HTTP and SOCKS proxies, Unix sockets";
    format!("mimus {}\n{protocols}; {rest}\n", env!("CARGO_PKG_VERSION"))
}

fn man() -> io::Result<Vec<u8>> {
    let man = Man::new(manual_command());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut extra = Roff::new();
    list(&mut extra, "EXIT STATUS", &exit_codes());
    list(&mut extra, "ENVIRONMENT", &environment());
    list(&mut extra, "EXAMPLES", &examples(EXAMPLES));
    extra.control("SH", ["WRITE-OUT NAMES"]);
    extra.text([roman(variable_names().collect::<Vec<_>>().join(", "))]);
    extra.to_writer(&mut page)?;
    Ok(page)
}

fn manual_command() -> Command {
    Flags::command().long_about(
        "mimus fetches URLs, and sends what is to be sent, over HTTP. The body of the response goes \
         to the standard output, everything else to the standard error; the exit code says how it \
         went. Flags that curl has mean here what they mean there.",
    )
    // The man page is to be whole, and would leave out what the short help does.
    .mut_args(|arg| arg.hide_short_help(false))
}

fn list(roff: &mut Roff, title: &str, rows: &[(String, &str)]) {
    roff.control("SH", [title]);
    for (name, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(name.as_str())]);
        roff.text([roman(*meaning)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_help_is_short_and_the_long_one_is_whole() {
        let short = help(HelpTopic::Short);
        let all = help(HelpTopic::All);
        assert!(short.lines().count() < 80, "{}", short.lines().count());
        for arg in Flags::command().get_arguments() {
            if let Some(long) = arg.get_long() {
                assert!(all.contains(&format!("--{long}")), "{long} is not in the help");
            }
        }
        assert!(all.contains("  28  A timeout fired."));
        assert!(!short.contains("--retry-max-time") && short.contains("--location"));
    }

    #[test]
    fn each_subject_has_a_help_and_a_man_page_of_its_own() {
        for (subject, usage, lines) in [
            (GRPC, "mimus grpc [OPTIONS] URL list", 60),
            (SSE, "mimus sse [OPTIONS] URL", 90),
            (FINGERPRINT, "mimus fingerprint [OPTIONS] URL", 80),
            (PROFILE, "mimus profile [OPTIONS] [COMMAND]", 40),
        ] {
            let (short, all) = (subject.help(HelpTopic::Short), subject.help(HelpTopic::All));
            assert!(short.lines().count() < lines && short.contains(usage), "{short}");
            let page = String::from_utf8(subject.man().unwrap()).unwrap().replace("\\-", "-");
            for arg in (subject.command)().get_arguments() {
                if let Some(long) = arg.get_long() {
                    assert!(all.contains(&format!("--{long}")), "{long} is not in the help");
                    assert!(page.contains(&format!("--{long}")), "{long} is not in the man page");
                }
            }
            assert!(all.contains("105  The gRPC call ended with NOT_FOUND."), "{all}");
            assert!(page.contains("116"));
        }
    }

    #[test]
    fn the_man_page_has_every_flag_and_every_exit_code() {
        let page = String::from_utf8(man().unwrap()).unwrap().replace("\\-", "-");
        for arg in Flags::command().get_arguments() {
            let help = arg.get_help().unwrap().to_string();
            // Quotes and backslashes are escaped in roff.
            let plain = help.split(['\'', '\\', '"']).next().unwrap();
            let words: Vec<&str> = plain.split_whitespace().take(4).collect();
            assert!(page.contains(&words.join(" ")), "{help} is not in the man page");
            if let Some(long) = arg.get_long() {
                assert!(page.contains(&format!("--{long}")), "{long} is not in the man page");
            }
        }
        assert!(page.contains(".SH \"EXIT STATUS\"") || page.contains(".SH EXIT STATUS"), "{page}");
        assert!(page.contains("130"));
    }
}
