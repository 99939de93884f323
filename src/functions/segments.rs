//! `neardup_segments(body, unit)`: paragraphs, lines or sentences of a text as rows.
//! `neardup_cut_segments(body, ordinals, unit)`: text without some of these segments.
use std::collections::BTreeSet;

use neardup_sketch::memory::GrowVec;
use neardup_sketch::segments::{Segment, segment_hash, segments};
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::server_text::ServerText;
use neardup_pg::srf::SetReturning;

/// Segments of a text, returned as rows of `neardup_segments`.
struct SegmentRows {
    body: ServerText<'static>,
    segments: std::vec::IntoIter<Segment>,
    ordinal: i32,
}

impl SetReturning for SegmentRows {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(segment) = self.segments.next() else {
            return false;
        };
        self.ordinal += 1;
        let part = &self.body.utf8()[segment.bytes.clone()];
        let hash = segment_hash(part, &mut check_interrupts);
        let part = self.body.part_of_bytes(segment.bytes);
        columns.extend([
            Some(Datum::from(self.ordinal)),
            Some(Datum::from(part.start())),
            Some(self.body.datum(&part)),
            Some(Datum::from(hash)),
        ]);
        true
    }
}

/// `neardup_segments(body, unit)`: segments of a text in text order, with their positions and
/// hashes.
fn rows(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let unit = text_options::named(call, 1);
        let body = call.server_text(0).into_owned();
        let segments = segments(body.utf8(), unit, &mut check_interrupts).into_iter();
        SegmentRows {
            body,
            segments,
            ordinal: 0,
        }
    })
}

/// `neardup_cut_segments(body, ordinals, unit)`: text without the segments with these ordinals,
/// which count from 1. Keeps all other bytes of the text in the database encoding.
fn without_segments(call: &mut Call) -> Datum {
    let unit = text_options::named(call, 2);
    let body = call.server_text(0);
    let segments = segments(body.utf8(), unit, &mut check_interrupts);
    let mut ordinals = BTreeSet::new();
    for ordinal in call.array::<i32>(1, "ordinals").iter() {
        if ordinal < 1 || ordinal as usize > segments.len() {
            unknown_segment(ordinal, segments.len());
        }
        ordinals.insert(ordinal as usize - 1);
    }
    let mut kept = Vec::new();
    let mut start = 0;
    for &ordinal in &ordinals {
        let cut = &segments[ordinal].cut;
        kept.grow_push(start..cut.start);
        start = cut.end;
    }
    kept.grow_push(start..body.utf8().len());
    body.joined(&kept, "")
}

/// Raises the error that a text with `count` segments has no segment with this ordinal.
fn unknown_segment(ordinal: i32, count: usize) -> ! {
    UserError::invalid_parameter(format!("segment {ordinal} does not exist"))
        .detail(format!("The text has {count} segments."))
        .hint("Use ordinals that neardup_segments returns for the same text and unit.")
        .raise()
}

export! {
    guarded "neardup_segments" => rows;
    guarded "neardup_cut_segments" => without_segments;
}
