//! Whom to trust, and who we are: `verify=` and `cert=`.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use mimus::{
    TlsConfig,
    tls::{Roots, TlsConfigBuilder},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyBytes, PyTuple},
};

use crate::errors;

/// What `verify=` says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verify {
    Usual,
    Never,
    /// These authorities, in PEM, and no others.
    Only(Vec<u8>),
}

/// Who we are: a chain and a key, each in PEM; or an archive (PKCS#12) and its password.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    None,
    Pem { chain: Vec<u8>, key: Vec<u8> },
    Archive { archive: Vec<u8>, password: String },
}

type Wanted = (Verify, Identity);

/// The most configurations that one client keeps for its calls.
const KEPT: usize = 16;

/// The configurations that calls of one client asked for: connections are shared by calls that share one.
#[derive(Debug, Default)]
pub(crate) struct TlsCache(Mutex<Vec<(Wanted, TlsConfig)>>);

impl TlsCache {
    /// The configuration for these arguments.
    ///
    /// # Errors
    /// A Python exception: a file cannot be read, or is not what it should be.
    pub(crate) fn config(
        &self,
        py: Python<'_>,
        verify: Option<&Bound<'_, PyAny>>,
        cert: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TlsConfig> {
        let wanted = (read_verify(verify)?, read_identity(cert)?);
        let find = |kept: &[(Wanted, TlsConfig)]| {
            kept.iter().find(|(known, _)| *known == wanted).map(|(_, config)| config.clone())
        };
        if let Some(config) = find(&self.lock()) {
            return Ok(config);
        }
        let made = build(&wanted).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            errors::plain(py, "RequestError", format!("{error}{}", cause.unwrap_or_default()))
        })?;
        let mut kept = self.lock();
        // Another thread may have been faster; then its is everybody's.
        if let Some(config) = find(&kept) {
            return Ok(config);
        }
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((wanted, made.clone()));
        Ok(made)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Wanted, TlsConfig)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build((verify, identity): &Wanted) -> Result<TlsConfig, mimus::tls::TlsConfigError> {
    let mut builder: TlsConfigBuilder = TlsConfig::builder().key_log_from_env();
    builder = match verify {
        Verify::Usual => builder,
        Verify::Never => builder.danger_accept_any_certificate(true).danger_ignore_hostname(true),
        Verify::Only(pem) => builder.roots(Roots::None).add_ca(pem),
    };
    builder = match identity {
        Identity::None => builder,
        Identity::Pem { chain, key } => builder.identity(chain, key),
        Identity::Archive { archive, password } => builder.identity_pkcs12(archive, password),
    };
    builder.build()
}

fn read_verify(value: Option<&Bound<'_, PyAny>>) -> PyResult<Verify> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Verify::Usual) };
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(if truth.is_true() { Verify::Usual } else { Verify::Never });
    }
    if let Ok(pem) = value.cast::<PyBytes>() {
        return Ok(Verify::Only(pem.as_bytes().to_vec()));
    }
    let path: PathBuf = value.extract().map_err(|_| {
        PyTypeError::new_err("verify must be True, False, a path, or certificates in PEM as bytes")
    })?;
    if path.is_dir() {
        return read_directory(&path).map(Verify::Only);
    }
    Ok(Verify::Only(std::fs::read(path)?))
}

/// All certificates of a directory, as `SSL_CERT_DIR` has them.
fn read_directory(path: &std::path::Path) -> PyResult<Vec<u8>> {
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
    match all.is_empty() {
        true => Err(PyValueError::new_err(format!("{} holds no certificates", path.display()))),
        false => Ok(all),
    }
}

fn read_identity(value: Option<&Bound<'_, PyAny>>) -> PyResult<Identity> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Identity::None) };
    let wrong =
        || PyTypeError::new_err("cert must be a path, (cert, key) or (cert, key, password)");
    let Ok(parts) = value.cast::<PyTuple>() else {
        let path: PathBuf = value.extract().map_err(|_| wrong())?;
        let chain = std::fs::read(&path)?;
        let archive = path.extension().is_some_and(|end| end == "p12" || end == "pfx");
        return Ok(match archive {
            true => Identity::Archive { archive: chain, password: String::new() },
            false => Identity::Pem { key: chain.clone(), chain },
        });
    };
    match parts.len() {
        2 => {
            let (chain, key): (PathBuf, PathBuf) = parts.extract().map_err(|_| wrong())?;
            Ok(Identity::Pem { chain: std::fs::read(chain)?, key: std::fs::read(key)? })
        }
        3 => {
            let (chain, key, password): (PathBuf, Option<PathBuf>, String) =
                parts.extract().map_err(|_| wrong())?;
            match key {
                // An archive holds its key.
                None => Ok(Identity::Archive { archive: std::fs::read(chain)?, password }),
                Some(_) => Err(PyValueError::new_err(
                    "an encrypted key in PEM is not supported: give a PKCS#12 archive as (path, None, password)",
                )),
            }
        }
        _ => Err(wrong()),
    }
}
