//! `ambuild` and `ambuildempty`: build an index from the rows of its table.
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::key::{Key, Tid};
use neardup_blocktree::metric::{NEAR_DUPLICATE_SIMILARITY, UsualBound, near_duplicate_mismatches};
use neardup_blocktree::sort::ExternalSort;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::keys::{Layout, require_equal_scope, require_hashes, with_words};
use super::metric::ValueMetric;
use super::options::BuildOptions;
use super::progress::{PHASE_SCAN, PHASE_WRITE, Writer, report, report_permutation};
use super::strategies;
use super::usual_bound::usual_bound;
use super::validate::require_valid_classes;
use neardup_pg::build_scan::BuildScan;
use neardup_pg::build_workers::{BuildWorker, BuildWorkers, LeaderInput};
use neardup_pg::errors::UserError;
use neardup_pg::index_row::IndexRow;
use neardup_pg::memory::maintenance_work_mem;
use neardup_pg::rel::{OpenRelation, Rel};
use neardup_pg::storage::bulk::BulkWriter;
use neardup_pg::workers::{Worker, export_worker};

/// Memory, in bytes, for sorting the keys of rows whose value is NULL. Beyond this limit the sort
/// uses temporary files. A small size is enough: usually few values are NULL, and rows with NULL
/// have equal keys if they are in the same scope.
const NULL_MEMORY: usize = 1 << 20;

export_worker! { "neardup_build_worker" => work }

/// Index that is being built, with the keys that have been read from the table so far.
struct NewIndex<'a, const N: usize> {
    layout: Layout,
    options: BuildOptions,
    metric: IndexMetric,
    /// Radius or similarity that most searches will use, as a basis for the block layout; `None`
    /// for arrays.
    bound: Option<UsualBound>,
    writer: Writer<'a>,
    /// Sorted lists of the keys of rows with a value: one list for fingerprints, one for each band
    /// of signatures, and two for arrays. Key `i` of a row is added to list `i`. If a row has more
    /// keys than there are lists, the last list also takes the remaining keys.
    rows: Vec<ExternalSort<Writer<'a>, N>>,
    /// Keys of rows whose value is NULL.
    nulls: ExternalSort<Writer<'a>, N>,
    /// Keys of the row that is being added.
    keys: Vec<Key<N>>,
}

