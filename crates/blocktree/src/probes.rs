//! Ranges of keys that the probes of a search for fingerprints read, computed from query and plan.
//! A probe is the part of a search that reads one permutation (ordered copy of all keys). If keys
//! have a scope (columns that must be equal in two near-duplicates), their first word is a hash of
//! the scope.

use crate::block_layout::BlockLayout;
use crate::key::{EntryKey, Key};
use crate::plan::{Plan, Probe, next_within};
use std::cmp::Ordering;
use std::rc::Rc;

/// Start of a probe: the lowest entry key that the probe reads, and the query's key in the probe's
/// permutation.
pub(crate) type ProbeStart<const N: usize> = (EntryKey<N>, Key<N>);

/// Query of a search for fingerprints, and the plan that has the probes of the search.
#[derive(Debug)]
pub(crate) struct Probes<const N: usize> {
    pub(crate) layout: Rc<BlockLayout<N>>,
    pub(crate) plan: Rc<Plan<N>>,
    pub(crate) query: Key<N>,
    /// True if only rows of the query's scope are wanted. No effect if keys have no scope.
    pub(crate) in_scope: bool,
}

/// Returns the first `bits` bits of a word, as a number.
#[inline]
pub(crate) fn prefix(word: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { word >> (64 - bits) }
}

impl<const N: usize> Probes<N> {
    /// Returns the word of the scope that is searched. `None` if keys have no scope, or all scopes
    /// are searched.
    #[inline]
    pub(crate) fn scope(&self) -> Option<u64> {
        (self.in_scope && self.layout.scope_words() > 0).then_some(self.query[0])
    }

    /// Returns the start of the probe with the number `probe` in the plan. `None` after the last
    /// probe.
    pub(crate) fn start(&self, probe: usize) -> Option<ProbeStart<N>> {
        let probe = self.plan.probes.get(probe)?;
        let permuted =
            self.layout.permutations()[usize::from(probe.permutation)].permute(&self.query);
        let first = self.first_key(probe, &permuted, 0)?;
        Some((EntryKey::before_key(probe.permutation, first), permuted))
    }

    /// Estimates how many leaves the keys with one prefix fill, if keys are evenly distributed. The
    /// prefix has as many bits as those that the probe with the number `probe` looks up.
    #[inline]
    pub(crate) fn leaves_of_prefix(&self, probe: usize) -> f64 {
        let bits = self.plan.probes[probe].bits;
        self.plan.permutation_leaves / 2f64.powi(bits as i32)
    }

    /// Returns the lowest entry key, from `from` on, at which a probe continues to read. `probe` is
    /// the number of the probe in the plan, and `permuted` is the query's key in the probe's
    /// permutation. `None` if the probe ends before `from`.
    pub(crate) fn next_position(
        &self,
        probe: usize,
        permuted: &Key<N>,
        from: &EntryKey<N>,
    ) -> Option<EntryKey<N>> {
        let probe = &self.plan.probes[probe];
        if from.permutation != probe.permutation {
            return None;
        }
        let word = self.layout.scope_words();
        let first_prefix = match self
            .scope()
            .map_or(Ordering::Equal, |scope| from.key[0].cmp(&scope))
        {
            Ordering::Less => 0,
            Ordering::Equal if self.in_scope => prefix(from.key[word], probe.bits),
            Ordering::Equal => 0,
            Ordering::Greater => return None,
        };
        let first = self.first_key(probe, permuted, first_prefix)?;
        Some(EntryKey::before_key(probe.permutation, first).max(*from))
    }

    /// Returns the lowest key whose prefix is at least `from` and is one of the prefixes that
    /// `probe` looks up. `permuted` is the query's key in the probe's permutation. `None` if there
    /// is no such prefix.
    fn first_key(&self, probe: &Probe<N>, permuted: &Key<N>, from: u64) -> Option<Key<N>> {
        let word = self.layout.scope_words();
        let center = prefix(permuted[word], probe.bits);
        let found = next_within(center, probe.bits, probe.threshold, from)?;
        let mut key = [0; N];
        if probe.bits > 0 {
            key[word] = found << (64 - probe.bits);
        }
        if let Some(scope) = self.scope() {
            key[0] = scope;
        }
        Some(key)
    }

    /// Returns the lowest and the highest key with the prefix that a probe looks up on a leaf.
    /// `None` if the probe looks up several prefixes on this leaf, or reads the whole permutation.
    /// `from` is the lowest key that the probe reads on the leaf. `high` is the key at which the
    /// leaf ends, or `None` for the last leaf of the permutation. `permuted` is the query's key in
    /// the probe's permutation.
    #[inline]
    pub(crate) fn only_prefix(
        &self,
        probe: &Probe<N>,
        permuted: &Key<N>,
        from: &Key<N>,
        high: Option<&Key<N>>,
    ) -> Option<(Key<N>, Key<N>)> {
        if probe.bits == 0 {
            return None;
        }
        if probe.threshold > 0 {
            let current = prefix(from[self.layout.scope_words()], probe.bits);
            let is_last = current == u64::MAX >> (64 - probe.bits);
            let next = (!is_last).then(|| self.first_key(probe, permuted, current + 1));
            if let Some(next) = next.flatten()
                && high.is_none_or(|high| next <= *high)
            {
                return None;
            }
        }
        Some(self.ends(probe, from))
    }

    /// Returns the lowest and the highest key that agree with `key` in the scope and in the prefix.
    /// The prefix has as many bits as the prefixes that `probe` looks up.
    #[inline]
    pub(crate) fn ends(&self, probe: &Probe<N>, key: &Key<N>) -> (Key<N>, Key<N>) {
        let word = self.layout.scope_words();
        let (mut first, mut last) = (*key, *key);
        let rest = u64::MAX.checked_shr(probe.bits).unwrap_or(0);
        first[word] &= !rest;
        last[word] |= rest;
        first[word + 1..].fill(0);
        last[word + 1..].fill(u64::MAX);
        (first, last)
    }
}
