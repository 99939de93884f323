//! Representatives among crowded fingerprints (fingerprints that are near many others), for
//! clusters. The first representatives are in memory, the others in a temporary file. Nodes and
//! ranks are explained in [`crate::clusters`]. Representatives among crowded signatures are in
//! [`BucketCenters`](crate::bands::BucketCenters).
//!
//! A node is compared with all representatives in the order of ranks, by vector instructions. There
//! are few representatives, because a node near a representative does not become one. Their number
//! is about the number of nodes divided by the minimum number of pairs of a crowded node.

use crate::clusters::{Centers, split};
use crate::filter;
use crate::key::{Key, key_at, word_at};
use crate::sort::{Entry, TempFiles};

/// Number of representatives in a piece of the list of representatives. A node is compared with one
/// piece at a time, and the temporary file is written and read piece by piece.
const NODES_PER_BATCH: usize = 1024;

/// Rule that decides whether two fingerprints are near each other.
#[derive(Clone, Copy, Debug)]
pub struct Nearness {
    /// Maximum distance of near fingerprints, in bits.
    pub radius: u32,
    /// Number of words with the scope's hash in front of a fingerprint: 0 or 1. Fingerprints in
    /// different scopes are never near each other.
    pub scope_words: usize,
}

/// List of some of the representatives, in the order of ranks.
struct CenterList<const M: usize> {
    /// For each representative, a word with its rank and its node number, then the scope's word if
    /// there is one, then the fingerprint.
    keys: Vec<Key<M>>,
    /// For each representative, the number of its scope. Scopes with the same hash have different
    /// numbers.
    scopes: Vec<u32>,
}

impl<const M: usize> CenterList<M> {
    /// Number of bytes of a representative in the file.
    const NODE_BYTES: usize = 8 * M + 8;

