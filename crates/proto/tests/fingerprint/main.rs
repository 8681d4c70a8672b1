//! Fingerprints, judged by what another reader finds in what browsers sent.

mod captures;
mod hostile;
mod http2;
mod responder;
