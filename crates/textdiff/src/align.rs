//! Alignment of two texts: finds a long common subsequence of their tokens, and the changes between
//! these equal tokens. The crate `similar` searches for the subsequence among the shared tokens,
//! which occur in both texts.
//!
//! The Myers search of `similar` has Git's limit: beyond a cost of the square root of the number of
//! tokens, it accepts a good split instead of the best one. The limit depends on the tokens alone,
//! so a comparison always has the same result. With a deadline, the result would depend on the
//! speed of the machine.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::ops::{Index, Range};

use similar::algorithms::{DiffHook, myers};

use crate::host::{Host, push};

/// Number of token reads between two calls of [`Host::check`].
const CHECK_EVERY: u32 = 1 << 20;
/// Number of bytes that the vectors of the Myers search take for each token of the two texts.
const SEARCH_BYTES: usize = 16;
/// Number of bytes that the lists of shared tokens take for each token of the two texts. Includes
/// the old allocation of a list that grows.
const LIST_BYTES: usize = 20;
/// Number of bytes that the search takes for each token of the longer text if the shorter text has
/// up to 64 tokens. `similar` then fills a table with a row for each of these tokens.
const TABLE_BYTES: usize = 65;
/// Maximum number of bytes that are reserved for the table of `similar` ([`TABLE_BYTES`]). For
/// longer texts, `similar` searches without a table. Its smaller allocations fit into the same
/// reservation.
const MAX_TABLE_BYTES: usize = 65 << 20;

/// Tokens in which two texts differ, as a range in each text. At most one of the ranges is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Range of tokens of the first text.
    pub a: Range<usize>,
    /// Range of tokens of the second text.
    pub b: Range<usize>,
}

/// Number of a token of the first text. Equal tokens have equal numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct OldToken(u32);

/// Number of a token of the second text. Has a type of its own, because `similar` copies the tokens
/// and compares the copies if both texts have tokens of the same type. [`Counter`] counts only
/// reads of the original tokens, so a search among copies could not be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NewToken(u32);

impl PartialEq<OldToken> for NewToken {
    fn eq(&self, other: &OldToken) -> bool {
        self.0 == other.0
    }
}

/// Counts how often tokens are read, and calls [`Host::check`] regularly.
struct Counter<'a> {
    /// Number of token reads before the next call of [`Host::check`].
    left: Cell<u32>,
    host: RefCell<&'a mut dyn Host>,
}

impl Counter<'_> {
    #[inline]
    fn count(&self) {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        if left == 0 {
            self.check();
        }
    }

    #[cold]
    fn check(&self) {
        self.left.set(CHECK_EVERY);
        self.host.borrow_mut().check();
    }
}

/// Tokens of a text. `counter` counts each read of a token.
struct Counted<'a, T> {
    tokens: Vec<T>,
    counter: &'a Counter<'a>,
}

impl<T> Index<usize> for Counted<'_, T> {
    type Output = T;

    #[inline]
    fn index(&self, n: usize) -> &T {
        self.counter.count();
        &self.tokens[n]
    }
}

/// Receives runs of equal tokens from `similar`, and collects the changes between them.
struct Changes<'a> {
    found: Vec<Change>,
    /// Position in the first text of the token after the last equal token.
    a: usize,
    /// Position in the second text of the token after the last equal token.
    b: usize,
    /// For each text, the positions of its shared tokens among all of its tokens. `similar` counts
    /// only shared tokens, so its positions must be converted by these lists.
    searched: [&'a [u32]; 2],
    counter: &'a Counter<'a>,
}

impl Changes<'_> {
    /// Adds the change between the last equal token and the next one. `a` and `b` are the positions
    /// of the next equal token in the two texts, or the lengths of the texts if none follows. Adds
    /// nothing if there are no tokens in between.
    fn before(&mut self, a: usize, b: usize) {
        if self.a < a || self.b < b {
            let change = Change {
                a: self.a..a,
                b: self.b..b,
            };
            let mut host = self.counter.host.borrow_mut();
            push(&mut **host, &mut self.found, change);
        }
    }
}

impl DiffHook for Changes<'_> {
    type Error = Infallible;

    fn equal(&mut self, a: usize, b: usize, len: usize) -> Result<(), Infallible> {
        let [of_a, of_b] = self.searched;
        for (&a, &b) in of_a[a..a + len].iter().zip(&of_b[b..b + len]) {
            let (a, b) = (a as usize, b as usize);
            self.before(a, b);
            (self.a, self.b) = (a + 1, b + 1);
        }
        Ok(())
    }
}

