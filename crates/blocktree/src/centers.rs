//! Dense nodes that represent others, in memory as long as there is enough of it, and in a
//! temporary file beyond.

use crate::clusters::{Centers, Nearness, split};
use crate::filter;
use crate::key::{Key, key_at, word_at};
use crate::sort::{Entry, TempFiles};

/// Nodes that are compared, written and read at once.
const PIECE: usize = 1024;

/// A part of the nodes: fingerprints, with the rank and the node in front, and the numbers of
/// scopes.
struct CenterPart<const M: usize> {
    keys: Vec<Key<M>>,
    scopes: Vec<u32>,
}

impl<const M: usize> CenterPart<M> {
    const ENTRY: usize = 8 * M + 8;

    fn new() -> Self {
        CenterPart {
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// Adds a node; false: there is no memory.
    fn push(&mut self, key: Key<M>, scope: u32) -> bool {
        let has_room = self.keys.try_reserve(1).is_ok() && self.scopes.try_reserve(1).is_ok();
        if has_room {
            self.keys.push(key);
            self.scopes.push(scope);
        }
        has_room
    }

    /// The rank of the first that is near a node of a scope.
    fn first_near(
        &self,
        key: &Key<M>,
        scope: u32,
        nearness: Nearness,
        found: &mut Vec<u16>,
    ) -> Option<u32> {
        let skipped = 1 + nearness.scope_words;
        for (piece, keys) in self.keys.chunks(PIECE).enumerate() {
            found.clear();
            filter::within_keys(keys, key, skipped, nearness.radius, found);
            for &i in found.iter() {
                let at = piece * PIECE + usize::from(i);
                if self.keys[at][1..skipped] == key[1..skipped] && self.scopes[at] == scope {
                    return Some(split(self.keys[at][0]).0);
                }
            }
        }
        None
    }

    fn to_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for (key, &scope) in self.keys.iter().zip(&self.scopes) {
            for word in key.iter().chain([&u64::from(scope)]) {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
    }

    /// Takes the nodes that [`CenterPart::to_bytes`] wrote instead of those it has.
    fn read(&mut self, bytes: &[u8]) {
        self.keys.clear();
        self.scopes.clear();
        for entry in bytes.chunks_exact(Self::ENTRY) {
            self.keys.push(key_at(entry, 0));
            self.scopes.push(word_at(entry, 8 * M) as u32);
        }
    }
}

/// The dense nodes that represent others, from the lowest rank on. There is at most one for as many
/// nodes as make a node dense, roughly, since what is near one does not become another.
pub struct DenseCenters<F: TempFiles, const M: usize> {
    nearness: Nearness,
    first: CenterPart<M>,
    /// The most nodes in `first`.
    most: usize,
    /// The nodes behind `first`, in pieces, and the number of pieces.
    file: Option<F::File>,
    pieces: u64,
    /// The last, less than a piece.
    last: CenterPart<M>,
    /// For a piece of the file.
    read: CenterPart<M>,
    bytes: Vec<u8>,
    found: Vec<u16>,
}

impl<F: TempFiles, const M: usize> DenseCenters<F, M> {
    /// None yet. `memory` is in bytes; beyond it some pieces are taken in any case.
    pub fn new(memory: usize, nearness: Nearness) -> Self {
        DenseCenters {
            nearness,
            first: CenterPart::new(),
            // A list may have room for as many again as it holds.
            most: memory / (2 * CenterPart::<M>::ENTRY),
            file: None,
            pieces: 0,
            last: CenterPart::new(),
            read: CenterPart::new(),
            bytes: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl<F: TempFiles, const M: usize> Centers<F, M> for DenseCenters<F, M> {
    fn first_near(&mut self, files: &mut F, own: &[Entry<M>], below: u32) -> Option<u32> {
        let (key, scope, nearness) = (&own[0].key, own[0].tid as u32, self.nearness);
        let lower = |rank: u32| (rank < below).then_some(rank);
        let found = &mut self.found;
        let near = self.first.first_near(key, scope, nearness, found);
        if let Some(rank) = near {
            return lower(rank);
        }
        if let Some(file) = &mut self.file {
            files.rewind(file);
            self.bytes.resize(PIECE * CenterPart::<M>::ENTRY, 0);
            for _ in 0..self.pieces {
                files.check_interrupts();
                files.read(file, &mut self.bytes);
                self.read.read(&self.bytes);
                let near = self.read.first_near(key, scope, nearness, found);
                if let Some(rank) = near {
                    return lower(rank);
                }
            }
        }
        let near = self.last.first_near(key, scope, nearness, found);
        near.and_then(lower)
    }

    fn push(&mut self, files: &mut F, own: &[Entry<M>]) {
        let (key, scope) = (own[0].key, own[0].tid as u32);
        let part = match self.first.keys.len() < self.most {
            true => &mut self.first,
            false => &mut self.last,
        };
        if !part.push(key, scope) {
            files.out_of_memory();
        }
        if self.last.keys.len() == PIECE {
            let file = self.file.get_or_insert_with(|| files.create());
            self.last.to_bytes(&mut self.bytes);
            files.seek(file, self.pieces * self.bytes.len() as u64);
            files.write(file, &self.bytes);
            self.pieces += 1;
            self.last.read(&[]);
        }
    }
}
