//! The aggregates `simhash_agg(text, float8)` and `simhash128_agg(text, float8)`: fingerprint of a
//! group of rows, each with one feature and its weight. The state of a group has sums of weights,
//! from which the bits of the fingerprint follow.
use neardup_sketch::hash::FeatureHash;
use neardup_sketch::memory::GrowVec;
use neardup_sketch::simhash::exact::ExactAccumulator;
use pgrx::pg_sys::Datum;

use super::features::bad_weight;
use crate::types::{Fingerprint, Fingerprint64, Fingerprint128};
use neardup_pg::aggregate::GroupWords;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::varlena;

/// Transition function of both aggregates: adds the weighted feature of a row to the sums of
/// weights of its group. Ignores a row whose feature or weight is NULL, like the server's
/// aggregates.
fn add<const W: usize>(call: &mut Call) -> Datum
where
    [u64; W]: FeatureHash,
{
    let state = GroupWords::from_arg(call, 0);
    if call.is_null(1) || call.is_null(2) {
        return match state {
            Some(state) => state.as_datum(),
            None => call.return_null(),
        };
    }
    let state = state.unwrap_or_else(|| GroupWords::new(call));
    // The weight is rounded to single precision, because the sums are exact only for such weights.
    let (feature, weight) = (call.utf8(1), call.float8(2) as f32);
    let mut accumulator = ExactAccumulator::<W, _>::new(&mut *state);
    if let Err(error) = accumulator.add_feature(0, feature.as_bytes(), weight.into()) {
        bad_weight("The weight of a feature", error).raise();
    }
    state.as_datum()
}

/// Combine function of both aggregates: adds the sums of weights of another process (argument 1) to
/// those of this process (argument 0).
fn merge<const W: usize>(call: &mut Call) -> Datum {
    let (ours, theirs) = (GroupWords::from_arg(call, 0), GroupWords::from_arg(call, 1));
    let Some(theirs) = theirs else {
        return match ours {
            Some(ours) => ours.as_datum(),
            None => call.return_null(),
        };
    };
    // The sums of the other process may be in memory that is freed before the group ends.
    let ours = ours.unwrap_or_else(|| GroupWords::new(call));
    ExactAccumulator::<W, _>::new(&mut *ours).merge(theirs.as_slice());
    ours.as_datum()
}

/// Serialization function of both aggregates: returns a group's sums of weights as bytea, for
/// another process of this server.
fn save(call: &mut Call) -> Datum {
    let Some(state) = GroupWords::from_arg(call, 0) else {
        return call.return_null();
    };
    let words = state.as_slice().iter();
    let mut bytes = Vec::new();
    bytes.grow_all(words.flat_map(|word| word.to_ne_bytes()));
    varlena::build(&[&bytes])
}

/// Deserialization function of both aggregates: reads a group's sums of weights from the bytea that
/// [`save`] returned.
fn load(call: &mut Call) -> Datum {
    let (words, _) = call.bytes(0).as_chunks::<8>();
    let state = GroupWords::new_short_lived(call);
    state.insert_zeroes(0, words.len());
    for (target, word) in state.as_mut_slice().iter_mut().zip(words) {
        *target = u64::from_ne_bytes(*word);
    }
    state.as_datum()
}

/// Final function of both aggregates: returns the fingerprint of a group, or NULL if no feature has
/// a weight above zero.
fn finish<const W: usize, T: Fingerprint + From<[u64; W]>>(call: &mut Call) -> Datum {
    let words = GroupWords::from_arg(call, 0)
        .and_then(|state| ExactAccumulator::<W, _>::new(state).simhash());
    call.return_value(words.map(|words| T::from(words).into_datum()))
}

export! {
    guarded "_neardup_simhash_agg_add" => add::<1>;
    guarded "_neardup_simhash_agg_merge" => merge::<1>;
    guarded "_neardup_simhash_agg_save" => save;
    guarded "_neardup_simhash_agg_load" => load;
    guarded "_neardup_simhash_agg_finish" => finish::<1, Fingerprint64>;
    guarded "_neardup_simhash128_agg_add" => add::<2>;
    guarded "_neardup_simhash128_agg_merge" => merge::<2>;
    guarded "_neardup_simhash128_agg_finish" => finish::<2, Fingerprint128>;
}
