-- Statements that set a table up, and statements that revert it.
CREATE SCHEMA "New ""texts""";
CREATE TABLE "New ""texts"""."It's" (id uuid PRIMARY KEY, "The body" varchar(80));
\pset format unaligned
\pset tuples_only on
\pset recordsep '\n'
SELECT format(E'-- %s %s\n%s\n-- %s', part, step, statement, note)
    FROM neardup_setup('"New ""texts"""."It''s"', 'The body');
SELECT format(E'-- %s %s\n%s\n-- %s', part, step, statement, note)
    FROM neardup_setup('"New ""texts"""."It''s"', 'The body', 'error', 0.9);
SELECT format(E'-- %s %s\n%s\n-- %s', part, step, statement, note)
    FROM neardup_setup('"New ""texts"""."It''s"', 'The body', 'mark');
\pset format aligned
\pset tuples_only off
-- The statements work, in their order.
SELECT statement FROM neardup_setup('"New ""texts"""."It''s"', 'The body', 'mark')
    WHERE part = 'add' ORDER BY step
\gexec
INSERT INTO "New ""texts"""."It's"
    SELECT md5(i::text)::uuid, 'The library reopens on day ' || i / 2 FROM generate_series(2, 5) i;
SELECT a."The body", o."The body" AS repeats FROM "New ""texts"""."It's" a
    LEFT JOIN "New ""texts"""."It's" o ON o.id = a."The body_neardup_of" ORDER BY 1, 2;
SELECT statement FROM neardup_setup('"New ""texts"""."It''s"', 'The body', 'mark')
    WHERE part = 'remove' ORDER BY step
\gexec
\d "New ""texts"""."It's"
-- Errors.
SELECT * FROM neardup_setup('"New ""texts"""."It''s"', 'the body');
SELECT * FROM neardup_setup('"New ""texts"""."It''s"', 'id');
SELECT * FROM neardup_setup('pg_tables', 'tablename');
SELECT * FROM neardup_setup('"New ""texts"""."It''s"', 'The body', 'log');
DROP SCHEMA "New ""texts""" CASCADE;
