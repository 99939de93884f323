//! `cargo xtask eval`: measures how many similar pairs of documents fingerprints find, and how many
//! dissimilar pairs they find in error. docs/quality.md has the results.
mod configurations;
mod kind;
mod measure;
mod plot;
mod set;
mod table;

use anyhow::{Context, Result, ensure};
use configurations::{CONFIGURATIONS, Configuration, EXPERIMENTS};
use measure::{BANDS, Distances};
use set::Set;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::ui;

/// Options of `cargo xtask eval`.
#[derive(clap::Args)]
pub struct Options {
    /// Folders of documents, each with docs.tsv (identifier, text), near.tsv (two identifiers,
    /// exact Jaccard similarity) and optionally pairs.tsv (two identifiers that belong together);
    /// each file plain or with .gz
    #[arg(required = true)]
    sets: Vec<PathBuf>,
    /// Measure only the configurations whose name contains PART; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Measure also configurations that were tried and that SQL does not offer
    #[arg(long)]
    experiments: bool,
    /// Count only the similar pairs that pairs.tsv lists
    #[arg(long)]
    listed: bool,
    /// Minimum Jaccard similarity of a duplicate in the curves of precision and recall: a multiple
    /// of 0.05
    #[arg(long, value_name = "J", default_value_t = 0.8)]
    duplicate: f32,
    /// Write the curves as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Measurements of all chosen configurations on one set of documents.
pub struct Measured {
    /// Name of the set's folder.
    pub name: String,
    /// Configurations, each with the distances of the set's pairs.
    pub rows: Vec<(&'static Configuration, Distances)>,
}

/// Runs `cargo xtask eval`: measures each set, prints its tables, and writes the plots if `--svg`
/// is given.
pub fn command(options: &Options) -> Result<ExitCode> {
    ensure!(
        BANDS.contains(&options.duplicate) && options.duplicate > 0.0,
        "--duplicate {} is not one of {}",
        options.duplicate,
        BANDS[..BANDS.len() - 1]
            .iter()
            .map(f32::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let configurations = chosen(options)?;
    let mut all = Vec::new();
    for dir in &options.sets {
        let mut set = ui::step(format!("Reading {}", dir.display()), || Set::read(dir))?;
        if options.listed {
            set.keep_listed();
        }
        let rows: Vec<(&Configuration, Distances)> =
            ui::step(format!("Measuring {}", set.name), || {
                let measured = configurations
                    .iter()
                    .map(|configuration| (*configuration, Distances::measure(&set, configuration)));
                Ok(measured.collect())
            })?;
        let named: Vec<_> = rows
            .iter()
            .map(|(configuration, measured)| (configuration.name, measured))
            .collect();
        println!("{}\n", table::heading(&set, named[0].1));
        println!("{}", table::found(&named));
        println!("{}", table::thresholds(&named));
        all.push(Measured {
            name: set.name,
            rows,
        });
    }
    if let Some(dir) = &options.svg {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for (name, svg) in plot::plots(&all, options.duplicate)? {
            let path = dir.join(name);
            fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            ui::note(format!("wrote {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(options: &Options) -> Result<Vec<&'static Configuration>> {
    let more: &[Configuration] = if options.experiments {
        EXPERIMENTS
    } else {
        &[]
    };
    let all = || CONFIGURATIONS.iter().chain(more);
    let wanted = |configuration: &&Configuration| {
        let contains = |part: &String| configuration.name.contains(part.as_str());
        options.only.is_empty() || options.only.iter().any(contains)
    };
    let chosen: Vec<&Configuration> = all().filter(wanted).collect();
    ensure!(
        !chosen.is_empty(),
        "no configuration contains any of --only; there are: {}",
        all()
            .map(|configuration| configuration.name)
            .collect::<Vec<_>>()
            .join(", ")
    );
    Ok(chosen)
}
