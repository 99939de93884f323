//! Handler function of the access method `neardup`. It tells the server which features the access
//! method has and which functions implement it.
use pgrx::pg_sys;

use super::{callbacks, strategies};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::{compat, varlena};

export! {
    guarded "_neardup_handler" => handler;
}

/// Body of the SQL function that CREATE ACCESS METHOD names. Returns an `IndexAmRoutine`.
fn handler(_call: &mut Call) -> pg_sys::Datum {
    let mut routine = pg_sys::IndexAmRoutine::default();
    describe(&mut routine);
    varlena::by_reference(routine)
}

/// Sets the features and the callbacks of the access method.
fn describe(am: &mut pg_sys::IndexAmRoutine) {
    am.type_ = pg_sys::NodeTag::T_IndexAmRoutine;
    am.amstrategies = strategies::STRATEGIES;
    am.amsupport = 0;
    am.amcanorderbyop = true;
    am.amcanmulticol = true;
    // Operator classes for balls store another type: only the centres.
    am.amstorage = true;
    // A scan without a condition returns every row, also rows whose value is NULL.
    am.amoptionalkey = true;
    am.amsearchnulls = true;
    am.amusemaintenanceworkmem = true;
    compat::offer_parallel_builds(am);
    // VACUUM may process several indexes in parallel. Only one process can follow the chain of
    // leaves of one index.
    am.amparallelvacuumoptions = pg_sys::VACUUM_OPTION_PARALLEL_BULKDEL as u8;
    am.amkeytype = pg_sys::InvalidOid;
    am.ambuild = Some(callbacks::ambuild);
    am.ambuildempty = Some(callbacks::ambuildempty);
    am.aminsert = Some(callbacks::aminsert);
    am.ambulkdelete = Some(callbacks::ambulkdelete);
    am.amvacuumcleanup = Some(callbacks::amvacuumcleanup);
    am.amcanreturn = Some(callbacks::amcanreturn);
    am.amcostestimate = Some(callbacks::amcostestimate);
    am.amoptions = Some(callbacks::amoptions);
    am.ambuildphasename = Some(callbacks::ambuildphasename);
    am.amvalidate = Some(callbacks::amvalidate);
    am.ambeginscan = Some(callbacks::ambeginscan);
    am.amrescan = Some(callbacks::amrescan);
    am.amgettuple = Some(callbacks::amgettuple);
    am.amgetbitmap = Some(callbacks::amgetbitmap);
    am.amendscan = Some(callbacks::amendscan);
}
