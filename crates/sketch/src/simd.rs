//! Choice of the vector instructions that the kernels of this crate use.

use std::sync::atomic::{AtomicU8, Ordering};

/// Set of vector instructions. Each set contains the sets before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Simd {
    /// No vector instructions: code for any machine.
    Portable = 1,
    /// AVX2 with BMI1, BMI2 and POPCNT, or NEON, which every 64-bit ARM processor has.
    Avx2OrNeon,
    /// AVX-512 F, BW, DQ and VL, and the instructions of `Avx2OrNeon`.
    Avx512,
    /// AVX-512 VBMI2, and the instructions of `Avx512`.
    Avx512Vbmi2,
}

/// All instruction sets, for tests that call [`use_at_most`] with each.
pub const ALL: [Simd; 4] = [
    Simd::Portable,
    Simd::Avx2OrNeon,
    Simd::Avx512,
    Simd::Avx512Vbmi2,
];

/// Instruction set in use, as the number of a [`Simd`]; 0 before the first call of `has` or
/// `use_at_most`.
static USED: AtomicU8 = AtomicU8::new(0);

/// Limits this process to the instruction set `most`, so that a test on one machine also runs the
/// code for other machines. Returns the instruction set now in use: `most`, or a smaller one if the
/// processor does not have `most`.
pub fn use_at_most(most: Simd) -> Simd {
    let used = processor_set().min(most);
    USED.store(used as u8, Ordering::Relaxed);
    used
}

/// Returns true if AVX2, BMI1, BMI2 and POPCNT may be used.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx2() -> bool {
    has(Simd::Avx2OrNeon)
}

/// Returns true if NEON may be used.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn has_neon() -> bool {
    has(Simd::Avx2OrNeon)
}

/// Returns true if AVX-512 F, BW, DQ and VL may be used, and the instructions of [`has_avx2`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    has(Simd::Avx512)
}

/// Returns true if AVX-512 VBMI2 may be used, and the instructions of [`has_avx512`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512_vbmi2() -> bool {
    has(Simd::Avx512Vbmi2)
}

/// Returns true if the instructions of `set` may be used.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn has(set: Simd) -> bool {
    let used = USED.load(Ordering::Relaxed);
    let used = if used == 0 { detect() } else { used };
    used >= set as u8
}

/// Chooses the largest instruction set of the processor, and returns its number.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[cold]
fn detect() -> u8 {
    use_at_most(Simd::Avx512Vbmi2) as u8
}

#[cfg(target_arch = "x86_64")]
fn processor_set() -> Simd {
    use std::arch::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt")) {
        return Simd::Portable;
    }
    if !(has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")) {
        return Simd::Avx2OrNeon;
    }
    if has!("avx512vbmi2") {
        Simd::Avx512Vbmi2
    } else {
        Simd::Avx512
    }
}

#[cfg(target_arch = "aarch64")]
fn processor_set() -> Simd {
    Simd::Avx2OrNeon
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn processor_set() -> Simd {
    Simd::Portable
}
