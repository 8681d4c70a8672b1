//! What is wrong with a profile. The build script says it, too.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why there is no such profile.
#[derive(Debug)]
pub struct Error(Reason);

#[derive(Debug)]
enum Reason {
    Unknown { name: String, near: Vec<&'static str> },
    Syntax(Box<toml::de::Error>),
    Invalid { name: String, what: String },
    Unreadable(PathBuf, io::Error),
}

impl Error {
    /// There is no profile of this name; `near` come near it.
    pub(super) fn unknown(name: &str, near: Vec<&'static str>) -> Error {
        Error(Reason::Unknown { name: name.to_owned(), near })
    }

    pub(super) fn syntax(cause: toml::de::Error) -> Error {
        Error(Reason::Syntax(Box::new(cause)))
    }

    pub(super) fn invalid(name: &str, what: impl fmt::Display) -> Error {
        Error(Reason::Invalid { name: name.to_owned(), what: what.to_string() })
    }

    pub(super) fn unreadable(path: &Path, cause: io::Error) -> Error {
        Error(Reason::Unreadable(path.to_owned(), cause))
    }

    /// The names that come near the one that there is not, the nearest first.
    pub fn near(&self) -> &[&'static str] {
        match &self.0 {
            Reason::Unknown { near, .. } => near,
            _ => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Unknown { name, near } => {
                write!(f, "there is no profile {name:?}")?;
                match &near[..] {
                    [] => Ok(()),
                    near => write!(f, "; near to it: {}", near.join(", ")),
                }
            }
            Reason::Syntax(_) => f.write_str("the profile is not TOML"),
            Reason::Invalid { name, what } => write!(f, "the profile {name:?}: {what}"),
            Reason::Unreadable(path, _) => write!(f, "{} cannot be read", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Reason::Syntax(cause) => Some(cause),
            Reason::Unreadable(_, cause) => Some(cause),
            Reason::Unknown { .. } | Reason::Invalid { .. } => None,
        }
    }
}
