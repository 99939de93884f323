//! Comparison of the layouts that a radius chooses with the measured ones.
use neardup_blocktree::layout_choice::best_layout;
use std::collections::BTreeMap;

/// Words of a key, rows and radius.
type Cell = (usize, usize, u32);
/// Guaranteed radius and number of blocks.
type Layout = (u32, u32);

/// Prints for each width and number of rows the cells, and the worst ratios.
pub fn print(files: &[&str]) {
    let mut cells: BTreeMap<Cell, BTreeMap<Layout, f64>> = BTreeMap::new();
    for file in files {
        let lines = std::fs::read_to_string(file).expect("a file that `measure` wrote");
        for line in lines.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let number = |column: usize| columns[column].parse::<f64>().expect("a number");
            let cell = (number(0) as usize, number(1) as usize, number(2) as u32);
            let layout = (number(3) as u32, number(4) as u32);
            // A later line is a repetition.
            cells.entry(cell).or_default().insert(layout, number(12));
        }
    }
    println!("words\trows\tradius\tchosen\tfastest\tto fastest\tto default");
    let mut worst: BTreeMap<(usize, usize), [f64; 2]> = BTreeMap::new();
    for ((words, rows, radius), layouts) in &cells {
        let chosen = chosen(*words, *radius, *rows as f64);
        let Some(ratio) = layouts.get(&chosen) else {
            println!("{words}\t{rows}\t{radius}\t{chosen:?} was not measured");
            continue;
        };
        let (fastest, least) = (layouts.iter())
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .expect("a cell has a layout");
        let to_fastest = ratio / least;
        println!("{words}\t{rows}\t{radius}\t{chosen:?}\t{fastest:?}\t{to_fastest:.2}\t{ratio:.2}");
        let all = worst.entry((*words, *rows)).or_default();
        *all = [all[0].max(to_fastest), all[1].max(*ratio)];
    }
    for ((words, rows), [to_fastest, to_default]) in worst {
        println!(
            "worst of {words}\t{rows}\t{to_fastest:.2} to the fastest, \
             {to_default:.2} to the default"
        );
    }
}

/// The layout that a radius chooses for a number of rows.
fn chosen(words: usize, radius: u32, rows: f64) -> Layout {
    fn parts<const N: usize>(radius: u32, rows: f64) -> Layout {
        let layout = best_layout::<N>(false, radius, rows);
        (layout.radius(), layout.blocks().len() as u32)
    }
    match words {
        1 => parts::<1>(radius, rows),
        2 => parts::<2>(radius, rows),
        _ => parts::<4>(radius, rows),
    }
}
