//! Table of the properties of HTML elements that affect the text of a page.
//!
//! The table follows the [HTML standard]: elements with `display: block` or `none` in its
//! rendering section, elements without an end tag, elements that are "special" when end tags are
//! matched, and elements in which the tokenizer reads no markup.
//!
//! [HTML standard]: https://html.spec.whatwg.org/multipage/rendering.html

use html5gum::State;

/// Name of a tag or an attribute in lower case, or value of an attribute, cut to 16 bytes. Names
/// that differ only after 16 bytes are equal. No name in this table is longer than 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    bytes: [u8; 16],
    len: u8,
}

impl Name {
    /// Creates a name from `name`. Panics if `name` has more than 16 bytes.
    pub const fn new(name: &str) -> Self {
        let name = name.as_bytes();
        let mut bytes = [0; 16];
        let mut len = 0;
        while len < name.len() {
            bytes[len] = name[len];
            len += 1;
        }
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// Appends a part of the name. Drops the bytes beyond the first 16.
    pub fn push(&mut self, part: &[u8]) {
        let at = usize::from(self.len);
        let fits = part.len().min(self.bytes.len() - at);
        self.bytes[at..at + fits].copy_from_slice(&part[..fits]);
        self.len += fits as u8;
    }

    /// Returns the bytes of the name, at most 16.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Separator that a tag puts between the text before the tag and the text after it. The variants
/// are in ascending order of strength. Of several separators in a row, only the strongest is
/// written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Separator {
    /// No separator, for inline elements and unknown elements.
    #[default]
    None,
    /// A space, for images, buttons and other boxes within a line.
    Space,
    /// A tab, for table cells.
    Cell,
    /// A line break, for blocks.
    Line,
}

/// Properties of a kind of element, such as `p`, that affect the text of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ElementKind {
    /// Separator that the start tag and the end tag put into the text.
    pub separator: Separator,
    /// True if the element has no content and no end tag.
    pub void: bool,
    /// True if the content of the element is not part of the text.
    pub skipped: bool,
    /// True if line breaks in the content of the element are kept in the text, as in `pre`. In
    /// other elements they are white space.
    pub lines: bool,
    /// True if an end tag inside the element cannot close an element outside it, as in a table cell
    /// ("scope" in the standard).
    pub is_scope: bool,
    /// True for blocks and similar elements ("special" in the standard). While such an element is
    /// open inside an ordinary inline element, such as `span`, the end tag of the inline element
    /// has no effect.
    pub is_special: bool,
    /// True for inline elements such as `b` ("formatting" in the standard). Their end tag closes
    /// them even while a special element is open inside them. The special element stays open.
    pub formatting: bool,
    /// True if the start tag of the element ends an open paragraph.
    pub ends_paragraph: bool,
}

/// Element within a line, which does not separate words.
const INLINE: ElementKind = ElementKind {
    separator: Separator::None,
    void: false,
    skipped: false,
    lines: false,
    is_scope: false,
    is_special: false,
    formatting: false,
    ends_paragraph: false,
};
const BLOCK: ElementKind = ElementKind {
    separator: Separator::Line,
    is_special: true,
    ends_paragraph: true,
    ..INLINE
};
/// Block that does not end an open paragraph, such as a part of a table.
const TABLE_PART: ElementKind = ElementKind {
    ends_paragraph: false,
    ..BLOCK
};
/// Box within a line, such as an image, which separates words by a space.
const BOX: ElementKind = ElementKind {
    separator: Separator::Space,
    ..INLINE
};
const SKIPPED: ElementKind = ElementKind {
    skipped: true,
    ..INLINE
};
const FORMATTING: ElementKind = ElementKind {
    formatting: true,
    ..INLINE
};

