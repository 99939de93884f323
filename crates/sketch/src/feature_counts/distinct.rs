//! Counts the distinct features in a list of up to a few thousand, without a hash table. It runs a
//! few rounds. In a round, the hash of each feature chooses a slot, and the slot holds the position
//! of the last feature that chose it. A feature that equals the last feature of its slot is
//! counted. All other features take part in the next round, with other slots.
//!
//! All occurrences of a feature choose the same slot, so they are counted in the same round.
//!
//! Slots are written before they are read, so they need not be cleared. No branch depends on the
//! features, whereas a hash table branches on whether a slot is taken. Most features of a text
//! occur once and are alone in their slot, so one round is enough for them.

use super::count_table::{Counted, mix};
use crate::memory::GrowVec;

/// Maximum length of the list, so that positions and slot numbers fit into 16 bits. Longer lists
/// are counted in a hash table.
pub(super) const MAX_LISTED: usize = 1 << 12;
/// Minimum number of slots for each feature of the list.
const SLOTS: usize = 4;
/// Minimum number of slots of a round. A later round has only a few features, and with this many
/// slots two of them rarely share one.
const MIN_SLOTS: usize = 1 << 10;
/// Maximum number of rounds. Few features are left after each round, unless an attacker chose
/// features that share slots. Features that are left after the last round stay in the list, and the
/// caller counts them in a hash table.
const ROUNDS: u32 = 4;
/// Number of features that are processed at once when a round finds the last feature of each slot.
const BLOCK: usize = 64;

/// Finds and counts the distinct features of a list. Can be used for several lists.
#[derive(Default)]
pub(super) struct DistinctFeatures<const W: usize> {
    /// Indexed by slot: the position in the list of the last feature that chose this slot in the
    /// current round. The elements for slots that no feature has chosen are unspecified.
    last: Vec<u16>,
    /// Slot of each feature of the current round, by the feature's position in the list.
    slots: Vec<u16>,
    /// Distinct features found so far, without their counts.
    found: Found<W>,
    /// Number of occurrences of each distinct feature, in the order of `found.hashes`.
    counts: Vec<u64>,
    /// Positions in `found.hashes` of the features that occur more than once. The first
    /// `repeated_len` elements are used.
    repeated: Vec<u32>,
    repeated_len: usize,
}

/// Distinct features that all rounds so far have found, and the positions of the features of the
/// current round.
#[derive(Default)]
struct Found<const W: usize> {
    /// Hashes of the distinct features of all rounds, in the first `len` elements. The rest is
    /// unused.
    hashes: Vec<[u64; W]>,
    len: usize,
    /// Indexed by the position of a feature in the list of the current round: its position in
    /// `hashes`, if the feature is the last one in its slot. The elements for other features are
    /// not used.
    positions: Vec<u16>,
    /// Features of the current round that are not the last one in their slot, as positions in the
    /// round's list. The first `others_len` elements are used.
    others: Vec<u16>,
    others_len: usize,
}

impl<const W: usize> DistinctFeatures<W> {
    /// Counts the features of `list`, which has at most [`MAX_LISTED`] elements, and removes the
    /// counted features from it. `key` holds the random numbers that choose slots. Features that
    /// are not counted after [`ROUNDS`] rounds remain in the list, with all their occurrences.
    pub fn count(&mut self, list: &mut Vec<[u64; W]>, mut key: [u64; W]) {
        assert!(list.len() <= MAX_LISTED, "a list of {}", list.len());
        (self.found.len, self.repeated_len) = (0, 0);
        if self.counts.len() <= list.len() {
            self.make_room(list.len());
        }
        self.counts[..list.len()].fill(1);
        for _ in 0..ROUNDS {
            if list.is_empty() {
                break;
            }
            let features = list.len();
            // The list is padded, because whole blocks are read.
            list.grow_to(features.next_multiple_of(BLOCK), [0; W]);
            self.split(list, features, key);
            let left = self.count_others(list);
            list.truncate(left);
            key = key.map(|word| word.rotate_left(23));
        }
    }

