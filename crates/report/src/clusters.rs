//! List of the largest clusters on the report page. A cluster is a set of near-duplicate rows. One
//! row of it, the kept row, stays when the other rows are removed. The differences of each other
//! row from the kept row are marked.
use std::fmt::Write;

use neardup_textdiff::{Diff, Host, Kind, Span};

use crate::data::{Cluster, Measure, Member, Report, Text};
use crate::escape::{push_text, text};
use crate::hunks::{self, Part, Row};
use crate::numbers::{count, counted, distance_with_unit, size};

/// Number of clusters whose rows are unfolded when the page is opened.
const OPEN_CLUSTERS: usize = 1;
/// Maximum number of characters shown of the text of a kept row. A note states the size of a longer
/// text.
const MAX_KEPT_CHARS: usize = 1200;

/// Appends the clusters of `report` to the page `html`. Calls `host` while it compares the texts of
/// their rows, so that `host` can cancel a long comparison.
pub fn push(html: &mut String, report: &Report, host: &mut dyn Host) {
    for (index, cluster) in report.clusters.iter().enumerate() {
        push_cluster(html, report, index, cluster, host);
    }
}

fn push_cluster(
    html: &mut String,
    report: &Report,
    index: usize,
    cluster: &Cluster,
    host: &mut dyn Host,
) {
    let Some((kept, others)) = cluster.members.split_first() else {
        return;
    };
    let number = index + 1;
    let open = if index < OPEN_CLUSTERS { " open" } else { "" };
    let _ = write!(
        html,
        "<details class=\"cluster\" id=\"cluster-{number}\"{open}>\n<summary>\
         <h3><span class=\"number\">Cluster {number}</span> <span class=\"name\">"
    );
    push_name(html, kept);
    let _ = writeln!(
        html,
        "</span></h3> <span class=\"facts\">{}, {}</span></summary>",
        counted(cluster.size, "row", "rows"),
        match cluster.widest {
            widest if widest > 0.0 => widest_distance(report.measure, widest),
            _ => match report.measure {
                Measure::Bits(_) | Measure::Estimated(_) => "equal fingerprints".to_owned(),
                Measure::Signatures => "equal signatures".to_owned(),
            },
        }
    );
    html.push_str("<ol class=\"members\">\n");
    push_kept(html, report, kept);
    let mut is_first_difference = index < OPEN_CLUSTERS;
    for member in others {
        push_member(html, report, kept, member, &mut is_first_difference, host);
    }
    html.push_str("</ol>\n");
    let unlisted = cluster.size.saturating_sub(cluster.members.len() as u64);
    if unlisted > 0 {
        let _ = writeln!(
            html,
            "<p class=\"note\">{} of this cluster {} not listed. Those that are listed are the \
             farthest from the kept one.</p>",
            counted(unlisted, "more row", "more rows"),
            if unlisted == 1 { "is" } else { "are" }
        );
    }
    html.push_str("</details>\n");
}

/// Returns a phrase for the largest distance `value` between the kept row of a cluster and another
/// row.
fn widest_distance(measure: Measure, value: f64) -> String {
    let shown = distance_with_unit(measure, value);
    match measure {
        Measure::Bits(_) => format!("up to {shown} apart"),
        Measure::Estimated(_) | Measure::Signatures => format!("down to {shown}"),
    }
}

/// Appends the name of a row, in an element that isolates its writing direction.
fn push_name(html: &mut String, member: &Member) {
    html.push_str("<bdi>");
    match member.key.as_deref() {
        Some("") => html.push_str("<i>empty name</i>"),
        Some(key) => push_text(html, key),
        None => html.push_str("<i>without a name</i>"),
    }
    html.push_str("</bdi>");
}

