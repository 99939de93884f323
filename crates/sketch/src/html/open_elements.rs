//! Stack of the open elements of an HTML page, as far as the text of the page depends on it.
//!
//! This is a simplified form of the standard's [tree construction]. It must find the end of an
//! element whose content is dropped, and the start and end of SVG and MathML. Start tags close open
//! paragraphs, list items, table cells and so on. End tags close open elements within the
//! standard's scopes. The end tag of a formatting element may remove it from the middle of the
//! stack.
//!
//! [tree construction]: https://html.spec.whatwg.org/multipage/parsing.html#tree-construction

use super::elements::{
    ElementKind, Name, element, ends_foreign_content, foreign_element, is_integration_point,
};

/// Maximum number of elements on the stack. The stack ignores elements that are nested more deeply,
/// but their text stays in the page's text. Browsers also have a limit (Chromium: 512).
const MAX_DEPTH: usize = 256;
/// Depth limit for an element that hides its content, is inside such an element, or belongs to SVG
/// or MathML: if the stack has this many elements, it ignores the new element. For all other
/// elements, the limit is [`MAX_DEPTH`]. If the stack ignored an element that hides its content,
/// the page's text would contain this content. The higher limit avoids this inside deeply nested
/// ordinary elements.
const MAX_HIDDEN_DEPTH: usize = 2 * MAX_DEPTH;

/// Open element on the stack.
#[derive(Clone, Copy)]
struct OpenElement {
    name: Name,
    /// Properties of the element.
    element: ElementKind,
    /// True if the content of the element is dropped.
    skipped: bool,
    /// True if the content of the element is SVG or MathML.
    foreign: bool,
    /// Value of [`OpenElements::too_deep`] before this element was opened. Closing this element
    /// sets `OpenElements::too_deep` to this value again.
    too_deep: usize,
}

/// Stack of the open elements at the current position of a page.
#[derive(Default)]
pub(super) struct OpenElements {
    /// The open elements. The innermost element is the last one.
    open: Vec<OpenElement>,
    /// Number of open elements that are inside the last element of `open` but not on the stack,
    /// because the stack was full.
    too_deep: usize,
    /// Number of open elements that drop their content.
    skipped: usize,
    /// Number of open elements in which line breaks are kept.
    lines: usize,
    /// Number of open paragraphs.
    paragraphs: usize,
}

const PARAGRAPH: Name = Name::new("p");

impl OpenElements {
    /// Returns true if text at the current position is shown.
    pub fn is_shown(&self) -> bool {
        self.skipped == 0
    }

    /// Returns true if line breaks at the current position are kept.
    pub fn keeps_lines(&self) -> bool {
        self.lines > 0
    }

    /// Returns true if the current position is in SVG or MathML.
    pub fn is_foreign(&self) -> bool {
        self.open.last().is_some_and(|open| open.foreign)
    }

    /// Returns the properties of an element with this name at the current position.
    pub fn element(&self, name: Name) -> ElementKind {
        if self.is_foreign() {
            foreign_element(name)
        } else {
            element(name)
        }
    }

