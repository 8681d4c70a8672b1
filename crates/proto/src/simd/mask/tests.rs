//! Every vector at every alignment and length, against the definition.

use super::*;

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// Lengths at which nothing, one vector, some vectors and all that alignment adds are tried. Miri is slow: it
/// gets those around the ends of vectors.
fn lengths() -> impl Iterator<Item = usize> {
    let ends = |len: &usize| !cfg!(miri) || matches!(len % 32, 0 | 1 | 15 | 17 | 31);
    let many = [511, 512, 513, 575, 576, 639, 700, 1023, 1024, 1100];
    (0..=257).filter(ends).chain(many.into_iter().filter(|_| !cfg!(miri)))
}

/// RFC 6455 section 5.3, as it is written there.
fn defined(bytes: &[u8], key: [u8; 4]) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]).collect()
}

fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 151 % 256) as u8).collect()
}

type Xor = unsafe fn(*mut u8, *const u8, usize, u32);

/// What this processor can run, the widest last; each with the shortest length that it takes.
fn backends() -> Vec<(&'static str, Xor, usize)> {
    let mut all: Vec<(&'static str, Xor, usize)> = vec![
        ("chosen", xor, 0),
        ("short words", long::<u32>, 4),
        ("words", long::<u64>, 8),
        ("baseline", long::<Baseline>, Baseline::WIDTH),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            all.push(("avx2", x86::avx2, 32));
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            all.push(("avx512", x86::avx512, 64));
        }
    }
    all
}

#[test]
fn every_alignment_and_length_in_place() {
    for (name, xor, shortest) in backends() {
        for offset in 0..64 {
            for len in lengths().filter(|len| *len >= shortest) {
                let mut room = sample(offset + len + 64);
                let expected = defined(&room[offset..offset + len], KEY);
                let untouched = room.clone();
                let at = room[offset..offset + len].as_mut_ptr();
                // SAFETY: `at` points to `len` bytes of `room`, which nobody else looks at.
                unsafe { xor(at, at, len, u32::from_ne_bytes(KEY)) };
                assert_eq!(room[offset..offset + len], expected, "{name} {offset} {len}");
                assert_eq!(room[..offset], untouched[..offset], "{name} {offset} {len}");
                assert_eq!(room[offset + len..], untouched[offset + len..], "{name} {len}");
            }
            if cfg!(miri) && offset > 4 {
                break;
            }
        }
    }
}

#[test]
fn every_alignment_and_length_while_copying() {
    for (name, xor, shortest) in backends() {
        for (offset, target) in (0..64).map(|offset| (offset, offset * 7 % 64)) {
            for len in lengths().filter(|len| *len >= shortest) {
                let bytes = sample(offset + len);
                let from = &bytes[offset..];
                let mut room = vec![0xee; target + len + 64];
                let to = room[target..target + len].as_mut_ptr();
                // SAFETY: both point to `len` bytes, of different vectors.
                unsafe { xor(to, from.as_ptr(), len, u32::from_ne_bytes(KEY)) };
                assert_eq!(room[target..target + len], defined(from, KEY), "{name} {offset} {len}");
                assert!(room[..target].iter().all(|byte| *byte == 0xee), "{name} {len}");
                assert!(room[target + len..].iter().all(|byte| *byte == 0xee), "{name} {len}");
            }
            if cfg!(miri) && offset > 4 {
                break;
            }
        }
    }
}

#[test]
fn appends_behind_what_is_there() {
    let head: [u8; HEAD] = std::array::from_fn(|at| 0xa0 + at as u8);
    for len in lengths() {
        let bytes = sample(len);
        for (head_len, key) in
            [(0, Some(KEY)), (6, Some(KEY)), (14, Some(KEY)), (2, None), (HEAD, None)]
        {
            let mut out = b"before".to_vec();
            append(&mut out, &head, head_len, &bytes, key);
            let (before, rest) = out.split_at(6);
            let (first, payload) = rest.split_at(head_len);
            assert_eq!((before, first), (&b"before"[..], &head[..head_len]));
            match key {
                Some(key) => assert_eq!(payload, defined(&bytes, key)),
                None => assert_eq!(payload, bytes),
            }
        }
    }
}

#[test]
fn masked_twice_is_not_masked() {
    for len in lengths() {
        let bytes = sample(len);
        let mut twice = bytes.clone();
        in_place(&mut twice, KEY);
        assert_eq!(twice, defined(&bytes, KEY));
        in_place(&mut twice, KEY);
        assert_eq!(twice, bytes);
    }
}

#[test]
fn a_key_goes_on_where_it_was_left() {
    let bytes = sample(200);
    let expected = defined(&bytes, KEY);
    for cut in 0..200 {
        let mut split = bytes.clone();
        let (one, two) = split.split_at_mut(cut);
        in_place(one, KEY);
        in_place(two, turned(u32::from_ne_bytes(KEY), cut).to_ne_bytes());
        assert_eq!(split, expected, "{cut}");
    }
}
