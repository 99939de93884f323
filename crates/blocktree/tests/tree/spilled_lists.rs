//! Lists that spill to a file are read as they were written.
use crate::mem_store::MemStore;
use neardup_blocktree::spilled_lists::SpilledLists;
use proptest::prelude::*;

proptest! {
    #[test]
    fn lists_are_read_as_they_were_written(
        lists in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..20), 1..40),
        memory in 0usize..4000,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let store = MemStore::new();
        let mut files = &store;
        let mut spilled = SpilledLists::new(memory);
        let offsets: Vec<u64> =
            lists.iter().map(|list| spilled.push(&mut files, list)).collect();
        let mut found = Vec::new();
        for n in order.iter().map(|index| index.index(lists.len())) {
            spilled.read(&mut files, offsets[n], &mut found);
            prop_assert_eq!(&found, &lists[n]);
        }
    }
}
