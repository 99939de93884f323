//! Pages of usual and hostile texts, read by a parser.
use std::collections::HashSet;

use base64::Engine;
use html5gum::{Token, Tokenizer};
use neardup_report::data::{
    Bar, Cluster, Histogram, Limits, MAX_RADII, Measure, Member, Radius, Report, Text,
};
use neardup_report::page;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// Elements of a page.
const ELEMENTS: &[&str] = &[
    "a",
    "b",
    "bdi",
    "body",
    "caption",
    "code",
    "dd",
    "del",
    "desc",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "head",
    "header",
    "html",
    "i",
    "input",
    "ins",
    "label",
    "legend",
    "li",
    "main",
    "meta",
    "ol",
    "p",
    "path",
    "pre",
    "rect",
    "section",
    "span",
    "strong",
    "style",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "title",
    "tr",
];
/// Attributes of these elements.
const ATTRIBUTES: &[&str] = &[
    "aria-label",
    "aria-labelledby",
    "aria-live",
    "charset",
    "checked",
    "class",
    "colspan",
    "content",
    "d",
    "dir",
    "height",
    "href",
    "http-equiv",
    "id",
    "lang",
    "name",
    "open",
    "role",
    "scope",
    "tabindex",
    "text-anchor",
    "type",
    "viewbox",
    "viewBox",
    "width",
    "x",
    "y",
];
/// Elements without an end tag.
const VOID: &[&str] = &["meta", "input", "path", "rect"];

/// Parts of a page that the tests examine.
#[derive(Default)]
struct Read {
    /// All text outside of the stylesheet.
    text: String,
    style: String,
    policy: String,
    headings: Vec<u8>,
    ids: HashSet<String>,
    labels: Vec<String>,
    links: Vec<String>,
}

