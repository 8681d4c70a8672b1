//! Virtual environments, in which clients in Python run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::build::watch;
use crate::client::Executable;
use crate::progress::Progress;

/// What is installed, each version pinned, with all that it needs. A directory that has it is an environment.
const PINNED: &str = "requirements.txt";
/// What is built from this repository, where there is such a file: each time anew, optimised.
const BUILT: &str = "project.txt";
/// What every client in Python runs: the first argument is its adapter.
const CLIENT: &str = "bench/python/client.py";

/// An environment: what it is made of, and where it is.
#[derive(Debug)]
pub struct Environment {
    /// The directory with the lists.
    source: PathBuf,
    /// The environment itself.
    made: PathBuf,
    client: PathBuf,
}

impl Environment {
    /// The environment that `package`, below `bench/` of `root`, describes, if it does.
    pub fn find(root: &Path, package: &str) -> Option<Self> {
        let source = root.join("bench").join(package);
        source.join(PINNED).is_file().then(|| Self {
            source,
            made: root.join("bench/target").join(package),
            client: root.join(CLIENT),
        })
    }

    /// Makes it what the lists say, and gives what runs `adapter` in it.
    pub fn provide(&self, adapter: &str, progress: &Progress) -> Result<Executable> {
        let wanted = self.wanted()?;
        if !self.is_made_of(&wanted) {
            self.make(progress)?;
            self.note(&wanted)?;
        }
        if self.source.join(BUILT).is_file() {
            // Without isolation, so that the builder is the one that is pinned, and stays where it is: cargo
            // would take another one for a reason to build everything again. By force, because the version says
            // nothing of what was built.
            let anew = ["--force-reinstall", "--no-build-isolation", "--no-deps", "-r", BUILT];
            self.install(&anew, progress)?;
        }
        Ok(Executable {
            file: self.made.join("bin/python"),
            leading: vec![self.client.clone().into(), adapter.into()],
        })
    }

    /// What makes the environment what it is: the interpreter's version, and the list.
    fn wanted(&self) -> Result<String> {
        let version = Command::new(interpreter()).arg("--version").output();
        let version =
            version.with_context(|| format!("there is no {}", interpreter().display()))?;
        ensure!(version.status.success(), "{} does not run", interpreter().display());
        let list = std::fs::read_to_string(self.source.join(PINNED))?;
        Ok(format!("# {}\n{list}", String::from_utf8_lossy(&version.stdout).trim()))
    }

    fn is_made_of(&self, wanted: &str) -> bool {
        std::fs::read_to_string(self.made.join(PINNED)).is_ok_and(|made| made == wanted)
    }

    /// Notes what it was made of: last of all, so that what was interrupted is made again.
    fn note(&self, wanted: &str) -> Result<()> {
        std::fs::create_dir_all(&self.made)
            .and_then(|()| std::fs::write(self.made.join(PINNED), wanted))
            .context("cannot note what was installed")
    }

    fn make(&self, progress: &Progress) -> Result<()> {
        let mut venv = Command::new(interpreter());
        watch(venv.args(["-m", "venv", "--clear"]).arg(&self.made), progress)
            .context("no virtual environment")?;
        self.install(&["--no-deps", "-r", PINNED], progress)
    }

