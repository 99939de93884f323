//! Report of the demo.
use super::database::{Comparison, Demo, RADIUS};
use super::differences::{Difference, between};
use super::groups::{Member, Text, texts};
use crate::ui::{duration, number, plural};
use anyhow::Result;
use std::fmt::Write;

/// Number of groups are shown, and of each how many texts, and of each how many places.
const GROUPS: usize = 10;
const TEXTS: usize = 3;
const PLACES: usize = 2;
/// Number of groups of nothing but copies are named.
const COPIES: usize = 3;
/// Room for an excerpt, in characters.
const WIDTH: usize = 88;

/// The groups, those with differences first; `groups` holds the documents' numbers from 0.
pub fn groups(demo: &mut Demo, groups: &[Vec<usize>]) -> Result<String> {
    let ids: Vec<i64> = groups
        .iter()
        .flatten()
        .map(|&number| i64::try_from(number + 1))
        .collect::<std::result::Result<_, _>>()?;
    let mut members = demo.members(&ids)?.into_iter();
    let mut different: Vec<Vec<Text>> = Vec::new();
    let mut copies: Vec<Text> = Vec::new();
    for group in groups {
        let members: Vec<Member> = members.by_ref().take(group.len()).collect();
        let mut texts = texts(&members);
        match texts.len() {
            1 => copies.append(&mut texts),
            _ => different.push(texts),
        }
    }
    different.sort_by_key(|texts| std::cmp::Reverse(documents(texts)));
    copies.sort_by_key(|text| std::cmp::Reverse(text.copies));

    let mut out = String::new();
    writeln!(
        out,
        "{}: {} with differences, {} of identical copies only",
        plural(groups.len(), "group", "groups"),
        number(different.len()),
        number(copies.len())
    )?;
    for (at, texts) in different.iter().take(GROUPS).enumerate() {
        writeln!(out)?;
        out += &group(demo, at + 1, texts)?;
    }
    if different.len() > GROUPS {
        let more = different.len() - GROUPS;
        writeln!(out, "\n…and {} more with differences", number(more))?;
    }
    if !copies.is_empty() {
        writeln!(out, "\nIdentical copies only:")?;
        for text in copies.iter().take(COPIES) {
            writeln!(out, "   {} × {}", number(text.copies), clean(&text.name))?;
        }
        if copies.len() > COPIES {
            let more = copies.len() - COPIES;
            writeln!(out, "   …and {}", plural(more, "more group", "more groups"))?;
        }
    }
    Ok(out)
}

fn documents(texts: &[Text]) -> usize {
    texts.iter().map(|text| text.copies).sum()
}

/// One group: its most frequent text, and how the nearest others differ from it.
fn group(demo: &mut Demo, number_of_group: usize, texts: &[Text]) -> Result<String> {
    let (main, others) = (&texts[0], &texts[1..]);
    let ids: Vec<i64> = others.iter().map(|text| text.id).collect();
    let distances = demo.distances(main.id, &ids)?;
    let mut others: Vec<(i32, &Text)> = distances.into_iter().zip(others).collect();
    others.sort_by_key(|(distance, text)| (*distance, std::cmp::Reverse(text.copies), text.id));

    let mut out = String::new();
    let farthest = others.last().map_or(0, |(distance, _)| *distance);
    let apart = match u32::try_from(farthest)? {
        0 => "with equal fingerprints".to_owned(),
        bits if bits <= RADIUS => format!("up to {} apart", plural(bits as usize, "bit", "bits")),
        bits => format!("linked in steps, up to {bits} bits apart"),
    };
    writeln!(
        out,
        "{number_of_group}. {}, {}, {apart}",
        plural(documents(texts), "document", "documents"),
        plural(texts.len(), "different text", "different texts"),
    )?;
    writeln!(out, "   {}", named(main))?;
    let body = demo.body(main.id)?;
    for (distance, text) in choose(&others) {
        writeln!(out, "   distance {distance}: {}", named(text))?;
        match between(&body, &demo.body(text.id)?, PLACES, WIDTH) {
            Difference::Nothing => {}
            Difference::WhiteSpace => writeln!(out, "     the same words, other white space")?,
            Difference::Unknown => writeln!(out, "     too long to be compared here")?,
            Difference::Words(places) => {
                for place in places {
                    for (sign, line) in [('-', &place.old), ('+', &place.new)] {
                        if let Some(line) = line {
                            writeln!(out, "     {sign} {line}")?;
                        }
                    }
                }
            }
        }
    }
    if others.len() > TEXTS {
        let more = others.len() - TEXTS;
        writeln!(out, "   …and {}", plural(more, "more text", "more texts"))?;
    }
    Ok(out)
}

