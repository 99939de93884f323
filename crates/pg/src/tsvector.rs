//! The lexemes of a `tsvector`.
use pgrx::pg_sys;

use super::varlena;

/// Lexeme of a document.
pub struct Lexeme<'a> {
    /// Its text, in the encoding of the database.
    pub bytes: &'a [u8],
    /// Positions with labels, as the server stores them. Empty if the value was made without
    /// positions, or they were stripped.
    positions: &'a [[u8; 2]],
}

impl Lexeme<'_> {
    /// Number of occurrences with the labels D, C, B and A. A lexeme without positions counts as
    /// one occurrence with label D, as in `ts_rank`.
    ///
    /// The server stores at most 255 positions of a lexeme, and none beyond 16,383.
    pub fn occurrences(&self) -> [u64; 4] {
        if self.positions.is_empty() {
            return [1, 0, 0, 0];
        }
        let mut counts = [0; 4];
        for position in self.positions {
            counts[usize::from(u16::from_ne_bytes(*position) >> 14)] += 1;
        }
        counts
    }
}

/// A `tsvector` (`tsearch/ts_type.h`). It contains the number of entries, the entries, and then
/// the texts, each followed by its positions.
pub struct Lexemes<'a> {
    entries: &'a [[u8; 4]],
    data: &'a [u8],
}

impl<'a> Lexemes<'a> {
    /// The lexemes of a value.
    ///
    /// # Safety
    /// `datum` is a tsvector. It and the current memory context outlive the result.
    pub unsafe fn new(datum: pg_sys::Datum) -> Self {
        // SAFETY: as the caller promises.
        let bytes = unsafe { varlena::bytes(datum) };
        let Some((count, rest)) = bytes.split_first_chunk() else {
            unreachable!("a tsvector begins with the number of its lexemes");
        };
        let (entries, data) = rest.split_at(4 * i32::from_ne_bytes(*count) as usize);
        let (entries, _) = entries.as_chunks();
        Lexemes { entries, data }
    }

    /// The lexemes, in the server's order.
    pub fn iter(&self) -> impl Iterator<Item = Lexeme<'a>> {
        let data = self.data;
        self.entries.iter().map(move |entry| {
            let (has_positions, length, start) = fields(u32::from_ne_bytes(*entry));
            let end = start + length;
            // The number of positions and then the positions follow the text, aligned to two bytes
            // from the start of the texts.
            let at = end.next_multiple_of(2);
            let positions = if has_positions {
                let count = usize::from(u16::from_ne_bytes([data[at], data[at + 1]]));
                data[at + 2..][..2 * count].as_chunks().0
            } else {
                &[]
            };
            Lexeme {
                bytes: &data[start..end],
                positions,
            }
        })
    }
}

/// An entry's bit fields: whether there are positions, the length of the text, and its offset. The
/// C compiler allocates bit fields from the least significant bit on little-endian machines, and
/// from the most significant bit on big-endian machines.
const fn fields(entry: u32) -> (bool, usize, usize) {
    let (flag, length, start) = if cfg!(target_endian = "little") {
        (entry & 1, entry >> 1 & 0x7FF, entry >> 12)
    } else {
        (entry >> 31, entry >> 20 & 0x7FF, entry & 0xF_FFFF)
    };
    (flag == 1, length as usize, start as usize)
}
