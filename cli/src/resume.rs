//! Going on with a download: whether what the server sends is the rest, and nothing but the rest.

use std::time::Duration;

use mimus::{StatusCode, blocking::Response};

use crate::exit::{Exit, Failure};

/// Where a download begins.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The first byte to ask for; `None` asks for all without a word about ranges.
    pub(crate) offset: Option<u64>,
    /// The entity tag of what is here already.
    pub(crate) validator: Option<String>,
}

/// The entity tag, if it is one that guarantees the same bytes: only those are of use in `If-Range`
/// (RFC 9110 section 13.1.5).
pub(crate) fn strong_validator(response: &Response) -> Option<String> {
    let tag = response.header("etag")?.trim();
    (tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2).then(|| tag.to_owned())
}

/// How long to wait before the next attempt: what was asked for, else a second, doubling.
pub(crate) fn resumption_wait(delay: Option<Duration>, earlier: u32) -> Duration {
    delay.unwrap_or_else(|| Duration::from_secs(1 << earlier.min(9)))
}

/// How a server takes the wish to go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// The rest follows.
    Continues,
    /// There is no rest.
    Complete,
}

/// Judges the answer to `Range: bytes=OFFSET-` (RFC 9110 sections 14.4, 15.3.7 and 15.5.17).
pub(crate) fn resumed(response: &Response, offset: u64) -> Result<Resumed, Failure> {
    let range = response.header("content-range");
    judge_resumption(response.status(), range, offset)
        .map_err(|what| Failure::new(Exit::Range, format!("{what}; the file stays as it was")))
}

fn judge_resumption(
    status: StatusCode,
    content_range: Option<&str>,
    offset: u64,
) -> Result<Resumed, String> {
    let range = content_range.and_then(|text| text.trim().strip_prefix("bytes "));
    match status {
        StatusCode::PARTIAL_CONTENT => {
            let first = range.and_then(|r| r.split('-').next()).and_then(|n| n.trim().parse().ok());
            match first == Some(offset) {
                true => Ok(Resumed::Continues),
                false => Err(format!("the server sends other bytes than those from {offset} on")),
            }
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let size: Option<u64> =
                range.and_then(|r| r.strip_prefix("*/")).and_then(|n| n.trim().parse().ok());
            match size {
                // A server that does not say how long it is has said that nothing follows.
                None => Ok(Resumed::Complete),
                Some(size) if size == offset => Ok(Resumed::Complete),
                Some(size) => Err(format!("the server has {size} bytes, and here are {offset}")),
            }
        }
        status if status.is_success() => {
            Err("the server does not resume, but sends all of it".into())
        }
        status => Err(format!("the server answered {status}, and cannot resume")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_rest_is_appended() {
        let judge = |status, range, offset| {
            judge_resumption(StatusCode::from_u16(status).unwrap(), range, offset)
        };
        assert_eq!(judge(206, Some("bytes 10-19/20"), 10), Ok(Resumed::Continues));
        assert_eq!(judge(206, Some("bytes 10-19/*"), 10), Ok(Resumed::Continues));
        assert_eq!(judge(416, Some("bytes */10"), 10), Ok(Resumed::Complete));
        assert_eq!(judge(416, None, 10), Ok(Resumed::Complete));
        let refused = [
            (206, Some("bytes 0-19/20")),
            (206, None),
            (206, Some("items 10-19/20")),
            (416, Some("bytes */5")),
            (200, None),
            (404, None),
            (302, None),
        ];
        for (status, range) in refused {
            assert!(judge(status, range, 10).is_err(), "{status} {range:?}");
        }
    }
}
