//! Suffix automaton of a sequence: all its parts, each with the place where it stands first.
//!
//! Blumer, Blumer, Haussler, Ehrenfeucht, Chen, Seiferas, "The smallest automaton recognizing the
//! subwords of a text", Theoretical Computer Science 40, 1985. A sequence of n symbols has at most
//! 2 n states and 3 n edges, and each symbol is added in constant time on average, whatever the
//! sequence is.

use std::hash::{BuildHasher, RandomState};

use crate::memory::GrowVec;

/// Steps between two calls of `check`.
const STEPS: usize = 1 << 16;
/// The state of the empty sequence.
const ROOT: u32 = 0;
/// No state, edge or slot.
const NONE: u32 = u32::MAX;
/// Slots of the smallest table of edges, a power of two.
const MIN_SLOTS: usize = 1 << 6;

/// Set of parts of the sequence that stand at the same places.
#[derive(Clone, Copy)]
struct State {
    /// Symbols of the longest of them.
    length: u32,
    /// The state of its longest end that stands at more places.
    link: u32,
    /// Position behind the last symbol where they stand first.
    first_end: u32,
    /// The edge that was added last.
    edges: u32,
}

/// Edge from a state to the one of the parts with one symbol more.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    symbol: u32,
    to: u32,
    /// The edge of the same state that was added before.
    next: u32,
}

/// The automaton. Takes up to 120 bytes for each symbol of the sequence, some 80 of most texts.
pub(super) struct SuffixAutomaton {
    states: Vec<State>,
    edges: Vec<Edge>,
    /// Table of the edges by state and symbol, with linear probing.
    slots: Vec<u32>,
    key: u64,
}

impl SuffixAutomaton {
    /// The automaton of a sequence of less than 2^30 symbols.
    pub fn new(sequence: &[u32], check: &mut dyn FnMut()) -> Self {
        let mut automaton = Self {
            states: Vec::new(),
            edges: Vec::new(),
            slots: Vec::new(),
            key: RandomState::new().hash_one(0) | 1,
        };
        automaton.slots.grow_exact(MIN_SLOTS, NONE);
        automaton.states.grow_push(State {
            length: 0,
            link: NONE,
            first_end: 0,
            edges: NONE,
        });
        let mut last = ROOT;
        for (n, &symbol) in sequence.iter().enumerate() {
            if n % STEPS == 0 {
                check();
            }
            last = automaton.add(last, symbol);
        }
        automaton
    }

    /// Adds a symbol behind the sequence, whose state is `last`; returns the state of the new one.
    fn add(&mut self, last: u32, symbol: u32) -> u32 {
        let length = self.states[last as usize].length + 1;
        let new = self.new_state(State {
            length,
            link: ROOT,
            first_end: length,
            edges: NONE,
        });
        let mut state = last;
        while state != NONE {
            let Some(edge) = self.find(state, symbol) else {
                self.new_edge(state, symbol, new);
                state = self.states[state as usize].link;
                continue;
            };
            let to = self.edges[edge as usize].to;
            self.states[new as usize].link = match self.follows(state, to) {
                true => to,
                false => self.split(state, symbol, to),
            };
            break;
        }
        new
    }

    /// Returns true if the longest part of `to` has one symbol more than that of `state`.
    fn follows(&self, state: u32, to: u32) -> bool {
        self.states[to as usize].length == self.states[state as usize].length + 1
    }

    /// Splits from `to` a state of the parts that are not longer than those of `state` with
    /// `symbol`, which stand at the sequence's end as well.
    fn split(&mut self, mut state: u32, symbol: u32, to: u32) -> u32 {
        let split = self.new_state(State {
            length: self.states[state as usize].length + 1,
            edges: NONE,
            ..self.states[to as usize]
        });
        let mut edge = self.states[to as usize].edges;
        while edge != NONE {
            let Edge {
                symbol, to, next, ..
            } = self.edges[edge as usize];
            self.new_edge(split, symbol, to);
            edge = next;
        }
        self.states[to as usize].link = split;
        while let Some(edge) = self.find(state, symbol)
            && self.edges[edge as usize].to == to
        {
            self.edges[edge as usize].to = split;
            state = self.states[state as usize].link;
            if state == NONE {
                break;
            }
        }
        split
    }

