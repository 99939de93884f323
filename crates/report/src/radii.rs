//! Results for each radius on the report page: the buttons that choose a radius, the numbers for
//! the chosen radius, a table of all radii, and the SQL that removes rows.
use std::fmt::Write;

use crate::data::{Measure, Radius, Report};
use crate::escape::push_text;
use crate::numbers::{
    bits, count, distance, distance_cells, percent, short_distance, size, within,
};

/// Returns the CSS classes of an element that shows the results for one radius. `number` is the
/// index of the radius in `report.radii`. The stylesheet shows only the elements of the chosen
/// radius.
fn css_classes(report: &Report, number: usize) -> String {
    let chosen = if number == report.chosen {
        " chosen"
    } else {
        ""
    };
    format!("at at-{number}{chosen}")
}

/// Appends the buttons that choose a radius, if there are several radii.
pub fn push_control(html: &mut String, report: &Report) {
    if report.radii.len() < 2 {
        return;
    }
    let unit = match report.measure {
        Measure::Bits(_) => "Radius, in bits",
        Measure::Estimated(_) | Measure::Signatures => "Least similarity",
    };
    let _ = write!(
        html,
        "<fieldset class=\"radius\">\n<legend>{unit}</legend>\n<div class=\"stops\">\n"
    );
    for (number, radius) in report.radii.iter().enumerate() {
        let checked = if number == report.chosen {
            " checked"
        } else {
            ""
        };
        let _ = writeln!(
            html,
            "<label><input type=\"radio\" name=\"radius\" id=\"radius-{number}\"{checked}>\
             <span>{}</span></label>",
            stop(report.measure, radius.value)
        );
    }
    html.push_str("</div>\n<p class=\"outcome\" aria-live=\"polite\">");
    for (number, radius) in report.radii.iter().enumerate() {
        let _ = write!(
            html,
            "<span class=\"{}\"><b>{}</b> of {} rows would go</span>",
            css_classes(report, number),
            count(radius.copies),
            count(report.rows)
        );
    }
    html.push_str("</p>\n</fieldset>\n");
}

/// Returns the label of a radius on the buttons that choose it.
fn stop(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Bits(_) => distance(measure, value),
        Measure::Estimated(_) => {
            format!("{} <i>{}</i>", short_distance(measure, value), bits(value))
        }
        Measure::Signatures => short_distance(measure, value),
    }
}

/// Appends the numbers of rows and clusters for each radius. The stylesheet shows only the numbers
/// for the chosen radius.
pub fn push_figures(html: &mut String, report: &Report) {
    for (number, radius) in report.radii.iter().enumerate() {
        let _ = writeln!(
            html,
            "<dl class=\"figures {}\">",
            css_classes(report, number)
        );
        push_figure(html, "Rows", &count(report.rows), &rows_note(report));
        let within = within(report.measure, radius.value);
        push_figure(html, "Clusters", &count(radius.clusters), &within);
        let share = format!("{} of all rows", percent(radius.copies, report.rows));
        push_figure(html, "Rows that would go", &count(radius.copies), &share);
        if let (Some(saved), Some(all)) = (radius.bytes, report.bytes) {
            let share = format!("{} of all text", percent(saved, all));
            push_figure(html, "Text that would go", &size(saved), &share);
        }
        html.push_str("</dl>\n");
    }
}

fn rows_note(report: &Report) -> String {
    match report.bytes {
        Some(bytes) => format!("with {} of text", size(bytes)),
        None => "in the table".to_owned(),
    }
}

/// Appends one number with its name and a note.
fn push_figure(html: &mut String, name: &str, value: &str, note: &str) {
    let _ = writeln!(
        html,
        "<div><dt>{name}</dt><dd><strong>{value}</strong> <span>{note}</span></dd></div>"
    );
}

/// Appends the table with the results for all radii.
pub fn push_table(html: &mut String, report: &Report) {
    let has_bytes = report.radii.iter().any(|radius| radius.bytes.is_some());
    let name = match report.measure {
        Measure::Bits(_) => "Radius",
        Measure::Estimated(_) => "Similarity</th><th scope=\"col\">Radius",
        Measure::Signatures => "Similarity",
    };
    let _ = write!(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Results for each \
         radius, table\">\n<table>\n<caption>Rows that go if one row of each cluster stays\
         </caption>\n<thead><tr><th scope=\"col\">{name}</th><th scope=\"col\">Clusters</th>\
         <th scope=\"col\">Rows that go</th><th scope=\"col\">Share</th>"
    );
    if has_bytes {
        html.push_str("<th scope=\"col\">Text that goes</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (number, radius) in report.radii.iter().enumerate() {
        let chosen = if number == report.chosen {
            " chosen"
        } else {
            ""
        };
        let _ = write!(
            html,
            "<tr class=\"of of-{number}{chosen}\">{}<td>{}</td><td>{}</td><td>{}</td>",
            distance_cells(report.measure, radius.value),
            count(radius.clusters),
            count(radius.copies),
            percent(radius.copies, report.rows)
        );
        if has_bytes {
            let _ = write!(
                html,
                "<td>{}</td>",
                radius.bytes.map_or_else(String::new, size)
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

/// Appends, for each radius, the SQL that removes the rows.
pub fn push_statements(html: &mut String, report: &Report) {
    for (number, Radius { statement, .. }) in report.radii.iter().enumerate() {
        let _ = write!(
            html,
            "<pre class=\"{}\" tabindex=\"0\"><code>",
            css_classes(report, number)
        );
        push_text(html, statement);
        html.push_str("</code></pre>\n");
    }
}
