//! Components of near signatures in crowded buckets, within a limit of memory.

use super::{RowSource, Sketch};
use crate::clusters::Connected;
use crate::key::Tid;
use crate::sort::{Entry, ExternalSort, TempFiles};

/// End of a list.
const NONE: u32 = u32::MAX;

/// Minimum number of members of a bucket that are compared with each other in memory.
const MIN_MEMBERS: usize = 64;

/// Connects crowded nodes that share a bucket and are near each other. Skips comparisons of nodes
/// that are connected already: in a bucket of one component, each node is compared with one other.
///
/// Each entry of `crowded` has a node, a bucket and the sketch of the node, and behind them the
/// entry in the index. Near signatures differ in at most `mismatches` positions. `memory` is in
/// bytes. A row is read once for each of its buckets, and once more for each part of a bucket that
/// does not fit into memory. `done` is called for each compared entry.
pub fn connect_buckets<F: TempFiles, S: RowSource>(
    files: &mut F,
    mut crowded: ExternalSort<F, 4>,
    connected: &mut Connected<F>,
    source: &mut S,
    mismatches: usize,
    memory: usize,
    done: &mut dyn FnMut(),
) {
    let mut by_bucket = ExternalSort::<F, 4>::new(memory / 4);
    crowded.as_added(files, |files, entry| {
        let [node, bucket, high, low] = entry.key;
        by_bucket.push(
            files,
            [bucket, node, high, low],
            Tid::from_packed(entry.tid),
        );
    });
    drop(crowded);
    let mut bucket = Bucket::new(source, mismatches as u32, memory / 2);
    let mut sorted = by_bucket.sorted(files, None);
    drop(by_bucket);
    let mut next = sorted.next(files);
    while let Some(first) = next {
        // Members that do not fit into memory. They are compared with the members in memory, and
        // later with each other.
        let mut rest = ExternalSort::new(memory / 8);
        bucket.clear();
        while let Some(entry) = next
            && entry.key[0] == first.key[0]
        {
            bucket.add(files, entry, connected, &mut rest);
            next = sorted.next(files);
            done();
        }
        while !rest.is_empty() {
            let mut beyond = ExternalSort::new(memory / 8);
            bucket.clear();
            rest.as_added(files, |files, entry| {
                bucket.add(files, entry, connected, &mut beyond)
            });
            rest = beyond;
        }
    }
}

/// A member of a bucket.
struct Member<R> {
    entry: Tid,
    sketch: Sketch,
    /// The row. `None` before it is fetched.
    row: Option<Option<R>>,
    /// The next member of its list.
    next: u32,
}

impl<R> Member<R> {
    /// Returns the row. The first call fetches it.
    fn row(&mut self, source: &mut impl RowSource<Row = R>) -> Option<&R> {
        let fetch = || source.fetch(self.entry);
        self.row.get_or_insert_with(fetch).as_ref()
    }
}

/// Linked list of the members of one component.
struct ComponentList {
    root: u32,
    first: u32,
    last: u32,
}

/// Members of a bucket that fit into memory.
struct Bucket<'a, S: RowSource> {
    source: &'a mut S,
    mismatches: u32,
    members: Vec<Member<S::Row>>,
    max_members: usize,
    /// One list for each component.
    lists: Vec<ComponentList>,
}

impl<'a, S: RowSource> Bucket<'a, S> {
    fn new(source: &'a mut S, mismatches: u32, memory: usize) -> Self {
        let bytes = size_of::<Member<S::Row>>() + size_of::<ComponentList>() + source.row_bytes();
        Bucket {
            source,
            mismatches,
            members: Vec::new(),
            max_members: (memory / bytes).max(MIN_MEMBERS),
            lists: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.members.clear();
        self.lists.clear();
    }

    /// Connects a node with all members near it. Adds it to the bucket, or to the rest if the
    /// bucket is full.
    fn add<F: TempFiles>(
        &mut self,
        files: &mut F,
        entry: Entry<4>,
        connected: &mut Connected<F>,
        rest: &mut ExternalSort<F, 4>,
    ) {
        files.check_interrupts();
        let node = entry.key[1] as u32;
        let mut member = Member {
            entry: Tid::from_packed(entry.tid),
            sketch: [entry.key[2], entry.key[3]],
            row: None,
            next: NONE,
        };
        let root = connected.root(files, node);
        let known = self.lists.iter().position(|list| list.root == root);
        let mut own = match known {
            Some(at) => self.lists.swap_remove(at),
            None => ComponentList {
                root,
                first: NONE,
                last: NONE,
            },
        };
        let mut at = 0;
        while let Some(list) = self.lists.get(at) {
            let (first, other) = (list.first, list.root);
            if self.is_near_any(&mut member, first) {
                own.root = connected.join(files, own.root, other);
                let list = self.lists.swap_remove(at);
                self.append(&mut own, list.first, list.last);
            } else {
                at += 1;
            }
        }
        if self.members.len() < self.max_members {
            if self.members.try_reserve(1).is_err() {
                files.out_of_memory();
            }
            let index = self.members.len() as u32;
            self.members.push(member);
            self.append(&mut own, index, index);
        } else {
            rest.push(files, entry.key, member.entry);
        }
        if own.first != NONE {
            if self.lists.try_reserve(1).is_err() {
                files.out_of_memory();
            }
            self.lists.push(own);
        }
    }

    /// Returns whether a row is near any member of a list.
    fn is_near_any(&mut self, own: &mut Member<S::Row>, first: u32) -> bool {
        let mut next = first;
        while let Some(other) = self.members.get_mut(next as usize) {
            next = other.next;
            let differing: u32 = (own.sketch.iter().zip(&other.sketch))
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            if differing > self.mismatches {
                continue;
            }
            let Some(row) = own.row(self.source) else {
                return false;
            };
            let other = other.row(self.source);
            if other.is_some_and(|other| self.source.are_near(row, other)) {
                return true;
            }
        }
        false
    }

    /// Appends linked members to a list.
    fn append(&mut self, list: &mut ComponentList, first: u32, last: u32) {
        match self.members.get_mut(list.last as usize) {
            Some(end) => end.next = first,
            None => list.first = first,
        }
        list.last = last;
    }
}
