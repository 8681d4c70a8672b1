//! A browser without a window, in a profile directory of its own.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    exit::{Exit, Failure},
    interrupt,
    output::harmless,
};

/// How long a browser may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked at whether it ended.
const TURN: Duration = Duration::from_millis(20);

/// It shall talk to nobody else.
const PREFERENCES: [(&str, &str); 14] = [
    ("app.update.enabled", "false"),
    ("browser.aboutwelcome.enabled", "false"),
    ("browser.newtabpage.enabled", "false"),
    ("browser.preonboarding.enabled", "false"),
    ("browser.safebrowsing.malware.enabled", "false"),
    ("browser.safebrowsing.phishing.enabled", "false"),
    ("browser.shell.checkDefaultBrowser", "false"),
    ("datareporting.policy.dataSubmissionEnabled", "false"),
    ("datareporting.usage.uploadEnabled", "false"),
    ("network.captive-portal-service.enabled", "false"),
    ("network.connectivity-service.enabled", "false"),
    ("services.settings.server", "\"https://127.0.0.1:9/\""),
    ("termsofuse.bypassNotification", "true"),
    ("toolkit.telemetry.reportingpolicy.firstRun", "false"),
];

/// A browser at work. Dropping it ends it.
pub(super) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `name`, which is `chromium`, `firefox` or the path of one, with all of its files in `folder`.
    pub(super) fn start(
        name: &str,
        folder: &Path,
        authority: &Path,
        keys: &str,
        url: &str,
    ) -> Result<Self, Failure> {
        let program = program(name)?;
        let file = program.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let data = folder.join("data");
        fs::create_dir(&data).map_err(|e| Failure::write(data.display(), &e))?;
        let mut command = Command::new(&program);
        if file.contains("firefox") {
            trust(&data, authority)?;
            write_preferences(&data)?;
            command.args(["--no-remote", "--headless", "--profile"]).arg(&data);
            if is_root() {
                command.env("MOZ_DISABLE_CONTENT_SANDBOX", "1");
            }
        } else {
            command.arg(format!("--user-data-dir={}", data.display())).arg(keys);
            command.args(["--headless", "--disable-gpu", "--no-first-run", "--disable-sync"]);
            command.args(["--disable-background-networking", "--disable-component-update"]);
            if is_root() {
                // Its sandbox does not start for root.
                command.arg("--no-sandbox");
            }
        }
        let log = folder.join("log");
        let said = File::create(&log).map_err(|e| Failure::write(log.display(), &e))?;
        let also = said.try_clone().map_err(|e| Failure::write(log.display(), &e))?;
        command.arg(url).env("HOME", folder);
        command.stdin(Stdio::null()).stdout(said).stderr(also);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(|e| cannot_start(&program, &e))?;
        Ok(Running { child, log })
    }

    /// What it said last, when it ended.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let said = fs::read(&self.log).unwrap_or_default();
        let last = said.trim_ascii().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        Some(format!("{status}: {}", harmless(last)))
    }

    /// Whether it ended in time.
    fn ends(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(TURN);
        }
        true
    }

    /// Asks it and what it started to end, or has them killed.
    #[cfg(unix)]
    fn signal(&mut self, kill: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let signal = if kill { Signal::KILL } else { Signal::TERM };
        // It leads a group of its own, which may be gone.
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal(&mut self, _: bool) {
        let _ = self.child.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ignored = interrupt::ignored();
        self.signal(false);
        self.ends();
        // Some of what it started may still write to its folder.
        self.signal(true);
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The program of this name, or at this path.
fn program(name: &str) -> Result<PathBuf, Failure> {
    let names: &[&str] = match name {
        "chromium" => &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
        "firefox" => &["firefox", "firefox-esr"],
        path if Path::new(path).components().nth(1).is_some() => {
            let path = PathBuf::from(path);
            fs::metadata(&path).map_err(|e| cannot_start(&path, &e))?;
            return Ok(path);
        }
        other => &[other],
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let places = names.iter().flat_map(|name| {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        folders.iter().map(move |folder| folder.join(&name))
    });
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let why = format!("--browser: none of {} is in PATH", names.join(", "));
        Failure::new(Exit::Usage, why)
    })
}

fn cannot_start(program: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("--browser: {} does not start: {error}", program.display()))
}

/// Makes a database of certificates with this one authority.
fn trust(folder: &Path, authority: &Path) -> Result<(), Failure> {
    let database = format!("sql:{}", folder.display());
    let authority = authority.display().to_string();
    let steps: [&[&str]; 2] =
        [&["-N", "--empty-password"], &["-A", "-n", "mimus", "-t", "C,,", "-i", &authority]];
    for step in steps {
        let done = Command::new("certutil").args(["-d", &database]).args(step).output();
        let done = done.map_err(|error| {
            let why = format!(
                "certutil, which tells Firefox whom to trust, does not start: {error}; Debian has it in \
                 libnss3-tools"
            );
            Failure::new(Exit::Usage, why)
        })?;
        if !done.status.success() {
            let why = format!("certutil: {}", harmless(done.stderr.trim_ascii()));
            return Err(Failure::new(Exit::Usage, why));
        }
    }
    Ok(())
}

fn write_preferences(folder: &Path) -> Result<(), Failure> {
    let mut text = String::new();
    for (name, value) in PREFERENCES {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "user_pref(\"{name}\", {value});");
    }
    let path = folder.join("user.js");
    fs::write(&path, text).map_err(|e| Failure::write(path.display(), &e))
}