/// Opens the list item of a row and appends its first line, which shows the row's name, its
/// distance and the facts in `head`. If the row has details, opens the element that folds the
/// details. The caller ends the item with [`close_member`].
fn open_member(html: &mut String, report: &Report, member: &Member, head: Head) {
    let mut classes = String::new();
    for number in &member.removed_at {
        let _ = write!(classes, " goes-{number}");
    }
    if member.removed_at.contains(&report.chosen) {
        classes.push_str(" chosen");
    }
    let _ = writeln!(html, "<li class=\"member{classes}\">");
    html.push_str(match head.details {
        Details::None => "<p class=\"head\">",
        Details::Closed => "<details><summary class=\"head\">",
        Details::Open => "<details open><summary class=\"head\">",
    });
    let stays = if head.is_kept { "kept" } else { "stays" };
    let _ = write!(
        html,
        "<span class=\"badge fate-stays\">{stays}</span>\
         <span class=\"badge fate-goes\">goes</span> <span class=\"name\">"
    );
    push_name(html, member);
    html.push_str("</span>");
    if !head.is_kept {
        let _ = write!(
            html,
            " <span class=\"facts\">{}{}</span>",
            distance_with_unit(report.measure, member.distance),
            if head.is_same { ", the same text" } else { "" }
        );
    }
    html.push_str(match head.details {
        Details::None => "</p>\n",
        _ => "</summary>\n",
    });
}

/// Closes the list item of a row, and the element that folds its details.
fn close_member(html: &mut String, details: Details) {
    html.push_str(match details {
        Details::None => "</li>\n",
        _ => "</details>\n</li>\n",
    });
}

/// Contents of the first line of a row's list item.
#[derive(Clone, Copy)]
struct Head {
    /// True if this is the kept row of the cluster.
    is_kept: bool,
    /// True if the text of the row equals the text of the kept row, byte for byte.
    is_same: bool,
    /// State of the details below the first line.
    details: Details,
}

/// State of the details below a row's name: absent, folded or unfolded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Details {
    None,
    Closed,
    Open,
}

/// Appends the list item of the kept row, with the beginning of its text.
fn push_kept(html: &mut String, report: &Report, kept: &Member) {
    let details = match kept.text {
        Text::Some { .. } => Details::Closed,
        _ => Details::None,
    };
    let head = Head {
        is_kept: true,
        is_same: false,
        details,
    };
    open_member(html, report, kept, head);
    if let Text::Some {
        shown,
        bytes,
        is_cut,
        ..
    } = &kept.text
    {
        let end = shown.char_indices().nth(MAX_KEPT_CHARS);
        let beginning = end.map_or(shown.as_str(), |(end, _)| &shown[..end]);
        let _ = writeln!(
            html,
            "<div class=\"plain\" dir=\"auto\">{}</div>",
            text(beginning)
        );
        if *is_cut || end.is_some() {
            let size = size(*bytes);
            let _ = writeln!(html, "<p class=\"note\">The beginning of {size}.</p>");
        }
    }
    push_missing_text(html, report, &kept.text);
    close_member(html, details);
}

/// Appends a note that states why the page does not show a row's text. Appends nothing if the page
/// shows it, or if the report has no texts.
fn push_missing_text(html: &mut String, report: &Report, text: &Text) {
    let why = match text {
        Text::None if report.body.is_some() => "It has no text.",
        Text::LeftOut => "Its text is left out: the page has no room for more.",
        _ => return,
    };
    let _ = writeln!(html, "<p class=\"note\">{why}</p>");
}

