//! Options of an index access method (`CREATE INDEX ... WITH (...)`). `I` is the number of integer
//! options, `R` the number of floating-point options.
use core::ffi::{CStr, c_int};
use core::mem::offset_of;

use pgrx::pg_sys::{self, Datum};

use super::compat::{int_option, real_option};
use super::rel::Rel;

/// Integer option of an index.
pub struct IntOption {
    /// Name of the option.
    pub name: &'static CStr,
    /// Description of the option, for the server.
    pub about: &'static CStr,
    /// Value if the statement does not give the option.
    pub default: c_int,
    /// Minimum allowed value.
    pub min: c_int,
    /// Maximum allowed value.
    pub max: c_int,
}

/// Floating-point option of an index.
pub struct RealOption {
    /// Name of the option.
    pub name: &'static CStr,
    /// Description of the option, for the server.
    pub about: &'static CStr,
    /// Value if the statement does not give the option.
    pub default: f64,
    /// Minimum allowed value.
    pub min: f64,
    /// Maximum allowed value.
    pub max: f64,
}

/// Declaration of all options of an access method.
pub struct Options<const I: usize, const R: usize> {
    /// Integer options.
    pub ints: [IntOption; I],
    /// Floating-point options.
    pub reals: [RealOption; R],
}

/// Option values in the form that the server stores with an index (`rd_options`).
#[repr(C)]
struct Stored<const I: usize, const R: usize> {
    /// Header with the size in bytes, as in each value of variable length.
    length: i32,
    ints: [c_int; I],
    reals: [f64; R],
}

/// Number that the server has assigned to the options of this access method. [`Options::register`]
/// returns it.
#[derive(Clone, Copy)]
pub struct OptionKind(pg_sys::relopt_kind::Type);

/// Texts `name=value` of the options that a statement gives, as the server passes them to
/// `amoptions`.
pub struct OptionTexts(Datum);

impl OptionTexts {
    /// Wraps the argument of `amoptions`.
    ///
    /// # Safety
    /// `options` is null or an array of texts, and lives as long as the result.
    pub unsafe fn new(options: Datum) -> Self {
        OptionTexts(options)
    }
}

/// Option values in the server's memory, as [`Options::parse`] returns them.
pub struct ParsedOptions<const I: usize, const R: usize>(*mut Stored<I, R>);

impl<const I: usize, const R: usize> ParsedOptions<I, R> {
    /// Values of the integer options and of the floating-point options, in the order of their
    /// declaration. `None` if the statement gives no option.
    pub fn values(&self) -> Option<([c_int; I], [f64; R])> {
        // SAFETY: null, or made by `Options::parse`.
        let stored = unsafe { self.0.as_ref() };
        stored.map(|stored| (stored.ints, stored.reals))
    }

    /// Pointer to the values, for the server to store with the index.
    pub fn into_raw(self) -> *mut pg_sys::bytea {
        self.0.cast()
    }
}

impl<const I: usize, const R: usize> Options<I, R> {
    /// Registers the options with the server, and returns the number that it assigns to them.
    /// Called once, when the library is loaded.
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

    /// Parses `texts`, the options that a statement gives. `kind` is the number that
    /// [`Options::register`] has returned. If `validate` is true, raises an error for an option
    /// that is unknown or out of range. If it is false, ignores unknown options and accepts values
    /// out of range.
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

    /// Option values of a neardup index: integers and floating-point numbers, in the order of their
    /// declaration. `None` if the index has no options. Raises an internal error for other
    /// relations, and for an index whose stored options have another size.
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

    /// [`Options::of_index`] for an index whose options the current command has changed. Reads the
    /// new values from pg_class, because the relation cache still has the old ones.
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
