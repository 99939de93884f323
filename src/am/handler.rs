//! Handler of the access method: returns its properties and functions to the server.
use pgrx::pg_sys;

use super::{callbacks, strategies};
use neardup_pg::fmgr::{Call, export};
use neardup_pg::{compat, varlena};

export! {
    guarded "_neardup_handler" => handler;
}

fn handler(_call: &mut Call) -> pg_sys::Datum {
    let mut routine = pg_sys::IndexAmRoutine::default();
    describe(&mut routine);
    varlena::by_reference(routine)
}

fn describe(am: &mut pg_sys::IndexAmRoutine) {
    am.type_ = pg_sys::NodeTag::T_IndexAmRoutine;
    am.amstrategies = strategies::STRATEGIES;
    am.amsupport = 0;
    am.amcanorderbyop = true;
    am.amcanmulticol = true;
    // Classes for balls store the centres only.
    am.amstorage = true;
    // A scan without a condition returns every row, including rows without a fingerprint.
    am.amoptionalkey = true;
    am.amsearchnulls = true;
    am.amusemaintenanceworkmem = true;
    compat::offer_parallel_builds(am);
    // The leaves of an index are one chain, which only one process can follow.
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
