//! XOR with a key of four bytes that repeats (RFC 6455 section 5.3), in place or while copying.
//!
//! One algorithm over vectors of any width. The first and the last vector of a run are loaded before
//! anything is stored and stored after everything else, so that neither end needs a loop over bytes,
//! and that the vectors between can lie aligned: where they overlap, the same bytes are stored twice.
//!
//! ```text
//! bytes   |.......................................|
//! first   [--------]
//! between     [--------][--------][--------]            aligned where that pays
//! last                                   [--------]
//! ```

#[cfg(test)]
mod tests;

/// From here on a wider vector than the target's own earns the question whether there is one.
#[cfg(target_arch = "x86_64")]
const WIDE_FROM: usize = 128;

/// From here on stores that cross cache lines cost more than lining them up.
const ALIGN_FROM: usize = 1024;

/// Unmasks or masks `bytes` where they are. `key` begins with what the first byte is masked with.
#[inline]
pub(crate) fn in_place(bytes: &mut [u8], key: [u8; 4]) {
    let (to, len) = (bytes.as_mut_ptr(), bytes.len());
    // SAFETY: `bytes` is valid for reads and writes of its length, and source and target are the same.
    unsafe { xor(to, to, len, u32::from_ne_bytes(key)) }
}

/// Room for what stands before a payload.
pub(crate) const HEAD: usize = 16;

/// Appends the first `head_len` bytes of `head` to `out`, and behind them `bytes`, masked if there is a key:
/// copied and masked in one pass, into room that is made once.
#[inline]
pub(crate) fn append(
    out: &mut Vec<u8>,
    head: &[u8; HEAD],
    head_len: usize,
    bytes: &[u8],
    key: Option<[u8; 4]>,
) {
    let head_len = head_len.min(HEAD);
    out.reserve(HEAD + bytes.len());
    let len = out.len() + head_len + bytes.len();
    let to: *mut u8 = out.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: the spare room behind `out` has at least `HEAD` bytes, and is exclusively ours. All of the head is
    // written, because that many bytes are two instructions; what is not asked for is overwritten below, or
    // stays outside of `out`.
    unsafe { to.cast::<[u8; HEAD]>().write(*head) };
    let (to, from) = (to.wrapping_add(head_len), bytes.as_ptr());
    match key {
        // SAFETY: `bytes` is valid for reads of its length; behind `head_len`, which is at most `HEAD`, the
        // spare room has at least as many bytes, and so does not overlap with `bytes`.
        Some(key) => unsafe { xor(to, from, bytes.len(), u32::from_ne_bytes(key)) },
        // SAFETY: the same.
        None => unsafe { std::ptr::copy_nonoverlapping(from, to, bytes.len()) },
    }
    // SAFETY: `reserve` made so much room, and all of what is new was written.
    unsafe { out.set_len(len) };
}

/// The key as it stands for a byte that is `count` bytes behind the first.
#[inline]
const fn turned(key: u32, count: usize) -> u32 {
    let bits = ((count % 4) * 8) as u32;
    if cfg!(target_endian = "little") { key.rotate_right(bits) } else { key.rotate_left(bits) }
}

/// Writes to `to` the `len` bytes from `from` on, masked.
///
/// # Safety
/// `from` is valid for reads of `len` bytes and `to` for writes; they are the same, or do not overlap.
#[inline]
unsafe fn xor(to: *mut u8, from: *const u8, len: usize, key: u32) {
    if len < Baseline::WIDTH {
        // SAFETY: as promised by the caller.
        return unsafe { short(to, from, len, key) };
    }
    #[cfg(target_arch = "x86_64")]
    if len > WIDE_FROM {
        // SAFETY: as promised by the caller.
        return unsafe { wide(to, from, len, key) };
    }
    // SAFETY: as promised by the caller, and no shorter than a vector. Every processor of this target
    // has the baseline's vectors.
    unsafe { long::<Baseline>(to, from, len, key) }
}

