//! Whom to trust, and who we are: `verify=` and `cert=`.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use mimus::{
    TlsConfig,
    tls::{ClientHello, Roots},
};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyBool, PyBytes, PyTuple},
};

use crate::errors;

/// A file or directory as it was when it was named: one that has changed since is another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

impl Named {
    fn new(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        Ok(Named { length: metadata.len(), modified: metadata.modified().ok(), path })
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        match self.path.is_dir() {
            true => read_directory(&self.path),
            false => std::fs::read(&self.path),
        }
    }
}

/// What `verify=` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Verify {
    #[default]
    Usual,
    Never,
    /// The authorities in this file or directory, in PEM, and no others.
    OnlyIn(Named),
    /// These, in PEM, and no others.
    Only(Vec<u8>),
}

/// What `cert=` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Identity {
    #[default]
    None,
    Pem {
        chain: Named,
        key: Named,
        /// That the key is encrypted with.
        password: Option<String>,
    },
    /// PKCS#12.
    Archive { archive: Named, password: String },
}

/// What a configuration is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Wanted {
    verify: Verify,
    identity: Identity,
}

/// The most configurations that one client keeps for its calls.
const KEPT: usize = 16;

/// The configurations that calls of one client ask for: calls that share one share connections.
#[derive(Debug, Default)]
pub(crate) struct TlsCache {
    /// The client's own.
    usual: Wanted,
    /// What the client's profile says in its handshakes.
    hello: Option<ClientHello>,
    kept: Mutex<Vec<(Wanted, TlsConfig)>>,
}

impl TlsCache {
    /// The client's own configuration, where it is not the core's usual one.
    ///
    /// # Errors
    /// A Python exception: a file cannot be read, or is not what it should be.
    pub(super) fn set_usual(
        &mut self,
        py: Python<'_>,
        verify: Option<&Bound<'_, PyAny>>,
        cert: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<TlsConfig>> {
        self.usual = self.wanted(verify, cert)?;
        match self.usual == Wanted::default() {
            true => Ok(None),
            false => build(py, &self.usual, None).map(Some),
        }
    }

    /// What the client's profile says is said by each call.
    pub(super) fn set_hello(&mut self, hello: Option<ClientHello>) {
        self.hello = hello;
    }

    /// The configuration of a call with these arguments; `None` for the client's own.
    ///
    /// # Errors
    /// As [`set_usual`](Self::set_usual).
    pub(super) fn config(
        &self,
        py: Python<'_>,
        verify: Option<&Bound<'_, PyAny>>,
        cert: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<TlsConfig>> {
        let wanted = self.wanted(verify, cert)?;
        if wanted == self.usual {
            return Ok(None);
        }
        if let Some(config) = find(&self.lock(), &wanted) {
            return Ok(Some(config));
        }
        let made = build(py, &wanted, self.hello.as_ref())?;
        let mut kept = self.lock();
        // Another thread may have been faster; then its is everybody's.
        if let Some(config) = find(&kept, &wanted) {
            return Ok(Some(config));
        }
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((wanted, made.clone()));
        Ok(Some(made))
    }

    /// What is not said is as the client has it.
    fn wanted(
        &self,
        verify: Option<&Bound<'_, PyAny>>,
        cert: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Wanted> {
        let verify = verify.filter(|value| !value.is_none());
        let cert = cert.filter(|value| !value.is_none());
        Ok(Wanted {
            verify: verify.map_or_else(|| Ok(self.usual.verify.clone()), read_verify)?,
            identity: cert.map_or_else(|| Ok(self.usual.identity.clone()), read_identity)?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Wanted, TlsConfig)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(kept: &[(Wanted, TlsConfig)], wanted: &Wanted) -> Option<TlsConfig> {
    kept.iter().find(|(known, _)| known == wanted).map(|(_, config)| config.clone())
}

fn build(py: Python<'_>, wanted: &Wanted, hello: Option<&ClientHello>) -> PyResult<TlsConfig> {
    let mut builder = TlsConfig::builder().key_log_from_env();
    builder = match &wanted.verify {
        Verify::Usual => builder,
        Verify::Never => builder.danger_accept_any_certificate(true).danger_ignore_hostname(true),
        Verify::OnlyIn(file) => builder.roots(Roots::None).add_ca(&file.read()?),
        Verify::Only(pem) => builder.roots(Roots::None).add_ca(pem),
    };
    builder = match &wanted.identity {
        Identity::None => builder,
        Identity::Pem { chain, key, password: None } => {
            builder.identity(&chain.read()?, &key.read()?)
        }
        Identity::Pem { chain, key, password: Some(password) } => {
            builder.identity_encrypted(&chain.read()?, &key.read()?, password)
        }
        Identity::Archive { archive, password } => {
            builder.identity_pkcs12(&archive.read()?, password)
        }
    };
    if let Some(hello) = hello {
        builder = builder.client_hello(hello.clone());
    }
    builder.build().map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        errors::plain(py, "RequestError", format!("{error}{}", cause.unwrap_or_default()))
    })
}

fn read_verify(value: &Bound<'_, PyAny>) -> PyResult<Verify> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(if truth.is_true() { Verify::Usual } else { Verify::Never });
    }
    if let Ok(pem) = value.cast::<PyBytes>() {
        return Ok(Verify::Only(pem.as_bytes().to_vec()));
    }
    let path: PathBuf = value.extract().map_err(|_| {
        PyTypeError::new_err("verify must be True, False, a path, or certificates in PEM as bytes")
    })?;
    Ok(Verify::OnlyIn(Named::new(path)?))
}

/// All certificates of a directory, as `SSL_CERT_DIR` has them.
fn read_directory(path: &Path) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_file()
            && let Ok(pem) = std::fs::read(&path)
            && pem.windows(11).any(|at| at == b"-----BEGIN ")
        {
            all.extend_from_slice(&pem);
            all.push(b'\n');
        }
    }
    Ok(all)
}

fn read_identity(value: &Bound<'_, PyAny>) -> PyResult<Identity> {
    let wrong = || {
        PyTypeError::new_err(
            "cert must be a path, (cert, key), (cert, key, password) or (archive, None, password)",
        )
    };
    let Ok(parts) = value.cast::<PyTuple>() else {
        let file = Named::new(value.extract().map_err(|_| wrong())?)?;
        let archive = file.path.extension().is_some_and(|end| end == "p12" || end == "pfx");
        return Ok(match archive {
            true => Identity::Archive { archive: file, password: String::new() },
            false => Identity::Pem { chain: file.clone(), key: file, password: None },
        });
    };
    match parts.len() {
        2 => {
            let (chain, key): (PathBuf, PathBuf) = parts.extract().map_err(|_| wrong())?;
            let (chain, key) = (Named::new(chain)?, Named::new(key)?);
            Ok(Identity::Pem { chain, key, password: None })
        }
        3 => {
            let (file, key, password): (PathBuf, Option<PathBuf>, Option<String>) =
                parts.extract().map_err(|_| wrong())?;
            let file = Named::new(file)?;
            match (key, password) {
                // An archive holds its key.
                (None, password) => {
                    let password = password.unwrap_or_default();
                    Ok(Identity::Archive { archive: file, password })
                }
                (Some(key), password) => {
                    Ok(Identity::Pem { chain: file, key: Named::new(key)?, password })
                }
            }
        }
        _ => Err(wrong()),
    }
}
