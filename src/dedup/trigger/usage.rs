//! Errors of a trigger that was created for events or in a way that it is not made for.
use pgrx::PgSqlErrorCode;

use neardup_pg::errors::UserError;

/// Error 39P01: the trigger is not one that the function can serve.
pub fn misused(why: &str) -> ! {
    UserError::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "neardup_dedup cannot be used like this",
    )
    .detail(format!("As it is, {why}."))
    .hint(
        "CREATE TRIGGER ... BEFORE INSERT OR UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION \
         neardup_dedup('fp', 'body', 'radius=6', 'action=skip'); for the action mark there is \
         one AFTER UPDATE OR DELETE, too.",
    )
    .raise()
}
