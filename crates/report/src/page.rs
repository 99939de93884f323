//! The report page: its head, and its sections in order.
use std::fmt::Write;

use neardup_textdiff::Host;

use crate::data::{MAX_RADII, Measure, Report};
use crate::escape::{plain, push_text, text};
use crate::numbers::{count, counted, distance_with_unit, within};
use crate::{chart, clusters, radii};

/// Stylesheet, which is the same on each page.
const STYLE: &str = include_str!("style.css");
/// SHA-256 of the stylesheet in base64. The content security policy allows only this stylesheet.
const STYLE_DIGEST: &str = "hJaxQjHkJady6C5NjoEitFdPP34Oaiirdaij/QBcwtA=";

/// Returns a report as an HTML page. Calls `host` while it compares texts. `host` can cancel a
/// comparison or refuse memory by unwinding.
///
/// # Panics
/// If there are no radii or more than [`MAX_RADII`], or if the chosen radius does not exist.
pub fn page(report: &Report, host: &mut dyn Host) -> String {
    assert!(report.radii.len() <= MAX_RADII && report.chosen < report.radii.len());
    let mut html = String::new();
    push_head(&mut html, report);
    html.push_str("<main id=\"content\">\n");
    radii::push_control(&mut html, report);
    push_summary(&mut html, report);
    push_histogram(&mut html, report);
    push_radii(&mut html, report);
    push_clusters(&mut html, report, host);
    push_about(&mut html, report);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn push_head(html: &mut String, report: &Report) {
    let title = text(&report.title);
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'sha256-{STYLE_DIGEST}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"robots\" content=\"noindex\">\n\
         <meta name=\"generator\" content=\"neardup\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip-link\" href=\"#clusters\">Skip to the clusters</a>\n\
         <header>\n<h1><bdi>{title}</bdi></h1>\n<p>Table <code>{}</code>, index <code>{}</code>, \
         {}. As of {}.</p>\n</header>\n",
        plain(&report.title),
        text(&report.table),
        text(&report.index),
        match report.measure {
            Measure::Bits(bits) | Measure::Estimated(bits) => {
                format!("fingerprints of {bits} bits")
            }
            Measure::Signatures => "MinHash signatures".to_owned(),
        },
        text(&report.made_at),
    );
}

fn open_section(html: &mut String, id: &str, heading: &str) {
    let _ = write!(
        html,
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{heading}</h2>\n"
    );
}

fn push_summary(html: &mut String, report: &Report) {
    open_section(html, "summary", "What repeats");
    radii::push_figures(html, report);
    html.push_str("</section>\n");
}

fn push_histogram(html: &mut String, report: &Report) {
    open_section(html, "distances", "How far apart pairs are");
    html.push_str(match report.measure {
        Measure::Bits(_) if report.histogram.is_even() => {
            "<p>Nearly all distances are even, as between perceptual hashes (pHash), which have \
             half of their bits set. The gaps at odd distances are no valleys. A radius fits \
             where the bars at even distances are low, before those of unrelated pairs rise.</p>\n"
        }
        Measure::Bits(_) => {
            "<p>Near-duplicates are on the left. A radius fits where few pairs lie: in a valley \
             between them and the unrelated pairs, which rise to the right.</p>\n"
        }
        Measure::Estimated(_) => {
            "<p>Near-duplicates are on the left. A similarity of 80 % means that two texts share \
             about 80 % of their distinct features. It fits where few pairs lie: in a valley \
             between near-duplicates and the unrelated pairs, which rise to the right.</p>\n"
        }
        Measure::Signatures => {
            "<p>Near-duplicates are on the left. A similarity of 80 % means that two texts share \
             80 % of their distinct features.</p>\n"
        }
    });
    chart::push(html, report);
    html.push_str("</section>\n");
}

fn push_radii(html: &mut String, report: &Report) {
    open_section(html, "radii", "What each radius finds");
    radii::push_table(html, report);
    html.push_str("</section>\n");
}

fn push_clusters(html: &mut String, report: &Report, host: &mut dyn Host) {
    open_section(html, "clusters", "The largest clusters");
    let radius = report.chosen_radius();
    let within = within(report.measure, radius.value);
    let shown = report.clusters.len() as u64;
    let which = match shown {
        0 => format!("No two rows are {within}."),
        n if n < radius.clusters => format!(
            "{} of {} {within}, the largest first.",
            counted(n, "cluster", "clusters"),
            count(radius.clusters)
        ),
        1 => format!("The only cluster {within}."),
        n => format!("All {} clusters {within}, the largest first.", count(n)),
    };
    let _ = write!(html, "<p>{which}");
    if shown > 0 && report.radii.len() > 1 {
        html.push_str(
            " What is marked <span class=\"badge fate-goes sample\">goes</span> would go at the \
             radius chosen above; at another radius a row can belong to another cluster.",
        );
    }
    html.push_str("</p>\n");
    if shown > 0 && report.body.is_none() {
        html.push_str(
            "<p class=\"note\">The page has no texts, since it is not known which column holds \
             them: <code>body =&gt; '...'</code> names it.</p>\n",
        );
    }
    clusters::push(html, report, host);
    html.push_str("</section>\n");
}

fn push_about(html: &mut String, report: &Report) {
    open_section(html, "about", "How this was made");
    html.push_str("<dl class=\"about\">\n");
    let mut entry = |name: &str, value: &str| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>");
        push_text(html, value);
        html.push_str("</dd></div>\n");
    };
    let radius = report.chosen_radius();
    entry(
        "Radius of the clusters",
        &distance_with_unit(report.measure, radius.value),
    );
    entry("Rows looked at", report.filter.as_deref().unwrap_or("all"));
    entry(
        "Row that stays",
        report.keep.as_deref().unwrap_or("the first in the table"),
    );
    entry("Rows are named by", &report.key);
    entry("Texts", report.body.as_deref().unwrap_or("not known"));
    entry(
        "Limits of this page",
        &format!(
            "{}, {} of each, {} of a text",
            counted(report.limits.clusters, "cluster", "clusters"),
            counted(report.limits.members, "row", "rows"),
            counted(report.limits.characters, "character", "characters")
        ),
    );
    entry(
        "Pairs by distance",
        &match report.histogram.has_estimates() {
            true => {
                let rows = counted(report.histogram.sample_rows.min(report.rows), "row", "rows");
                format!(
                    "numbers with \u{b1} are estimated from a sample of {rows}; clusters and rows \
                     that go are exact"
                )
            }
            false => "all pairs were counted".to_owned(),
        },
    );
    html.push_str(
        "</dl>\n<p>This transaction removes the rows that would go. The \
         lock keeps other sessions from changing a row that stays:</p>\n",
    );
    radii::push_statements(html, report);
    html.push_str(
        "<p class=\"note\">A fingerprint is a summary. Look at the differences before anything is \
         removed.</p>\n</section>\n",
    );
}
