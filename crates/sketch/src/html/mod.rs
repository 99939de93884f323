//! Extracts the visible text of an HTML page.
//!
//! The tokenizer of the [HTML standard] (`html5gum`, with all its states and character references)
//! splits the page into tags and characters. [`open_elements`] tracks the stack of open elements as
//! far as the text depends on it. No tree is built, so memory does not grow with the nesting depth.
//! Memory and time are linear in the length of the page.
//!
//! The result is the text that a browser with scripts enabled would show without style sheets:
//!
//! - The following elements are dropped with their content: `script`, `style`, `title`,
//!   `template`, `noscript`, `iframe`, `noembed`, `noframes`, `audio`, `video`, `canvas`,
//!   `textarea`, `select`, `datalist`, a `dialog` that is not `open`, and elements with the
//!   attribute `hidden`, except `hidden=until-found`. So are pronunciations (`rt`, `rtc`, `rp`)
//!   and the elements of SVG and MathML that are not drawn (`title`, `desc`, `defs`, `metadata`,
//!   `annotation`, `annotation-xml`).
//! - Attributes are not text. This includes `alt`, `title` and `placeholder`.
//! - Blocks, `br` and `hr` separate lines. A tab separates table cells, and a space separates
//!   boxes within a line (images, buttons and so on). Other elements do not separate: `f<b>oo</b>`
//!   is `foo`.
//! - A run of white space becomes one space or, between lines, one line break. A line break in
//!   `pre` stays a line break. A no-break space is kept.
//!
//! [HTML standard]: https://html.spec.whatwg.org/multipage/parsing.html#tokenization

mod elements;
mod open_elements;
mod page_reader;
mod text_builder;

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer};

use elements::{Name, raw_state};
use open_elements::OpenElements;
use page_reader::PageReader;
use text_builder::TextBuilder;

/// Returns the visible text of an HTML page.
///
/// Any text is a page: malformed markup is read as in browsers. The result may be longer than the
/// page, by at most a fifth, because a few character references are shorter than the characters
/// that they represent.
///
/// Calls the cancellation check `check` every few 100 kB. The caller can stop by unwinding from
/// `check`.
///
/// ```
/// use neardup_sketch::html::html_text;
///
/// let page = "<title>Menu</title><p>Fish &amp; <b>ch</b>ips<p hidden>Secret</p>";
/// assert_eq!(html_text(page, &mut || ()), "Fish & chips");
/// ```
#[must_use]
pub fn html_text(page: &str, check: &mut dyn FnMut()) -> String {
    let mut emitter = TextEmitter {
        // At least half of an ordinary page is markup.
        text: TextBuilder::with_capacity(page.len() / 2),
        ..TextEmitter::default()
    };
    let mut tokenizer = Tokenizer::new_with_emitter(PageReader::new(page, check), &mut emitter);
    let Ok(()) = tokenizer.try_for_each(|end| match end {
        Ok(never) => match never {},
        Err(never) => Err::<(), Infallible>(never),
    });
    drop(tokenizer);
    emitter.text.finish()
}

/// Kind of a tag: start tag or end tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TagKind {
    #[default]
    Start,
    End,
}

/// Attributes of a tag that decide whether its element is shown.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    /// True if the tag has the attribute `hidden`, except `hidden=until-found`.
    hidden: bool,
    /// True if the tag has the attribute `open`, which shows a `dialog`.
    open: bool,
}

/// Receiver of the tags and characters that the HTML tokenizer finds in a page. Builds the visible
/// text of the page from them.
#[derive(Default)]
struct TextEmitter {
    /// Visible text so far.
    text: TextBuilder,
    /// Stack of open elements.
    open: OpenElements,
    /// Kind of the tag that is being read: start tag or end tag.
    kind: TagKind,
    /// Name of the tag that is being read.
    name: Name,
    /// True if the tag that is being read ends with `/>`.
    self_closing: bool,
    /// Attributes of the tag that is being read.
    attributes: Attributes,
    /// Name of the attribute that is being read.
    attribute: Name,
    /// Value of the attribute that is being read.
    value: Name,
    /// Name of the open element in whose content tags are not markup, such as `script`. `None`
    /// outside of such an element.
    raw: Option<Name>,
}

impl TextEmitter {
    fn begin_tag(&mut self, kind: TagKind) {
        self.kind = kind;
        self.name = Name::default();
        self.self_closing = false;
        self.attributes = Attributes::default();
        self.attribute = Name::default();
    }

    /// Ends the attribute that is being read, if there is one. If it is `hidden` or `open`, records
    /// it in `attributes`.
    fn end_attribute(&mut self) {
        match self.attribute.as_bytes() {
            b"hidden" => {
                // With `until-found`, a browser shows the element when the user searches for its
                // text.
                let found = (self.value.as_bytes()).eq_ignore_ascii_case(b"until-found");
                self.attributes.hidden |= !found;
            }
            b"open" => self.attributes.open = true,
            _ => {}
        }
        self.attribute = Name::default();
        self.value = Name::default();
    }

    /// Processes the start tag that was just read. Returns the tokenizer state for the content of
    /// the element, or `None` if the content is ordinary markup.
    fn start_tag(&mut self) -> Option<State> {
        let name = self.name;
        self.open.close_implied(name);
        let element = self.open.element(name);
        if self.open.is_shown() {
            self.text.separate(element.separator);
        }
        if element.void || matches!(name.as_bytes(), b"html" | b"head" | b"body") {
            return None;
        }
        if self.open.is_foreign() {
            if !self.self_closing {
                self.open.push(name, element, element.skipped);
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
            self.open.push(name, element, skipped);
        }
        None
    }

    /// Processes the end tag that was just read.
    fn end_tag(&mut self) {
        let name = self.name;
        let separator = self.open.element(name).separator;
        if self.raw == Some(name) {
            self.raw = None;
        } else if !matches!(name.as_bytes(), b"html" | b"head" | b"body") {
            self.open.close(name);
        }
        if self.open.is_shown() {
            self.text.separate(separator);
        }
    }
}

impl Emitter for &mut TextEmitter {
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

    fn emit_string(&mut self, characters: &[u8]) {
        let raw = self.raw.map(elements::element);
        if self.open.is_shown() && raw.is_none_or(|element| !element.skipped) {
            let lines = self.open.keeps_lines() || raw.is_some_and(|element| element.lines);
            self.text.push(characters, lines);
        }
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(TagKind::Start);
    }
    fn init_end_tag(&mut self) {
        self.begin_tag(TagKind::End);
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
            TagKind::Start => self.start_tag(),
            TagKind::End => {
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
        self.kind == TagKind::End && self.raw == Some(self.name)
    }
    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.open.is_foreign()
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
