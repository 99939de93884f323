//! The elements that are open, as far as the text of a page depends on them.
//!
//! A simplified form of the standard's [tree construction]: it has to tell where an element ends
//! whose content does not count, and what is SVG or MathML. Start tags that end a paragraph, a list
//! item, a table cell and so on do so; end tags look for their element within the standard's
//! scopes; misnested formatting elements are taken out from where they stand.
//!
//! [tree construction]: https://html.spec.whatwg.org/multipage/parsing.html#tree-construction

use super::elements::{Element, Name, breaks_out, element, foreign_element, holds_html};

/// Elements nested more deeply count as siblings. Browsers have such a limit too (Chromium: 512).
const MAX_DEPTH: usize = 256;
/// The same for elements whose content is not text, or SVG or MathML, and for those within them: what
/// is hidden stays so, however deep.
const MAX_HIDDEN_DEPTH: usize = 2 * MAX_DEPTH;

#[derive(Clone, Copy)]
struct Open {
    name: Name,
    element: Element,
    /// Whether its content is not part of the text.
    skipped: bool,
    /// Whether its content is SVG or MathML.
    foreign: bool,
    /// Elements around it that were opened beyond the deepest.
    beyond: usize,
}

/// The open elements.
#[derive(Default)]
pub(super) struct Tree {
    open: Vec<Open>,
    /// Elements in the innermost one that were opened beyond the deepest.
    beyond: usize,
    /// Open elements whose content is not part of the text.
    skipped: usize,
    /// Open elements in which line breaks count.
    lines: usize,
    /// Open paragraphs.
    paragraphs: usize,
}

const PARAGRAPH: Name = Name::of("p");

impl Tree {
    /// Whether text at this place is part of the page's text.
    pub fn is_shown(&self) -> bool {
        self.skipped == 0
    }

    /// Whether line breaks at this place are line breaks of the text.
    pub fn keeps_lines(&self) -> bool {
        self.lines > 0
    }

    /// Whether this place is in SVG or MathML.
    pub fn is_foreign(&self) -> bool {
        self.open.last().is_some_and(|open| open.foreign)
    }

    /// What the element of this name means at this place.
    pub fn meaning(&self, name: Name) -> Element {
        if self.is_foreign() {
            foreign_element(name)
        } else {
            element(name)
        }
    }