    /// Returns the features that the last call of [`DistinctFeatures::count`] counted, with their
    /// counts.
    pub fn counted(&self) -> Counted<'_, W> {
        Counted {
            hashes: &self.found.hashes[..self.found.len],
            counts: &self.counts[..self.found.len],
            repeated: &self.repeated[..self.repeated_len],
        }
    }

    #[cold]
    fn make_room(&mut self, features: usize) {
        // There is room for whole blocks, which are written at once.
        let room = features.next_power_of_two() + 2 * BLOCK;
        self.last.grow_to(slots(features), 0);
        self.slots.grow_to(room, 0);
        self.found.hashes.grow_to(room, [0; W]);
        self.found.positions.grow_to(room, 0);
        self.found.others.grow_to(room, 0);
        self.repeated.grow_to(room, 0);
        // This vector grows last: if it has room, the other vectors have room too.
        self.counts.grow_to(features.next_power_of_two() + 1, 0);
    }

    /// Runs the first half of a round over the first `features` elements of `list`. Adds the
    /// features that are the last of their slot to `found.hashes`, and the positions of the other
    /// features to `found.others`.
    fn split(&mut self, list: &[[u64; W]], features: usize, key: [u64; W]) {
        let slots = slots(features);
        let round = Round {
            list,
            features,
            key,
            shift: 64 - slots.ilog2(),
        };
        let last = &mut self.last[..slots];
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx512_vbmi2() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            return unsafe { avx512::split(round, last, &mut self.slots, &mut self.found) };
        }
        split_portable(round, last, &mut self.slots, &mut self.found);
    }

    /// Runs the second half of a round, over the features in `found.others`. Counts each feature
    /// that equals the last feature of its slot. Moves the features that differ from it to the
    /// front of the list, for the next round, and returns their number.
    fn count_others(&mut self, list: &mut [[u64; W]]) -> usize {
        let (last, slots, found) = (&self.last[..], &self.slots[..], &self.found);
        let (counts, repeated) = (&mut self.counts[..], &mut self.repeated[..]);
        let (mut left, mut repeated_len) = (0, self.repeated_len);
        for &at in &found.others[..found.others_len] {
            let hash = list[usize::from(at)];
            let last = usize::from(last[usize::from(slots[usize::from(at)])]);
            // There is no branch, because the result is hard to predict.
            let same = list[last] == hash;
            let position = found.positions[last];
            let count = &mut counts[usize::from(position)];
            repeated[repeated_len] = position.into();
            repeated_len += usize::from(same & (*count == 1));
            *count += u64::from(same);
            // This overwrites no feature that is read later: `left` is at most the current
            // position.
            list[left] = hash;
            left += usize::from(!same);
        }
        self.repeated_len = repeated_len;
        left
    }
}

/// Returns the number of slots for a list of `features` features.
fn slots(features: usize) -> usize {
    MIN_SLOTS.max(SLOTS * features.next_power_of_two())
}

/// Features of one round, and the parameters that choose their slots.
#[derive(Clone, Copy)]
struct Round<'a, const W: usize> {
    /// Hashes of the features of the round, padded to whole blocks.
    list: &'a [[u64; W]],
    /// Number of features in `list`, without the padding.
    features: usize,
    /// Random numbers that choose slots; see [`mix`].
    key: [u64; W],
    /// Number of bits by which a mixed hash is shifted to get its slot.
    shift: u32,
}

impl<const W: usize> Round<'_, W> {
    /// Writes the slot of each feature to `slots`. Sets `last[slot]` to the position of the last
    /// feature with this slot.
    #[inline(always)]
    fn choose_slots(&self, last: &mut [u16], slots: &mut [u16]) {
        for (slot, &hash) in slots.iter_mut().zip(self.list) {
            *slot = (mix(hash, self.key) >> self.shift) as u16;
        }
        for (at, &slot) in slots[..self.features].iter().enumerate() {
            last[usize::from(slot)] = at as u16;
        }
    }

    /// Returns two bit masks with one bit for each feature of the block that starts at position
    /// `first`. The first mask has the features that are the last one in their slot. The second
    /// mask has all features of the block.
    #[inline(always)]
    fn last_of_block(&self, first: usize, last: &[u16], slots: &[u16]) -> (u64, u64) {
        let len = BLOCK.min(self.features - first);
        // Elements of the block after the last feature are not looked up. The mask `all` clears the
        // bits of these elements.
        let mut found = [0; BLOCK];
        for (found, &slot) in found[..len].iter_mut().zip(&slots[first..]) {
            *found = last[usize::from(slot)];
        }
        let is_last = (found.iter().enumerate()).fold(0, |all, (at, &found)| {
            all | u64::from(found == (first + at) as u16) << at
        });
        let all = u64::MAX >> (BLOCK - len);
        (is_last & all, all)
    }
}

