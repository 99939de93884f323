//! Connected components of near signatures in crowded buckets, for clusters with
//! `method => 'connected'`. A bucket consists of the signatures that have the same hash in a band.
//! Crowded signatures are near so many others that a search does not report all their pairs. So
//! this module compares the crowded signatures (nodes) of each bucket with each other, within a
//! memory limit.

use super::{RowSource, Sketch};
use crate::clusters::Components;
use crate::key::Tid;
use crate::sort::{Entry, ExternalSort, TempFiles};

/// Member index that marks the end of a list, or an empty list.
const NONE: u32 = u32::MAX;

/// Minimum number of members of a bucket that are held in memory at once, even if they exceed the
/// memory limit.
const MIN_MEMBERS: usize = 64;

/// Joins the components of crowded nodes that share a bucket and are near each other. Skips
/// comparisons of nodes that are in one component already: if all nodes of a bucket are near each
/// other, each is compared with only one other node.
///
/// `crowded` has an entry for each node in each of its buckets. The key of an entry consists of the
/// node's number, the bucket, and the two words of the node's sketch. The entry's address is the
/// heap address of the node's row, as the index has it. `connected` has the components found so
/// far, and the function joins components in it. `source` fetches rows. Near signatures differ in
/// at most `mismatches` positions. `memory` is in bytes. `done` is called once for each entry of
/// `crowded`.
///
/// A row is fetched once for each of its buckets. If a bucket does not fit into memory, its members
/// are compared in batches that fit, and the rows beyond the limit are fetched again for each
/// batch.
pub fn connect_buckets<F: TempFiles, S: RowSource>(
    files: &mut F,
    mut crowded: ExternalSort<F, 4>,
    connected: &mut Components<F>,
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
        // Members of this bucket that do not fit into memory. They have been compared with the
        // members in memory, and are compared with each other in further batches.
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

/// Node in a bucket that is compared with the bucket's other nodes.
struct Member<R> {
    /// Heap address in the node's index entry, by which the row is fetched.
    entry: Tid,
    sketch: Sketch,
    /// `None` before the row is fetched, `Some(None)` if the row is invisible.
    row: Option<Option<R>>,
    /// Index of the next member of the same component, or [`NONE`].
    next: u32,
}

impl<R> Member<R> {
    /// Returns the member's row, or `None` if it is invisible. The first call fetches it.
    fn row(&mut self, source: &mut impl RowSource<Row = R>) -> Option<&R> {
        let fetch = || source.fetch(self.entry);
        self.row.get_or_insert_with(fetch).as_ref()
    }
}

/// Linked list of the members of a bucket that are in one component.
struct ComponentList {
    /// Root node of the component.
    root: u32,
    /// Index of the first member, or [`NONE`].
    first: u32,
    /// Index of the last member, or [`NONE`].
    last: u32,
}

/// Members of the current bucket, as many as fit into memory.
struct Bucket<'a, S: RowSource> {
    source: &'a mut S,
    mismatches: u32,
    members: Vec<Member<S::Row>>,
    max_members: usize,
    /// One list of members for each component in the bucket.
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

    /// Joins a node's component with the components of all members that are near the node. `entry`
    /// describes the node: its key has the bucket, the node's number and the two words of its
    /// sketch. Adds the node to the members, or to `rest` if the memory for members is full.
    fn add<F: TempFiles>(
        &mut self,
        files: &mut F,
        entry: Entry<4>,
        connected: &mut Components<F>,
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

    /// Returns whether the node `own` is near any member of the list that starts at `first`.
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

    /// Appends the chain of members from index `first` to index `last` to a component's list.
    fn append(&mut self, list: &mut ComponentList, first: u32, last: u32) {
        match self.members.get_mut(list.last as usize) {
            Some(end) => end.next = first,
            None => list.first = first,
        }
        list.last = last;
    }
}