/// The nearest, one in the middle and the farthest show a group better than the nearest alone.
fn choose<T: Copy>(sorted: &[T]) -> Vec<T> {
    match sorted.len() {
        0..=TEXTS => sorted.to_vec(),
        n => vec![sorted[0], sorted[n / 2], sorted[n - 1]],
    }
}

fn named(text: &Text) -> String {
    match text.copies {
        1 => clean(&text.name),
        copies => format!(
            "{} ({} identical copies)",
            clean(&text.name),
            number(copies)
        ),
    }
}

/// Names come from outside: a terminal must not obey what is in them, and they must fit a line.
fn clean(name: &str) -> String {
    let printable = name.chars().filter(|c| !c.is_control());
    printable.take(WIDTH).collect()
}

/// Times with the index and without it, and whether both found the same.
pub fn comparison(comparison: &Comparison) -> String {
    let Comparison {
        probes,
        with_index,
        index,
        scan,
    } = comparison;
    let each = |time: std::time::Duration| time.as_secs_f64() / (*probes).max(1) as f64;
    let shown = |time| duration(std::time::Duration::from_secs_f64(each(time)));
    let mut out = format!(
        "Finding the near-duplicates of {}, one after the other, everything in memory:\n",
        plural(*probes, "document", "documents")
    );
    let rows = [("index", index), ("sequential scan", scan)];
    for (name, timed) in rows.into_iter().skip(usize::from(!with_index)) {
        out += &format!(
            "   {name:<16} {:>9} in all, {:>7} each\n",
            duration(timed.time),
            shown(timed.time)
        );
    }
    if !with_index {
        out += "   The planner did not use the index.\n";
        return out;
    }
    let ratio = scan.time.as_secs_f64() / index.time.as_secs_f64().max(1e-9);
    let ratio = if ratio < 10.0 {
        format!("{ratio:.1}")
    } else {
        number(ratio.round() as u64)
    };
    out += &match index.found == scan.found {
        true => format!(
            "   The index is {ratio} times as fast; both found the same {}.\n",
            plural(
                usize::try_from(index.found).unwrap_or(0),
                "match",
                "matches"
            )
        ),
        false => format!(
            "   The answers differ: {} matches with the index, {} without. This is a bug.\n",
            index.found, scan.found
        ),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::super::database::Timed;
    use super::*;
    use std::time::Duration;

    fn compared(found: i64) -> String {
        comparison(&Comparison {
            probes: 100,
            with_index: true,
            index: Timed {
                time: Duration::from_millis(1),
                found: 7,
            },
            scan: Timed {
                time: Duration::from_millis(1500),
                found,
            },
        })
    }

    #[test]
    fn the_comparison_states_the_ratio_when_the_answers_agree() {
        let text = compared(7);
        assert!(text.contains("1,500 times as fast"), "{text}");
        assert!(text.contains("10 us each"), "{text}");
        assert!(text.contains("same 7 matches"), "{text}");
        let text = compared(8);
        assert!(text.contains("This is a bug"), "{text}");
        assert!(!text.contains("times as fast"), "{text}");
    }

    #[test]
    fn a_large_group_shows_near_middle_and_far() {
        assert_eq!(choose(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(choose(&[1, 2, 3, 4, 5]), [1, 3, 5]);
    }
}