    fn install(&self, what: &[&str], progress: &Progress) -> Result<()> {
        let programs = self.made.join("bin");
        let mut path = programs.clone().into_os_string();
        if let Some(before) = std::env::var_os("PATH") {
            path.push(":");
            path.push(before);
        }
        let mut pip = Command::new(programs.join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(what)
            // Paths in a list are read from here.
            .current_dir(&self.source)
            .env("PATH", path)
            .env("VIRTUAL_ENV", &self.made)
            // What `cargo run` sets for this process is not meant for the one below.
            .env_remove("CARGO_MANIFEST_DIR");
        watch(&mut pip, progress).context("pip")
    }
}

/// The interpreter that environments are made with.
fn interpreter() -> OsString {
    std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use mimus_bench_kit::{Answer, Deliver, Job, Protocol, Upload};

    use super::*;
    use crate::client::{Client, Program};

    /// Answers each request without a body on one connection with three bytes; gives its URL.
    fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/b/3", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            let (mut answers, _) = listener.accept().expect("a client");
            for line in BufReader::new(answers.try_clone().expect("a socket")).lines() {
                if line.is_ok_and(|line| line.is_empty())
                    && answers
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
                        .is_err()
                {
                    return;
                }
            }
        });
        url
    }

    #[test]
    fn the_kit_in_python_speaks_as_the_one_in_rust() {
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/client.py");
        let leading = vec![client.into_os_string(), "http_client".into()];
        let program = Program {
            executable: Executable { file: interpreter().into(), leading },
            config: "sync".into(),
            ca: None,
            protocol: Protocol::Http1,
            runtime: "current".into(),
            ours: false,
        };
        let mut client = Client::start(&program, None).expect("it greets");
        assert_eq!((&*client.hello.name, &*client.hello.config), ("http_client", "sync"));
        let url = serve();
        let mut run = |body, upload, in_flight| {
            let (deliver, cold, rate) = (Deliver::Bytes, false, None);
            let job = Job {
                url: url.clone(),
                ops: 20,
                in_flight,
                upload,
                deliver,
                body,
                cold,
                rate,
                warm_up: 2,
            };
            client.run(&job, Duration::from_secs(60)).expect("an answer")
        };
        let Answer::Sample(sample) = run(3, Upload::None, 1) else { panic!("it can do that") };
        assert_eq!((sample.ops, sample.bytes, sample.latency.len()), (20, 60, 20));
        assert_eq!(sample.failures, []);
        assert!(sample.wall >= sample.latency.iter().sum() && sample.peak_rss > 0);

        let Answer::Sample(sample) = run(4, Upload::None, 1) else { panic!("it can do that") };
        let what = "a body of 3 bytes instead of 4";
        assert_eq!(sample.failures, [(what.into(), 20), (format!("warm-up: {what}"), 2)]);
        assert_eq!((sample.ops, sample.latency.len()), (0, 0));
        assert!(matches!(run(3, Upload::Chunked(9), 1), Answer::Unsupported(_)));
        assert!(matches!(run(3, Upload::None, 2), Answer::Unsupported(_)));
    }

    #[test]
    fn a_directory_with_pinned_packages_is_an_environment() {
        let root = tempfile::tempdir().expect("a directory");
        let source = root.path().join("bench/python/peers");
        std::fs::create_dir_all(&source).expect("directories");
        assert!(Environment::find(root.path(), "python/peers").is_none());
        std::fs::write(source.join(PINNED), "six==1.17.0\n").expect("a list");
        let found = Environment::find(root.path(), "python/peers").expect("it is one");
        assert_eq!(found.made, root.path().join("bench/target/python/peers"));
    }

    #[test]
    fn an_environment_is_made_again_when_its_list_changes() {
        let root = tempfile::tempdir().expect("a directory");
        let source = root.path().join("bench/python/none");
        std::fs::create_dir_all(&source).expect("directories");
        let list = source.join(PINNED);
        std::fs::write(&list, "six==1.16.0\n").expect("a list");
        let environment = Environment::find(root.path(), "python/none").expect("it is one");
        let wanted = environment.wanted().expect("there is an interpreter");
        assert!(wanted.starts_with("# Python 3."), "{wanted}");
        assert!(!environment.is_made_of(&wanted), "nothing was made");
        environment.note(&wanted).expect("it is noted");
        assert!(environment.is_made_of(&wanted));
        std::fs::write(&list, "six==1.17.0\n").expect("a list");
        let wanted = environment.wanted().expect("there is an interpreter");
        assert!(!environment.is_made_of(&wanted), "it holds another version");
    }
}
