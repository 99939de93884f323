//! Damaged index files raise an error that names the remedy, and never crash; REINDEX repairs.
use crate::support::data::{Probe, Random, Shape};
use crate::support::oracle::Way;
use crate::support::table::{FINGERPRINT, Table, value};
use crate::support::waiting::poll;
use crate::support::{Outcome, with};
use anyhow::{Context, Result, anyhow};
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::{Client, Error};
use std::fs;
use std::path::PathBuf;

pub const PAGE: usize = 8192;

// Offsets on a page (docs: on-disk format).
const LOWER: usize = 12;
const SPECIAL: usize = 16;
const MAGIC: usize = 24;
pub const VERSION: usize = 28;
const BITS: usize = 30;
const WORDS: usize = 32;
const SCOPE_WORDS: usize = 33;
const DISTANCE: usize = 34;
const BLOCKS: usize = 35;
const PERMUTATIONS: usize = 36;
const ROOT_LEVEL: usize = 38;
const ROOT: usize = 40;
const LEFT_OUT: usize = PAGE - 26;
const NARROW: usize = PAGE - 25;
const RIGHT: usize = PAGE - 24;
const LEVEL: usize = RIGHT + 4;
const KIND: usize = RIGHT + 6;
const TABLE: usize = RIGHT + 8;
const PAGE_ID: usize = PAGE - 2;

/// Blocks: the meta page, and the first leaf, which a scan of a whole permutation reads first.
const META: usize = 0;
const LEAF: usize = 1;

/// The server's error for a block beyond the file or an invalid page.
const BROKEN_FILE: &str = "XX001";
const BROKEN_INDEX: &str = "XX002";
const OTHER_LAYOUT: &str = "0A000";