/// Returns the properties of the HTML element with this name, outside of SVG and MathML.
pub(super) fn element(name: Name) -> ElementKind {
    match name.as_bytes() {
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"center" | b"dd"
        | b"details" | b"dialog" | b"dir" | b"div" | b"dl" | b"dt" | b"fieldset"
        | b"figcaption" | b"figure" | b"footer" | b"form" | b"h1" | b"h2" | b"h3" | b"h4"
        | b"h5" | b"h6" | b"header" | b"hgroup" | b"li" | b"main" | b"menu" | b"nav" | b"ol"
        | b"p" | b"search" | b"section" | b"summary" | b"ul" => BLOCK,
        b"table" => ElementKind {
            is_scope: true,
            ..BLOCK
        },
        b"pre" | b"listing" | b"xmp" | b"plaintext" => ElementKind {
            lines: true,
            ..BLOCK
        },
        b"caption" => ElementKind {
            is_scope: true,
            ..TABLE_PART
        },
        b"tr" | b"tbody" | b"thead" | b"tfoot" | b"colgroup" | b"legend" | b"optgroup"
        | b"option" | b"html" | b"frameset" => TABLE_PART,
        b"td" | b"th" => ElementKind {
            separator: Separator::Cell,
            is_scope: true,
            ..TABLE_PART
        },
        b"br" => ElementKind {
            void: true,
            ..TABLE_PART
        },
        b"hr" => ElementKind {
            void: true,
            ..BLOCK
        },
        b"area" | b"base" | b"basefont" | b"bgsound" | b"col" | b"frame" | b"keygen" | b"link"
        | b"meta" | b"param" | b"source" | b"track" | b"wbr" => ElementKind {
            void: true,
            ..INLINE
        },
        b"embed" | b"img" | b"input" => ElementKind { void: true, ..BOX },
        b"button" | b"meter" | b"progress" | b"svg" => BOX,
        b"marquee" | b"object" | b"applet" => ElementKind {
            is_scope: true,
            is_special: true,
            ..BOX
        },
        // The standard makes only some of these elements special. Here all of them are special, so
        // that an unclosed paragraph inside such an element does not hide the text after the
        // element.
        b"audio" | b"canvas" | b"iframe" | b"select" | b"textarea" | b"video" => ElementKind {
            skipped: true,
            is_special: true,
            ..BOX
        },
        b"datalist" | b"noembed" | b"noframes" | b"noscript" | b"rp" | b"rt" | b"rtc"
        | b"script" | b"style" | b"title" => SKIPPED,
        b"template" => ElementKind {
            is_scope: true,
            is_special: true,
            ..SKIPPED
        },
        b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small"
        | b"strike" | b"strong" | b"tt" | b"u" => FORMATTING,
        _ => INLINE,
    }
}

/// Returns the tokenizer state for the content of the element with this name, if tags in this
/// content are not markup, as in `script`. Returns `None` for all other elements.
///
/// The function follows browsers that run scripts. In these, tags in `noscript` are not markup
/// either.
pub(super) fn raw_state(name: Name) -> Option<State> {
    match name.as_bytes() {
        b"textarea" | b"title" => Some(State::RcData),
        b"script" => Some(State::ScriptData),
        b"iframe" | b"noembed" | b"noframes" | b"noscript" | b"style" | b"xmp" => {
            Some(State::RawText)
        }
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

/// Returns true if a start tag with this name ends the SVG or MathML element in which it occurs.
pub(super) fn ends_foreign_content(name: Name) -> bool {
    matches!(
        name.as_bytes(),
        b"b" | b"big"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"center"
            | b"code"
            | b"dd"
            | b"div"
            | b"dl"
            | b"dt"
            | b"em"
            | b"embed"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"hr"
            | b"i"
            | b"img"
            | b"li"
            | b"listing"
            | b"menu"
            | b"meta"
            | b"nobr"
            | b"ol"
            | b"p"
            | b"pre"
            | b"ruby"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"strike"
            | b"sub"
            | b"sup"
            | b"table"
            | b"tt"
            | b"u"
            | b"ul"
            | b"var"
    )
}

/// Returns true for the names of elements of SVG and MathML whose content is HTML ("integration
/// points").
pub(super) fn is_integration_point(name: Name) -> bool {
    matches!(
        name.as_bytes(),
        b"foreignobject"
            | b"desc"
            | b"title"
            | b"annotation-xml"
            | b"mi"
            | b"mn"
            | b"mo"
            | b"ms"
            | b"mtext"
    )
}

/// Returns the properties of the element with this name in SVG or MathML.
pub(super) fn foreign_element(name: Name) -> ElementKind {
    match name.as_bytes() {
        b"text" => BOX,
        b"foreignobject" => ElementKind {
            is_scope: true,
            is_special: true,
            ..BOX
        },
        b"annotation" | b"annotation-xml" | b"defs" | b"desc" | b"metadata" | b"script"
        | b"style" | b"title" => SKIPPED,
        _ => INLINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_parts_and_are_cut() {
        let mut name = Name::default();
        name.push(b"annot");
        name.push(b"ation-xml");
        assert_eq!(name, Name::new("annotation-xml"));
        assert!(foreign_element(name).skipped);
        name.push(b"abcdef");
        name.push(b"gh");
        assert_eq!(name.as_bytes(), b"annotation-xmlab");
        assert_eq!(element(name), INLINE);
    }

    #[test]
    fn raw_text_is_skipped_unless_it_is_shown() {
        for name in [
            "textarea", "title", "script", "iframe", "noembed", "noframes", "noscript", "style",
        ] {
            let name = Name::new(name);
            assert!(raw_state(name).is_some() && element(name).skipped);
        }
        for name in ["xmp", "plaintext"] {
            let name = Name::new(name);
            assert!(raw_state(name).is_some() && !element(name).skipped);
        }
    }
}