    fn new() -> Self {
        CenterList {
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Appends a representative. Returns false if memory is exhausted.
    fn push(&mut self, key: Key<M>, scope: u32) -> bool {
        let has_room = self.keys.try_reserve(1).is_ok() && self.scopes.try_reserve(1).is_ok();
        if has_room {
            self.keys.push(key);
            self.scopes.push(scope);
        }
        has_room
    }

    /// Returns the lowest rank of a representative in this list that is near the node with the key
    /// `key` in the scope with the number `scope`. Skips representatives for whose node number
    /// `accept` returns false. The caller ignores ranks that are not less than `below`. So `accept`
    /// is not called for such ranks, and the function may return one of them instead of `None`.
    /// `found` is a buffer.
    fn first_near(
        &self,
        key: &Key<M>,
        scope: u32,
        nearness: Nearness,
        found: &mut Vec<u16>,
        below: u32,
        accept: &mut dyn FnMut(u32) -> bool,
    ) -> Option<u32> {
        let skipped = 1 + nearness.scope_words;
        for (piece, keys) in self.keys.chunks(NODES_PER_BATCH).enumerate() {
            found.clear();
            filter::within_keys(keys, key, skipped, nearness.radius, found);
            for &i in found.iter() {
                let at = piece * NODES_PER_BATCH + usize::from(i);
                let (rank, node) = split(self.keys[at][0]);
                if self.keys[at][1..skipped] == key[1..skipped]
                    && self.scopes[at] == scope
                    && (rank >= below || accept(node))
                {
                    return Some(rank);
                }
            }
        }
        None
    }

    /// Writes the representatives into `bytes`, replacing its contents.
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for (key, &scope) in self.keys.iter().zip(&self.scopes) {
            for word in key.iter().chain([&u64::from(scope)]) {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
    }

    /// Replaces the representatives in this list by those that [`CenterList::write`] wrote into
    /// `bytes`.
    fn read(&mut self, bytes: &[u8]) {
        self.keys.clear();
        self.scopes.clear();
        for node in bytes.chunks_exact(Self::NODE_BYTES) {
            self.keys.push(key_at(node, 0));
            self.scopes.push(word_at(node, 8 * M) as u32);
        }
    }
}

/// Representatives among crowded fingerprints, in the order of ranks.
pub struct CrowdedCenters<F: TempFiles, const M: usize> {
    nearness: Nearness,
    /// Representatives with the lowest ranks.
    in_memory: CenterList<M>,
    /// Maximum number of representatives in `in_memory`.
    max_in_memory: usize,
    /// Temporary file with the representatives that follow those in memory, in pieces of
    /// [`NODES_PER_BATCH`]. `None` before the first piece is written.
    file: Option<F::File>,
    /// Number of pieces in the file.
    pieces: u64,
    /// Representatives with the highest ranks. They do not fill a piece yet, so they are not in the
    /// file.
    last: CenterList<M>,
    /// Piece that was read from the file.
    piece: CenterList<M>,
    /// Buffer for the bytes of a piece.
    bytes: Vec<u8>,
    /// Buffer for the positions of near representatives.
    found: Vec<u16>,
}

impl<F: TempFiles, const M: usize> CrowdedCenters<F, M> {
    /// Creates an empty collection, which takes `memory` bytes and the buffers for a few pieces.
    /// `nearness` decides which fingerprints are near each other.
    pub fn new(memory: usize, nearness: Nearness) -> Self {
        CrowdedCenters {
            nearness,
            in_memory: CenterList::new(),
            // The capacity of a vector may be twice its length.
            max_in_memory: memory / (2 * CenterList::<M>::NODE_BYTES),
            file: None,
            pieces: 0,
            last: CenterList::new(),
            piece: CenterList::new(),
            bytes: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the lowest rank of a representative that is near the node with the entries `own`,
    /// like [`Centers::first_near`]. Skips representatives for whose node number `accept` returns
    /// false. Returns `None` if no rank is less than `below`.
    pub fn first_accepted(
        &mut self,
        files: &mut F,
        own: &[Entry<M>],
        below: u32,
        accept: &mut dyn FnMut(u32) -> bool,
    ) -> Option<u32> {
        let (key, scope, nearness) = (&own[0].key, own[0].tid as u32, self.nearness);
        let lower = |rank: u32| (rank < below).then_some(rank);
        let found = &mut self.found;
        let near = (self.in_memory).first_near(key, scope, nearness, found, below, accept);
        if let Some(rank) = near {
            return lower(rank);
        }
        if let Some(file) = &mut self.file {
            files.rewind(file);
            self.bytes
                .resize(NODES_PER_BATCH * CenterList::<M>::NODE_BYTES, 0);
            for _ in 0..self.pieces {
                files.check_interrupts();
                files.read(file, &mut self.bytes);
                self.piece.read(&self.bytes);
                let near = (self.piece).first_near(key, scope, nearness, found, below, accept);
                if let Some(rank) = near {
                    return lower(rank);
                }
            }
        }
        let near = (self.last).first_near(key, scope, nearness, found, below, accept);
        near.and_then(lower)
    }
}

impl<F: TempFiles, const M: usize> Centers<F, M> for CrowdedCenters<F, M> {
    fn first_near(&mut self, files: &mut F, own: &[Entry<M>], below: u32) -> Option<u32> {
        self.first_accepted(files, own, below, &mut |_| true)
    }

    fn push(&mut self, files: &mut F, own: &[Entry<M>]) {
        let (key, scope) = (own[0].key, own[0].tid as u32);
        let list = match self.in_memory.keys.len() < self.max_in_memory {
            true => &mut self.in_memory,
            false => &mut self.last,
        };
        if !list.push(key, scope) {
            files.out_of_memory();
        }
        if self.last.keys.len() == NODES_PER_BATCH {
            let file = self.file.get_or_insert_with(|| files.create());
            self.last.write(&mut self.bytes);
            files.seek(file, self.pieces * self.bytes.len() as u64);
            files.write(file, &self.bytes);
            self.pieces += 1;
            self.last.read(&[]);
        }
    }
}
