//! Text of HTML pages.

use neardup_sketch::html::html_text;
use proptest::prelude::*;

fn text(page: &str) -> String {
    html_text(page, &mut || ())
}

/// Pages and their text. Fingerprints of pages depend on these texts, as on the golden vectors.
const PAGES: &[(&str, &str)] = &[
    ("", ""),
    ("plain text", "plain text"),
    ("  a \n\t b\u{A0}c  ", "a b\u{A0}c"),
    // Blocks separate, inline elements do not.
    ("<p>one<p>two</p>three", "one\ntwo\nthree"),
    ("f<b>o<i>o</b>b</i>ar <span>x</span>y", "foobar xy"),
    ("<div>a</div><div> b </div>c", "a\nb\nc"),
    ("a<br>b<br/>c<hr>d</br>e", "a\nb\nc\nd\ne"),
    ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
    (
        "<table><tr><td>a<td> b<tr><th>c</th><th>d</table>e",
        "a\tb\nc\td\ne",
    ),
    ("a<img alt='not text'>b<button>c</button>d", "a b c d"),
    ("so<wbr>long<custom-tag>er</custom-tag>", "solonger"),
    ("<pre>\n one\n  two\n\n three</pre>", "one\ntwo\nthree"),
    ("<h1>A</h1>b<h2>C</h2>", "A\nb\nC"),
    // Content that is not text.
    ("a<script>b('</p>')</script>c<style>d{}</style>e", "ace"),
    ("a<!-- b --><!doctype html><?php c ?>d<!e>f", "adf"),
    ("<!-- <p>--->a<!-->b<!--->c--><!-- d --!>e<!-- f", "abc-->e"),
    (
        "<html><head><title>no</title></head><body>yes</body></html>after",
        "yes\nafter",
    ),
    (
        "a<noscript><p>no</noscript>b<template><p>no</template>c",
        "abc",
    ),
    (
        "a<iframe><p>no</iframe>b<textarea><p>no</textarea>c<select><option>no</select>d",
        "a b c d",
    ),
    (
        "a<video><p>no</video>b<audio>no</audio>c<canvas>no</canvas>d",
        "a b c d",
    ),
    (
        "<dialog>no</dialog>a<dialog open>yes</dialog>b",
        "a\nyes\nb",
    ),
    (
        "漢<ruby>字<rp>(</rp><rt>kanji</rt><rp>)</rp></ruby>、<ruby>文<rt>bun</ruby>",
        "漢字、文",
    ),
    ("a<script><!-- <script> </script> b --></script>c", "ac"),
    ("a<script></scripty></script>b", "ab"),
    // Hidden elements, and their ends.
    ("a<div hidden>no<div>no</div>no</div>b", "a\nb"),
    ("a<span hidden=''>no</span>b<b HIDDEN=hidden>no</b>c", "abc"),
    ("a<div hidden=until-found>yes</div>b", "a\nyes\nb"),
    ("<p hidden>no<p>yes", "yes"),
    ("<p hidden>no<div>yes</div>", "yes"),
    (
        "<ul><li hidden>no<li>yes<li hidden>no<ul><li>no</ul>no</ul>yes",
        "yes\nyes",
    ),
    ("<dl><dt hidden>no<dd>yes</dl>", "yes"),
    (
        "<table><tr><td hidden>no<td>yes<tr hidden><td>no<tr><td>yes<tbody hidden><tr><td>no\
         </table>yes",
        "yes\nyes\nyes",
    ),
    (
        "<table><td hidden>no<table><tr><td>no</table>no<td>yes",
        "yes",
    ),
    ("<div><span hidden>no</div>yes", "yes"),
    ("<div hidden>no</span></p></section>no</div>yes", "yes"),
    ("<b hidden>no<p>no</b>yes", "yes"),
    ("<body hidden>yes", "yes"),
    ("<div a=1 hidden b='x>y' c>no</div>yes", "yes"),
    ("<div data-hidden>yes</div>", "yes"),
    ("<br hidden>yes<img hidden>yes", "yes yes"),
    // Character references.
    (
        "&lt;p&gt; &amp;amp; &eacute;&#233;&#xE9;&#XE9 &notin;&notit; &nbsp;|",
        "<p> &amp; éééé ∉¬it; \u{A0}|",
    ),
    (
        "&#0;&#x110000;&#xD800;&#128;&#x9f;",
        "\u{FFFD}\u{FFFD}\u{FFFD}€Ÿ",
    ),
    (
        "a & b &; &x &copy &copycat &unknown;",
        "a & b &; &x © ©cat &unknown;",
    ),
    ("<i title='&lt;'>&NotEqualTilde;</i>", "≂̸"),
    ("<title>&lt;</title><xmp>&lt;<b></xmp>", "&lt;<b>"),
    // SVG and MathML.
    (
        "a<svg><title>no</title><defs><text>no</text></defs><text>b</text><text>c</text></svg>d",
        "a b c d",
    ),
    (
        "<svg><style/><text>yes</text><![CDATA[<yes>]]></svg>",
        "yes <yes>",
    ),
    ("a<![CDATA[b]]>c", "ac"),
    ("<svg><defs><p>yes</svg>yes", "yes yes"),
    (
        "<svg><foreignObject><p>yes</p><style>no</style></foreignObject><desc>no</desc></svg>",
        "yes",
    ),
    (
        "<math><mi>x</mi><mo>=</mo><annotation>no</annotation></math>",
        "x=",
    ),
    ("a<svg/>b<math />c<div/>d", "a bc\nd"),
    // Malformed.
    ("a < b <c d<> e </> f <3 </ g>h", "a < b e f <3 h"),
    ("<p>a</p></p></div></b></table>b", "a\nb"),
    ("<p class=\"a>b</p>c\" d>e", "e"),
    ("<p", ""),
    ("a<p", "a"),
    ("a</", "a</"),
    ("a<!", "a"),
    ("a&", "a&"),
    ("a<script>b", "a"),
    ("<title>a", ""),
    ("a<plaintext><b>c</plaintext>", "a\n<b>c</plaintext>"),
    ("a\r\nb\rc<pre>d\r\ne\rf</pre>", "a b c\nd\ne\nf"),
    ("<é>é<\u{80}é></é>é", "<é>é<\u{80}é>é"),
    ("<DIV>A</Div><SCRIPT>no</sCript>b", "A\nb"),
];