/// Name, block, offset, bytes to write there, and the SQLSTATE of a search afterwards.
type Corruption = (&'static str, usize, usize, &'static [u8], &'static str);

const DAMAGES: [Corruption; 24] = [
    ("magic", META, MAGIC, b"xxxx", BROKEN_INDEX),
    ("a newer layout", META, VERSION, &[5, 0], OTHER_LAYOUT),
    ("an older layout", META, VERSION, &[1, 0], OTHER_LAYOUT),
    ("meta page id", META, PAGE_ID, &[0, 0], BROKEN_INDEX),
    ("meta page of zeroes", META, 0, &[0; PAGE], BROKEN_INDEX),
    ("bits", META, BITS, &[65, 0], BROKEN_INDEX),
    ("width", META, WORDS, &[4], BROKEN_INDEX),
    ("words of a scope", META, SCOPE_WORDS, &[1], BROKEN_INDEX),
    ("distance", META, DISTANCE, &[200], BROKEN_INDEX),
    ("number of blocks", META, BLOCKS, &[5], BROKEN_INDEX),
    (
        "number of permutations",
        META,
        PERMUTATIONS,
        &[77, 0],
        BROKEN_INDEX,
    ),
    ("root is nowhere", META, ROOT, &[0; 4], BROKEN_INDEX),
    ("root is a leaf", META, ROOT, &[1, 0, 0, 0], BROKEN_INDEX),
    (
        "root beyond the end",
        META,
        ROOT,
        &[0, 0, 1, 0],
        BROKEN_FILE,
    ),
    ("level of the root", META, ROOT_LEVEL, &[9, 0], BROKEN_INDEX),
    ("leaf of zeroes", LEAF, 0, &[0; PAGE], BROKEN_INDEX),
    ("leaf's page id", LEAF, PAGE_ID, &[1, 2], BROKEN_INDEX),
    ("leaf's kind", LEAF, KIND, &[2, 0], BROKEN_INDEX),
    ("leaf's table", LEAF, TABLE, &[3, 0], BROKEN_INDEX),
    ("leaf's level", LEAF, LEVEL, &[1, 0], BROKEN_INDEX),
    ("leaf's keys", LEAF, LEFT_OUT, &[5], BROKEN_INDEX),
    ("leaf's rows", LEAF, NARROW, &[2], BROKEN_INDEX),
    ("leaf's bounds", LEAF, LOWER, &[33, 0], BROKEN_INDEX),
    ("leaf's header", LEAF, SPECIAL, &[0, 200], BROKEN_FILE),
];

/// Corruption that a search cannot notice but a check must.
const SILENT: [Corruption; 3] = [
    (CUT_OFF, LEAF, RIGHT, &[0; 4], BROKEN_INDEX),
    (
        "right link over a leaf",
        LEAF,
        RIGHT,
        &[3, 0, 0, 0],
        BROKEN_INDEX,
    ),
    ("a key", LEAF, 24, &[255; 8], BROKEN_INDEX),
];

/// Leaves of a permutation that are not linked from the left.
const CUT_OFF: &str = "right link missing";
/// Damage that a concurrent check finds: missing rows, or an entry out of order.
const FOUND_CONCURRENTLY: [&str; 2] = [CUT_OFF, "a key"];

/// Each case has a table `docs` in a schema of its own.
const TABLE_OF_CASE: Table = Table::new(FINGERPRINT);

/// A server with checksums (the default from version 18 on) would reject the damaged pages before
/// the index reads them.
pub const SETTINGS: [(&str, &str); 2] = [("fsync", "off"), ("ignore_checksum_failure", "on")];

/// Makes one table with an index per case, stops the server, calls `damage` on the files of the
/// indexes, and starts the server again.
fn damaged(
    server: &mut Server,
    cases: usize,
    mut damage: impl FnMut(usize, &mut Vec<u8>),
) -> Outcome {
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    let values = Shape::Balls.values(4_000, 1);
    let mut files: Vec<PathBuf> = Vec::new();
    for case in 0..cases {
        client.batch_execute(&format!(
            "CREATE SCHEMA case_{case}; SET search_path = case_{case}, public"
        ))?;
        TABLE_OF_CASE.create_indexed(&mut client, &values, "")?;
        let file: String = value(&mut client, "SELECT pg_relation_filepath('docs_fp')")?;
        files.push(server.data().join(file));
    }
    drop(client);
    server.stop()?;
    for (case, file) in files.iter().enumerate() {
        let mut pages = fs::read(file).with_context(|| file.display().to_string())?;
        damage(case, &mut pages);
        // Writes in place, so that the file keeps its owner.
        fs::write(file, pages)?;
    }
    server.start()
}

/// Opens a new session for a case, without caches of the other indexes.
fn enter(server: &Server, case: usize) -> Result<Client> {
    let mut client = connect(&server.conninfo("postgres"))?;
    // A timeout detects endless loops.
    client.batch_execute(&format!(
        "SET statement_timeout = '2min'; SET search_path = case_{case}, public"
    ))?;
    Way::Index.set(&mut client)?;
    Ok(client)
}

fn write(pages: &mut [u8], &(_, block, offset, bytes, _): &Corruption) {
    let at = block * PAGE + offset;
    pages[at..at + bytes.len()].copy_from_slice(bytes);
}

fn code(error: &Error) -> &str {
    error.code().map_or("no SQLSTATE", |code| code.code())
}

/// Searches that read a whole permutation, and searches for single keys.
fn searches() -> Vec<String> {
    let probe = |radius| Probe {
        center: Shape::Balls.center(1),
        radius,
    };
    [64, 0, 3, 8]
        .map(|radius| {
            format!(
                "SELECT count(*) FROM docs WHERE fp <@ {}",
                FINGERPRINT.ball(probe(radius))
            )
        })
        .to_vec()
}

/// Runs every operation on an index. Each must succeed, or fail with an error of class XX or the
/// error for another layout.
fn touch_everything(client: &mut Client, why: &str) -> Outcome {
    let mut statements = searches();
    statements.extend(
        [
            "INSERT INTO docs SELECT id + 10000, fp FROM docs WHERE id < 2000",
            "UPDATE docs SET fp = (fp::bigint # 1)::fingerprint WHERE id % 9 = 1",
            "DELETE FROM docs WHERE id % 3 = 0",
            "VACUUM (INDEX_CLEANUP ON) docs",
            "SET enable_indexscan = off; SET enable_bitmapscan = on; \
             SELECT count(*) FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, 40)",
            "SET enable_indexscan = on",
            "SELECT count(*) FROM docs a JOIN docs b ON b.fp ~= a.fp WHERE a.id < 100",
            "SELECT id FROM docs ORDER BY fp <~> '0123456789abcdef'",
            "SELECT id FROM docs WHERE fp <~> '0123456789abcdef' <= 30 \
             ORDER BY fp <~> '0123456789abcdef' LIMIT 40",
            "SET enable_indexonlyscan = on; \
             SELECT fp FROM docs WHERE fp <@ ball('0000000000000000'::fingerprint, 40)",
            "SELECT fp FROM docs ORDER BY fp <~> '0123456789abcdef'",
            "SELECT neardup_index_info('docs_fp')",
            "SELECT neardup_index_check('docs_fp')",
            "SELECT neardup_index_check('docs_fp', heap => true)",
            "SELECT neardup_index_check('docs_fp', heap => true, concurrently => true)",
        ]
        .map(str::to_owned),
    );
    for statement in statements {
        if let Err(error) = client.batch_execute(&statement) {
            let code = code(&error);
            // The server's own errors, raised in C, for invalid links and row addresses. A panic
            // of neardup may have the same SQLSTATE, but another file.
            let file = error.as_db_error().and_then(|error| error.file());
            let in_c = file.is_some_and(|file| file.ends_with(".c"));
            let known = [BROKEN_FILE, BROKEN_INDEX, OTHER_LAYOUT].contains(&code)
                || (["XX000", "58P01"].contains(&code) && in_c);
            assert!(known, "{why}: {statement}: {error:?}");
        }
    }
    Ok(())
}

#[test]
fn each_damage_is_an_error_with_a_way_out() -> Outcome {
    with(own_server("damage", &SETTINGS)?, |server| {
        damaged(server, DAMAGES.len(), |case, pages| {
            write(pages, &DAMAGES[case])
        })?;
        for (case, (what, _, _, _, expected)) in DAMAGES.iter().enumerate() {
            let mut client = enter(server, case)?;
            let error = match client.batch_execute(&searches()[0]) {
                Ok(()) => panic!("{what}: a search succeeds"),
                Err(error) => error,
            };
            assert_eq!(code(&error), *expected, "{what}: {error:?}");
            if *expected != BROKEN_FILE {
                let error = error.as_db_error().context("an error of the server's")?;
                let name = format!("case_{case}.docs_fp");
                let is_named = error.message().starts_with("index \"docs_fp\" ");
                assert!(is_named, "{what}: {error:?}");
                let hint = error.hint().unwrap_or_default();
                let repair = match *expected {
                    OTHER_LAYOUT => format!("REINDEX INDEX CONCURRENTLY {name};"),
                    _ => format!("REINDEX INDEX {name} "),
                };
                assert!(hint.contains(&repair), "{what}: {error:?}");
                assert!(error.detail().is_some(), "{what}: {error:?}");
            }
            touch_everything(&mut client, what)?;
            client.batch_execute("REINDEX INDEX docs_fp")?;
            TABLE_OF_CASE.holds(&mut client, case as u64)?;
        }
        Ok(())
    })
}

#[test]
fn the_check_finds_what_a_search_cannot_notice() -> Outcome {
    with(own_server("silent", &SETTINGS)?, |server| {
        damaged(server, SILENT.len(), |case, pages| {
            write(pages, &SILENT[case])
        })?;
        for (case, (what, _, _, _, expected)) in SILENT.iter().enumerate() {
            let mut client = enter(server, case)?;
            let error = match client.batch_execute("SELECT neardup_index_check('docs_fp')") {
                Ok(()) => panic!("{what}: not noticed"),
                Err(error) => error,
            };
            assert_eq!(code(&error), *expected, "{what}: {error:?}");
            if FOUND_CONCURRENTLY.contains(what) {
                let check = "SELECT neardup_index_check('docs_fp', true, concurrently => true)";
                let error = client.batch_execute(check).err().context(*what)?;
                assert_eq!(code(&error), *expected, "{what}: {error:?}");
            }
            touch_everything(&mut client, what)?;
            client.batch_execute("REINDEX INDEX docs_fp")?;
            TABLE_OF_CASE.holds(&mut client, case as u64)?;
        }
        Ok(())
    })
}

#[test]
fn right_links_in_a_circle_are_left_for_the_way_from_the_root() -> Outcome {
    const CIRCLE: Corruption = (
        "right link to itself",
        LEAF,
        RIGHT,
        &[1, 0, 0, 0],
        BROKEN_INDEX,
    );
    with(own_server("circle", &SETTINGS)?, |server| {
        damaged(server, 1, |_, pages| write(pages, &CIRCLE))?;
        let mut client = enter(server, 0)?;
        // Searches restart from the root, as if the page had been reused meanwhile.
        TABLE_OF_CASE.answers(&mut client, &[0, 3, 8], 0)?;
        let check = client.batch_execute("SELECT neardup_index_check('docs_fp')");
        let error = check.err().context("not noticed")?;
        assert_eq!(code(&error), BROKEN_INDEX, "{error:?}");
        touch_everything(&mut client, CIRCLE.0)
    })
}

#[test]
fn a_right_link_on_the_root_is_an_error_that_comes_soon() -> Outcome {
    with(own_server("root", &SETTINGS)?, |server| {
        damaged(server, 1, |_, pages| {
            let root = pages[ROOT] as usize;
            write(
                pages,
                &("right link", root, RIGHT, &[1, 0, 0, 0], BROKEN_INDEX),
            );
        })?;
        let mut client = enter(server, 0)?;
        std::thread::scope(|scope| -> Outcome {
            let search = scope.spawn(move || client.batch_execute(&searches()[0]));
            if let Err(error) = poll("the search ends", || Ok(search.is_finished())) {
                // The thread waits for a search that may not check for interrupts.
                server.kill_9()?;
                return Err(error);
            }
            let result = search.join().map_err(|_| anyhow!("the client panicked"))?;
            let error = result.err().context("the search succeeds")?;
            assert_eq!(code(&error), BROKEN_INDEX, "{error:?}");
            Ok(())
        })
    })
}

#[test]
fn random_bytes_in_an_index_crash_nothing() -> Outcome {
    const CASES: usize = 40;
    with(own_server("random", &SETTINGS)?, |server| {
        let mut random = Random::new(1);
        damaged(server, CASES, |case, pages| {
            if case % 8 == 7 {
                // Truncates the file.
                let kept = 1 + random.below((pages.len() / PAGE - 1) as u64) as usize;
                pages.truncate(kept * PAGE);
                return;
            }
            for _ in 0..1 + random.below(20) {
                // The meta page and the root, which is the last page, are two of 35.
                let blocks = pages.len() / PAGE;
                let any = random.below(blocks as u64) as usize;
                let block = random.pick(&[any, any, META, blocks - 1]);
                // Header, entries, fields at the end.
                let offset = match random.below(3) {
                    0 => 10 + random.below(40),
                    1 => random.below(PAGE as u64),
                    _ => RIGHT as u64 - 8 + random.below(32),
                };
                pages[block * PAGE + offset as usize] = random.bits() as u8;
            }
        })?;
        let started = "SELECT pg_postmaster_start_time()::text || pg_backend_pid()";
        let mut witness = connect(&server.conninfo("postgres"))?;
        let before: String = value(&mut witness, started)?;
        for case in 0..CASES {
            let mut client = enter(server, case)?;
            touch_everything(&mut client, &format!("case {case}"))?;
            client.batch_execute("REINDEX INDEX docs_fp")?;
            TABLE_OF_CASE.is_sound(&mut client)?;
            // A crash of another backend would have ended this session.
            assert_eq!(
                value::<String>(&mut witness, started)?,
                before,
                "case {case}"
            );
        }
        Ok(())
    })
}
