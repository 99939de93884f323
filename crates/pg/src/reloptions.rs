//! Options of indexes (`CREATE INDEX ... WITH (...)`): `I` integers and `R` floating-point numbers.
use core::ffi::{CStr, c_int};
use core::mem::offset_of;

use pgrx::pg_sys::{self, Datum};

use super::compat::{int_option, real_option};
use super::rel::Rel;

/// An integer among the options.
pub struct IntOption {
    /// Name.
    pub name: &'static CStr,
    /// Description.
    pub about: &'static CStr,
    /// Default.
    pub default: c_int,
    /// Least value.
    pub min: c_int,
    /// Greatest value.
    pub max: c_int,
}

/// A floating-point number among the options.
pub struct RealOption {
    /// Name.
    pub name: &'static CStr,
    /// Description.
    pub about: &'static CStr,
    /// Default.
    pub default: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

/// The options of an access method.
pub struct Options<const I: usize, const R: usize> {
    /// Integers.
    pub ints: [IntOption; I],
    /// Floating-point numbers.
    pub reals: [RealOption; R],
}

/// The options as the server keeps them with an index (`rd_options`).
#[repr(C)]
struct Stored<const I: usize, const R: usize> {
    /// The header of a variable-length value.
    length: i32,
    ints: [c_int; I],
    reals: [f64; R],
}

/// Kind of options that [`Options::register`] has returned.
#[derive(Clone, Copy)]
pub struct OptionKind(pg_sys::relopt_kind::Type);

/// The options of a statement, as the server passes them to `amoptions`.
pub struct OptionTexts(Datum);

impl OptionTexts {
    /// Wraps what the server passes.
    ///
    /// # Safety
    /// `options` is null or an array of texts, and lives as long as the result.
    pub unsafe fn new(options: Datum) -> Self {
        OptionTexts(options)
    }
}

/// Values of options, in memory of the server.
pub struct ParsedOptions<const I: usize, const R: usize>(*mut Stored<I, R>);

impl<const I: usize, const R: usize> ParsedOptions<I, R> {
    /// The values, in the order of the options. `None` if the statement has no option.
    pub fn values(&self) -> Option<([c_int; I], [f64; R])> {
        // SAFETY: null, or made by `Options::parse`.
        let stored = unsafe { self.0.as_ref() };
        stored.map(|stored| (stored.ints, stored.reals))
    }

    /// The values as the server takes them.
    pub fn into_raw(self) -> *mut pg_sys::bytea {
        self.0.cast()
    }
}

impl<const I: usize, const R: usize> Options<I, R> {
    /// Makes the options known to the server. Called once, when the library is loaded.
    pub fn register(&self) -> OptionKind {
        let lock = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        // SAFETY: called while the server loads the library. The server copies the texts.
        unsafe {
            let kind = pg_sys::add_reloption_kind();
            for IntOption {
                name,
                about,
                default,
                min,
                max,
            } in &self.ints
            {
                let (name, about) = (name.as_ptr(), about.as_ptr());
                pg_sys::add_int_reloption(kind, name, about, *default, *min, *max, lock);
            }
            for RealOption {
                name,
                about,
                default,
                min,
                max,
            } in &self.reals
            {
                let (name, about) = (name.as_ptr(), about.as_ptr());
                pg_sys::add_real_reloption(kind, name, about, *default, *min, *max, lock);
            }
            OptionKind(kind)
        }
    }

    /// Reads the options of a statement. Raises an error if `validate` is true and an option is
    /// unknown or out of range.
    pub fn parse(
        &self,
        kind: OptionKind,
        texts: OptionTexts,
        validate: bool,
    ) -> ParsedOptions<I, R> {
        let ints = (self.ints.iter().enumerate()).map(|(n, option)| {
            let offset = offset_of!(Stored<I, R>, ints) + n * size_of::<c_int>();
            int_option(option.name, offset)
        });
        let reals = (self.reals.iter().enumerate()).map(|(n, option)| {
            let offset = offset_of!(Stored<I, R>, reals) + n * size_of::<f64>();
            real_option(option.name, offset)
        });
        let elements: Vec<_> = ints.chain(reals).collect();
        let (OptionKind(kind), OptionTexts(texts)) = (kind, texts);
        // SAFETY: the elements describe the struct whose size is passed.
        let stored = unsafe {
            let (first, count) = (elements.as_ptr(), elements.len() as c_int);
            pg_sys::build_reloptions(
                texts,
                validate,
                kind,
                size_of::<Stored<I, R>>(),
                first,
                count,
            )
        };
        ParsedOptions(stored.cast())
    }

    /// The values for an index of this access method, in the order of the options. `None` if it was
    /// made without options. Raises an internal error for other relations, and for an index of
    /// other options.
    pub fn of_index(&self, index: Rel) -> Option<([c_int; I], [f64; R])> {
        assert!(index.is_neardup_index());
        // SAFETY: the index is open. The server keeps what `parse` returned, or null. The value
        // begins with its size.
        let stored = unsafe {
            let options = (*index.raw()).rd_options;
            if options.is_null() {
                return None;
            }
            assert_eq!(
                pgrx::varlena::varsize_4b(options.cast()),
                size_of::<Stored<I, R>>()
            );
            &*options.cast::<Stored<I, R>>()
        };
        Some((stored.ints, stored.reals))
    }

    /// The values that the current command has just given an index of this access method, which
    /// the relation cache does not have yet. As for [`Options::of_index`].
    pub fn of_altered_index(&self, index: Rel) -> Option<([c_int; I], [f64; R])> {
        assert!(index.is_neardup_index());
        let mut key = pg_sys::ScanKeyData::default();
        // SAFETY: pg_class has a row of the index, which is read before the scan ends. What the
        // server makes of its options is null or a value of `parse`.
        unsafe {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let classes = pg_sys::table_open(pg_sys::RelationRelationId, lock);
            pg_sys::ScanKeyInit(
                &raw mut key,
                pg_sys::Anum_pg_class_oid as i16,
                pg_sys::BTEqualStrategyNumber as u16,
                pg_sys::F_OIDEQ.into(),
                index.oid().into(),
            );
            let by_oid = pg_sys::ClassOidIndexId.into();
            let newest = &raw mut pg_sys::SnapshotSelfData;
            let scan = pg_sys::systable_beginscan(classes, by_oid, true, newest, 1, &raw mut key);
            let row = pg_sys::systable_getnext(scan);
            assert!(!row.is_null(), "pg_class has a row of each index");
            let parse = (*(*index.raw()).rd_indam).amoptions;
            let options = pg_sys::extractRelOptions(row, (*classes).rd_att, parse);
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(classes, lock);
            ParsedOptions::<I, R>(options.cast()).values()
        }
    }
}
