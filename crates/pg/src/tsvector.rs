//! Reads the lexemes of a `tsvector` value.
use pgrx::pg_sys;

use super::varlena;

/// Lexeme in a `tsvector`, with its positions in the document.
pub struct Lexeme<'a> {
    /// Text of the lexeme, in the encoding of the database.
    pub bytes: &'a [u8],
    /// Positions and their labels, as the server stores them. Empty if the `tsvector` was made
    /// without positions, or if they were stripped.
    positions: &'a [[u8; 2]],
}

impl Lexeme<'_> {
    /// Number of the lexeme's positions with label D, C, B and A, in this order. A lexeme without
    /// positions counts as one with label D, as in `ts_rank`.
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

/// A `tsvector` value (`tsearch/ts_type.h`): the number of lexemes, an entry for each lexeme, and
/// then the texts, each followed by its positions.
pub struct Lexemes<'a> {
    /// Entry of each lexeme, with the bit fields that [`fields`] reads.
    entries: &'a [[u8; 4]],
    /// Texts and positions of the lexemes.
    data: &'a [u8],
}

impl<'a> Lexemes<'a> {
    /// Reads the structure of a `tsvector` value.
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

    /// Iterates over the lexemes, in the order in which the server stores them.
    pub fn iter(&self) -> impl Iterator<Item = Lexeme<'a>> {
        let data = self.data;
        self.entries.iter().map(move |entry| {
            let (has_positions, length, start) = fields(u32::from_ne_bytes(*entry));
            let end = start + length;
            // The text is followed by the number of positions and the positions. They are aligned
            // to two bytes from the start of `data`.
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

/// Bit fields of a lexeme's entry: whether there are positions, the length of the text in bytes,
/// and its offset in [`Lexemes::data`]. The C compiler allocates bit fields from the least
/// significant bit on little-endian machines, and from the most significant bit on big-endian
/// machines.
const fn fields(entry: u32) -> (bool, usize, usize) {
    let (flag, length, start) = if cfg!(target_endian = "little") {
        (entry & 1, entry >> 1 & 0x7FF, entry >> 12)
    } else {
        (entry >> 31, entry >> 20 & 0x7FF, entry & 0xF_FFFF)
    };
    (flag == 1, length as usize, start as usize)
}
