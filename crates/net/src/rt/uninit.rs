//! Reading into memory that nobody wrote before: the one `unsafe` of this module.

use std::{io, mem::MaybeUninit};

use bytes::{BufMut, BytesMut};

/// The most of one read: 64 KiB with some framing around. Reading more at once is slower, because what
/// the kernel copied last is out of the nearest cache by the time that it is looked at, and because the
/// peer waits meanwhile.
const READ_MAX: usize = 68 * 1024;

/// How much of a read `buf` can take without growing.
///
/// # Errors
/// `InvalidInput` when that is nothing: an empty read would look like the end of the stream.
pub(super) fn room(buf: &BytesMut) -> io::Result<usize> {
    match buf.capacity() - buf.len() {
        0 => Err(io::Error::new(io::ErrorKind::InvalidInput, "read into a buffer without room")),
        room => Ok(room.min(READ_MAX)),
    }
}

/// Appends to `buf` what `read` puts at the front of its spare capacity, without zeroing it first.
///
/// `read` proves what it wrote by giving back the initialised front of the slice it was lent, so a
/// wrong count cannot expose memory that was never written.
///
/// # Errors
/// `InvalidInput` when `buf` has no spare capacity or `read` gives back another slice; else what
/// `read` fails with.
pub(super) fn append(
    buf: &mut BytesMut,
    read: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> io::Result<&'a mut [u8]>,
) -> io::Result<usize> {
    let room = room(buf)?;
    let spare = &mut buf.spare_capacity_mut()[..room];
    let start = spare.as_ptr().cast::<u8>();
    let filled = read(spare)?;
    let n = filled.len();
    if n > room || (n > 0 && filled.as_ptr() != start) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "read gave back another buffer"));
    }
    // SAFETY: `filled` is a live `&mut [u8]` of `n` bytes that starts where the spare capacity does
    // and does not exceed it, so the `n` bytes after `buf.len()` are allocated and initialised.
    unsafe { buf.advance_mut(n) };
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill<'a>(spare: &'a mut [MaybeUninit<u8>], bytes: &[u8]) -> &'a mut [u8] {
        spare[..bytes.len()].write_copy_of_slice(bytes)
    }

    #[test]
    fn appends_behind_what_is_there() {
        let mut buf = BytesMut::with_capacity(16);
        buf.extend_from_slice(b"ab");
        assert_eq!(append(&mut buf, |s| Ok(fill(s, b"cde"))).unwrap(), 3);
        assert_eq!(append(&mut buf, |s| Ok(fill(s, b""))).unwrap(), 0);
        assert_eq!(&buf[..], b"abcde");
    }

    #[test]
    fn refuses_a_full_buffer_and_a_foreign_slice() {
        let mut full = BytesMut::new();
        let kind = |r: io::Result<usize>| r.unwrap_err().kind();
        assert_eq!(kind(append(&mut full, |s| Ok(fill(s, b"")))), io::ErrorKind::InvalidInput);

        let mut buf = BytesMut::with_capacity(16);
        let foreign = || Ok(Box::leak(vec![0u8; 4].into_boxed_slice()));
        assert_eq!(kind(append(&mut buf, |_| foreign())), io::ErrorKind::InvalidInput);
        assert_eq!(
            kind(append(&mut buf, |s| Ok(&mut fill(s, b"abcd")[1..]))),
            io::ErrorKind::InvalidInput
        );
        assert!(buf.is_empty());
    }
}
