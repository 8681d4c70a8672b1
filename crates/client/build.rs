//! Reads the profiles that are compiled in, by the code that reads a user's, and fails where one is wrong; what it
//! finds is the table of `profile::compiled`.

use std::{collections::BTreeMap, env, error::Error as StdError, fs, path::Path};

#[path = "src/profile/error.rs"]
#[allow(dead_code, reason = "what only a user's files can have wrong")]
mod error;
#[path = "src/profile/inherit.rs"]
mod inherit;
#[path = "src/profile/schema.rs"]
#[allow(dead_code, reason = "what is made of a file")]
mod schema;
#[path = "build/table.rs"]
mod table;

/// Where the files are, from the directory of the manifest, in which build scripts run.
const DATA: &str = "src/profile/data";

fn main() -> Result<(), Box<dyn StdError>> {
    say(&format!("rerun-if-changed={DATA}"));
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(DATA)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(name) = name.filter(|_| path.extension().is_some_and(|end| end == "toml")) {
            files.insert(name.to_owned(), fs::read_to_string(&path)?);
        }
    }
    match table::of(&files) {
        Ok(rust) => {
            let out = env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?;
            Ok(fs::write(Path::new(&out).join("profiles.rs"), rust)?)
        }
        Err(why) => {
            say(&format!("error={DATA}/{why}"));
            Ok(())
        }
    }
}

/// Tells cargo.
#[allow(clippy::print_stdout, reason = "what is printed is how a build script says something")]
fn say(what: &str) {
    println!("cargo::{what}");
}
