//! The aggregate `neardup_common_features`: returns the set of the features that many documents
//! share, for the parameter `without` of fingerprint functions.
use neardup_sketch::Sketcher;
use neardup_sketch::common_features::{CommonFeatureCollector, Sampled};
use pgrx::pg_sys::Datum;

use super::text_options;
use neardup_pg::aggregate::GroupWords;
use neardup_pg::errors::{UserError, UserNotice};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::{check_interrupts, maintenance_work_mem};
use neardup_pg::varlena;

/// Maximum memory in bytes that the aggregate uses, even if `maintenance_work_mem` is larger. The
/// state is in one buffer, and the server cannot allocate more than 1 GB at once.
const MAX_BYTES: usize = 256 << 20;
/// Number of equal shares into which the memory of the aggregate is divided. The state may use one
/// share. The others are for a copy while the state grows or is sorted, and for the unused half of
/// a grown buffer. At its limit, the state counts features only in a sample of the documents.
const SHARES: usize = 4;

/// Transition function: adds the features of a document to the feature counts in the state. Ignores
/// a document that is NULL, like the server's aggregates.
fn add(call: &mut Call) -> Datum {
    let state = GroupWords::from_arg(call, 0);
    if let Some(n) = (2..call.arg_count()).find(|&n| call.is_null(n)) {
        let parameters = ["share", "tokens", "shingle", "html", "accents", "digits"];
        UserError::null_not_allowed(format!("\"{}\" must not be NULL", parameters[n - 2])).raise();
    }
    if call.is_null(1) {
        return match state {
            Some(state) => state.as_datum(),
            None => call.return_null(),
        };
    }
    let options = text_options::of_aggregate(call, 3);
    let share = share(call.float8(2));
    let text = call.utf8(1);
    Sketcher::with_thread_local(options, |sketcher| {
        let (state, mut collector) = match state {
            Some(state) => {
                let datum = state.as_datum();
                (datum, CommonFeatureCollector::resume(state))
            }
            None => {
                let state = GroupWords::new(call);
                let datum = state.as_datum();
                let limit = maintenance_work_mem().min(MAX_BYTES) / SHARES / size_of::<u64>();
                (
                    datum,
                    CommonFeatureCollector::new(state, &options, share, limit),
                )
            }
        };
        if !collector.has_options(&options, share) {
            UserError::invalid_parameter("arguments of the aggregate must be the same in all rows")
                .detail("All features of a set are computed with the same options.")
                .hint("Pass constants.")
                .raise();
        }
        collector.add(sketcher, &text, &mut check_interrupts);
        state
    })
}

/// Returns `share`, the share of the documents above which a feature is common. Raises an error
/// unless it is above 0 and below 1.
fn share(share: f64) -> f64 {
    if !(share > 0.0 && share < 1.0) {
        UserError::invalid_parameter(format!("share {share} is out of range"))
            .detail("A share is a number between 0 and 1.")
            .hint(
                "For example, 0.02 finds the features that occur in more than 2 % of the \
                 documents. If some texts have many copies, pass a share greater than the share of \
                 the copies.",
            )
            .raise();
    }
    share
}

/// Combine function: adds the feature counts of another process (argument 1) to those of this
/// process (argument 0).
fn merge(call: &mut Call) -> Datum {
    let (ours, theirs) = (GroupWords::from_arg(call, 0), GroupWords::from_arg(call, 1));
    let Some(theirs) = theirs else {
        return match ours {
            Some(ours) => ours.as_datum(),
            None => call.return_null(),
        };
    };
    // The counts of the other process may be in memory that is freed before the group ends.
    let Some(ours) = ours else {
        let ours = GroupWords::new(call);
        ours.insert_zeroes(0, theirs.as_slice().len());
        ours.as_mut_slice().copy_from_slice(theirs.as_slice());
        return ours.as_datum();
    };
    let datum = ours.as_datum();
    CommonFeatureCollector::resume(ours).merge(theirs.as_slice());
    datum
}

/// Final function: returns the set of common features as bytea, or NULL if there were no documents.
fn finish(call: &mut Call) -> Datum {
    let Some(state) = GroupWords::from_arg(call, 0) else {
        return call.return_null();
    };
    let collector = CommonFeatureCollector::resume(state);
    if let Some(sampled) = collector.sampled() {
        report_sample(sampled);
    }
    varlena::build(&[&collector.finish(&mut check_interrupts)])
}

/// Reports to the user that the features were counted in a sample of the documents.
fn report_sample(Sampled { documents, one_of }: Sampled) {
    UserNotice {
        message: format!(
            "neardup_common_features read only a sample of {documents} documents, one in {one_of}"
        ),
        detail:
            "The features of all documents need more than a quarter of maintenance_work_mem. The \
             result may wrongly omit or include a feature whose share is near the limit."
                .to_owned(),
        hint: "To count the features of all documents, increase maintenance_work_mem.".to_owned(),
    }
    .report();
}

export! {
    guarded "_neardup_common_features_add" => add;
    guarded "_neardup_common_features_merge" => merge;
    guarded "_neardup_common_features_finish" => finish;
}