    /// Closes the elements that a start tag of this name ends.
    pub fn make_way(&mut self, name: Name) {
        if self.is_foreign() {
            if !breaks_out(name) {
                return;
            }
            self.leave_foreign();
        }
        let is = |names: &'static [&'static str]| {
            move |open: &Open| names.iter().any(|&name| open.name == Name::of(name))
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
            b"button" => self.close_in_scope(name, |open| open.element.scope),
            b"rb" | b"rp" | b"rt" | b"rtc" => self.close_if(is(&["rb", "rp", "rt", "rtc"])),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.close_if(is(&["h1", "h2", "h3", "h4", "h5", "h6"]));
            }
            _ => {}
        }
        if self.paragraphs > 0 && element(name).ends_paragraph {
            self.close_in_scope(PARAGRAPH, |open| {
                open.element.scope || open.name == Name::of("button")
            });
        }
    }

    /// Opens an element whose content is not part of the text if it is `skipped`.
    pub fn push(&mut self, name: Name, element: Element, skipped: bool) {
        // Parts of a table stand in one; elsewhere their tags open nothing.
        if is_table_part(name) && !self.is_foreign() && !self.open.iter().any(ends_table_scope) {
            return;
        }
        let foreign = match name.as_bytes() {
            b"svg" | b"math" => true,
            _ => self.is_foreign() && !holds_html(name),
        };
        let is_plain = !(skipped || foreign || self.skipped > 0 || self.is_foreign());
        let deepest = if is_plain {
            MAX_DEPTH
        } else {
            MAX_HIDDEN_DEPTH
        };
        if self.open.len() >= deepest {
            self.beyond += 1;
            return;
        }
        self.skipped += usize::from(skipped);
        self.lines += usize::from(element.lines);
        self.paragraphs += usize::from(name == PARAGRAPH);
        self.open.push(Open {
            name,
            element,
            skipped,
            foreign,
            beyond: std::mem::take(&mut self.beyond),
        });
    }

    /// Closes what an end tag of this name ends.
    pub fn close(&mut self, name: Name) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        if matches!(name.as_bytes(), b"br" | b"p") {
            self.leave_foreign();
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
        let meaning = element(name);
        if meaning.formatting {
            self.close_formatting(name);
        } else if meaning.special {
            match name.as_bytes() {
                b"table" => self.close_in_scope(name, ends_table_scope),
                _ if is_table_part(name) => self.close_in_scope(name, ends_table_scope),
                b"li" => self.close_in_scope(name, |open| {
                    open.element.scope || matches!(open.name.as_bytes(), b"ol" | b"ul")
                }),
                _ => self.close_in_scope(name, |open| open.element.scope),
            }
        } else {
            self.close_in_scope(name, |open| open.element.special);
        }
    }

    /// The innermost open element of a name, unless one that ends the search stands before it.
    fn find(&self, name: Name, ends: impl Fn(&Open) -> bool) -> Option<usize> {
        let (at, open) = self
            .open
            .iter()
            .enumerate()
            .rfind(|(_, open)| open.name == name || ends(open))?;
        (open.name == name).then_some(at)
    }

    fn close_in_scope(&mut self, name: Name, ends: impl Fn(&Open) -> bool) {
        if let Some(at) = self.find(name, ends) {
            self.truncate(at);
        }
    }

    /// Closes a formatting element; blocks within it stay open.
    fn close_formatting(&mut self, name: Name) {
        let Some(at) = self.find(name, |open| open.element.scope) else {
            return;
        };
        if self.open[at..].iter().any(|open| open.element.special) {
            self.remove(at);
        } else {
            self.truncate(at);
        }
    }

    /// Closes the item of a list that the next item ends.
    fn close_item(&mut self, is_item: impl Fn(&Open) -> bool) {
        let passes = |open: &Open| matches!(open.name.as_bytes(), b"address" | b"div" | b"p");
        let found = self
            .open
            .iter()
            .rposition(|open| is_item(open) || open.element.special && !passes(open));
        if let Some(at) = found
            && is_item(&self.open[at])
        {
            self.truncate(at);
        }
    }

    /// Closes the outermost of these parts of the innermost table.
    fn close_in_table(&mut self, is_part: impl Fn(&Open) -> bool) {
        let table = self.open.iter().rposition(ends_table_scope);
        let from = table.map_or(0, |at| at + 1);
        if let Some(at) = self.open[from..].iter().position(is_part) {
            self.truncate(from + at);
        }
    }

    /// Closes the innermost element if it is one of these.
    fn close_if(&mut self, is: impl Fn(&Open) -> bool) {
        if self.open.last().is_some_and(is) {
            self.pop();
        }
    }

    /// Closes SVG and MathML around this place.
    fn leave_foreign(&mut self) {
        while self.is_foreign() {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.truncate(self.open.len() - 1);
    }

    fn truncate(&mut self, len: usize) {
        while self.open.len() > len {
            self.beyond = self.remove(self.open.len() - 1).beyond;
        }
    }

    fn remove(&mut self, at: usize) -> Open {
        let open = self.open.remove(at);
        self.skipped -= usize::from(open.skipped);
        self.lines -= usize::from(open.element.lines);
        self.paragraphs -= usize::from(open.name == PARAGRAPH);
        open
    }
}

fn is_table_part(name: Name) -> bool {
    matches!(
        name.as_bytes(),
        b"caption" | b"colgroup" | b"tbody" | b"td" | b"tfoot" | b"th" | b"thead" | b"tr"
    )
}

fn ends_table_scope(open: &Open) -> bool {
    matches!(open.name.as_bytes(), b"table" | b"template")
}
