-- ------------------------------------------------------------------------------------------------
-- All neardup indexes of a database
-- ------------------------------------------------------------------------------------------------

-- Its columns come from catalogs that every role may read, and the view has no rights of its own.
-- Functions that raise an error for an index that is dropped meanwhile (pg_get_indexdef) are not
-- called: pg_relation_size returns NULL for it.
CREATE VIEW neardup_indexes WITH (security_invoker = true) AS
SELECT i.indrelid::regclass AS relation,
       i.indexrelid::regclass AS index,
       (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = i.indexrelid) AS partition_of,
       ARRAY(SELECT attname FROM pg_attribute
             WHERE attrelid = i.indexrelid AND attnum > 0 ORDER BY attnum) AS columns,
       c.reloptions AS options,
       CASE c.relpersistence WHEN 'u' THEN 'unlogged' WHEN 't' THEN 'temporary'
            ELSE 'permanent' END AS persistence,
       i.indisvalid AS is_valid,
       i.indpred IS NOT NULL AS is_partial,
       i.indisexclusion AS is_constraint,
       CASE WHEN c.relkind = 'i' THEN pg_relation_size(c.oid) END AS bytes,
       CASE WHEN c.relkind = 'i' AND c.reltuples >= 0 THEN c.reltuples::bigint END AS rows,
       CASE WHEN c.relkind = 'i' THEN pg_stat_get_numscans(c.oid) END AS scans,
       CASE WHEN c.relkind = 'i' THEN pg_stat_get_tuples_returned(c.oid) END AS rows_read,
       CASE WHEN c.relkind = 'i' THEN pg_stat_get_dead_tuples(i.indrelid) END AS dead_rows,
       CASE WHEN c.relkind = 'i' THEN greatest(pg_stat_get_last_vacuum_time(i.indrelid),
            pg_stat_get_last_autovacuum_time(i.indrelid)) END AS last_vacuum
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'neardup';
GRANT SELECT ON neardup_indexes TO PUBLIC;
COMMENT ON VIEW neardup_indexes IS
    'all neardup indexes of the database, with size, rows, use and options; reads no index';
