//! Text in the server's encoding and in UTF-8, with a mapping between positions in the two forms.
//!
//! Functions process text in UTF-8 and compute positions in bytes or code points. Users get
//! positions in characters of the database's encoding, as `substr` and `length` count them. In most
//! encodings a code point is a character. In SQL_ASCII each byte is a character, and in
//! EUC_JIS_2004 some characters become two code points.
//!
//! A part of an argument is returned as the argument's own bytes, so it equals the result of
//! `substr` even if conversion to UTF-8 and back would change a character.
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use neardup_sketch::memory::{Grow, GrowVec, copied};
use pgrx::pg_sys::{self, Datum, pg_enc};

use super::fmgr::Call;
use super::memory::check_interrupts;
use super::{server, text, varlena};

/// Number of units ([`Units`]) of the text from one entry of [`ServerText::marks`] to the next. A
/// larger number saves memory, but makes the search for a position slower.
const UNITS_PER_MARK: usize = 1 << 7;
/// Number of marks set between two checks for interrupts.
const MARKS_PER_CHECK: usize = 1 << 11;

/// Text in UTF-8 and in the server's encoding. It converts positions in one form to positions in
/// the other form.
pub struct ServerText<'a> {
    /// The text in UTF-8.
    utf8: Cow<'a, str>,
    /// The text in the server's encoding; `None` if its bytes are the same as in UTF-8.
    converted: Option<Cow<'a, [u8]>>,
    /// Unit in which both forms are traversed together.
    units: Units,
    /// Positions of the first unit and of each [`UNITS_PER_MARK`]th unit after it. The search for a
    /// position begins at the last mark before it, instead of at the start of the text.
    marks: Vec<Position>,
}

/// Unit in which the UTF-8 form and the server's form of a text are traversed side by side. Only
/// positions between two units exist in both forms.
enum Units {
    /// One code point, which is one character of the server.
    CodePoints,
    /// One code point. Each of its bytes is one character of the server, because the database's
    /// encoding is SQL_ASCII.
    Bytes,
    /// One character of the server, which becomes one or more code points in UTF-8. The map has the
    /// number of code points of each multibyte character of the text; its key is the character's
    /// bytes.
    Characters(HashMap<Vec<u8>, usize>),
}

/// Position at which one of the [`Units`] of a text starts, counted in four ways, each from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    /// Bytes in UTF-8.
    utf8_bytes: usize,
    /// Unicode code points.
    code_points: usize,
    /// Bytes in the server's encoding.
    bytes: usize,
    /// Characters of the server, as `substr` counts them.
    characters: usize,
}

impl Position {
    /// Position after `count` ASCII characters that follow this position.
    fn after_ascii(self, count: usize) -> Self {
        Self {
            utf8_bytes: self.utf8_bytes + count,
            code_points: self.code_points + count,
            bytes: self.bytes + count,
            characters: self.characters + count,
        }
    }
}

/// Part of a [`ServerText`] that consists of whole characters of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPart {
    /// Byte range in UTF-8.
    utf8_bytes: Range<usize>,
    /// Range in characters of the server, counted from 0.
    characters: Range<usize>,
    /// Byte range in the server's encoding.
    bytes: Range<usize>,
}

impl ServerPart {
    /// Position of the part's first character, counted from 1, as `substr` takes it.
    pub fn start(&self) -> i32 {
        // A `text` of the server has less than 2^31 characters.
        self.characters.start as i32 + 1
    }

    /// Position after the part's last character, counted from 1.
    pub fn end(&self) -> i32 {
        self.characters.end as i32 + 1
    }

    /// Number of characters in the part, as `length` counts them.
    pub fn length(&self) -> i32 {
        self.end() - self.start()
    }
}

impl Call {
    /// Returns argument `n`, counted from 0, a `text`, as a [`ServerText`], which converts
    /// positions between UTF-8 and the server's encoding.
    pub fn server_text(&self, n: usize) -> ServerText<'_> {
        ServerText::from_bytes(self.bytes(n))
    }
}

