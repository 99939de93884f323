//! Templates of the statements that `neardup_setup` returns, and of their notes. Names in braces
//! are filled in.
//!
//! The order is for tables in use. The index is built while its column is empty, which is fast. The
//! trigger follows, because it fails without the index. The fingerprints of existing rows are
//! computed last, because the trigger already handles concurrent writes.

/// Statement and its note for the user, both with names in braces.
pub struct Template {
    pub statement: &'static str,
    pub note: &'static str,
}

pub const DROP_INVALID_INDEX: Template = Template {
    statement: "DROP INDEX CONCURRENTLY IF EXISTS {invalid_index};",
    note: "An unfinished CREATE INDEX CONCURRENTLY left this invalid index. Run this outside of a \
           transaction block.",
};

pub const ADD_SEARCH: &[Template] = &[
    Template {
        statement: "CREATE INDEX CONCURRENTLY IF NOT EXISTS {search_index} ON {table}\n    \
                    USING neardup ({scope}{fingerprint}) WITH (radius = {radius});",
        note: "Reads and writes continue. Run this outside of a transaction block and without \
               lock_timeout. If it fails, call neardup_setup again.",
    },
    Template {
        statement: "ANALYZE {table};",
        note: "Reads and writes continue. Then this condition uses the index: \
               {extension}.fingerprint_similarity({fingerprint}, \
               {fingerprint_of_parameter}) >= {similarity}",
    },
];

pub const REMOVE_SEARCH: &[Template] = &[Template {
    statement: "DROP INDEX CONCURRENTLY IF EXISTS {search_index_in_schema};",
    note: "Reads and writes continue. Run this outside of a transaction block.",
}];

const FINGERPRINTS_OF_EXISTING_ROWS: Template = Template {
    statement: "DO {quote}
<<neardup>>
DECLARE
    pages_per_batch CONSTANT bigint := 100;
    first_page bigint := 0;
    pages CONSTANT bigint := pg_catalog.pg_relation_size({table_literal})
        / pg_catalog.current_setting('block_size')::bigint;
BEGIN
    WHILE first_page < pages LOOP
        -- num_nulls keeps the plan from reading all NULLs of the index for each batch.
        UPDATE {table} AS t SET {fp} = {fingerprint_of_row}
        WHERE t.ctid >= ('(' || neardup.first_page || ',0)')::tid
            AND t.ctid < ('(' || neardup.first_page + neardup.pages_per_batch || ',0)')::tid
            AND pg_catalog.num_nulls(t.{fp}) = 1 AND t.{text} IS NOT NULL;
        COMMIT;
        first_page := first_page + pages_per_batch;
    END LOOP;
    -- Other updates may have moved rows to pages that are done.
    UPDATE {table} AS t SET {fp} = {fingerprint_of_row}
    WHERE t.{fp} IS NULL AND {fingerprint_of_row} IS NOT NULL;
END {quote};",
    note: "Computes the fingerprints of existing rows, in short transactions. It writes each row \
           once; VACUUM frees the old versions. Run this outside of a transaction block. After \
           error 40P01 run it again: near-duplicates that others write can cause it.",
};

const ANALYZE_RULE: Template = Template {
    statement: "ANALYZE {table};",
    note: "Reads and writes continue. Near-duplicates among existing rows are still there: \
           neardup_clusters finds them.",
};

const ADD_FINGERPRINT_TRIGGER: Template = Template {
    statement: "CREATE OR REPLACE TRIGGER {trigger}\n    \
                BEFORE INSERT OR UPDATE{update_of} ON {table} FOR EACH ROW\n    \
                EXECUTE FUNCTION {extension}.neardup_dedup({arguments});",
    note: "Writes wait until the running ones have ended. Set lock_timeout, and repeat the \
           statement if it fails. Triggers fire in the order of their names: rename this one if a \
           trigger after it changes the text.",
};

pub const ADD_RULE: &[Template] = &[
    Template {
        statement: "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {fp} {extension}.fingerprint;",
        note: "ACCESS EXCLUSIVE lock for an instant; rows are not rewritten. Set lock_timeout, \
               and repeat the statement if it fails.",
    },
    Template {
        statement: "CREATE INDEX CONCURRENTLY IF NOT EXISTS {fp_index} ON {table}\n    \
                    USING neardup ({scope}{fp}) WITH (radius = {radius});",
        note: "Reads and writes continue. Run this outside of a transaction block and without \
               lock_timeout. If it fails, call neardup_setup again.",
    },
    ADD_FINGERPRINT_TRIGGER,
    FINGERPRINTS_OF_EXISTING_ROWS,
    ANALYZE_RULE,
];

const REMOVE_TRIGGER: Template = Template {
    statement: "DROP TRIGGER IF EXISTS {trigger} ON {table};",
    note: "ACCESS EXCLUSIVE lock for an instant. Set lock_timeout, and repeat the statement if \
           it fails.",
};

const REMOVE_FINGERPRINT_INDEX: Template = Template {
    statement: "DROP INDEX CONCURRENTLY IF EXISTS {fp_index_in_schema};",
    note: "Reads and writes continue. Run this outside of a transaction block.",
};

