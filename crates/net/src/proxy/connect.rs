//! HTTP CONNECT (RFC 9110 section 9.3.6).

use std::io::IoSlice;

use bytes::BytesMut;
use http::{Method, StatusCode};
use mimus_proto::{BodyLength, Event, Fields, InvalidField, ResponseHead, h1};

use super::{Proxy, authority, receive, send};
use crate::{DialError, DialErrorKind, Phase, Socket, dial::Host};

/// How much of a reason phrase is worth repeating: the text is the proxy's.
const REASON_CHARS: usize = 100;

/// Asks for a tunnel to `target`; returns what came behind the answer's head.
pub(super) async fn connect(
    proxy: &Proxy,
    socket: &mut dyn Socket,
    target: &Host,
    port: u16,
) -> Result<BytesMut, DialError> {
    let target = authority(target, port);
    let mut client = h1::Client::new(h1::Limits::default());
    let fields = fields(proxy, &target)
        .map_err(|error| fail(DialErrorKind::Config, "a field for the proxy", error))?;
    client
        .send_head(&Method::CONNECT, &target, &fields, BodyLength::None)
        .map_err(|error| fail(DialErrorKind::Config, &format!("CONNECT {target}"), error))?;
    send(proxy, socket, &request(&mut client)).await?;
    loop {
        let event = client.poll_event().map_err(|error| {
            fail(DialErrorKind::Proxy, &format!("the answer of {proxy}"), error)
        })?;
        match event {
            Some(Event::Upgraded(leftover)) => return Ok(BytesMut::from(leftover)),
            Some(Event::Head(head)) if !head.status.is_success() => {
                return Err(refused(proxy, &target, &head));
            }
            // Interim answers, and the head that the upgrade belongs to.
            Some(_) => {}
            None => {
                if receive(proxy, socket, client.recv_buf()).await? == 0 {
                    client.recv_eof();
                }
            }
        }
    }
}

fn fields(proxy: &Proxy, target: &str) -> Result<Fields, InvalidField> {
    let mut fields = Fields::new();
    // RFC 9110 section 7.2: Host repeats the authority.
    fields.append("Host", target)?;
    if let Some(value) = proxy.basic_auth() {
        fields.append("Proxy-Authorization", value)?;
    }
    for (name, value) in &proxy.headers {
        fields.append(name, value)?;
    }
    Ok(fields)
}

/// The request's bytes: one head, small enough to be copied.
fn request(client: &mut h1::Client) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.has_output() {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = client.poll_transmit(&mut slices);
        for slice in &slices[..filled] {
            bytes.extend_from_slice(slice);
        }
        let written = slices[..filled].iter().map(|slice| slice.len()).sum();
        client.transmitted(written);
    }
    bytes
}

fn refused(proxy: &Proxy, target: &str, head: &ResponseHead) -> DialError {
    let kind = match head.status {
        // Some proxies answer a wrong password like an origin would.
        StatusCode::PROXY_AUTHENTICATION_REQUIRED | StatusCode::UNAUTHORIZED => {
            DialErrorKind::ProxyAuth
        }
        _ => DialErrorKind::Proxy,
    };
    let reason = String::from_utf8_lossy(head.reason());
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(REASON_CHARS).collect();
    let status = head.status.as_u16();
    let detail = format!("{proxy} answered CONNECT {target} with {status} {reason}");
    DialError::new(Phase::Proxy, kind, detail.trim_end())
}

fn fail(
    kind: DialErrorKind,
    detail: &str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> DialError {
    DialError::new(Phase::Proxy, kind, detail).caused_by(source)
}
