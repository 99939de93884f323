//! The handler of the access method, which tells the server its properties and its functions.
use pgrx::pg_sys;

use super::{build, cost, insert, options, progress, scan, strategies, vacuum, validate};
use crate::pg::fmgr::{Call, export};

export! {
    guarded "_neardup_handler" => handler;
}

fn handler(_call: &mut Call) -> pg_sys::Datum {
    // SAFETY: makeNode of this type: zeroed memory of its size with its tag.
    unsafe {
        let size = size_of::<pg_sys::IndexAmRoutine>();
        let routine = pg_sys::palloc0(size).cast::<pg_sys::IndexAmRoutine>();
        describe(&mut *routine);
        pg_sys::Datum::from(routine)
    }
}

fn describe(am: &mut pg_sys::IndexAmRoutine) {
    am.type_ = pg_sys::NodeTag::T_IndexAmRoutine;
    am.amstrategies = strategies::STRATEGIES;
    am.amsupport = 0;
    am.amcanorderbyop = true;
    am.amcanmulticol = true;
    // Classes for balls store the centres only.
    am.amstorage = true;
    // An index without a condition returns every row, those without a fingerprint included.
    am.amoptionalkey = true;
    am.amsearchnulls = true;
    am.amusemaintenanceworkmem = true;
    // The leaves of an index are one chain, which one process walks.
    am.amparallelvacuumoptions = pg_sys::VACUUM_OPTION_PARALLEL_BULKDEL as u8;
    am.amkeytype = pg_sys::InvalidOid;
    am.ambuild = Some(build::build);
    am.ambuildempty = Some(build::build_empty);
    am.aminsert = Some(insert::insert);
    am.ambulkdelete = Some(vacuum::bulk_delete);
    am.amvacuumcleanup = Some(vacuum::cleanup);
    am.amcanreturn = Some(scan::canreturn);
    am.amcostestimate = Some(cost::estimate);
    am.amoptions = Some(options::parse);
    am.ambuildphasename = Some(progress::phase_name);
    am.amvalidate = Some(validate::validate);
    am.ambeginscan = Some(scan::beginscan);
    am.amrescan = Some(scan::rescan);
    am.amgettuple = Some(scan::gettuple);
    am.amgetbitmap = Some(scan::getbitmap);
    am.amendscan = Some(scan::endscan);
}
