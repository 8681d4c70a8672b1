//! Which version of a peer was built.

/// The version of `package` in a `Cargo.lock`; `"?"` when it is not there. A peer that is locked in
/// several versions gives the first.
///
/// ```
/// let lock = "[[package]]\nname = \"ureq\"\nversion = \"3.1.0\"\n";
/// assert_eq!(mimus_bench_kit::locked(lock, "ureq"), "3.1.0");
/// ```
pub fn locked(lock: &str, package: &str) -> String {
    let mut lines = lock.lines();
    let name = format!("name = \"{package}\"");
    lines
        .find(|line| *line == name)
        .and_then(|_| lines.next())
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("?")
        .to_owned()
}
