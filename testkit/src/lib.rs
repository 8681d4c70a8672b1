//! The embedded origin of Mimus: a server of HTTP/1.1, HTTP/2, WebSocket and gRPC that does what is asked, well or
//! badly.
//!
//! It shares no code with the client it judges, listens on loopback only, and stops when its
//! handle is dropped. [`routes`] and [`bad_routes`] list its paths, [`PORTS`] its listeners,
//! each with the way it behaves; [`Origin::requests`] is what was on the wire.
//!
//! ```
//! use std::io::{Read, Write};
//! use mimus_testkit::{Origin, Port};
//!
//! # fn main() -> std::io::Result<()> {
//! let origin = Origin::start()?;
//! let mut stream = std::net::TcpStream::connect(origin.addr(Port::Http)?)?;
//! stream.write_all(b"GET /json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
//! assert_eq!(origin.requests()[0].target, "/json");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bad;
mod bad_h2;
mod bad_ws;
mod conn;
mod exchange;
mod grpc;
mod h2;
mod io;
mod listen;
mod origin;
mod port;
mod proxy;
mod record;
mod request;
mod response;
mod routes;
mod serve;
mod tls;
mod ws;

pub use bad_h2::{Ask, BadH2, Outcome, bad_h2};
pub use bad_ws::{BadWs, WsAsk, WsOutcome, bad_ws};
pub use grpc::{GrpcBad, grpc_bad, grpc_descriptors};
pub use origin::{Builder, Origin};
pub use port::{PORTS, Port, PortInfo};
pub use record::{Seen, SeenConnection, SeenH2, SeenTls, SeenWs};
pub use routes::{Route, bad_routes, generated, grpc_routes, routes, ws_routes};
pub use tls::Identity;