impl<'a> ServerText<'a> {
    /// Makes a text from its bytes in the server's encoding. Raises error 22021 if the database's
    /// encoding is SQL_ASCII and the bytes are not UTF-8.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        let utf8 = text::bytes_utf8(bytes);
        let converted = match utf8 {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(Cow::Borrowed(bytes)),
        };
        Self::new(utf8, converted)
    }

    /// Makes a text from its UTF-8 form, for a text that is not an SQL value. Converts it to the
    /// server's encoding as [`text::datum`] does.
    pub fn from_utf8(utf8: Cow<'a, str>) -> Self {
        let converted = match text::server_bytes(&utf8) {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some(Cow::Owned(bytes)),
        };
        Self::new(utf8, converted)
    }

    fn new(utf8: Cow<'a, str>, converted: Option<Cow<'a, [u8]>>) -> Self {
        let units = match &converted {
            None if server::GetDatabaseEncoding() as pg_enc::Type == pg_enc::PG_SQL_ASCII => {
                Units::Bytes
            }
            None => Units::CodePoints,
            // Each character has at least one code point, so equal counts mean exactly one.
            Some(bytes) if character_count(bytes) == utf8.chars().count() => Units::CodePoints,
            Some(bytes) => Units::Characters(code_point_counts(bytes)),
        };
        let mut text = Self {
            utf8,
            converted,
            units,
            marks: Vec::new(),
        };
        text.set_marks();
        text
    }

    /// Fills [`ServerText::marks`] in one pass over the text.
    fn set_marks(&mut self) {
        let mut position = Position::default();
        loop {
            self.marks.grow_push(position);
            if self.marks.len().is_multiple_of(MARKS_PER_CHECK) {
                check_interrupts();
            }
            let mut units = UNITS_PER_MARK;
            while units > 0 {
                let ascii = self.ascii_units(position, units);
                position = position.after_ascii(ascii);
                units -= ascii;
                if units > 0 {
                    let Some(next) = self.next(position) else {
                        return;
                    };
                    position = next;
                    units -= 1;
                }
            }
        }
    }

    /// Number of consecutive ASCII characters after a position, at most `limit`. Each of these
    /// characters is one unit, and has one byte both in UTF-8 and in the server's encoding, because
    /// all encodings of the server contain ASCII.
    fn ascii_units(&self, from: Position, limit: usize) -> usize {
        let rest = &self.utf8.as_bytes()[from.utf8_bytes..];
        let rest = &rest[..limit.min(rest.len())];
        // Checks the whole slice first, which is faster for ASCII texts.
        if rest.is_ascii() {
            return rest.len();
        }
        rest.iter().take_while(|byte| byte.is_ascii()).count()
    }

    /// Copies borrowed parts of the text to memory that outlives the SQL function's call.
    pub fn into_owned(self) -> ServerText<'static> {
        ServerText {
            utf8: Cow::Owned(match self.utf8 {
                Cow::Borrowed(text) => copied(text),
                Cow::Owned(text) => text,
            }),
            converted: self.converted.map(|bytes| {
                Cow::Owned(match bytes {
                    Cow::Borrowed(bytes) => copied_bytes(bytes),
                    Cow::Owned(bytes) => bytes,
                })
            }),
            units: self.units,
            marks: self.marks,
        }
    }

    /// The text in UTF-8.
    pub fn utf8(&self) -> &str {
        &self.utf8
    }

    /// Smallest part of whole characters that contains this byte range of the UTF-8 form.
    pub fn part_of_bytes(&self, utf8_bytes: Range<usize>) -> ServerPart {
        self.part(utf8_bytes, |position| position.utf8_bytes)
    }

    /// Smallest part of whole characters that contains this range of code points.
    pub fn part_of_code_points(&self, code_points: Range<usize>) -> ServerPart {
        self.part(code_points, |position| position.code_points)
    }

    /// Part of the text between two byte positions in the UTF-8 form. If a position is inside a
    /// character of the server, the start of this character is used instead. So adjacent parts
    /// share no character.
    pub fn part_between(&self, utf8_bytes: Range<usize>) -> ServerPart {
        let at = |at| self.around(at, |position| position.utf8_bytes).0;
        ServerPart::new(at(utf8_bytes.start), at(utf8_bytes.end))
    }

    /// UTF-8 form of a part of this text.
    pub fn utf8_part(&self, part: &ServerPart) -> &str {
        &self.utf8[part.utf8_bytes.clone()]
    }

    /// Makes an SQL `text` from a part of this text.
    pub fn datum(&self, part: &ServerPart) -> Datum {
        varlena::build(&[&self.bytes()[part.bytes.clone()]])
    }

    /// Makes an SQL `text` that joins several parts of this text, with the ASCII text `separator`
    /// between them. Each of `parts` is a byte range of the UTF-8 form, treated as in
    /// [`ServerText::part_between`].
    pub fn joined(&self, parts: &[Range<usize>], separator: &str) -> Datum {
        let separator = separator.as_bytes();
        let mut slices: Vec<&[u8]> = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                slices.grow_push(separator);
            }
            let part = self.part_between(part.clone());
            slices.grow_push(&self.bytes()[part.bytes]);
        }
        varlena::build(&slices)
    }

    /// The text in the server's encoding.
    fn bytes(&self) -> &[u8] {
        match &self.converted {
            Some(bytes) => bytes,
            None => self.utf8.as_bytes(),
        }
    }

    /// Smallest part of whole units that contains `range`. `of` returns the field of a [`Position`]
    /// that is counted like the bounds of `range`, such as `code_points`.
    fn part(&self, range: Range<usize>, of: fn(&Position) -> usize) -> ServerPart {
        let (start, _) = self.around(range.start, of);
        // The end of a short part is nearer to its start than to a mark.
        let (_, end) = match range.len() < UNITS_PER_MARK && range.end >= of(&start) {
            true => self.around_from(start, range.end, of),
            false => self.around(range.end, of),
        };
        ServerPart::new(start, end)
    }

    /// The last boundary between units at or before the position `at`, and the first one at or
    /// after it. `of` returns the field of a [`Position`] that is counted like `at`, such as
    /// `code_points`.
    fn around(&self, at: usize, of: fn(&Position) -> usize) -> (Position, Position) {
        let mark = self.marks.partition_point(|mark| of(mark) <= at) - 1;
        self.around_from(self.marks[mark], at, of)
    }

    /// Does the same as [`Self::around`], but starts from a boundary that is known to be at or
    /// before `at`.
    fn around_from(
        &self,
        mut position: Position,
        at: usize,
        of: fn(&Position) -> usize,
    ) -> (Position, Position) {
        loop {
            // An ASCII character adds one to each kind of position.
            position = position.after_ascii(self.ascii_units(position, at - of(&position)));
            if of(&position) == at {
                return (position, position);
            }
            match self.next(position) {
                Some(next) if of(&next) > at => return (position, next),
                Some(next) => position = next,
                None => return (position, position),
            }
        }
    }

    /// Position after the unit at `from`; `None` at the end of the text.
    fn next(&self, from: Position) -> Option<Position> {
        let mut chars = self.utf8[from.utf8_bytes..].chars();
        let first = chars.next()?.len_utf8();
        let (utf8_bytes, code_points, bytes, characters) = match &self.units {
            Units::Bytes => (first, 1, first, first),
            Units::CodePoints if self.converted.is_none() => (first, 1, first, 1),
            Units::CodePoints => (first, 1, first_length(&self.bytes()[from.bytes..]), 1),
            Units::Characters(counts) => {
                let rest = &self.bytes()[from.bytes..];
                let character = &rest[..first_length(rest)];
                let more = counts.get(character).map_or(0, |count| count - 1);
                let others: usize = chars.take(more).map(char::len_utf8).sum();
                (first + others, 1 + more, character.len(), 1)
            }
        };
        Some(Position {
            utf8_bytes: from.utf8_bytes + utf8_bytes,
            code_points: from.code_points + code_points,
            bytes: from.bytes + bytes,
            characters: from.characters + characters,
        })
    }
}

