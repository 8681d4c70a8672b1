//! Trust anchors, parsed at most once in a process.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use boring::{
    error::ErrorStack,
    x509::{
        X509,
        store::{X509Store, X509StoreBuilder},
        verify::X509VerifyFlags,
    },
};

use super::Roots;

/// Parsed certificates, and the store made of them. Both are reference-counted by BoringSSL, so
/// contexts share the parsed form.
struct Anchors {
    certificates: Vec<X509>,
    store: X509Store,
}

/// Stores with added certificates that are kept: more than a process commonly has kinds of clients.
const MAX_STORES: usize = 8;

/// The last stores with added certificates. The one used last is last.
struct Stores(Mutex<Vec<Made>>);

/// A store with added certificates, and what it was made of.
struct Made {
    roots: Roots,
    /// In DER.
    extra: Vec<Vec<u8>>,
    store: X509Store,
}

/// The store for `roots` and `extra`. The first call for a kind of roots parses it (milliseconds), and
/// the first for some `extra` sorts it in (milliseconds too); later ones share the result.
pub(super) fn store(roots: Roots, extra: &[X509]) -> Result<X509Store, ErrorStack> {
    static NATIVE: OnceLock<Result<Anchors, ErrorStack>> = OnceLock::new();
    static WEBPKI: OnceLock<Result<Anchors, ErrorStack>> = OnceLock::new();
    static STORES: Stores = Stores::new();
    let anchors = match roots {
        Roots::Native => Some(NATIVE.get_or_init(|| anchors(native()))),
        Roots::Webpki => Some(WEBPKI.get_or_init(|| anchors(webpki()))),
        Roots::None => None,
    };
    match anchors {
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(anchors)) if extra.is_empty() => Ok(anchors.store.clone()),
        Some(Ok(anchors)) => STORES.with(roots, &anchors.certificates, extra),
        None => STORES.with(roots, &[], extra),
    }
}

impl Stores {
    const fn new() -> Self {
        Stores(Mutex::new(Vec::new()))
    }

    /// The store of `certificates`, which `roots` stands for, and `extra`.
    fn with(
        &self,
        roots: Roots,
        certificates: &[X509],
        extra: &[X509],
    ) -> Result<X509Store, ErrorStack> {
        let ders: Vec<_> = extra.iter().map(|x509| x509.to_der()).collect::<Result<_, _>>()?;
        if let Some(store) = self.find(roots, &ders) {
            return Ok(store);
        }
        // Without the lock: that two make the same one at a time is harmless.
        let store = build(certificates.iter().chain(extra), Ends::Anywhere)?;
        let mut list = self.lock();
        if list.len() == MAX_STORES {
            list.remove(0);
        }
        list.push(Made { roots, extra: ders, store: store.clone() });
        Ok(store)
    }

    fn find(&self, roots: Roots, extra: &[Vec<u8>]) -> Option<X509Store> {
        let mut list = self.lock();
        let at = list.iter().position(|made| made.roots == roots && made.extra == extra)?;
        let found = list.remove(at);
        let store = found.store.clone();
        list.push(found);
        Some(store)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn anchors(certificates: Vec<X509>) -> Result<Anchors, ErrorStack> {
    let store = build(&certificates, Ends::SelfSigned)?;
    Ok(Anchors { certificates, store })
}

/// Where a chain may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// At a self-signed authority of the store.
    SelfSigned,
    /// At any certificate of the store, be it an intermediate or a server's own: whoever adds one trusts
    /// it (RFC 5280 section 6.1: what an anchor is, is for the user to say).
    Anywhere,
}

fn build<'a>(
    certificates: impl IntoIterator<Item = &'a X509>,
    ends: Ends,
) -> Result<X509Store, ErrorStack> {
    let mut store = X509StoreBuilder::new()?;
    if ends == Ends::Anywhere {
        store.try_set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
    }
    for certificate in certificates {
        store.add_cert(certificate)?;
    }
    Ok(store.build())
}

/// The system's roots; Mozilla's, when the system has none that can be read.
fn native() -> Vec<X509> {
    let loaded = rustls_native_certs::load_native_certs();
    let roots = parse(loaded.certs.iter().map(|der| der.as_ref()));
    if roots.is_empty() {
        tracing::debug!(
            errors = loaded.errors.len(),
            "no usable system trust store; using the built-in Mozilla roots"
        );
        return webpki();
    }
    roots
}

fn webpki() -> Vec<X509> {
    parse(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| der.as_ref()))
}

/// System stores hold the odd certificate that nothing can parse; it must not disable the others.
fn parse<'a>(ders: impl Iterator<Item = &'a [u8]>) -> Vec<X509> {
    ders.filter_map(|der| X509::from_der(der).ok()).collect()
}

#[cfg(test)]
mod tests {
    use foreign_types::ForeignType as _;

    use super::*;

    #[test]
    fn every_built_in_root_parses() {
        assert_eq!(webpki().len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
    }

    #[test]
    fn a_store_is_parsed_once_and_shared_until_something_is_added() {
        let one = store(Roots::Webpki, &[]).unwrap();
        assert_eq!(one.as_ptr(), store(Roots::Webpki, &[]).unwrap().as_ptr());
    }

    #[test]
    fn the_last_stores_with_added_certificates_are_shared() {
        let stores = Stores::new();
        let root = |n: usize| X509::from_der(&webpki_root_certs::TLS_SERVER_ROOT_CERTS[n]).unwrap();
        // A certificate that is there already is no mistake.
        let with = |roots, n| stores.with(roots, &[root(0)], &[root(n)]).unwrap();
        let first = with(Roots::Webpki, 0);
        assert_eq!(first.as_ptr(), with(Roots::Webpki, 0).as_ptr());
        assert_ne!(first.as_ptr(), with(Roots::Webpki, 1).as_ptr());
        assert_ne!(first.as_ptr(), with(Roots::Native, 0).as_ptr());
        for n in 1..=MAX_STORES {
            with(Roots::Native, n);
            assert_eq!(first.as_ptr(), with(Roots::Webpki, 0).as_ptr());
        }
        // What was not used for longest goes.
        for n in 1..=MAX_STORES {
            with(Roots::Native, n);
        }
        assert_ne!(first.as_ptr(), with(Roots::Webpki, 0).as_ptr());
        assert_eq!(stores.lock().len(), MAX_STORES);
    }
}
