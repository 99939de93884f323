//! `neardup_segments(body, unit)`: paragraphs, lines or sentences as rows.
use neardup_sketch::memory::copied;
use neardup_sketch::segments::{Segment, segment_hash, segments};
use neardup_sketch::{Sketcher, TextOptions};
use pgrx::pg_sys::Datum;

use super::text_options;
use crate::pg::fmgr::{Call, export};
use crate::pg::memory::check_interrupts;
use crate::pg::srf::SetReturning;
use crate::pg::text;

/// Segments of a text as rows.
struct SegmentRows {
    body: String,
    segments: std::vec::IntoIter<Segment>,
    ordinal: i32,
}

impl SetReturning for SegmentRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(segment) = self.segments.next() else {
            return false;
        };
        self.ordinal += 1;
        let part = &self.body[segment.bytes];
        let check = &mut check_interrupts;
        let fingerprint =
            Sketcher::of_thread(TextOptions::SET, |sketcher| sketcher.minhash64(part, check));
        columns.extend([
            Some(Datum::from(self.ordinal)),
            // A text has less than 2^31 characters.
            Some(Datum::from(segment.start as i32 + 1)),
            Some(text::datum(part)),
            Some(Datum::from(segment_hash(part, check))),
            fingerprint.map(Datum::from),
        ]);
        true
    }
}

/// `neardup_segments(body, unit)`: in the order of the text.
fn rows(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let unit = text_options::named(call, 1);
        let body = copied(&call.utf8(0));
        let segments = segments(&body, unit, &mut check_interrupts).into_iter();
        SegmentRows {
            body,
            segments,
            ordinal: 0,
        }
    })
}

export! {
    guarded "neardup_segments" => rows;
}
