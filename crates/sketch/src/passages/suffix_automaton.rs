//! Suffix automaton of a sequence of symbols: an index of all contiguous parts of the sequence,
//! each with its first position.
//!
//! Blumer, Blumer, Haussler, Ehrenfeucht, Chen, Seiferas, "The smallest automaton recognizing the
//! subwords of a text", Theoretical Computer Science 40, 1985. A sequence of n symbols has at most
//! 2 n states and 3 n edges. Each symbol is added in constant time on average, for any sequence.

use std::hash::{BuildHasher, RandomState};

use crate::memory::GrowVec;

/// Number of symbols between two calls of the cancellation check `check`.
const STEPS: usize = 1 << 16;
/// Index of the first state, which represents the empty part of the sequence.
const ROOT: u32 = 0;
/// Index that means "no state" or "no edge". In the hash table, it marks a free slot.
const NONE: u32 = u32::MAX;
/// Initial number of slots of the hash table of edges, a power of two.
const MIN_SLOTS: usize = 1 << 6;

/// State of the automaton. It represents a set of parts of the sequence: all parts whose
/// occurrences end at the same positions. Each of these parts is a suffix of the longest one.
#[derive(Clone, Copy)]
struct State {
    /// Number of symbols of the longest part in this state.
    length: u32,
    /// Index of the state to which the suffix link leads. That state has the longest suffix of this
    /// state's parts that also occurs at other positions. [`NONE`] in the first state.
    link: u32,
    /// Number of symbols of the sequence up to the end of the first occurrence of each part in this
    /// state. It is the same for all these parts.
    first_end: u32,
    /// Index of the last edge that was added to this state, or [`NONE`] if the state has no edge.
    /// [`Edge::next`] links to the edge that was added before.
    edges: u32,
}

/// Edge of the automaton. Parts of the state `from` with `symbol` appended are parts of the state
/// `to`.
#[derive(Clone, Copy)]
struct Edge {
    /// Index of the state from which the edge leads.
    from: u32,
    /// Symbol that is appended to the parts of the state.
    symbol: u32,
    /// Index of the state to which the edge leads.
    to: u32,
    /// Index of the edge that was added to the state `from` before this one, or [`NONE`].
    next: u32,
}

/// Suffix automaton of a sequence. Takes up to 116 bytes for each symbol of the sequence, about 80
/// for most texts, and twice as much while it grows.
pub(super) struct SuffixAutomaton {
    states: Vec<State>,
    edges: Vec<Edge>,
    /// Hash table with linear probing: indexes of the edges, by state and symbol.
    slots: Vec<u32>,
    /// Random odd multiplier of the hash function of `slots`.
    key: u64,
}

impl SuffixAutomaton {
    /// Builds the automaton of a sequence of less than 2^30 symbols.
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

    /// Appends `symbol` to the sequence. `last` is the state of the whole sequence so far. Returns
    /// the state of the longer sequence.
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

    /// Returns true if the longest part of the state `to` has exactly one symbol more than the
    /// longest part of the state `state`.
    fn follows(&self, state: u32, to: u32) -> bool {
        self.states[to as usize].length == self.states[state as usize].length + 1
    }

    /// Divides the state `to` after `symbol` was appended to the sequence. The edge with `symbol`
    /// leads from `state` to `to`. The parts of `to` that are at most one symbol longer than the
    /// longest part of `state` now also occur at the end of the sequence. The function moves these
    /// parts to a new state, which it returns. The longer parts stay in `to`.
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

    /// Returns the slot of the edge from the state `from` with `symbol`, or a free slot if there is
    /// no such edge.
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

    /// Returns the index of the edge from the state `from` with `symbol`, or `None`.
    #[inline]
    fn find(&self, from: u32, symbol: u32) -> Option<u32> {
        let edge = self.slots[self.slot(from, symbol)];
        (edge != NONE).then_some(edge)
    }

    /// Calls `each` once for each symbol of `other`, with the length of the longest part of `other`
    /// that ends with this symbol and that the sequence of the automaton contains.
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

    /// Returns the position of the first occurrence of `part` in the sequence, or `None` if the
    /// sequence does not contain it.
    pub fn first_position(&self, part: &[u32]) -> Option<usize> {
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
                    prop_assert_eq!(automaton.first_position(part), position(&sequence, part));
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