/// Reads a page, and fails if it is malformed or has an unexpected part.
fn read(html: &str) -> Read {
    let mut read = Read::default();
    let mut open: Vec<String> = Vec::new();
    for token in Tokenizer::new(html) {
        match token.expect("reading from memory") {
            Token::StartTag(tag) => {
                let name = String::from_utf8(tag.name.to_vec()).unwrap();
                assert!(ELEMENTS.contains(&name.as_str()), "<{name}>");
                if let Some(level) = name.strip_prefix('h').and_then(|n| n.parse().ok()) {
                    read.headings.push(level);
                }
                for (attribute, value) in &tag.attributes {
                    let attribute = str::from_utf8(attribute).unwrap();
                    let value = String::from_utf8(value.to_vec()).unwrap();
                    assert!(ATTRIBUTES.contains(&attribute), "<{name} {attribute}>");
                    match attribute {
                        "id" => assert!(read.ids.insert(value.clone()), "{value} twice"),
                        "aria-labelledby" => {
                            read.labels.extend(value.split(' ').map(str::to_owned));
                        }
                        "href" => read.links.push(value.clone()),
                        "content" if value.contains("default-src") => read.policy = value,
                        _ => (),
                    }
                }
                if !VOID.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8(tag.name.to_vec()).unwrap();
                assert_eq!(open.pop(), Some(name));
            }
            Token::String(text) => {
                let text = str::from_utf8(&text).unwrap();
                match open.last().map(String::as_str) {
                    Some("style") => read.style += text,
                    _ => read.text += text,
                }
            }
            Token::Doctype(_) => assert!(read.text.is_empty()),
            // A reference to a carriage return, or a character that documents should not have.
            Token::Error(_) => (),
            Token::Comment(comment) => panic!("{comment:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(read.headings.first(), Some(&1));
    assert!(
        read.headings
            .windows(2)
            .all(|two| two[1] <= two[0] + 1 && two[1] > 1)
    );
    for label in &read.labels {
        assert!(read.ids.contains(label), "{label}");
    }
    for link in &read.links {
        let target = link
            .strip_prefix('#')
            .expect("links lead to anchors on the page");
        assert!(read.ids.contains(target), "{link}");
    }
    read
}

fn text(shown: &str) -> Text {
    Text::Some {
        shown: shown.to_owned(),
        bytes: shown.len() as u64,
        is_cut: false,
        digest: shown.to_owned(),
    }
}

fn member(key: &str, distance: f64, removed_at: &[usize], body: &str) -> Member {
    Member {
        key: Some(key.to_owned()),
        distance,
        removed_at: removed_at.to_vec(),
        text: text(body),
    }
}

/// Returns a report with these texts in every field that has a text.
fn report(texts: &[String]) -> Report {
    let at = |n: usize| texts[n % texts.len()].clone();
    let radius = |n: usize| Radius {
        value: n as f64,
        clusters: 1,
        copies: 2,
        bytes: Some(100),
        statement: at(n),
    };
    let cluster = Cluster {
        size: 4,
        widest: 2.0,
        members: vec![
            member(&at(0), 0.0, &[], &at(1)),
            member(&at(1), 0.0, &[0, 1, 2], &at(1)),
            member(&at(2), 2.0, &[2], &at(2)),
        ],
    };
    Report {
        title: at(0),
        table: at(1),
        index: at(2),
        made_at: "2026-01-01".to_owned(),
        measure: Measure::Bits(64),
        rows: 1234,
        bytes: Some(5_000_000),
        body: Some(at(3)),
        key: at(4),
        filter: Some(at(5)),
        keep: Some(at(6)),
        radii: (0..3).map(radius).collect(),
        chosen: 2,
        histogram: Histogram {
            bars: (0..17)
                .map(|n| Bar {
                    distance: f64::from(n),
                    pairs: 3u64.pow(n),
                    margin: if n > 2 { 3u64.pow(n) / 2 } else { 0 },
                })
                .collect(),
            sample_rows: 1000,
        },
        clusters: vec![cluster.clone(), cluster],
        limits: Limits {
            clusters: 20,
            members: 12,
            characters: 20_000,
        },
    }
}

fn plain_report() -> Report {
    report(&["one two three".to_owned(), "one two four".to_owned()])
}

#[test]
fn the_policy_names_the_stylesheet_and_nothing_else() {
    let read = read(&page(&plain_report(), &mut ()));
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(&read.style));
    assert_eq!(
        read.policy,
        format!(
            "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        ),
        "STYLE_DIGEST in src/page.rs is to be {digest}"
    );
    assert!(read.style.is_ascii());
    for loads in ["url(", "@import", "@font-face"] {
        assert!(!read.style.contains(loads), "{loads}");
    }
}

#[test]
fn the_stylesheet_has_a_rule_for_each_radius() {
    let style = read(&page(&plain_report(), &mut ())).style;
    for number in 0..MAX_RADII {
        for class in ["at", "goes", "within", "of"] {
            let rule = format!("#radius-{number}:checked)");
            let found = style.split(&rule).skip(1).any(|rest| {
                let selector = rest.split([',', '{']).next().unwrap_or_default();
                selector.contains(&format!(".{class}-{number}"))
            });
            assert!(found, ".{class}-{number}");
        }
    }
}

#[test]
fn numbers_of_all_radii_are_on_the_page() {
    let mut report = plain_report();
    report.radii[1].copies = 777_777;
    report.radii[1].clusters = 55_555;
    let html = page(&report, &mut ());
    let read = read(&html);
    for number in ["777,777", "55,555", "1,234", "5.0 MB"] {
        assert!(read.text.contains(number), "{number}");
    }
    assert!(
        read.text
            .contains("All pairs are counted as far as 2 bits. Beyond that they are")
    );
    assert!(read.text.contains("from a sample: 1,000 rows"));
    // A counted number, and an estimate.
    assert!(html.contains("<th scope=\"row\">2</th><td>9</td>"));
    assert!(html.contains("<th scope=\"row\">3</th><td>\u{2248} 27 \u{b1} 13</td>"));
    assert_eq!(html.matches("class=\"range\"").count(), 14);
}

#[test]
fn a_page_without_texts_clusters_or_a_choice() {
    let mut report = plain_report();
    report.radii.truncate(1);
    report.chosen = 0;
    report.clusters.clear();
    report.body = None;
    report.bytes = None;
    report.radii[0].bytes = None;
    report.histogram.bars.clear();
    let html = page(&report, &mut ());
    let read = read(&html);
    assert!(read.text.contains("No two rows are within 0 bits."));
    assert!(!html.contains("<fieldset"));
}

#[test]
fn limits_are_said() {
    let mut report = plain_report();
    report.radii[2].clusters = 70;
    report.clusters[0].members[2].text = Text::LeftOut;
    if let Text::Some { is_cut, .. } = &mut report.clusters[1].members[2].text {
        *is_cut = true;
    }
    let read = read(&page(&report, &mut ()));
    for note in [
        "2 clusters of 70 within 2 bits",
        "1 more row of this cluster is not listed",
        "Its text is left out: the page has no room for more.",
        "Only the first 20,000 characters of each text are compared here.",
    ] {
        assert!(read.text.contains(note), "{note}");
    }
}

#[test]
fn signatures_have_fractions() {
    let mut report = plain_report();
    report.measure = Measure::Signatures;
    report.radii[2].value = 0.2;
    report.radii[1].value = 0.1;
    let read = read(&page(&report, &mut ()));
    assert!(read.text.contains("at similarity 80 % or more"));
    assert!(read.text.contains("MinHash signatures"));
}

#[test]
fn a_similarity_comes_before_its_bits() {
    let mut report = plain_report();
    report.measure = Measure::Estimated(64);
    report.radii[2].value = 6.0;
    let html = page(&report, &mut ());
    let read = read(&html);
    assert!(
        read.text
            .contains("at similarity 81 % or more (within 6 bits)")
    );
    assert!(html.contains("<span>81 % <i>6 bits</i></span>"));
    assert!(html.contains("<th scope=\"row\">94 %</th><td>2</td><td>9</td>"));
}

#[test]
fn gaps_at_odd_distances_are_no_valleys() {
    const EVEN: &str = "Nearly all distances are even";
    let mut report = plain_report();
    assert!(!page(&report, &mut ()).contains(EVEN));
    for (number, bar) in report.histogram.bars.iter_mut().enumerate() {
        bar.pairs = if number % 2 == 1 { 1 } else { 100 };
    }
    let html = page(&report, &mut ());
    assert!(html.contains(EVEN) && !html.contains("in a valley"));
    // Too few pairs to decide.
    for bar in &mut report.histogram.bars {
        bar.pairs /= 100;
    }
    assert!(!page(&report, &mut ()).contains(EVEN));
}

#[test]
fn what_differs_is_marked() {
    let html = page(&plain_report(), &mut ());
    assert!(html.contains("<del>four</del>"), "{html}");
    assert!(html.contains("<ins>three</ins>"));
    assert!(html.contains("0 bits, the same text"));
}

/// Parts of texts that would do harm without escaping.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "</title>",
    "</style>",
    "<!--",
    "-->",
    "]]>",
    "\"",
    "'",
    "`",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "&lt;",
    "&#x3c;",
    "</details>",
    "</bdi></td></table>",
    "<svg onload=alert(1)>",
    "<base href=//e>",
    "<meta http-equiv=refresh>",
    "\u{202e}",
    "\u{2066}",
    "\0",
    "\u{1b}[31m",
    "\r",
    "\u{85}",
    "\u{feff}",
    "\u{ffff}",
    "e\u{301}\u{301}\u{301}",
    "\u{5d0}\u{5d1}",
    "\u{1f468}\u{200d}\u{1f469}",
    "{",
    "}",
    "{{7*7}}",
    "\n",
    " ",
    "\t",
    "style=x",
    "<b id=\"clusters\">",
];

fn hostile_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        prop::sample::select(HOSTILE).prop_map(str::to_owned),
        prop::sample::select(HOSTILE).prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        "[a-z ]{0,12}",
        (1usize..400).prop_map(|n| "a".repeat(n)),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn hostile_texts_stay_texts(texts in prop::collection::vec(hostile_text(), 1..8)) {
        let html = page(&report(&texts), &mut ());
        let plain = read(&page(&plain_report(), &mut ()));
        // `read` fails at an unexpected element, attribute or end tag.
        let hostile = read(&html);
        prop_assert!(!html.to_ascii_lowercase().contains("<script"));
        prop_assert_eq!(hostile.policy, plain.policy);
        prop_assert_eq!(hostile.style, plain.style);
        prop_assert_eq!(hostile.ids, plain.ids);
        // The name of a row is unchanged, except for characters shown by name.
        let is_seen = |c: char| !neardup_textdiff::html::is_shown_by_name(c);
        if let [name, ..] = &texts[..] && name.chars().all(is_seen) {
            prop_assert!(hostile.text.contains(name.as_str()), "{name:?}");
        }
    }
}