/// The same with the widest vectors that this processor has. The standard library asks it once.
///
/// # Safety
/// As for [`xor`], and `len` is at least that of the widest vector.
#[cfg(target_arch = "x86_64")]
unsafe fn wide(to: *mut u8, from: *const u8, len: usize, key: u32) {
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512; the rest is promised by the caller.
        unsafe { x86::avx512(to, from, len, key) }
    } else if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2; the rest is promised by the caller.
        unsafe { x86::avx2(to, from, len, key) }
    } else {
        // SAFETY: as promised by the caller; SSE2 is part of the target.
        unsafe { long::<Baseline>(to, from, len, key) }
    }
}

/// What the target has without asking.
#[cfg(target_arch = "x86_64")]
type Baseline = std::arch::x86_64::__m128i;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
type Baseline = std::arch::aarch64::uint8x16_t;
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
type Baseline = u64;

/// Some bytes that are masked together.
///
/// # Safety
/// `load` reads and `store` writes exactly `WIDTH` bytes, at any alignment. `WIDTH` is a power of two,
/// at least 4.
unsafe trait Vector: Copy {
    const WIDTH: usize;

    /// # Safety
    /// The processor has these vectors.
    unsafe fn splat(key: u32) -> Self;

    /// # Safety
    /// The processor has these vectors, and `from` is valid for reads of `WIDTH` bytes.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// The processor has these vectors, and `to` is valid for writes of `WIDTH` bytes.
    unsafe fn store(self, to: *mut u8);

    /// # Safety
    /// The processor has these vectors.
    unsafe fn xor(self, key: Self) -> Self;
}

/// Loads, masks and stores one vector.
///
/// # Safety
/// The processor has such vectors; `from` and `to` are valid for reads and writes of one.
#[inline(always)]
unsafe fn one<V: Vector>(to: *mut u8, from: *const u8, key: V) {
    // SAFETY: as promised by the caller.
    let bytes = unsafe { V::load(from) };
    // SAFETY: as promised by the caller.
    let masked = unsafe { bytes.xor(key) };
    // SAFETY: as promised by the caller.
    unsafe { masked.store(to) }
}

/// [`xor`] for at least one vector.
///
/// # Safety
/// As for [`xor`]; the processor has such vectors, and `len` is at least the width of one.
#[inline(always)]
unsafe fn long<V: Vector>(to: *mut u8, from: *const u8, len: usize, key: u32) {
    let end = len - V::WIDTH;
    // SAFETY: the processor has such vectors.
    let plain = unsafe { V::splat(key) };
    // SAFETY: the processor has such vectors.
    let turned_to_end = unsafe { V::splat(turned(key, end)) };
    // SAFETY: the last `WIDTH` bytes are among the `len` that may be read.
    let last = unsafe { V::load(from.wrapping_add(end)) };
    // SAFETY: the first `WIDTH` bytes are among the `len` that may be read.
    let first = unsafe { V::load(from) };

    let mut at = V::WIDTH;
    let mut between = plain;
    if len >= ALIGN_FROM {
        at = V::WIDTH - to.addr() % V::WIDTH;
        // SAFETY: the processor has such vectors.
        between = unsafe { V::splat(turned(key, at)) };
    }
    while at + 4 * V::WIDTH <= end {
        for part in 0..4 {
            let here = at + part * V::WIDTH;
            // SAFETY: these bytes lie before `end`; see the loop's condition.
            unsafe { one(to.wrapping_add(here), from.wrapping_add(here), between) };
        }
        at += 4 * V::WIDTH;
    }
    while at < end {
        // SAFETY: `at < end`, so a vector from there on ends before `len`.
        unsafe { one(to.wrapping_add(at), from.wrapping_add(at), between) };
        at += V::WIDTH;
    }

    // SAFETY: the processor has such vectors.
    let first = unsafe { first.xor(plain) };
    // SAFETY: the first `WIDTH` bytes are among the `len` that may be written.
    unsafe { first.store(to) };
    // SAFETY: the processor has such vectors.
    let last = unsafe { last.xor(turned_to_end) };
    // SAFETY: the last `WIDTH` bytes are among the `len` that may be written.
    unsafe { last.store(to.wrapping_add(end)) };
}

