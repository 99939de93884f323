//! Escapes text that does not come from this crate, such as values of table rows, for the HTML of
//! the report page.

/// Appends `text`, such as a value of a table, to `html` as the content of an element. Uses the
/// escaping of [`neardup_textdiff`], so that a page has only one kind of escaping.
pub fn push_text(html: &mut String, text: &str) {
    // Writing to memory cannot fail.
    let _ = neardup_textdiff::html::escape(text, html);
}

/// Returns `text`, such as a value of a table, as HTML for the content of an element; see
/// [`push_text`].
pub fn text(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + text.len() / 16);
    push_text(&mut html, text);
    html
}

/// Returns `text` as HTML for the value of an attribute, or for an element without child elements,
/// such as the title of a page. Control characters become spaces.
pub fn plain(text: &str) -> String {
    let is_seen = |c: char| c != '\r' && !neardup_textdiff::html::is_shown_by_name(c);
    let seen: String = (text.chars())
        .map(|c| if is_seen(c) { c } else { ' ' })
        .collect();
    self::text(&seen)
}

/// Returns the HTML page `page` in ASCII, so that its bytes mean the same in every encoding. Each
/// non-ASCII character is replaced by a character reference. In a report, non-ASCII characters
/// occur only in text, where browsers decode references.
pub fn ascii(page: &str) -> String {
    let mut ascii = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            c if c.is_ascii() => ascii.push(c),
            c => ascii.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(text("<b a='1'>&amp;"), "&lt;b a=&#39;1&#39;&gt;&amp;amp;");
    }

    #[test]
    fn a_title_has_no_elements() {
        assert_eq!(plain("a\u{202e}b\r\nc\u{1b}<"), "a b \nc &lt;");
    }

    #[test]
    fn ascii_refers_to_other_characters() {
        assert_eq!(ascii("<p>é \u{1f600}</p>"), "<p>&#233; &#128512;</p>");
    }
}