impl ServerPart {
    fn new(start: Position, end: Position) -> Self {
        Self {
            utf8_bytes: start.utf8_bytes..end.utf8_bytes,
            characters: start.characters..end.characters,
            bytes: start.bytes..end.bytes,
        }
    }
}

fn copied_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut copy = Vec::new();
    copy.grow_by(bytes);
    copy
}

/// Length in bytes of the first character of a text in the server's encoding. The text is not
/// empty.
fn first_length(text: &[u8]) -> usize {
    let encoding = server::GetDatabaseEncoding();
    // SAFETY: in the server's encodings the first byte determines the length. The server has
    // validated the text.
    let length = unsafe { pg_sys::pg_encoding_mblen(encoding, text.as_ptr().cast()) };
    usize::try_from(length).unwrap_or(1).clamp(1, text.len())
}

/// Iterates over the characters of a text in the server's encoding.
fn characters(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut step = 0_usize;
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        step += 1;
        if step.is_multiple_of(UNITS_PER_MARK * MARKS_PER_CHECK) {
            check_interrupts();
        }
        let (character, rest) = text.split_at(first_length(text));
        text = rest;
        Some(character)
    })
}

fn character_count(text: &[u8]) -> usize {
    characters(text).count()
}

/// Returns the number of code points of each multibyte character of a text in the server's
/// encoding.
fn code_point_counts(text: &[u8]) -> HashMap<Vec<u8>, usize> {
    let mut counts = HashMap::new();
    for character in characters(text).filter(|character| character.len() > 1) {
        if !counts.contains_key(character) {
            counts.ensure_room(1);
            counts.insert(
                copied_bytes(character),
                text::bytes_utf8(character).chars().count(),
            );
        }
    }
    counts
}
