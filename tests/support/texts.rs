//! Texts in families that share most of their words.

/// Two SQL functions. `number` returns an integer from 0 to 999,999 that depends on its arguments.
/// `family_text(f, v)` returns text `v`, from 0, of the family `f`. A text has 40 to 99 words, and
/// about `v` % of them differ from those of the other texts of its family.
pub const FAMILIES: &str = "CREATE FUNCTION number(VARIADIC of int[]) RETURNS int IMMUTABLE \
        LANGUAGE sql RETURN abs(hashtext(of::text) % 1000000); \
    CREATE FUNCTION family_text(f int, v int) RETURNS text IMMUTABLE LANGUAGE sql RETURN \
        (SELECT string_agg('w' || CASE WHEN number(f, v, w) % 100 < v THEN number(f, v, w) \
            ELSE number(f, w) END, ' ' ORDER BY w) FROM generate_series(1, 40 + f % 60) w);";
