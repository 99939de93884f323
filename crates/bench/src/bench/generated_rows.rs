//! Makes and loads the benchmark's data: uniform 64-bit values with neighbours planted at known
//! distances, the same in every run.
use super::session::Session;
use crate::lines::each_line;
use anyhow::{Result, ensure};
use std::io::Write;
use std::path::Path;

/// Number of probes: the values that the measured searches look for, each once.
pub const PROBE_COUNT: u64 = 1000;
/// Distances, in bits, of the rows that are planted near each probe, one row at each distance.
/// Without these rows a probe would have no neighbours, because two uniform values differ in 32
/// bits, give or take 4.
pub const PLANTED: [u32; 8] = [0, 1, 2, 3, 5, 8, 10, 12];
/// Table of the probes that have planted neighbours.
pub const PLANTED_PROBES: &str = "probes";
/// Table of the probes that have no neighbour. It has as many rows as [`PLANTED_PROBES`].
pub const ABSENT_PROBES: &str = "absent";
/// Number of rows that one measured INSERT statement adds.
pub const ROWS_PER_INSERT: u64 = 200_000;
/// Number of INSERT statements that are measured one after the other.
pub const INSERTS: u64 = 5;
/// Minimum number of rows of the table: twice the number of planted neighbours of all probes, so
/// that at most half of the rows are planted.
pub const MIN_ROWS: u64 = 2 * PROBE_COUNT * PLANTED.len() as u64;

/// Identifier of the random stream ([`random`]) for the rows that have no probe nearby.
const ROWS: u64 = 1;
/// Identifier of the random stream for the probes that have planted neighbours.
const CENTRES: u64 = 2;
/// Identifier of the random stream that chooses the bits in which a neighbour differs from its
/// original.
const FLIPS: u64 = 3;
/// Identifier of the random stream for the probes without neighbours.
const ABSENT: u64 = 4;
/// Identifier of the random stream for [`load_like`], which builds each new value from blocks of
/// given values. The stream chooses the given value from which a block is taken.
const MIXED: u64 = 5;
/// Identifier of the random stream for the original rows of [`load_near`].
const LOADED: u64 = 6;
/// Identifier of the random stream that chooses the original of each copy in [`load_near`], and the
/// number of bits in which the copy differs.
const COPIES: u64 = 7;

