"""The types of the extension: their names in SQL, and the classes of their values here."""

from ._neardup import Fingerprint, Fingerprint128, Fingerprint256, MinHashSignature

CLASSES = {
    "fingerprint": Fingerprint,
    "fingerprint128": Fingerprint128,
    "fingerprint256": Fingerprint256,
    "minhash_signature": MinHashSignature,
}

# Types that belong to the extension. They are found through the extension, because OIDs differ
# between databases and its schema need not be on search_path.
QUERY = """
SELECT t.typname::text, n.nspname::text, t.oid, t.typarray,
    pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname)
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
    AND d.refobjid = e.oid AND d.deptype = 'e'
    AND d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass
JOIN pg_catalog.pg_type t ON t.oid = d.objid
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE e.extname = 'neardup' AND t.typname::text = ANY (ARRAY[
    'fingerprint', 'fingerprint128', 'fingerprint256', 'minhash_signature'])
"""


def expect_types(rows):
    """Returns the rows, or raises LookupError if the database does not have the extension."""
    rows = [tuple(row) for row in rows]
    if not rows:
        raise LookupError(
            "the database has no types of neardup: run CREATE EXTENSION neardup in it first"
        )
    return rows
