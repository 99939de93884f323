//! Representatives among crowded fingerprints, in memory and beyond that in a temporary file.
//!
//! A node is compared with all representatives in the order of their ranks, by vector instructions.
//! Their number is about the number of nodes divided by the number of pairs that makes a node
//! crowded, because a node near a representative does not become one.

use crate::clusters::{Centers, Nearness, split};
use crate::filter;
use crate::key::{Key, key_at, word_at};
use crate::sort::{Entry, TempFiles};

/// Nodes that are compared, written and read at once.
const PIECE_NODES: usize = 1024;

/// Some of the representatives.
struct CenterList<const M: usize> {
    /// Rank and node, then the fingerprint.
    keys: Vec<Key<M>>,
    /// Numbers of the scopes.
    scopes: Vec<u32>,
}

impl<const M: usize> CenterList<M> {
    /// Bytes of a node in a file.
    const NODE_BYTES: usize = 8 * M + 8;

    fn new() -> Self {
        CenterList {
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Adds a node. Returns false if there is no memory.
    fn push(&mut self, key: Key<M>, scope: u32) -> bool {
        let has_room = self.keys.try_reserve(1).is_ok() && self.scopes.try_reserve(1).is_ok();
        if has_room {
            self.keys.push(key);
            self.scopes.push(scope);
        }
        has_room
    }

    /// Returns the lowest rank of a representative near a node in a scope that is accepted, or any
    /// rank of `below` or more if all lower ones are rejected.
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
        for (piece, keys) in self.keys.chunks(PIECE_NODES).enumerate() {
            found.clear();
            filter::within_keys(keys, key, skipped, nearness.radius, found);
            for &i in found.iter() {
                let at = piece * PIECE_NODES + usize::from(i);
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

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for (key, &scope) in self.keys.iter().zip(&self.scopes) {
            for word in key.iter().chain([&u64::from(scope)]) {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
    }

    /// Replaces the nodes by the nodes that [`CenterList::write`] wrote.
    fn read(&mut self, bytes: &[u8]) {
        self.keys.clear();
        self.scopes.clear();
        for node in bytes.chunks_exact(Self::NODE_BYTES) {
            self.keys.push(key_at(node, 0));
            self.scopes.push(word_at(node, 8 * M) as u32);
        }
    }
}

/// Representatives among crowded fingerprints, in the order of their ranks.
pub struct CrowdedCenters<F: TempFiles, const M: usize> {
    nearness: Nearness,
    /// The first representatives.
    in_memory: CenterList<M>,
    max_in_memory: usize,
    /// The following representatives, in pieces of [`PIECE_NODES`], and the number of pieces.
    file: Option<F::File>,
    pieces: u64,
    /// The last representatives, less than a piece.
    last: CenterList<M>,
    /// Buffer for a piece of the file.
    piece: CenterList<M>,
    bytes: Vec<u8>,
    found: Vec<u16>,
}

impl<F: TempFiles, const M: usize> CrowdedCenters<F, M> {
    /// Creates an empty list. `memory` is in bytes. It does not count a few pieces.
    pub fn new(memory: usize, nearness: Nearness) -> Self {
        CrowdedCenters {
            nearness,
            in_memory: CenterList::new(),
            // A vector may have twice the capacity that it needs.
            max_in_memory: memory / (2 * CenterList::<M>::NODE_BYTES),
            file: None,
            pieces: 0,
            last: CenterList::new(),
            piece: CenterList::new(),
            bytes: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Like [`Centers::first_near`], but only representatives count whose node `accept` returns
    /// true for.
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
                .resize(PIECE_NODES * CenterList::<M>::NODE_BYTES, 0);
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
        if self.last.keys.len() == PIECE_NODES {
            let file = self.file.get_or_insert_with(|| files.create());
            self.last.write(&mut self.bytes);
            files.seek(file, self.pieces * self.bytes.len() as u64);
            files.write(file, &self.bytes);
            self.pieces += 1;
            self.last.read(&[]);
        }
    }
}
