//! HTML of hostile texts, read by an independent parser.
use html5gum::{Token, Tokenizer};
use neardup_textdiff::Diff;
use neardup_textdiff::html::{Html, is_shown_by_name};
use proptest::prelude::*;

/// Texts of a page: `a` is outside of `ins`, and `b` is outside of `del`.
#[derive(Debug, Default, PartialEq)]
struct Read {
    a: String,
    b: String,
    folded: usize,
}

/// Reads a page, and fails if there is anything but text and the three elements.
fn read(page: &str) -> Read {
    let mut read = Read::default();
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut is_folded = false;
    for token in Tokenizer::new(page) {
        match token.expect("reading from memory") {
            Token::StartTag(tag) => {
                let name = tag.name.to_vec();
                let attributes: Vec<(Vec<u8>, Vec<u8>)> = (tag.attributes.iter())
                    .map(|(name, value)| (name.to_vec(), value.to_vec()))
                    .collect();
                match name.as_slice() {
                    b"del" | b"ins" => assert!(attributes.is_empty() && open.is_empty(), "{page}"),
                    b"span" => {
                        assert_eq!(attributes.len(), 1, "{page}");
                        assert_eq!(attributes[0].0, b"class");
                        is_folded = match attributes[0].1.as_slice() {
                            b"neardup-folded" => true,
                            b"neardup-control" => false,
                            other => panic!("{other:?} in {page}"),
                        };
                        read.folded += usize::from(is_folded);
                    }
                    _ => panic!("{tag:?} in {page}"),
                }
                assert!(!tag.self_closing);
                open.push(name);
            }
            Token::EndTag(tag) => {
                assert_eq!(open.pop().as_deref(), Some(tag.name.as_slice()), "{page}");
                is_folded = false;
            }
            Token::String(text) if !is_folded => {
                let text = str::from_utf8(&text).expect("UTF-8");
                let within = |name: &[u8]| open.iter().any(|open| open == name);
                if !within(b"ins") {
                    read.a += text;
                }
                if !within(b"del") {
                    read.b += text;
                }
            }
            Token::String(_) => {}
            // For example a reference to a carriage return, which is still resolved.
            Token::Error(_) => {}
            other => panic!("{other:?} in {page}"),
        }
    }
    assert!(open.is_empty(), "{page}");
    read
}

/// A text as a page shows it.
fn named(text: &str) -> String {
    let name = |c: char| match c {
        c if !is_shown_by_name(c) => c.to_string(),
        c if c.is_ascii() => format!("^{}", char::from(c as u8 ^ 0x40)),
        c => format!("U+{:04X}", u32::from(c)),
    };
    text.chars().map(name).collect()
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<script>alert(1)</script>",
        "</del>",
        "<ins>",
        "<!--",
        "-->",
        "]]>",
        "<![CDATA[",
        "<?php",
        "&lt;",
        "&#60;",
        "&amp",
        "&",
        "<",
        ">",
        "\"",
        "'",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>",
        "</span><style>*{}",
        "\0",
        "\r",
        "\r\n",
        "\u{1b}]0;x\u{7}",
        "\u{85}",
        "\u{9b}",
        "\u{202e}",
        "\u{2028}",
        "\u{feff}",
        "\u{fffe}",
        "é",
        "一",
        " ",
        "\n",
        "word",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn page(a: &str, b: &str, context: Option<usize>) -> String {
    let mut page = String::new();
    let diff = Diff::new(a, b, &mut ()).unwrap();
    diff.print(&Html, context, &mut page).unwrap();
    page
}

proptest! {
    #[test]
    fn hostile_texts_are_text(a in hostile(), b in hostile()) {
        let expected = Read { a: named(&a), b: named(&b), folded: 0 };
        prop_assert_eq!(read(&page(&a, &b, None)), expected);
    }

    #[test]
    fn any_texts_are_text(a in "(?s).{0,60}", b in "(?s).{0,60}") {
        let expected = Read { a: named(&a), b: named(&b), folded: 0 };
        prop_assert_eq!(read(&page(&a, &b, None)), expected);
    }

    #[test]
    fn folded_pages_are_well_formed(
        a in prop::collection::vec(hostile(), 0..8),
        b in prop::collection::vec(hostile(), 0..8),
        context in 0_usize..4,
    ) {
        read(&page(&a.concat(), &b.concat(), Some(context)));
    }
}
