//! Ranges of keys that the probes of a search read.

use crate::block_layout::BlockLayout;
use crate::key::{EntryKey, Key};
use crate::plan::{Plan, Probe, next_within};
use std::cmp::Ordering;
use std::rc::Rc;

/// Start of a probe: its first entry key, and the query as permuted for the probe's permutation.
pub(crate) type ProbeStart<const N: usize> = (EntryKey<N>, Key<N>);

/// A query and the plan of its probes.
#[derive(Debug)]
pub(crate) struct Probes<const N: usize> {
    pub(crate) layout: Rc<BlockLayout<N>>,
    pub(crate) plan: Rc<Plan<N>>,
    pub(crate) query: Key<N>,
    /// True if only rows of the query's scope are wanted, where keys have a scope.
    pub(crate) in_scope: bool,
}

/// The first bits of a word, as a number.
#[inline]
pub(crate) fn prefix(word: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { word >> (64 - bits) }
}

impl<const N: usize> Probes<N> {
    /// The scope that is searched; `None` if keys have no scope, or all scopes are searched.
    #[inline]
    pub(crate) fn scope(&self) -> Option<u64> {
        (self.in_scope && self.layout.scope_words() > 0).then_some(self.query[0])
    }

    /// The start of a probe; `None` behind the last one.
    pub(crate) fn start(&self, probe: usize) -> Option<ProbeStart<N>> {
        let probe = self.plan.probes.get(probe)?;
        let permuted =
            self.layout.permutations()[usize::from(probe.permutation)].permute(&self.query);
        let first = self.first_key(probe, &permuted, 0)?;
        Some((EntryKey::before_key(probe.permutation, first), permuted))
    }

    /// The first entry key of a probe from an entry key on; `None` if there is none in the
    /// permutation.
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

    /// The lowest key whose prefix a probe searches for, from a prefix on.
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

    /// Lowest and highest key of a probe for one prefix.
    #[inline]
    pub(crate) fn ends(&self, probe: &Probe<N>, permuted: &Key<N>) -> (Key<N>, Key<N>) {
        let word = self.layout.scope_words();
        let (mut first, mut last) = (*permuted, *permuted);
        let rest = u64::MAX.checked_shr(probe.bits).unwrap_or(0);
        first[word] &= !rest;
        last[word] |= rest;
        first[word + 1..].fill(0);
        last[word + 1..].fill(u64::MAX);
        (first, last)
    }
}
