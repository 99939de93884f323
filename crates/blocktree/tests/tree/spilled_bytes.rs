//! Byte strings that spill to a file are read as they were written.
use crate::mem_store::MemStore;
use neardup_blocktree::spilled_bytes::SpilledBytes;
use proptest::prelude::*;

proptest! {
    #[test]
    fn bytes_are_read_as_they_were_written(
        parts in prop::collection::vec(prop::collection::vec(0u8..3, 0..3000), 1..20),
        memory in 0usize..40_000,
        reads in prop::collection::vec(any::<[prop::sample::Index; 3]>(), 0..60),
    ) {
        let store = MemStore::new();
        let mut files = &store;
        let mut spilled = SpilledBytes::new(memory);
        for part in &parts {
            spilled.push(&mut files, part);
        }
        let all = parts.concat();
        prop_assert_eq!(spilled.len(), all.len() as u64);
        for [start, end, other] in reads {
            let [start, end, other] = [start, end, other].map(|at| at.index(all.len() + 1));
            let range = start.min(end)..start.max(end);
            let mut found = vec![0; range.len()];
            spilled.read(&mut files, range.start as u64, &mut found);
            prop_assert_eq!(&found, &all[range.clone()]);
            let common = spilled.common_prefix(&mut files, other as u64, &all[range.clone()]);
            let pairs = all[other..].iter().zip(&all[range]);
            prop_assert_eq!(common, pairs.take_while(|(a, b)| a == b).count());
        }
    }
}