/// Builds an index from the rows of its table (`ambuild`). Returns the numbers of rows that were
/// read and of rows that are in the index.
pub fn build(scan: &BuildScan) -> (f64, f64) {
    let index = scan.index();
    if index.blocks(pg_sys::ForkNumber::MAIN_FORKNUM) != 0 {
        panic!("index {} already contains data", index.shown_qualified());
    }
    let layout = usable_layout(index);
    with_words!(layout.words(), N => {
        let memory = (maintenance_work_mem(), NULL_MEMORY);
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        let mut new = NewIndex::<N>::new(layout, scan.table(), index, fork, memory);
        require_exclusion(&new.metric, scan.excludes_by(layout.scope_columns));
        require_equal_scope(index, &layout, |column| scan.excludes_by(column));
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
        let seen = match BuildWorkers::launch(scan) {
            None => scan.run(|row, tid| new.collect(&row, tid)),
            Some(workers) => workers.run(|input| match input {
                LeaderInput::Row(row, tid) => new.collect(&row, tid),
                LeaderInput::Words(words) => new.collect_words(words),
            }),
        };
        let indexed = (new.rows[0].len() + new.nulls.len()) as f64;
        report(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
        new.write();
        (seen, indexed)
    })
}

/// Writes the init fork of an unlogged index (`ambuildempty`): an empty index that replaces the
/// index after a crash.
pub fn build_empty(index: Rel) {
    let layout = usable_layout(index);
    let fork = pg_sys::ForkNumber::INIT_FORKNUM;
    // The server has locked the table, so no lock is taken here.
    let table = OpenRelation::any(index.index_form().table, pg_sys::NoLock);
    with_words!(layout.words(), N => {
        NewIndex::<N>::new(layout, table.rel(), index, fork, (0, 0)).write();
    });
}

/// Returns the layout of a new index's keys. Raises an error for unsuitable columns or operator
/// classes.
fn usable_layout(index: Rel) -> Layout {
    let layout = Layout::from_index(index);
    require_valid_classes(index);
    require_hashes(index, &layout);
    layout
}

impl<'a, const N: usize> NewIndex<'a, N> {
    /// Starts an index on `table`, in the fork `fork` of the relation `index`. The new index has no
    /// rows yet. The sorts use `memory` bytes for rows with a value, and `null_memory` bytes for
    /// rows whose value is NULL. Raises an error if the options of the index are impossible.
    fn new(
        layout: Layout,
        table: Rel,
        index: Rel<'a>,
        fork: pg_sys::ForkNumber::Type,
        (memory, null_memory): (usize, usize),
    ) -> Self {
        let options = BuildOptions::from_index(index);
        let metric = options.metric(&layout);
        let bound = usual_bound(table, index, &layout, &options);
        // Impossible options must raise their error before the table is read. The number of rows
        // does not matter for that.
        options.block_layout::<N>(&layout, &metric, bound, 0.0);
        let sort_memory = |sort| metric.sort_memory(sort, memory);
        let writer = BulkWriter::new(index, fork, report_permutation as fn(usize, usize));
        NewIndex {
            layout,
            options,
            bound,
            writer,
            rows: (0..metric.sorts())
                .map(|sort| ExternalSort::new(sort_memory(sort)))
                .collect(),
            nulls: ExternalSort::new(null_memory),
            keys: Vec::new(),
            metric,
        }
    }

    /// Adds one row of the table, which this process has read.
    fn collect(&mut self, row: &IndexRow, tid: Tid) {
        self.keys.clear();
        let has_value = self.metric.keys(&self.layout, row, &mut self.keys);
        self.add(tid, has_value);
    }

    /// Adds rows that a worker has read. `words` has one or more of the messages that [`work`]
    /// sends.
    fn collect_words(&mut self, mut words: &[u64]) {
        while let [head, count, rest @ ..] = words {
            let (keys, rest) = rest.split_at(*count as usize * N);
            self.keys.clear();
            self.keys.extend_from_slice(keys.as_chunks().0);
            let tid = Tid::from_packed(head >> FLAG_BITS);
            match head & IS_CONTINUED {
                0 => self.add(tid, head & HAS_VALUE != 0),
                _ => self.add_to_last(tid),
            }
            words = rest;
        }
    }

    /// Adds the row whose keys are in `self.keys`. `has_value` is false if its value is NULL.
    fn add(&mut self, tid: Tid, has_value: bool) {
        let sorts = match has_value {
            true => &mut self.rows[..],
            false => core::slice::from_mut(&mut self.nulls),
        };
        let last = sorts.len() - 1;
        for (i, key) in self.keys.iter().enumerate() {
            sorts[i.min(last)].push(&mut self.writer, *key, tid);
        }
    }

    /// Adds the keys in `self.keys` to the last sort. They are further keys of the row at `tid`,
    /// whose first keys [`NewIndex::add`] has added.
    fn add_to_last(&mut self, tid: Tid) {
        if let Some(last) = self.rows.last_mut() {
            for key in &self.keys {
                last.push(&mut self.writer, *key, tid);
            }
        }
    }

    /// Sorts the keys and writes all pages of the index.
    fn write(mut self) {
        let rows = self.rows[0].len() as f64;
        let block_layout: BlockLayout<N> =
            (self.options).block_layout(&self.layout, &self.metric, self.bound, rows);
        report_permutation(0, block_layout.permutations().len());
        let (writer, fill) = (&mut self.writer, self.options.fill);
        let (rows, nulls) = (&mut self.rows, &mut self.nulls);
        (self.metric).write_tree(writer, &block_layout, self.bound, rows, nulls, fill);
        self.writer.finish();
    }
}

/// Number of flag bits, which are the lowest bits of the first word that a worker sends for a row.
/// The row's address is in the higher bits.
const FLAG_BITS: u32 = 2;
/// Flag in the first word that a worker sends for a row: the row has a value.
const HAS_VALUE: u64 = 1;
/// Flag in the first word that a worker sends for a row: the keys that follow are further keys of a
/// row that was sent before.
const IS_CONTINUED: u64 = 2;
/// Maximum number of keys of a row that a worker sends in one message. A row with more keys (a
/// large array) is sent in several messages.
const MAX_KEYS_PER_MESSAGE: usize = 4096;

/// Start function of a worker. Reads the worker's share of the table and sends the keys of each row
/// to the leader: one word for the row's address and flags, one for the number of keys, and the
/// keys. If a row has more than [`MAX_KEYS_PER_MESSAGE`] keys, the worker sends several messages
/// for the row, each with some of the keys. All but the first have the flag [`IS_CONTINUED`].
fn work(worker: Worker) {
    let worker = BuildWorker::new(worker);
    let index = worker.index();
    let layout = Layout::from_index(index);
    let metric = BuildOptions::from_index(index).metric(&layout);
    with_words!(layout.words(), N => {
        let mut keys: Vec<Key<N>> = Vec::new();
        worker.run(|row, tid, outbox| {
            keys.clear();
            let mut flags = u64::from(metric.keys(&layout, &row, &mut keys));
            for part in keys.chunks(MAX_KEYS_PER_MESSAGE) {
                let head = [tid.packed() << FLAG_BITS | flags, part.len() as u64];
                outbox.put(head.into_iter().chain(part.as_flattened().iter().copied()));
                flags |= IS_CONTINUED;
            }
        });
    });
}

/// Raises an error if an index with this metric has too few bands for an exclusion constraint with
/// `~=`. A search by bands (groups of a signature's hashes) finds the rows that have an equal band.
/// With too few bands it may miss conflicting rows, and an exhaustive search for each insert would
/// take too long. `strategy` is the strategy number of the constraint's operator, or `None` if the
/// index is not for a constraint. Only indexes on signatures and only the operator `~=` are
/// checked.
fn require_exclusion(metric: &IndexMetric, strategy: Option<u16>) {
    let (Some(bands), Some(strategies::NEAR)) = (metric.bands(), strategy) else {
        return;
    };
    let needed = near_duplicate_mismatches(bands.hashes());
    if bands.guaranteed() < needed {
        UserError::new(
            PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION,
            "index has too few bands for an exclusion constraint with ~=",
        )
        .detail(format!(
            "The constraint must find all signatures of similarity {NEAR_DUPLICATE_SIMILARITY}. \
             Signatures of {} values with this similarity can differ in up to {needed} values. \
             With {} bands, the index is certain to find signatures that differ in at most {} \
             values.",
            bands.hashes(),
            bands.count(),
            bands.guaranteed()
        ))
        .hint(format!(
            "Set the option \"bands\" to at least {}, or omit the index options.",
            needed + 1
        ))
        .raise();
    }
}