    /// Closes the open elements that a start tag with this name ends, such as a paragraph or a list
    /// item.
    pub fn close_implied(&mut self, name: Name) {
        if self.is_foreign() {
            if !ends_foreign_content(name) {
                return;
            }
            self.close_foreign();
        }
        let is = |names: &'static [&'static str]| {
            move |open: &OpenElement| names.iter().any(|&name| open.name == Name::new(name))
        };
        match name.as_bytes() {
            b"li" => self.close_item(is(&["li"])),
            b"dd" | b"dt" => self.close_item(is(&["dd", "dt"])),
            b"td" | b"th" => self.close_in_table(is(&["td", "th"])),
            b"tr" => self.close_in_table(is(&["tr"])),
            b"tbody" | b"thead" | b"tfoot" | b"caption" | b"colgroup" => {
                self.close_in_table(is(&[
                    "tbody", "thead", "tfoot", "caption", "colgroup", "tr",
                ]));
            }
            b"a" => self.close_formatting(name),
            b"button" => self.close_in_scope(name, |open| open.element.is_scope),
            b"rb" | b"rp" | b"rt" | b"rtc" => self.close_if(is(&["rb", "rp", "rt", "rtc"])),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.close_if(is(&["h1", "h2", "h3", "h4", "h5", "h6"]));
            }
            _ => {}
        }
        if self.paragraphs > 0 && element(name).ends_paragraph {
            self.close_in_scope(PARAGRAPH, |open| {
                open.element.is_scope || open.name == Name::new("button")
            });
        }
    }

    /// Puts the element named `name`, with the properties `element`, on the stack. If `skipped` is
    /// true, the content of the element is not part of the text. If the stack is full, only counts
    /// the element in `too_deep`. Does nothing for a part of a table, such as `td`, outside a
    /// table.
    pub fn push(&mut self, name: Name, element: ElementKind, skipped: bool) {
        // Outside a table, tags of table parts, such as `td`, open no element.
        if is_table_part(name) && !self.is_foreign() && !self.open.iter().any(ends_table_scope) {
            return;
        }
        let foreign = match name.as_bytes() {
            b"svg" | b"math" => true,
            _ => self.is_foreign() && !is_integration_point(name),
        };
        let is_plain = !(skipped || foreign || self.skipped > 0 || self.is_foreign());
        let max_depth = if is_plain {
            MAX_DEPTH
        } else {
            MAX_HIDDEN_DEPTH
        };
        if self.open.len() >= max_depth {
            self.too_deep += 1;
            return;
        }
        self.skipped += usize::from(skipped);
        self.lines += usize::from(element.lines);
        self.paragraphs += usize::from(name == PARAGRAPH);
        self.open.push(OpenElement {
            name,
            element,
            skipped,
            foreign,
            too_deep: std::mem::take(&mut self.too_deep),
        });
    }

    /// Processes the end tag named `name`. In most cases, closes the innermost open element with
    /// this name and all elements inside it. An end tag without a matching open element has no
    /// effect.
    pub fn close(&mut self, name: Name) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        if matches!(name.as_bytes(), b"br" | b"p") {
            self.close_foreign();
        }
        let html = self.open.iter().rposition(|open| !open.foreign);
        let foreign = html.map_or(0, |at| at + 1);
        if let Some(at) = self.open[foreign..]
            .iter()
            .rposition(|open| open.name == name)
        {
            self.truncate(foreign + at);
            return;
        }
        let ended = element(name);
        if ended.formatting {
            self.close_formatting(name);
        } else if ended.is_special {
            match name.as_bytes() {
                b"table" => self.close_in_scope(name, ends_table_scope),
                _ if is_table_part(name) => self.close_in_scope(name, ends_table_scope),
                b"li" => self.close_in_scope(name, |open| {
                    open.element.is_scope || matches!(open.name.as_bytes(), b"ol" | b"ul")
                }),
                _ => self.close_in_scope(name, |open| open.element.is_scope),
            }
        } else {
            self.close_in_scope(name, |open| open.element.is_special);
        }
    }

    /// Returns the index in `open` of the innermost element named `name`. Returns `None` if there
    /// is no such element, or if `ends` is true for an element inside that element.
    fn find(&self, name: Name, ends: impl Fn(&OpenElement) -> bool) -> Option<usize> {
        let (at, open) = self
            .open
            .iter()
            .enumerate()
            .rfind(|(_, open)| open.name == name || ends(open))?;
        (open.name == name).then_some(at)
    }

    /// Closes the innermost open element named `name`, and all elements inside it. Does nothing if
    /// `ends` is true for one of the elements inside it, because a tag within such an element
    /// cannot close elements outside it.
    fn close_in_scope(&mut self, name: Name, ends: impl Fn(&OpenElement) -> bool) {
        if let Some(at) = self.find(name, ends) {
            self.truncate(at);
        }
    }

    /// Closes the innermost formatting element with this name. Special elements inside it, such as
    /// blocks, stay open.
    fn close_formatting(&mut self, name: Name) {
        let Some(at) = self.find(name, |open| open.element.is_scope) else {
            return;
        };
        if self.open[at..].iter().any(|open| open.element.is_special) {
            self.remove(at);
        } else {
            self.truncate(at);
        }
    }

    /// Closes the open list item that the start tag of a new list item ends, and all elements
    /// inside it. `is_item` is true for list items of the same kind. Does nothing if the innermost
    /// such item contains an open block, such as a nested list, because the new item then belongs
    /// to this block. The blocks `address`, `div` and `p` do not count.
    fn close_item(&mut self, is_item: impl Fn(&OpenElement) -> bool) {
        let passes =
            |open: &OpenElement| matches!(open.name.as_bytes(), b"address" | b"div" | b"p");
        let found = self
            .open
            .iter()
            .rposition(|open| is_item(open) || open.element.is_special && !passes(open));
        if let Some(at) = found
            && is_item(&self.open[at])
        {
            self.truncate(at);
        }
    }

    /// Closes a part of the innermost open table, such as a row, and all elements inside the part.
    /// `is_part` is true for the part to close. If it is true for several open elements of the
    /// table, closes the outermost one.
    fn close_in_table(&mut self, is_part: impl Fn(&OpenElement) -> bool) {
        let table = self.open.iter().rposition(ends_table_scope);
        let from = table.map_or(0, |at| at + 1);
        if let Some(at) = self.open[from..].iter().position(is_part) {
            self.truncate(from + at);
        }
    }

    /// Closes the innermost open element if `is` is true for it.
    fn close_if(&mut self, is: impl Fn(&OpenElement) -> bool) {
        if self.open.last().is_some_and(is) {
            self.pop();
        }
    }

    /// Closes the SVG and MathML elements around the current position.
    fn close_foreign(&mut self) {
        while self.is_foreign() {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.truncate(self.open.len() - 1);
    }

    /// Closes the innermost elements until the stack has `len` elements.
    fn truncate(&mut self, len: usize) {
        while self.open.len() > len {
            self.too_deep = self.remove(self.open.len() - 1).too_deep;
        }
    }

    /// Removes the element at index `at` from the stack. Elements within it stay open.
    fn remove(&mut self, at: usize) -> OpenElement {
        let open = self.open.remove(at);
        self.skipped -= usize::from(open.skipped);
        self.lines -= usize::from(open.element.lines);
        self.paragraphs -= usize::from(open.name == PARAGRAPH);
        open
    }
}

/// Returns true for elements that occur only within a table.
fn is_table_part(name: Name) -> bool {
    matches!(
        name.as_bytes(),
        b"caption" | b"colgroup" | b"tbody" | b"td" | b"tfoot" | b"th" | b"thead" | b"tr"
    )
}

/// Returns true for `table` and `template`. A tag of a table part, such as `td`, can close only
/// elements inside the innermost open element of these two kinds.
fn ends_table_scope(open: &OpenElement) -> bool {
    matches!(open.name.as_bytes(), b"table" | b"template")
}