/// Returns the `i`th random value of the stream `stream`, by SplitMix64 (Steele, Lea, Flood, OOPSLA
/// 2014). SplitMix64 computes any value of a stream without the earlier ones.
pub fn random(stream: u64, i: u64) -> u64 {
    let mut z = (stream << 48).wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the `i`th probe with planted neighbours.
fn probe(i: u64) -> u64 {
    random(CENTRES, i)
}

/// Returns a word in which `distance` random bits are set. A caller flips these bits in a value to
/// get a value at this distance. `seed` determines the bits.
fn flips(seed: u64, distance: u32) -> u64 {
    let mut bits = 0u64;
    let mut draw = seed << 16;
    while bits.count_ones() < distance {
        bits |= 1 << (random(FLIPS, draw) & 63);
        draw += 1;
    }
    bits
}

/// Returns the value of row `row` in a table with `rows` rows. The planted neighbours of a probe
/// are far apart in the table. So each of them is on a different page, as among documents collected
/// over years.
fn value(row: u64, rows: u64) -> u64 {
    let planted = PROBE_COUNT * PLANTED.len() as u64;
    let (stride, shift) = (rows / planted, rows / planted / 2);
    let plant = row / stride;
    if row % stride != shift || plant >= planted {
        return random(ROWS, row);
    }
    let distance = PLANTED[(plant / PROBE_COUNT) as usize];
    probe(plant % PROBE_COUNT) ^ flips(plant, distance)
}

/// Returns `value` rotated so that its block `block` is at the front. The blocks 0 to 3 have 16
/// bits each. The order of the blocks behind it does not matter.
fn rotated(value: u64, block: u32) -> u64 {
    value.rotate_left(16 * block)
}

/// Reverses [`rotated`]: returns the value before block `block` was moved to the front.
pub fn restored(value: i64, block: u32) -> i64 {
    value.cast_unsigned().rotate_right(16 * block).cast_signed()
}

/// Loads the table `docs (id, fp)` with `rows` rows, which contain the planted neighbours of the
/// probes.
pub fn load_docs(session: &mut Session, rows: u64) -> Result<()> {
    let values = (0..rows).map(|row| [row.cast_signed(), value(row, rows).cast_signed()]);
    load(session, "docs (id bigint, fp bigint)", values)
}

/// Loads the table `permuted (p0, p1, p2, p3)` with the values that [`load_docs`] loads for the
/// same `rows`. Each 64-bit value has four blocks of 16 bits. Column `p0` has the value with its
/// first block at the front, column `p1` with its second block moved to the front, and so on.
pub fn load_permuted(session: &mut Session, rows: u64) -> Result<()> {
    let values = (0..rows).map(|row| permuted(value(row, rows)));
    load(session, &format!("permuted ({PERMUTED})"), values)
}

/// Loads the tables [`PLANTED_PROBES`] and [`ABSENT_PROBES`]. Each row has a probe and four copies
/// of it, each with another of the probe's four blocks moved to the front.
pub fn load_probes(session: &mut Session) -> Result<()> {
    for (table, stream) in [(PLANTED_PROBES, CENTRES), (ABSENT_PROBES, ABSENT)] {
        let values = (0..PROBE_COUNT).map(|i| {
            let fp = random(stream, i);
            let [p0, p1, p2, p3] = permuted(fp);
            [i.cast_signed(), fp.cast_signed(), p0, p1, p2, p3]
        });
        let columns = format!("{table} (id bigint, fp bigint, {PERMUTED})");
        load(session, &columns, values)?;
    }
    Ok(())
}

/// Adds a crowd to the table `docs`: for each probe of [`ABSENT_PROBES`], `each` new rows within 3
/// bits of the probe. `rows` is the number of rows that `docs` has before. Keeps a copy of the
/// added rows in the table `crowd`.
pub fn add_crowd(session: &mut Session, rows: u64, each: u64) -> Result<()> {
    let values = (0..each * PROBE_COUNT).map(|i| {
        let seed = (PLANTED.len() as u64 * PROBE_COUNT) + i;
        let value = random(ABSENT, i % PROBE_COUNT) ^ flips(seed, (i / PROBE_COUNT % 4) as u32);
        [(rows + i).cast_signed(), value.cast_signed()]
    });
    load(session, "crowd (id bigint, fp bigint)", values)?;
    session.run("INSERT INTO docs TABLE crowd")?;
    session.run("VACUUM (ANALYZE) docs")
}

/// Reads fingerprints from a tab-separated file. Returns the name and the values of each column
/// that has at least [`PROBE_COUNT`] values of 16 hexadecimal digits.
pub fn columns_of(path: &Path) -> Result<Vec<(String, Vec<u64>)>> {
    let mut columns: Vec<(String, Vec<u64>)> = Vec::new();
    each_line(path, |fields| {
        for (i, field) in fields.iter().enumerate() {
            let value = (field.len() == 16).then(|| u64::from_str_radix(field, 16).ok());
            match (columns.get_mut(i), value.flatten()) {
                (None, None) => columns.push(((*field).to_owned(), Vec::new())),
                (None, Some(value)) => columns.push((format!("column {}", i + 1), vec![value])),
                (Some((_, values)), Some(value)) => values.push(value),
                (Some(_), None) => (),
            }
        }
        Ok(())
    })?;
    columns.retain(|(_, values)| values.len() as u64 >= PROBE_COUNT);
    ensure!(
        !columns.is_empty(),
        "{} has no column with {PROBE_COUNT} values of 16 hexadecimal digits",
        path.display()
    );
    Ok(columns)
}

/// Loads the table `docs (id, fp)` with all of `values`. If there are fewer than `rows`, adds
/// generated values until the table has `rows` rows. A generated value takes each of its four
/// 16-bit blocks from a random element of `values`. Indexes search by blocks, so each block must be
/// as skewed as in `values` at any number of rows. Also loads the table [`PLANTED_PROBES`] with
/// 1,000 of `values`.
pub fn load_like(session: &mut Session, values: &[u64], rows: u64) -> Result<()> {
    let count = values.len() as u64;
    let mixed = |row: u64| {
        (0..4).fold(0, |value, block| {
            let of = values[(random(MIXED, 4 * row + block) % count) as usize];
            value | of & (0xffff << (16 * block))
        })
    };
    let all = (0..rows.max(count)).map(|row| {
        let value = values.get(row as usize).copied();
        [
            row.cast_signed(),
            value.unwrap_or_else(|| mixed(row)).cast_signed(),
        ]
    });
    load(session, "docs (id bigint, fp bigint)", all)?;
    let probes = (0..PROBE_COUNT).map(|i| {
        let value = values[(i * count / PROBE_COUNT) as usize];
        [i.cast_signed(), value.cast_signed()]
    });
    load(
        session,
        &format!("{PLANTED_PROBES} (id bigint, fp bigint)"),
        probes,
    )
}

/// Loads the rows that the measured INSERT statements add to a table of `rows` rows. The rows of
/// statement 0 are in the table `fresh_0 (id, fp)`, and so on.
pub fn load_fresh(session: &mut Session, rows: u64) -> Result<()> {
    for statement in 0..INSERTS {
        let start = rows + statement * ROWS_PER_INSERT;
        let values = (start..start + ROWS_PER_INSERT)
            .map(|row| [row.cast_signed(), random(ROWS, row).cast_signed()]);
        load(
            session,
            &format!("fresh_{statement} (id bigint, fp bigint)"),
            values,
        )?;
    }
    Ok(())
}

/// Loads the table `table (id, fp)` with `rows` rows. Three in ten rows are near-duplicates of an
/// earlier row.
pub fn load_near(session: &mut Session, table: &str, rows: u64) -> Result<()> {
    let values = (0..rows).map(|row| [row.cast_signed(), near(row).cast_signed()]);
    load(session, &format!("{table} (id bigint, fp bigint)"), values)
}

/// Returns true if a row of [`load_near`] was made as a copy, within 3 bits of an earlier row.
pub fn is_copy(row: u64) -> bool {
    row >= 10 && row % 10 >= 7
}

/// Returns the value of a row of [`load_near`]: a new random value, or for a copy the value of an
/// earlier original row with up to three bits changed.
fn near(row: u64) -> u64 {
    if !is_copy(row) {
        return random(LOADED, row);
    }
    let choice = random(COPIES, row);
    let earlier = choice % row;
    let original = earlier
        - if is_copy(earlier) {
            earlier % 10 - 6
        } else {
            0
        };
    random(LOADED, original) ^ flips(row, (choice >> 32) as u32 % 4)
}

const PERMUTED: &str = "p0 bigint, p1 bigint, p2 bigint, p3 bigint";

fn permuted(value: u64) -> [i64; 4] {
    [0, 1, 2, 3].map(|block| rotated(value, block).cast_signed())
}

/// Creates a table of bigint columns, fills it by binary COPY and freezes its rows. Frozen rows are
/// visible to all transactions, so nothing is written to them later and index-only scans need not
/// visit them. `definition` is a table name with column definitions in parentheses.
fn load<const K: usize>(
    session: &mut Session,
    definition: &str,
    rows: impl Iterator<Item = [i64; K]>,
) -> Result<()> {
    let name = definition.split(' ').next().unwrap_or(definition);
    let mut transaction = session.client.transaction()?;
    transaction.batch_execute(&format!("CREATE TABLE {definition}"))?;
    let copy = format!("COPY {name} FROM STDIN (FORMAT binary, FREEZE)");
    let mut writer = std::io::BufWriter::with_capacity(1 << 16, transaction.copy_in(&copy)?);
    // COPY's binary format: the signature, no flags and no header extension; for each row the
    // number of fields, and for each field its length and bytes; -1 after the last row
    // (PostgreSQL's documentation of COPY, "Binary Format").
    writer.write_all(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0")?;
    for row in rows {
        writer.write_all(&(K as i16).to_be_bytes())?;
        for value in row {
            writer.write_all(&8i32.to_be_bytes())?;
            writer.write_all(&value.to_be_bytes())?;
        }
    }
    writer.write_all(&(-1i16).to_be_bytes())?;
    let copied = writer.into_inner().map_err(|error| error.into_error())?;
    copied.finish()?;
    transaction.commit()?;
    session.run(&format!("VACUUM (ANALYZE) {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_its_neighbours() {
        let rows = MIN_ROWS + 1234;
        let values: Vec<u64> = (0..rows).map(|row| value(row, rows)).collect();
        for i in [0, 1, PROBE_COUNT - 1] {
            let mut near: Vec<u32> = (values.iter())
                .map(|value| (value ^ probe(i)).count_ones())
                .filter(|distance| *distance <= 12)
                .collect();
            near.sort_unstable();
            near.retain(|distance| PLANTED.contains(distance));
            for distance in PLANTED {
                assert!(near.contains(&distance), "probe {i}: {near:?}");
            }
        }
    }

    #[test]
    fn copies_are_near_to_an_earlier_row_that_is_none() {
        let rows = 2_000;
        let values: Vec<u64> = (0..rows).map(near).collect();
        let mut copies = 0;
        let mut seen = [0; 4];
        for row in 0..rows {
            let nearest = (0..row)
                .filter(|&earlier| !is_copy(earlier))
                .map(|earlier| (values[earlier as usize] ^ values[row as usize]).count_ones())
                .min();
            let is_near = nearest.is_some_and(|distance| distance <= 3);
            assert_eq!(is_near, is_copy(row), "row {row}");
            if is_near {
                copies += 1;
                seen[nearest.unwrap_or_default() as usize] += 1;
            }
        }
        assert_eq!(copies, 597);
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }

    #[test]
    fn the_data_never_change() {
        // The results of different versions can be compared only over the same data.
        assert_eq!(random(0, 0), 0xe220_a839_7b1d_cdaf);
        let sum = (0..MIN_ROWS).fold(0u64, |sum, row| sum.rotate_left(1) ^ value(row, MIN_ROWS));
        assert_eq!(sum, 0x07d3_3fdd_ddcd_c7ca, "{sum:#x}");
    }

    #[test]
    fn rotations_are_undone() {
        for block in 0..4 {
            let turned = rotated(0x0123_4567_89ab_cdef, block).cast_signed();
            assert_eq!(restored(turned, block), 0x0123_4567_89ab_cdef);
        }
        assert_eq!(rotated(0x0123_4567_89ab_cdef, 1), 0x4567_89ab_cdef_0123);
    }
}
