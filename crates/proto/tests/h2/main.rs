//! The client's end of an HTTP/2 connection, against a server that is written frame by frame.

mod model;
mod rig;

mod differential;
mod endings;
mod exchange;
mod flow;
mod framing;
mod limits;
mod messages;
mod properties;
mod requests;
mod whole;
