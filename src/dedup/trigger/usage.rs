//! Error of a trigger `neardup_dedup` that was created in an unsupported way.
use pgrx::PgSqlErrorCode;

use neardup_pg::errors::UserError;

/// Raises error 39P01: `neardup_dedup` does not support a trigger of this kind. `why` is a
/// sentence with the reason.
pub fn misused(why: &str) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "neardup_dedup is used in an unsupported way",
    )
    .detail(why)
    .hint(
        "Use CREATE TRIGGER ... BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION \
         neardup_dedup('fp', 'body', 'radius=6', 'action=skip'). With action=mark, also create an \
         AFTER UPDATE OR DELETE trigger.",
    )
    .raise()
}