#[test]
fn pages_have_their_text() {
    for (page, expected) in PAGES {
        assert_eq!(&text(page), expected, "{page:?}");
    }
}

/// Returns tags, text, and parts of both.
fn any_page() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "p",
        "div",
        "b",
        "span",
        "li",
        "ul",
        "td",
        "tr",
        "table",
        "script",
        "style",
        "title",
        "svg",
        "math",
        "template",
        "pre",
        "select",
        "textarea",
        "noscript",
        "br",
        "img",
        "ruby",
        "rt",
        "a",
        "foreignObject",
        "xmp",
        "html",
        "body",
        "x-y",
    ]);
    let piece = prop_oneof![
        3 => names.clone().prop_map(|name| format!("<{name}>")),
        2 => names.clone().prop_map(|name| format!("</{name}>")),
        1 => names.clone().prop_map(|name| format!("<{name} hidden>")),
        1 => names.prop_map(|name| format!("<{name} a='b' /")),
        1 => "[<>/!&;#='\" \\-a-z0-9\\[\\]]{0,8}",
        1 => prop::sample::select(vec![
            "<!--", "-->", "--!>", "<![CDATA[", "]]>", "&amp;", "&#x", "&notin", "é", "中",
            "\u{1F600}", "\r", "\n",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Writes a text as a page with the same text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn text_is_valid_and_bounded(page in any_page()) {
        let text = text(&page);
        // No character is lost in part.
        let replaced = ['#', '\0', char::REPLACEMENT_CHARACTER];
        let whole = !text.contains(char::REPLACEMENT_CHARACTER) || page.contains(replaced);
        prop_assert!(whole);
        prop_assert!(text.len() <= page.len() + page.len() / 5);
        prop_assert!(!text.starts_with([' ', '\t', '\n']) && !text.ends_with([' ', '\t', '\n']));
    }

    #[test]
    fn text_of_text_is_itself(page in any_page()) {
        let once = text(&page);
        let lines = escaped(&once).replace('\n', "<br>").replace('\t', "<td>");
        prop_assert_eq!(text(&lines), once);
    }

    /// The text of a well-formed page does not depend on the elements around it.
    #[test]
    fn words_survive_nesting(
        words in prop::collection::vec("[a-z]{1,9}", 1..20),
        depth in 0_usize..600,
    ) {
        let page = "<div>".repeat(depth) + &words.join("<span> </span>") + &"</div>".repeat(depth);
        prop_assert_eq!(text(&page), words.join(" "));
    }
}

/// Hidden content is dropped at any depth, whether or not it is closed properly. The text after it
/// is kept.
#[test]
fn what_is_hidden_stays_hidden_however_deep() {
    for depth in [0, 1, 250, 255, 256, 257, 300, 511, 512, 600] {
        for (around, after) in [("<div>", "</div>"), ("<b>", "</b>"), ("<ul><li>", "</ul>")] {
            for hidden in [
                "<p hidden>no</p>",
                "<p hidden>no<p>",
                "<div hidden><b>no</b><br><i>no</i></div>",
                "<select><option>no<option>no</select>",
                "<template>no <b>no</b></template>",
                "<svg><desc>no</desc><defs><text>no</text></defs></svg>",
                "<script>no</script>",
                "<noscript>no<p>no</noscript>",
            ] {
                let closed = format!(
                    "{}yes{hidden}yes{}yes",
                    around.repeat(depth),
                    after.repeat(depth)
                );
                for page in [closed, format!("{}yes{hidden}yes", around.repeat(depth))] {
                    let text = text(&page);
                    assert!(!text.contains("no"), "{depth} {around} {hidden}: {text}");
                    let times = text.matches("yes").count();
                    assert_eq!(
                        times,
                        page.matches("yes").count(),
                        "{depth} {around} {hidden}: {text}"
                    );
                }
            }
        }
    }
}

/// Ten megabytes of markup that makes parsers slow or deep. Time is linear, or this test would not
/// end, and only the text grows.
#[test]
fn hostile_pages_are_pages() {
    const BYTES: usize = 10 << 20;
    let nested = [
        "<div>",
        "<b>",
        "<p><b>",
        "<table><tr><td>",
        "<svg>",
        "<svg><desc>",
        "<x>",
        "<a>b",
        "<li>",
    ];
    let other = [
        "</p>",
        "<!--",
        "&",
        "&lt",
        "&#",
        "&#x1",
        "<a b=c ",
        " b",
        "<",
        "</",
        "<!",
        "é<",
        "<script>",
        "<title>",
        "<![CDATA[",
        "\"",
        "<select><option>",
        "a\n",
        "<template hidden>",
        "<plaintext>",
    ];
    for unit in nested.iter().chain(&other) {
        for (before, after) in [
            ("", ""),
            ("<p hidden>", "</p>"),
            ("<svg>", ""),
            ("<a ", ">x"),
            ("<b>", "</b>x"),
        ] {
            let page = before.to_owned() + &unit.repeat(BYTES / 16 / unit.len()) + after;
            let mut checks = 0;
            let text = html_text(&page, &mut || checks += 1);
            assert!(
                checks >= page.len() >> 18 && checks <= (page.len() >> 18) + 1,
                "{unit:?}"
            );
            assert!(text.len() <= page.len() + page.len() / 5, "{unit:?}");
        }
    }
    let page = "<div>".repeat(BYTES / 5) + "deep";
    assert_eq!(text(&page), "deep");
    let page = "<span a=b>".repeat(BYTES / 10) + "deep";
    assert_eq!(text(&page), "deep");
    let attributes: String = (0..BYTES / 8).map(|n| format!("a{n} ")).collect();
    assert_eq!(text(&format!("<p {attributes}hidden>no<p>yes")), "yes");
}

#[test]
fn check_may_unwind() {
    let page = "<p>some words and <b>more</b>".repeat(40_000);
    let cancelled = std::panic::catch_unwind(|| {
        html_text(&page, &mut || std::panic::resume_unwind(Box::new(())))
    });
    assert!(cancelled.is_err());
}