pub const REMOVE_RULE: &[Template] = &[
    REMOVE_TRIGGER,
    REMOVE_FINGERPRINT_INDEX,
    Template {
        statement: "ALTER TABLE {table} DROP COLUMN IF EXISTS {fp};",
        note: "ACCESS EXCLUSIVE lock for an instant. The fingerprints are gone.",
    },
];

const ADD_COLUMNS_FOR_MARKS: Template = Template {
    statement: "ALTER TABLE {table}\n    \
                ADD COLUMN IF NOT EXISTS {fp} {extension}.fingerprint,\n    \
                ADD COLUMN IF NOT EXISTS {mark} {key_type};",
    note: "ACCESS EXCLUSIVE lock for an instant; rows are not rewritten. Set lock_timeout, \
           and repeat the statement if it fails. The last column is for marks: the primary \
           key of the row that a row repeats.",
};

const INDEX_ORIGINALS: Template = Template {
    statement: "CREATE INDEX CONCURRENTLY IF NOT EXISTS {fp_index} ON {table}\n    \
                USING neardup ({scope}{fp}) WITH (radius = {radius}) WHERE {mark} IS NULL;",
    note: "Reads and writes continue. Run this outside of a transaction block and without \
           lock_timeout. If it fails, call neardup_setup again.",
};

const INDEX_MARKS: Template = Template {
    statement: "CREATE INDEX CONCURRENTLY IF NOT EXISTS {mark_index} ON {table} ({mark});",
    note: "As before. It finds the rows that repeat a row which changes.",
};

const ADD_MARKS_TRIGGER: Template = Template {
    statement: "CREATE OR REPLACE TRIGGER {marks_trigger}\n    \
                AFTER UPDATE OR DELETE ON {table} FOR EACH ROW\n    \
                EXECUTE FUNCTION {extension}.neardup_dedup({arguments});",
    note: "Writes wait until the running ones have ended. Set lock_timeout, and repeat the \
           statement if it fails. The trigger renews marks when a row changes that others \
           repeat.",
};

const ADD_TRIGGER_FOR_MARKS: Template = Template {
    statement: "CREATE OR REPLACE TRIGGER {trigger}\n    \
                BEFORE INSERT OR UPDATE{update_of} ON {table} FOR EACH ROW\n    \
                EXECUTE FUNCTION {extension}.neardup_dedup({arguments});",
    note: ADD_FINGERPRINT_TRIGGER.note,
};

const ANALYZE_MARKS: Template = Template {
    statement: "ANALYZE {table};",
    note: "Reads and writes continue. neardup_remark sets the marks again, as if the rows had \
           come in the order of their keys.",
};

/// Computes the fingerprints of existing rows in the order of the argument `keep`. The trigger
/// compares each row with the rows before it, so the first of several near-duplicates becomes the
/// original. Without `keep`, [`FINGERPRINTS_OF_EXISTING_ROWS`] is used instead, which follows the
/// order in which the rows are stored.
const FINGERPRINTS_IN_ORDER: Template = Template {
    statement: "DO {quote}
#variable_conflict use_column
<<neardup>>
DECLARE
    row_key {key_type};
    done bigint := 0;
BEGIN
    FOR row_key IN SELECT t.{key} FROM {table} AS t
        WHERE t.{fp} IS NULL AND t.{text} IS NOT NULL
        ORDER BY {keep}, t.{key}
    LOOP
        UPDATE {table} AS t SET {fp} = {fingerprint_of_row}
        WHERE t.{key} = neardup.row_key AND t.{fp} IS NULL;
        done := neardup.done + 1;
        IF neardup.done % 100 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END {quote};",
    note: "Computes the fingerprints of existing rows in the order of keep, 100 rows in each \
           transaction. It writes each row once; VACUUM frees the old versions. Run this outside \
           of a transaction block. After error 40P01 run it again: near-duplicates that others \
           write can cause it.",
};

pub const ADD_MARKS: &[Template] = &[
    ADD_COLUMNS_FOR_MARKS,
    INDEX_ORIGINALS,
    INDEX_MARKS,
    ADD_MARKS_TRIGGER,
    ADD_TRIGGER_FOR_MARKS,
    FINGERPRINTS_OF_EXISTING_ROWS,
    ANALYZE_MARKS,
];

pub const ADD_MARKS_IN_ORDER: &[Template] = &[
    ADD_COLUMNS_FOR_MARKS,
    INDEX_ORIGINALS,
    INDEX_MARKS,
    ADD_MARKS_TRIGGER,
    ADD_TRIGGER_FOR_MARKS,
    FINGERPRINTS_IN_ORDER,
    ANALYZE_MARKS,
];

pub const REMOVE_MARKS: &[Template] = &[
    REMOVE_TRIGGER,
    Template {
        statement: "DROP TRIGGER IF EXISTS {marks_trigger} ON {table};",
        note: "As before.",
    },
    REMOVE_FINGERPRINT_INDEX,
    Template {
        statement: "DROP INDEX CONCURRENTLY IF EXISTS {mark_index_in_schema};",
        note: "As before.",
    },
    Template {
        statement: "ALTER TABLE {table}\n    DROP COLUMN IF EXISTS {fp},\n    \
                    DROP COLUMN IF EXISTS {mark};",
        note: "ACCESS EXCLUSIVE lock for an instant. The fingerprints and marks are gone.",
    },
];