/// Returns the changes between two texts, in text order. `a` and `b` have the number of each token.
/// Equal tokens have equal numbers. Calls [`Host::reserve`] before it allocates, and
/// [`Host::check`] regularly.
///
/// The search skips tokens that occur in one text only, so unrelated texts take little time.
pub(crate) fn changes(a: &[u32], b: &[u32], host: &mut dyn Host) -> Vec<Change> {
    let (n, m) = (a.len(), b.len());
    let table = (TABLE_BYTES * n.max(m)).min(MAX_TABLE_BYTES);
    host.reserve((SEARCH_BYTES + LIST_BYTES) * (n + m) + table);
    let distinct = a.iter().chain(b).max().map_or(0, |most| *most as usize + 1);
    let searched = [shared(a, b, distinct), shared(b, a, distinct)];
    host.check();
    let counter = Counter {
        left: Cell::new(CHECK_EVERY),
        host: RefCell::new(host),
    };
    let chosen = |tokens: &[u32], chosen: &[u32]| -> Vec<u32> {
        chosen.iter().map(|&n| tokens[n as usize]).collect()
    };
    let old = Counted {
        tokens: chosen(a, &searched[0]).into_iter().map(OldToken).collect(),
        counter: &counter,
    };
    let new = Counted {
        tokens: chosen(b, &searched[1]).into_iter().map(NewToken).collect(),
        counter: &counter,
    };
    let mut changes = Changes {
        found: Vec::new(),
        a: 0,
        b: 0,
        searched: searched.each_ref().map(Vec::as_slice),
        counter: &counter,
    };
    let ranges = [0..old.tokens.len(), 0..new.tokens.len()];
    let [of_old, of_new] = ranges;
    let Ok(()) = myers::diff(&mut changes, &old, of_old, &new, of_new);
    changes.before(n, m);
    changes.found
}

/// Returns the positions in `own` of the tokens that also occur in `other`. All token numbers are
/// less than `distinct`.
fn shared(own: &[u32], other: &[u32], distinct: usize) -> Vec<u32> {
    let mut has = vec![false; distinct];
    for &token in other {
        has[token as usize] = true;
    }
    let numbers = (0..).zip(own);
    numbers
        .filter(|(_, token)| has[**token as usize])
        .map(|(number, _)| number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Counting {
        checks: usize,
        reserved: usize,
    }

    impl Host for Counting {
        fn check(&mut self) {
            self.checks += 1;
        }

        fn reserve(&mut self, bytes: usize) {
            self.reserved += bytes;
        }
    }

    /// Returns `n` pseudo-random tokens below `distinct`.
    fn tokens(seed: u32, n: u32, distinct: u32) -> Vec<u32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % distinct
        };
        (0..n).map(next).collect()
    }

    /// For two pseudo-random texts with n tokens together, the search reads at most 40 n^1.5 tokens
    /// (counted by the calls of the host). With 10 or more distinct tokens, the host is called
    /// several times during the search. At most 200 bytes are reserved for each token.
    #[test]
    fn hopeless_texts_are_bounded_and_can_be_cancelled() {
        const N: u32 = 1 << 15;
        for distinct in [2, 10, 1000, 10_000] {
            let (a, b) = (tokens(1, N, distinct), tokens(2, N, distinct));
            let mut host = Counting::default();
            changes(&a, &b, &mut host);
            let most = 40.0 * f64::from(2 * N).powf(1.5) / f64::from(CHECK_EVERY);
            assert!(
                host.checks as f64 <= most,
                "{distinct}: {} of {most}",
                host.checks
            );
            assert!(
                distinct < 10 || host.checks > 2,
                "{distinct}: {}",
                host.checks
            );
            assert!(
                host.reserved <= 200 * (a.len() + b.len()),
                "{}",
                host.reserved
            );
        }
    }

    /// Texts without a common token are not searched at all.
    #[test]
    fn unrelated_texts_cost_little() {
        let a: Vec<u32> = (0..1 << 17).collect();
        let b: Vec<u32> = a.iter().map(|token| token + (1 << 17)).collect();
        let mut host = Counting::default();
        let found = changes(&a, &b, &mut host);
        assert_eq!(
            found,
            [Change {
                a: 0..a.len(),
                b: 0..b.len()
            }]
        );
        assert!(host.checks <= 2, "{}", host.checks);
    }

    /// Returns the length of the longest common subsequence of two texts.
    fn longest_common(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y {
                    diagonal + 1
                } else {
                    above.max(row[j])
                };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        /// The tokens between the changes are equal in both texts. In short texts, no alignment has
        /// more equal tokens.
        #[test]
        fn is_the_shortest_of_short_texts(
            a in prop::collection::vec(0_u32..6, 0..40),
            b in prop::collection::vec(1_u32..9, 0..40),
        ) {
            let found = changes(&a, &b, &mut ());
            let (mut at_a, mut at_b, mut equal) = (0, 0, 0);
            let end = Change { a: a.len()..a.len(), b: b.len()..b.len() };
            for change in found.iter().chain([&end]) {
                prop_assert_eq!(&a[at_a..change.a.start], &b[at_b..change.b.start]);
                equal += change.a.start - at_a;
                prop_assert!(*change == end || change.a.len() + change.b.len() > 0);
                (at_a, at_b) = (change.a.end, change.b.end);
            }
            prop_assert_eq!(equal, longest_common(&a, &b));
        }
    }
}