/// Appends the list item of the row `member`, with the differences between its text and the text of
/// the kept row. The differences are folded, except the first ones of an unfolded cluster: if
/// `is_first_difference` is true, this function shows them unfolded and sets the flag to false.
fn push_member(
    html: &mut String,
    report: &Report,
    kept: &Member,
    member: &Member,
    is_first_difference: &mut bool,
    host: &mut dyn Host,
) {
    let is_same = is_same(&kept.text, &member.text);
    let head = |details| Head {
        is_kept: false,
        is_same,
        details,
    };
    let (Text::Some { shown: old, .. }, Text::Some { shown: new, .. }) = (&kept.text, &member.text)
    else {
        let details = Details::None;
        open_member(html, report, member, head(details));
        push_missing_text(html, report, &member.text);
        close_member(html, details);
        return;
    };
    let details = match is_same {
        true => Details::None,
        false if std::mem::take(is_first_difference) => Details::Open,
        false => Details::Closed,
    };
    open_member(html, report, member, head(details));
    if !is_same {
        host.reserve(2 * html.len());
        push_difference(html, old, new, host);
        if is_cut(kept) || is_cut(member) {
            let _ = writeln!(
                html,
                "<p class=\"note\">Only the first {} of each text are compared here.</p>",
                counted(report.limits.characters, "character", "characters")
            );
        }
    }
    close_member(html, details);
}

/// Returns true if the texts `a` and `b` of two rows are known and equal. Compares digests, so the
/// parts that the page does not show count too.
fn is_same(a: &Text, b: &Text) -> bool {
    match (a, b) {
        (Text::Some { digest: a, .. }, Text::Some { digest: b, .. }) => a == b,
        _ => false,
    }
}

/// Returns true if the page shows only the beginning of the row's text.
fn is_cut(member: &Member) -> bool {
    matches!(member.text, Text::Some { is_cut: true, .. })
}

/// Appends the differences of two texts as a table with two columns: `old`, the text of the kept
/// row, and `new`, the text of another row. Appends a note instead if only white space differs, or
/// if `host` refuses the comparison.
fn push_difference(html: &mut String, old: &str, new: &str, host: &mut dyn Host) {
    let diff = match Diff::new(old, new, host) {
        Ok(diff) => diff,
        Err(why) => {
            let _ = writeln!(html, "<p class=\"note\">They are not compared: {why}.</p>");
            return;
        }
    };
    if old == new {
        html.push_str("<p class=\"note\">Nothing, as far as they are shown here.</p>\n");
        return;
    }
    let is_unseen = |span: &Span| span.kind == Kind::Equal || diff.is_white_space(span);
    if diff.spans().iter().all(is_unseen) {
        html.push_str("<p class=\"note\">White space only.</p>\n");
        return;
    }
    html.push_str(
        "<table class=\"sides\"><thead><tr><th scope=\"col\">Kept</th>\
         <th scope=\"col\">This row</th></tr></thead>\n<tbody>\n",
    );
    for row in hunks::rows(&diff) {
        push_row(html, &row);
    }
    html.push_str("</tbody></table>\n");
}

fn push_row(html: &mut String, row: &Row) {
    match row {
        Row::Texts { old, new } => {
            let is_equal = |part: &Part| matches!(part, Part::Equal(_));
            html.push_str(match old.iter().chain(new).all(is_equal) {
                true => "<tr class=\"same\">",
                false => "<tr>",
            });
            push_cell(html, "old", "del", old);
            push_cell(html, "new", "ins", new);
            html.push_str("</tr>\n");
        }
        Row::LeftOut(characters) => {
            let _ = writeln!(
                html,
                "<tr class=\"skip\"><td colspan=\"2\">{} alike</td></tr>",
                counted(*characters as u64, "character", "characters")
            );
        }
        Row::End => html.push_str(
            "<tr class=\"skip\"><td colspan=\"2\">More differs than is shown.</td></tr>\n",
        ),
    }
}

fn push_cell(html: &mut String, class: &str, mark: &str, parts: &[Part]) {
    let _ = write!(html, "<td class=\"{class}\"><div dir=\"auto\">");
    for part in parts {
        match part {
            Part::Equal(text) => push_text(html, text),
            Part::Marked(text) => {
                let _ = write!(html, "<{mark}>");
                push_text(html, text);
                let _ = write!(html, "</{mark}>");
            }
            Part::More(characters) => {
                let _ = write!(
                    html,
                    "<span class=\"more\">… and {} more</span>",
                    count(*characters as u64)
                );
            }
        }
    }
    html.push_str("</div></td>");
}