/// [`xor`] for less than a vector: by two words that overlap.
///
/// # Safety
/// As for [`xor`], and `len` is below 16.
#[inline(always)]
unsafe fn short(to: *mut u8, from: *const u8, len: usize, key: u32) {
    if len >= 8 {
        // SAFETY: as promised by the caller, and no shorter than such a word.
        return unsafe { long::<u64>(to, from, len, key) };
    }
    if len >= 4 {
        // SAFETY: as promised by the caller, and no shorter than such a word.
        return unsafe { long::<u32>(to, from, len, key) };
    }
    let key = key.to_ne_bytes();
    for (at, key) in key.iter().enumerate().take(len) {
        // SAFETY: `at` is below `len`, and so may be read.
        let byte = unsafe { from.wrapping_add(at).read() };
        // SAFETY: `at` is below `len`, and so may be written.
        unsafe { to.wrapping_add(at).write(byte ^ key) };
    }
}

macro_rules! word {
    ($word:ty) => {
        // SAFETY: a word is as many bytes as it has, read and written unaligned.
        unsafe impl Vector for $word {
            const WIDTH: usize = size_of::<$word>();

            #[inline(always)]
            unsafe fn splat(key: u32) -> Self {
                let key = key.to_ne_bytes();
                Self::from_ne_bytes(std::array::from_fn(|at| key[at % 4]))
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: as promised by the caller; no alignment is asked for.
                unsafe { from.cast::<Self>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: as promised by the caller; no alignment is asked for.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn xor(self, key: Self) -> Self {
                self ^ key
            }
        }
    };
}

word!(u32);
word!(u64);

/// A vector of the processor's: its type, what it takes, and how it is filled, read, written, combined.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
macro_rules! vector {
    ($vector:ty, $splat:expr, $load:expr, $store:expr, $xor:expr) => {
        // SAFETY: these instructions read and write exactly such a vector, at any alignment.
        unsafe impl Vector for $vector {
            const WIDTH: usize = size_of::<$vector>();

            #[inline(always)]
            unsafe fn splat(key: u32) -> Self {
                // SAFETY: the processor has them, as promised by the caller.
                unsafe { $splat(key) }
            }

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: as promised by the caller; no alignment is asked for.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: as promised by the caller; no alignment is asked for.
                unsafe { $store(to.cast(), self) }
            }

            #[inline(always)]
            unsafe fn xor(self, key: Self) -> Self {
                // SAFETY: the processor has them, as promised by the caller.
                unsafe { $xor(self, key) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_set1_epi32, _mm_storeu_si128,
        _mm_xor_si128, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_storeu_si256,
        _mm256_xor_si256, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_storeu_si512,
        _mm512_xor_si512,
    };

    use super::{Vector, long};

    vector!(
        __m128i,
        |key: u32| _mm_set1_epi32(key.cast_signed()),
        _mm_loadu_si128,
        _mm_storeu_si128,
        _mm_xor_si128
    );
    vector!(
        __m256i,
        |key: u32| _mm256_set1_epi32(key.cast_signed()),
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_xor_si256
    );
    vector!(
        __m512i,
        |key: u32| _mm512_set1_epi32(key.cast_signed()),
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_xor_si512
    );

    /// # Safety
    /// As for [`long`], with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(to: *mut u8, from: *const u8, len: usize, key: u32) {
        // SAFETY: as promised by the caller.
        unsafe { long::<__m256i>(to, from, len, key) }
    }

    /// # Safety
    /// As for [`long`], with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(to: *mut u8, from: *const u8, len: usize, key: u32) {
        // SAFETY: as promised by the caller.
        unsafe { long::<__m512i>(to, from, len, key) }
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon {
    use std::arch::aarch64::{
        uint8x16_t, vdupq_n_u32, veorq_u8, vld1q_u8, vreinterpretq_u8_u32, vst1q_u8,
    };

    use super::Vector;

    vector!(
        uint8x16_t,
        |key: u32| vreinterpretq_u8_u32(vdupq_n_u32(key)),
        vld1q_u8,
        vst1q_u8,
        veorq_u8
    );
}
