//! Heads as bytes, in exactly the order and case of the caller's fields.

use http::{Method, StatusCode};

use crate::head::{Control, Length, Transfer, registered_reason};
use crate::{ApiMisuse, BodyLength, Fields};

/// The framing field that the caller's fields do not carry yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Nothing,
    ContentLength(u64),
    TransferEncoding,
}

impl Missing {
    /// What to add so that the fields announce `body`; an error when they announce another.
    pub(super) fn of(control: &Control, body: BodyLength) -> Result<Self, ApiMisuse> {
        match (body, control.transfer, control.length) {
            (BodyLength::None, Transfer::Absent, Length::Absent | Length::Valid(0)) => {
                Ok(Self::Nothing)
            }
            (BodyLength::Known(length), Transfer::Absent, Length::Absent) => {
                Ok(Self::ContentLength(length))
            }
            (BodyLength::Known(length), Transfer::Absent, Length::Valid(said))
                if said == length =>
            {
                Ok(Self::Nothing)
            }
            (BodyLength::Chunked, Transfer::Absent, Length::Absent) => Ok(Self::TransferEncoding),
            (BodyLength::Chunked, Transfer::Chunked, Length::Absent) => Ok(Self::Nothing),
            (BodyLength::None | BodyLength::Known(_), Transfer::Absent, _)
            // RFC 9112 section 6.2: no Content-Length beside Transfer-Encoding.
            | (BodyLength::Chunked, Transfer::Absent | Transfer::Chunked, _) => {
                Err(ApiMisuse::ContentLengthMismatch)
            }
            (_, Transfer::Chunked | Transfer::Other, _) => Err(ApiMisuse::TransferEncodingMismatch),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::TransferEncoding => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Self::ContentLength(length) => {
                out.extend_from_slice(b"Content-Length: ");
                write_decimal(out, length);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Bytes of a first line, of an added framing field and of the empty line, apart from method and target.
const SLACK: usize = 80;

pub(super) fn request_head(
    out: &mut Vec<u8>,
    method: &Method,
    target: &str,
    fields: &Fields,
    missing: Missing,
) {
    // The whole head at once: growing it piece by piece would copy what is there each time.
    let lines = fields.lines().map_or(0, <[u8]>::len);
    out.reserve(method.as_str().len() + target.len() + lines + SLACK);
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_section(out, fields, missing);
}

pub(super) fn response_head(
    out: &mut Vec<u8>,
    status: StatusCode,
    fields: &Fields,
    missing: Missing,
) {
    let reason = registered_reason(status);
    out.reserve(reason.len() + SLACK);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    write_section(out, fields, missing);
}

/// The last chunk and the trailer section (RFC 9112 section 7.1.2).
pub(super) fn last_chunk(out: &mut Vec<u8>, trailers: Option<&Fields>) {
    out.extend_from_slice(b"0\r\n");
    match trailers {
        None => out.extend_from_slice(b"\r\n"),
        Some(fields) => write_section(out, fields, Missing::Nothing),
    }
}

/// Field lines and the empty line. The fields are valid by their type.
fn write_section(out: &mut Vec<u8>, fields: &Fields, missing: Missing) {
    match fields.lines() {
        Some(lines) => out.extend_from_slice(lines),
        None => {
            for (name, value) in fields.raw() {
                out.reserve(name.len() + value.len() + 4);
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
    missing.write(out);
    out.extend_from_slice(b"\r\n");
}

fn write_decimal(out: &mut Vec<u8>, number: u64) {
    let start = out.len();
    let mut rest = number;
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out[start..].reverse();
}