    fn new_state(&mut self, state: State) -> u32 {
        self.states.grow_push(state);
        self.states.len() as u32 - 1
    }

    fn new_edge(&mut self, from: u32, symbol: u32, to: u32) {
        if 3 * self.edges.len() >= 2 * self.slots.len() {
            self.grow_slots();
        }
        let new = self.edges.len() as u32;
        self.edges.grow_push(Edge {
            from,
            symbol,
            to,
            next: std::mem::replace(&mut self.states[from as usize].edges, new),
        });
        let slot = self.slot(from, symbol);
        self.slots[slot] = new;
    }

    fn grow_slots(&mut self) {
        let slots = 2 * self.slots.len();
        self.slots = Vec::new();
        self.slots.grow_exact(slots, NONE);
        for n in 0..self.edges.len() {
            let Edge { from, symbol, .. } = self.edges[n];
            let slot = self.slot(from, symbol);
            self.slots[slot] = n as u32;
        }
    }

    /// The slot of an edge, or the free one where it belongs.
    #[inline]
    fn slot(&self, from: u32, symbol: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mixed = (u64::from(from) << 32 | u64::from(symbol)).wrapping_mul(self.key);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(self.key);
        let mut slot = (mixed >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                NONE => return slot,
                edge => {
                    let edge = &self.edges[edge as usize];
                    if edge.from == from && edge.symbol == symbol {
                        return slot;
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    #[inline]
    fn find(&self, from: u32, symbol: u32) -> Option<u32> {
        let edge = self.slots[self.slot(from, symbol)];
        (edge != NONE).then_some(edge)
    }

    /// Passes, for each symbol of another sequence, the number of the symbols up to it that stand
    /// together in this one: the most that do.
    pub fn match_ends(&self, other: &[u32], mut each: impl FnMut(usize), check: &mut dyn FnMut()) {
        let (mut state, mut length) = (ROOT, 0);
        for (n, &symbol) in other.iter().enumerate() {
            if n % STEPS == 0 {
                check();
            }
            loop {
                if let Some(edge) = self.find(state, symbol) {
                    state = self.edges[edge as usize].to;
                    length += 1;
                    break;
                }
                match self.states[state as usize].link {
                    NONE => break,
                    link => state = link,
                }
                length = self.states[state as usize].length as usize;
            }
            each(length);
        }
    }

    /// Position of the first symbol where a part of the sequence stands first; `None` if it is no
    /// part.
    pub fn first_place(&self, part: &[u32]) -> Option<usize> {
        let mut state = ROOT;
        for &symbol in part {
            state = self.edges[self.find(state, symbol)? as usize].to;
        }
        Some(self.states[state as usize].first_end as usize - part.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn position(sequence: &[u32], part: &[u32]) -> Option<usize> {
        (0..=sequence.len() - part.len().min(sequence.len()))
            .find(|&at| sequence[at..].starts_with(part))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn knows_all_parts(
            sequence in prop::collection::vec(0_u32..4, 0..60),
            other in prop::collection::vec(0_u32..5, 0..60),
        ) {
            let automaton = SuffixAutomaton::new(&sequence, &mut || ());
            prop_assert!(automaton.states.len() <= 2 * sequence.len() + 1);
            prop_assert!(automaton.edges.len() <= 3 * sequence.len() + 1);
            for start in 0..other.len() {
                for end in start..=other.len() {
                    let part = &other[start..end];
                    prop_assert_eq!(automaton.first_place(part), position(&sequence, part));
                }
            }
            let mut lengths = Vec::new();
            automaton.match_ends(&other, |length| lengths.push(length), &mut || ());
            for (n, length) in lengths.into_iter().enumerate() {
                let longest = (0..=n + 1).rev()
                    .find(|&length| position(&sequence, &other[n + 1 - length..=n]).is_some());
                prop_assert_eq!(Some(length), longest);
            }
        }
    }
}
