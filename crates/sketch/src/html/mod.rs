//! The text of an HTML page.
//!
//! The page is cut into tags and characters by the tokenizer of the [HTML standard] (`html5gum`:
//! every state of it, all character references), and [`tree`] follows which elements are open as far
//! as the text depends on it. Nothing is built: memory is that of the text, whatever is nested in
//! whatever, and time is linear in the length of the page.
//!
//! What counts as text is what a browser that runs scripts shows, without looking at style sheets:
//!
//! - dropped with all that they hold: `script`, `style`, `title`, `template`, `noscript`, `iframe`,
//!   `noembed`, `noframes`, `audio`, `video`, `canvas`, `textarea`, `select`, `datalist`, a `dialog`
//!   that is not `open`, and elements with the attribute `hidden`, except `hidden=until-found`;
//!   pronunciation (`rt`, `rtc`, `rp`); of SVG and MathML what is not drawn (`title`, `desc`, `defs`,
//!   `metadata`, `annotation`, `annotation-xml`);
//! - no attribute is text, `alt`, `title` and `placeholder` neither;
//! - blocks, `br` and `hr` part the text into lines, table cells by a tab, and boxes within a line
//!   (images, buttons and so on) by a space; other elements part nothing: `f<b>oo</b>` is `foo`;
//! - white space is one space or, where lines part, one line break; so is a line break in `pre`. A
//!   no-break space stays what it is.
//!
//! [HTML standard]: https://html.spec.whatwg.org/multipage/parsing.html#tokenization

mod elements;
mod source;
mod text;
mod tree;

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer};

use elements::{Name, raw_state};
use source::Source;
use text::Text;
use tree::Tree;

/// The text of an HTML page: what a reader sees of it.
///
/// `check` is called every few 100 kB, so that the caller can stop by unwinding from it. Any text is
/// a page: what is malformed is understood as browsers understand it. The result is at most a fifth
/// longer than the page (a few character references are shorter than their characters).
#[must_use]
pub fn html_text(page: &str, check: &mut dyn FnMut()) -> String {
    let mut reader = PageReader {
        // Half of an ordinary page is markup, and more.
        text: Text::with_capacity(page.len() / 2),
        ..PageReader::default()
    };
    let mut tokenizer = Tokenizer::new_with_emitter(Source::new(page, check), &mut reader);
    let Ok(()) = tokenizer.try_for_each(|end| match end {
        Ok(never) => match never {},
        Err(never) => Err::<(), Infallible>(never),
    });
    drop(tokenizer);
    reader.text.finish()
}

/// The kinds of tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Start,
    End,
}

/// Attributes that count.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    hidden: bool,
    open: bool,
}

/// Takes what the tokenizer finds.
#[derive(Default)]
struct PageReader {
    text: Text,
    tree: Tree,
    /// The tag that is being read.
    kind: Kind,
    name: Name,
    self_closing: bool,
    attributes: Attributes,
    /// The attribute that is being read.
    attribute: Name,
    value: Name,
    /// The element that the tokenizer reads without markup, if it does.
    raw: Option<Name>,
}

impl PageReader {
    fn begin_tag(&mut self, kind: Kind) {
        self.kind = kind;
        self.name = Name::default();
        self.self_closing = false;
        self.attributes = Attributes::default();
        self.attribute = Name::default();
    }

    /// Takes the attribute that was read, if any. The first of a name counts.
    fn end_attribute(&mut self) {
        match self.attribute.as_bytes() {
            b"hidden" => {
                // Shown as soon as someone looks for it.
                let found = (self.value.as_bytes()).eq_ignore_ascii_case(b"until-found");
                self.attributes.hidden |= !found;
            }
            b"open" => self.attributes.open = true,
            _ => {}
        }
        self.attribute = Name::default();
        self.value = Name::default();
    }

    fn start_tag(&mut self) -> Option<State> {
        let name = self.name;
        self.tree.make_way(name);
        let element = self.tree.meaning(name);
        if self.tree.is_shown() {
            self.text.part(element.part);
        }
        if element.void || matches!(name.as_bytes(), b"html" | b"head" | b"body") {
            return None;
        }
        if self.tree.is_foreign() {
            if !self.self_closing {
                self.tree.push(name, element, element.skipped);
            }
            return None;
        }
        if let Some(state) = raw_state(name) {
            self.raw = Some(name);
            return Some(state);
        }
        let closed = name.as_bytes() == b"dialog" && !self.attributes.open;
        let skipped = element.skipped || self.attributes.hidden || closed;
        if !(self.self_closing && matches!(name.as_bytes(), b"svg" | b"math")) {
            self.tree.push(name, element, skipped);
        }
        None
    }

    fn end_tag(&mut self) {
        let name = self.name;
        let part = self.tree.meaning(name).part;
        if self.raw == Some(name) {
            self.raw = None;
        } else if !matches!(name.as_bytes(), b"html" | b"head" | b"body") {
            self.tree.close(name);
        }
        if self.tree.is_shown() {
            self.text.part(part);
        }
    }
}

impl Emitter for &mut PageReader {
    type Token = Infallible;

    fn set_last_start_tag(&mut self, _: Option<&[u8]>) {}
    fn emit_eof(&mut self) {}
    fn emit_error(&mut self, _: Error) {}
    fn should_emit_errors(&mut self) -> bool {
        false
    }
    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    fn emit_string(&mut self, stretch: &[u8]) {
        let raw = self.raw.map(elements::element);
        if self.tree.is_shown() && raw.is_none_or(|element| !element.skipped) {
            let lines = self.tree.keeps_lines() || raw.is_some_and(|element| element.lines);
            self.text.push(stretch, lines);
        }
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(Kind::Start);
    }
    fn init_end_tag(&mut self) {
        self.begin_tag(Kind::End);
    }
    fn set_self_closing(&mut self) {
        self.self_closing = true;
    }
    fn push_tag_name(&mut self, part: &[u8]) {
        self.name.push(part);
    }
    fn emit_current_tag(&mut self) -> Option<State> {
        self.end_attribute();
        match self.kind {
            Kind::Start => self.start_tag(),
            Kind::End => {
                self.end_tag();
                None
            }
        }
    }
    fn init_attribute(&mut self) {
        self.end_attribute();
    }
    fn push_attribute_name(&mut self, part: &[u8]) {
        self.attribute.push(part);
    }
    fn push_attribute_value(&mut self, part: &[u8]) {
        self.value.push(part);
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.kind == Kind::End && self.raw == Some(self.name)
    }
    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.tree.is_foreign()
    }

    fn init_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn emit_current_comment(&mut self) {}
    fn init_doctype(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn emit_current_doctype(&mut self) {}
}
