-- What the scripts call. Of clients that wait for each other the server lets one go, and a
-- constraint refuses near-duplicates: neither is an error here.
CREATE FUNCTION agree(what text, by_index bigint[], by_table bigint[]) RETURNS void LANGUAGE plpgsql
    AS $$
BEGIN
    IF by_index IS DISTINCT FROM by_table THEN
        RAISE EXCEPTION '%: % by the index, % without', what, by_index, by_table;
    END IF;
END $$;

CREATE FUNCTION quietly(statement text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN deadlock_detected OR exclusion_violation THEN
    NULL;
END $$;

-- As many new rows in each table.
CREATE FUNCTION add(rows int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO docs SELECT id, fp_of(id) FROM (SELECT nextval('ids') AS id FROM generate_series(1,
    rows)) AS new;
    INSERT INTO wide SELECT id, wide_of(id) FROM (SELECT nextval('ids') AS id
    FROM generate_series(1, rows)) AS new;
    INSERT INTO signed SELECT id, signature_of(id) FROM (SELECT nextval('ids') AS id
    FROM generate_series(1, rows)) AS new;
    INSERT INTO scoped SELECT id, fp_of(id), 'site ' || nullif(id % 8, 7)
        FROM (SELECT nextval('ids') AS id FROM generate_series(1, rows)) AS new;
$$;
