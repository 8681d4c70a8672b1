//! Fingerprints, judged by what another reader finds in what browsers sent.

mod judge;

mod captures;
mod hostile;
mod http2;