/// Does the work of [`DistinctFeatures::split`] on any processor: adds the features of a round that
/// are the last one in their slot to `found.hashes`, and the positions of the other features to
/// `found.others`. Fills `slots` and `last` as [`Round::choose_slots`] does.
#[inline(always)]
fn split_portable<const W: usize>(
    round: Round<W>,
    last: &mut [u16],
    slots: &mut [u16],
    found: &mut Found<W>,
) {
    round.choose_slots(last, slots);
    let (mut len, mut others_len) = (found.len, 0);
    for first in (0..round.features).step_by(BLOCK) {
        let (is_last, all) = round.last_of_block(first, last, slots);
        // There is no branch below, because the results are hard to predict.
        for at in 0..all.count_ones() as usize {
            found.hashes[len] = round.list[first + at];
            found.positions[first + at] = len as u16;
            found.others[others_len] = (first + at) as u16;
            len += (is_last >> at & 1) as usize;
            others_len += (!is_last >> at & 1) as usize;
        }
    }
    (found.len, found.others_len) = (len, others_len);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi16, _mm512_loadu_si512, _mm512_maskz_compress_epi16,
        _mm512_maskz_compress_epi64, _mm512_maskz_expand_epi16, _mm512_set1_epi16,
        _mm512_storeu_si512, _pdep_u64,
    };

    use super::{BLOCK, Found, Round};

    /// The numbers 0 to 31, from which consecutive positions are computed.
    static NUMBERS: [u16; 32] = {
        let mut numbers = [0; 32];
        let mut at = 0;
        while at < numbers.len() {
            numbers[at] = at as u16;
            at += 1;
        }
        numbers
    };

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(words: &[u64; 8]) -> __m512i {
        // SAFETY: the load reads the 64 bytes of `words`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            _mm512_loadu_si512(words.as_ptr().cast())
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(numbers: __m512i, out: &mut [u16]) {
        let out: &mut [u16; 32] = out.first_chunk_mut().expect("room for a block");
        // SAFETY: the store writes the 64 bytes of `out`, and needs no alignment.
        #[allow(unsafe_code)]
        unsafe {
            _mm512_storeu_si512(out.as_mut_ptr().cast(), numbers);
        }
    }

    /// Does the same as [`super::split_portable`], with instructions that pack the chosen elements
    /// of a vector.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub fn split<const W: usize>(
        round: Round<W>,
        last: &mut [u16],
        slots: &mut [u16],
        found: &mut Found<W>,
    ) {
        round.choose_slots(last, slots);
        // SAFETY: the load reads the 64 bytes of `NUMBERS`, and needs no alignment.
        #[allow(unsafe_code)]
        let numbers = unsafe { _mm512_loadu_si512(NUMBERS.as_ptr().cast()) };
        let from = |first: usize| _mm512_add_epi16(numbers, _mm512_set1_epi16(first as i16));
        found.others_len = 0;
        for first in (0..round.features).step_by(BLOCK) {
            let (is_last, all) = round.last_of_block(first, last, slots);
            let others = all & !is_last;
            let mut len = found.len;
            for half in [0, 32] {
                let (is_last, others) = ((is_last >> half) as u32, (others >> half) as u32);
                let at = first + half;
                let positions = _mm512_maskz_expand_epi16(is_last, from(len));
                store(positions, &mut found.positions[at..]);
                len += is_last.count_ones() as usize;
                let others_at = _mm512_maskz_compress_epi16(others, from(at));
                store(others_at, &mut found.others[found.others_len..]);
                found.others_len += others.count_ones() as usize;
            }
            compress(&round.list[first..first + BLOCK], is_last, found);
        }
    }

    /// Appends the features of a block whose bit in `is_last` is set to `found.hashes`.
    #[inline]
    #[target_feature(enable = "avx512f,bmi2,popcnt")]
    fn compress<const W: usize>(block: &[[u64; W]], is_last: u64, found: &mut Found<W>) {
        const { assert!(W == 1 || W == 2) };
        let (parts, _) = block.as_flattened().as_chunks::<8>();
        let out = found.hashes.as_flattened_mut();
        let mut at = W * found.len;
        for (number, part) in parts.iter().enumerate() {
            let mask = match W {
                1 => is_last >> (8 * number),
                // Each feature has two words, so each bit of the mask is doubled.
                _ => 3 * _pdep_u64(is_last >> (4 * number), 0x55),
            } as u8;
            let out: &mut [u64; 8] = out[at..].first_chunk_mut().expect("room for a block");
            // SAFETY: the store writes the 64 bytes of `out`, and needs no alignment.
            #[allow(unsafe_code)]
            unsafe {
                let packed = _mm512_maskz_compress_epi64(mask, load(part));
                _mm512_storeu_si512(out.as_mut_ptr().cast(), packed);
            }
            at += mask.count_ones() as usize;
        }
        found.len = at / W;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Counts = BTreeMap<[u64; 2], u64>;

    fn occurrences(list: &[[u64; 2]]) -> Counts {
        let mut counts = Counts::new();
        for &hash in list {
            *counts.entry(hash).or_default() += 1;
        }
        counts
    }

    fn counted(
        distinct: &mut DistinctFeatures<2>,
        list: &[[u64; 2]],
        key: u64,
    ) -> (Counts, Counts) {
        let mut left = list.to_vec();
        distinct.count(&mut left, [key, 1]);
        let counted = distinct.counted();
        let found: Counts = counted.iter().map(|it| (it.hash, it.count)).collect();
        assert_eq!(found.len(), counted.hashes.len(), "a feature twice");
        let mut repeated: Vec<_> = (counted.repeated.iter())
            .map(|&at| counted.hashes[at as usize])
            .collect();
        repeated.sort_unstable();
        let expected = found.iter().filter(|&(_, &count)| count > 1);
        assert_eq!(
            repeated,
            expected.map(|(&hash, _)| hash).collect::<Vec<_>>()
        );
        (found, occurrences(&left))
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_list(
            texts in prop::collection::vec(
                (prop::collection::vec(any::<u64>(), 0..600), 1_u64..1000),
                1..4,
            ),
            key in any::<u64>(),
        ) {
            let mut distinct = DistinctFeatures::default();
            for (hashes, kinds) in texts {
                // The two words together identify a feature.
                let list: Vec<_> = hashes.iter().map(|h| [h % kinds / 3, h % kinds]).collect();
                let (mut all, left) = counted(&mut distinct, &list, key | 1);
                for (hash, count) in left {
                    prop_assert_eq!(all.insert(hash, count), None, "counted in part");
                }
                prop_assert_eq!(all, occurrences(&list));
            }
        }
    }

    proptest! {
        #[test]
        fn implementations_agree(
            hashes in prop::collection::vec(any::<u64>(), 1..400),
            kinds in 1_u64..400,
        ) {
            let list: Vec<_> = hashes.iter().map(|h| [h % kinds / 3, h % kinds]).collect();
            fn assert_agree<const W: usize>(mut list: Vec<[u64; W]>) {
                let features = list.len();
                list.resize(features.next_multiple_of(BLOCK), [0; W]);
                let mut chosen = DistinctFeatures::default();
                chosen.make_room(features);
                chosen.split(&list, features, [0x9E37_79B9_7F4A_7C15; W]);
                let mut portable = DistinctFeatures::default();
                portable.make_room(features);
                let round = Round {
                    list: &list,
                    features,
                    key: [0x9E37_79B9_7F4A_7C15; W],
                    shift: 64 - slots(features).ilog2(),
                };
                split_portable(
                    round, &mut portable.last, &mut portable.slots, &mut portable.found,
                );
                assert_eq!(chosen.last, portable.last);
                assert_eq!(chosen.slots[..features], portable.slots[..features]);
                let (a, b) = (chosen.found, portable.found);
                assert_eq!(a.hashes[..a.len], b.hashes[..b.len]);
                assert_eq!(a.others[..a.others_len], b.others[..b.others_len]);
                for at in 0..features as u16 {
                    if !a.others[..a.others_len].contains(&at) {
                        let at = usize::from(at);
                        assert_eq!(a.positions[at], b.positions[at]);
                    }
                }
            }
            assert_agree(list.iter().map(|&[_, word]| [word]).collect());
            assert_agree(list);
        }
    }

    #[test]
    fn few_features_are_left() {
        let mut distinct = DistinctFeatures::default();
        for n in [1, 2, 100, MAX_LISTED as u64] {
            let list: Vec<_> = (0..n).map(|at| [at * at, at / 2 * 7919]).collect();
            let (found, left) = counted(&mut distinct, &list, 0x9E37_79B9_7F4A_7C15);
            assert!(left.is_empty(), "{} of {n}", left.len());
            assert_eq!(found, occurrences(&list));
        }
        // All features share a slot in every round, so each round counts only the last one.
        let list: Vec<_> = (0..1000).map(|at| [0, at >> 1]).collect();
        let mut left = list.clone();
        distinct.count(&mut left, [0, 0]);
        assert_eq!(left.len(), 1000 - 2 * ROUNDS as usize);
    }
}
