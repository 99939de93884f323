//! The index returns the rows of a sequential scan, for every data shape, option and radius.
use crate::support::Outcome;
use crate::support::data::{Probe, RADII, Random, Shape, probes};
use crate::support::oracle::Way;
use crate::support::table::{
    BIGINT, FINGERPRINT, FINGERPRINT128, FINGERPRINT256, TYPES, Table, value,
};
use anyhow::Context;
use neardup_tests::Database;

/// Makes about 90 half-full leaves per permutation: enough for the search to plan its probes.
const ROWS: usize = 26_000;
const HALF_FULL: &str = "fillfactor = 50";

/// Radii and blocks, including the extreme blocks of each radius with at most 64 permutations.
const DESIGNS: [(u32, u32); 22] = [
    (0, 1),
    (0, 7),
    (0, 64),
    (1, 2),
    (1, 5),
    (1, 64),
    (2, 3),
    (2, 6),
    (2, 11),
    (3, 4),
    (3, 5),
    (3, 6),
    (3, 8),
    (4, 5),
    (4, 7),
    (5, 6),
    (5, 8),
    (6, 7),
    (6, 8),
    (7, 8),
    (8, 9),
    (8, 10),
];

#[test]
fn every_radius_on_every_shape_of_fingerprints() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let radii: Vec<i32> = (-2..=66).collect();
    for (seed, shape) in (1..).zip(Shape::ALL) {
        let values = shape.values(ROWS, seed);
        table.create_indexed(&mut client, &values, HALF_FULL)?;
        let rows = table.agree(&mut client, &probes(&values, &radii, seed))?;
        assert!(rows > ROWS, "{shape:?}: the probes found {rows} rows only");
        table.is_sound(&mut client)?;
    }
    Ok(())
}

#[test]
fn every_shape_of_the_other_types() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    // Fewer rows of wide entries fill as many leaves; the two wide types alternate.
    let wide = [(FINGERPRINT128, ROWS / 2), (FINGERPRINT256, ROWS / 3)];
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        for (fp, rows) in [(BIGINT, ROWS), wide[i % 2]] {
            let table = Table::new(fp);
            let seed = 20 + i as u64;
            table.create_indexed(&mut client, &shape.values(rows, seed), HALF_FULL)?;
            table
                .holds(&mut client, seed)
                .with_context(|| format!("{shape:?} of {}", fp.name))?;
        }
    }
    Ok(())
}

#[test]
fn every_design() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (i, (distance, blocks)) in DESIGNS.into_iter().enumerate() {
        let table = Table::new(TYPES[i % 4]);
        // Each design has uniform rows and one other shape in turn.
        for shape in [Shape::Uniform, Shape::ALL[1 + i % 6]] {
            let values = shape.values(ROWS / 2, 40 + i as u64);
            let options = format!("{HALF_FULL}, radius = {distance}, blocks = {blocks}");
            table.create_indexed(&mut client, &values, &options)?;
            table.holds(&mut client, i as u64)?;
        }
    }
    Ok(())
}

#[test]
fn an_index_grown_by_inserts_answers_as_one_that_was_built() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for (i, shape) in Shape::ALL.into_iter().enumerate() {
        let table = Table::new(TYPES[i % 4]);
        let (distance, blocks) = DESIGNS[(3 * i + 2) % DESIGNS.len()];
        let options = format!("radius = {distance}, blocks = {blocks}");
        let seed = 60 + i as u64;
        table.create_indexed(&mut client, &[], &options)?;
        table.append(&mut client, 0, &shape.values(8_000, seed))?;
        table.holds(&mut client, seed)?;
    }
    Ok(())
}

#[test]
fn a_table_large_enough_that_neighbours_of_a_block_are_probed() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::Uniform.values(300_000, 80);
    table.create_indexed(&mut client, &values, HALF_FULL)?;
    let rows = table.agree(&mut client, &probes(&values, &RADII, 81))?;
    assert!(rows > 300_000);
    table.is_sound(&mut client)
}

#[test]
fn fifty_thousand_equal_rows_built_and_inserted() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    for fp in [BIGINT, FINGERPRINT256] {
        let table = Table::new(fp);
        table.create_indexed(&mut client, &[Some(7); 25_000], "")?;
        table.append(&mut client, 25_000, &[Some(7); 25_000])?;
        let far = Probe {
            center: 7 ^ 0xff << 40,
            radius: 7,
        };
        for radius in [0, 3, 8] {
            assert_eq!(
                table.agree(&mut client, &[Probe { center: 7, radius }])?,
                50_000
            );
        }
        assert_eq!(table.agree(&mut client, &[far])?, 0);
        table.is_sound(&mut client)?;
    }
    Ok(())
}

#[test]
fn a_mask_over_all_data_and_queries_changes_nothing() -> Outcome {
    let database = Database::create()?;
    let mut client = database.connect()?;
    let table = Table::new(FINGERPRINT);
    let values = Shape::Balls.values(ROWS, 90);
    let probes = probes(&values, &RADII, 91);
    let mut answers = Vec::new();
    for mask in [
        0,
        u64::MAX,
        0xffff,
        0x8000_0000_0000_0001,
        Random::new(92).bits(),
    ] {
        let masked: Vec<_> = values
            .iter()
            .map(|value| value.map(|bits| bits ^ mask))
            .collect();
        table.create_indexed(&mut client, &masked, "radius = 4, blocks = 6")?;
        Way::Index.set(&mut client)?;
        let mut answer: Vec<Vec<i64>> = Vec::new();
        for probe in &probes {
            let ball = table.fp.ball(Probe {
                center: probe.center ^ mask,
                ..*probe
            });
            answer.push(value(
                &mut client,
                &format!(
                    "SELECT coalesce(array_agg(id ORDER BY id), '{{}}') FROM docs WHERE fp <@ \
                        {ball}"
                ),
            )?);
        }
        answers.push(answer);
    }
    assert!(answers[0].iter().any(|ids| !ids.is_empty()));
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(())
}
