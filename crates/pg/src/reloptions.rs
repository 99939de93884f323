//! Index options (`CREATE INDEX ... WITH (...)`): `I` integers and `R` floating-point numbers.
use core::ffi::{CStr, c_int};
use core::mem::offset_of;

use pgrx::pg_sys::{self, Datum};

use super::compat::{int_option, real_option};
use super::rel::Rel;

/// Integer option.
pub struct IntOption {
    /// Name.
    pub name: &'static CStr,
    /// Description.
    pub about: &'static CStr,
    /// Default.
    pub default: c_int,
    /// Minimum.
    pub min: c_int,
    /// Maximum.
    pub max: c_int,
}

/// Floating-point option.
pub struct RealOption {
    /// Name.
    pub name: &'static CStr,
    /// Description.
    pub about: &'static CStr,
    /// Default.
    pub default: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// The options of an access method.
pub struct Options<const I: usize, const R: usize> {
    /// Integer options.
    pub ints: [IntOption; I],
    /// Floating-point options.
    pub reals: [RealOption; R],
}

/// Options in the form that the server stores with an index (`rd_options`).
#[repr(C)]
struct Stored<const I: usize, const R: usize> {
    /// The header of a variable-length value.
    length: i32,
    ints: [c_int; I],
    reals: [f64; R],
}

/// Option kind returned by [`Options::register`].
#[derive(Clone, Copy)]
pub struct OptionKind(pg_sys::relopt_kind::Type);

/// Options of a statement, as passed to `amoptions`.
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

/// Parsed option values in the server's memory.
pub struct ParsedOptions<const I: usize, const R: usize>(*mut Stored<I, R>);

impl<const I: usize, const R: usize> ParsedOptions<I, R> {
    /// The values, in the order of the options. `None` if the statement has no option.
    pub fn values(&self) -> Option<([c_int; I], [f64; R])> {
        // SAFETY: null, or made by `Options::parse`.
        let stored = unsafe { self.0.as_ref() };
        stored.map(|stored| (stored.ints, stored.reals))
    }

    /// The values in the form that the server expects.
    pub fn into_raw(self) -> *mut pg_sys::bytea {
        self.0.cast()
    }
}

impl<const I: usize, const R: usize> Options<I, R> {
    /// Registers the options. Called once, when the library is loaded.
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
        // SAFETY: the elements describe fields of the struct whose size is passed.
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

    /// The option values of an index of this access method, in the order of the options. `None` if
    /// the index was made without options. Raises an internal error for other relations, and for
    /// an index whose options have another size.
    pub fn of_index(&self, index: Rel) -> Option<([c_int; I], [f64; R])> {
        assert!(index.is_neardup_index());
        // SAFETY: the index is open. The server stores the result of `parse` or null. The value
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

    /// [`Options::of_index`] for an index that the current command has altered. Reads the
    /// catalogue, because the relation cache does not have the new values yet.
    pub fn of_altered_index(&self, index: Rel) -> Option<([c_int; I], [f64; R])> {
        assert!(index.is_neardup_index());
        let mut key = pg_sys::ScanKeyData::default();
        // SAFETY: pg_class has a row for the index, which is read before the scan ends. The server
        // parses its options to null or a result of `parse`.
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
