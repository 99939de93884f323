//! Repeated passages equal those of a comparison of all windows with all earlier windows.
use crate::mem_store::MemStore;
use neardup_blocktree::repeated_passages::{DocumentTokens, PassageWindows, RepeatedRun};
use proptest::prelude::*;

/// First window that is equal to the window of `length` tokens at `start` in document `n`, among
/// the windows of earlier documents and those of the same document that end before it.
fn original(texts: &[Vec<u8>], n: usize, start: usize, length: usize) -> Option<(usize, usize)> {
    let window = &texts[n][start..start + length];
    let mut earlier = (0..=n).flat_map(|m| {
        let last = if m == n { start } else { texts[m].len() };
        (0..(last + 1).saturating_sub(length)).map(move |at| (m, at))
    });
    earlier.find(|&(m, at)| texts[m][at..].starts_with(window))
}

/// Reference implementation of the runs of document `n`.
fn defined(texts: &[Vec<u8>], n: usize, length: usize) -> Vec<RepeatedRun> {
    let text = &texts[n];
    let mut runs: Vec<RepeatedRun> = Vec::new();
    for start in 0..(text.len() + 1).saturating_sub(length) {
        let covered = runs.last().map_or(0, |run| run.tokens.end);
        if start + length <= covered {
            continue;
        }
        if let Some((m, at)) = original(texts, n, start, length) {
            let pairs = texts[m][at..].iter().zip(&text[start..]);
            let equal = pairs.take_while(|(a, b)| a == b).count();
            let tokens = start..start + equal;
            runs.push(RepeatedRun {
                tokens,
                original: m as u32,
            });
        }
    }
    runs
}

/// Bytes and starts of the tokens of a text. Each symbol is a token of one to three bytes.
fn tokens(text: &[u8], separator: Option<u8>) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut starts) = (Vec::new(), vec![0]);
    for symbol in text {
        match separator {
            // Tokens that contain each other.
            Some(separator) => {
                bytes.extend(["a", "b", "ab", "ba", "aba"][usize::from(*symbol)].bytes());
                bytes.push(separator);
            }
            None => bytes.extend(["a", "b", "é", "語", "ê"][usize::from(*symbol)].bytes()),
        }
        starts.push(bytes.len());
    }
    (bytes, starts)
}

/// Runs of all documents.
fn found(
    texts: &[Vec<u8>],
    length: usize,
    separator: Option<u8>,
    memory: usize,
    bits: u32,
) -> Vec<Vec<RepeatedRun>> {
    let store = MemStore::new();
    let mut files = &store;
    let documents: Vec<_> = texts.iter().map(|text| tokens(text, separator)).collect();
    let document = |n: usize| DocumentTokens {
        bytes: &documents[n].0,
        starts: &documents[n].1,
    };
    let mut windows = PassageWindows::with_hash_bits(&mut files, length, separator, memory, bits);
    for n in 0..texts.len() {
        windows.push(&mut files, document(n));
    }
    let mut repeated = windows.candidates(&mut files, || ());
    let mut all = Vec::new();
    for n in 0..texts.len() {
        let mut runs = Vec::new();
        if repeated.has_candidates(&mut files, n as u32) {
            repeated.runs(&mut files, n as u32, document(n), |run| runs.push(run));
        }
        all.push(runs);
    }
    all
}

/// Documents of few distinct symbols, some of which are copies or contain parts of others.
fn corpus() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let text = (1u8..=5).prop_flat_map(|symbols| prop::collection::vec(0..symbols, 0..40));
    let copies = prop::collection::vec(any::<[prop::sample::Index; 4]>(), 0..6);
    (prop::collection::vec(text, 1..12), copies).prop_map(|(mut texts, copies)| {
        for [from, to, start, end] in copies {
            let source = texts[from.index(texts.len())].clone();
            let [start, end] = [start, end].map(|at| at.index(source.len() + 1));
            let to = to.index(texts.len());
            texts[to].extend_from_slice(&source[start.min(end)..start.max(end)]);
        }
        texts
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn runs_are_those_of_the_definition(
        texts in corpus(),
        length in 1usize..8,
        separated in any::<bool>(),
        memory in 0usize..4000,
        bits in prop::sample::select(vec![0, 1, 4, 61]),
    ) {
        let separator = separated.then_some(b' ');
        let runs = found(&texts, length, separator, memory, bits);
        for (n, runs) in runs.iter().enumerate() {
            prop_assert_eq!(runs, &defined(&texts, n, length));
        }
    }

    /// What remains of a document without its runs has no repeated window.
    #[test]
    fn cut_documents_repeat_nothing(texts in corpus(), length in 1usize..8) {
        let runs = found(&texts, length, Some(b' '), 1 << 20, 61);
        for (n, runs) in runs.iter().enumerate() {
            let mut kept = vec![true; texts[n].len()];
            for run in runs {
                prop_assert!(run.tokens.len() >= length);
                kept[run.tokens.clone()].fill(false);
            }
            for (start, window) in kept.windows(length).enumerate() {
                let is_repeated = original(&texts, n, start, length).is_some();
                prop_assert!(!(is_repeated && window.iter().all(|&kept| kept)));
            }
        }
    }
}

/// Windows that share a token with an equal window are not repeated, so one copy always remains.
#[test]
fn one_copy_of_a_periodic_text_remains() {
    let run = |start, end| RepeatedRun {
        tokens: start..end,
        original: 0,
    };
    for (tokens, expected) in [(5, vec![]), (6, vec![run(3, 6)]), (9, vec![run(3, 9)])] {
        assert_eq!(found(&[vec![0; tokens]], 3, Some(b' '), 0, 61), [expected]);
    }
}

/// More windows than fit in memory, most of them repeated.
#[test]
fn large_documents_spill() {
    let text: Vec<u8> = (0u32..30_000).map(|n| (n * n % 7919 % 5) as u8).collect();
    let texts = [text.clone(), [&text[5_000..], &text[..5_000]].concat()];
    let runs = found(&texts, 40, Some(b' '), 0, 61);
    assert_eq!(runs[1].first().map(|run| run.original), Some(0));
    for (n, runs) in runs.iter().enumerate() {
        let covered: usize = runs.iter().map(|run| run.tokens.len()).sum();
        assert!(n == 0 || covered >= 30_000, "{n}: {runs:?}");
    }
}
