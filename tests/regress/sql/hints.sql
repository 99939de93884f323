-- Hints for texts where fingerprints are expected.
SELECT fingerprint 'A text about rivers.';
SELECT fingerprint128 'A text about rivers.';
SELECT fingerprint256 'A text about rivers.';
SELECT minhash_signature 'A text about rivers.';
SELECT fingerprint_ball 'A text about rivers.';
SELECT fingerprint128_ball 'A text about rivers.';
SELECT fingerprint256_ball 'A text about rivers.';
SELECT bigint_ball 'A text about rivers.';
SELECT minhash_ball 'A text about rivers.';
SELECT fingerprint '河流';
-- Hexadecimal digits of another length are not a text.
SELECT fingerprint '0x00ff';

CREATE SCHEMA hints_test;
SET search_path = hints_test, public;
CREATE TABLE docs (id int, site text, "Body" text, short varchar(100), code char(8), words text[],
    vector tsvector, hash bigint, bits bit(64), bytes bytea, number numeric, uuid uuid, ints int[],
    day date, doc json, fp fingerprint);
CREATE DOMAIN prose AS text;
CREATE TABLE notes (id int, body prose);

SELECT 'a' <~> fp FROM docs;
SELECT * FROM docs WHERE fp <~> 'some text' <= 3;
SELECT * FROM docs WHERE fp <@ 'some text';

-- The expression to index instead.
\set VERBOSITY default
CREATE INDEX ON docs USING neardup ("Body");
CREATE INDEX ON docs USING neardup (short);
CREATE INDEX ON docs USING neardup (code);
CREATE INDEX ON docs USING neardup (words);
CREATE INDEX ON docs USING neardup (hash);
CREATE INDEX ON docs USING neardup (bytes);
CREATE INDEX ON docs USING neardup (number);
CREATE INDEX ON docs USING neardup (uuid);
CREATE INDEX ON docs USING neardup (ints);
CREATE INDEX ON docs USING neardup (day);
CREATE INDEX ON notes USING neardup (body);
CREATE INDEX ON docs USING neardup (lower("Body"));
CREATE INDEX ON docs USING neardup (("Body" || short));
CREATE INDEX ON docs USING neardup (site, "Body");
CREATE INDEX ON docs USING neardup (lower(site), "Body");
CREATE INDEX ON docs USING neardup (fp, site);
CREATE INDEX ON docs USING neardup (fp, hash bigint_hamming_ops);
ALTER TABLE docs ADD EXCLUDE USING neardup (site WITH =, "Body" WITH =);
-- Each hint works.
CREATE INDEX ON docs USING neardup (minhash64("Body"));
CREATE INDEX ON docs USING neardup (minhash64(short));
CREATE INDEX ON docs USING neardup (minhash64(code));
CREATE INDEX ON docs USING neardup (minhash64(words));
CREATE INDEX ON docs USING neardup (hash bigint_hamming_ops);
CREATE INDEX ON docs USING neardup ((bytes::fingerprint));
CREATE INDEX ON docs USING neardup ((number::fingerprint));
CREATE INDEX ON docs USING neardup ((uuid::fingerprint128));
CREATE INDEX ON docs USING neardup ((ints::bigint[]));
CREATE INDEX ON docs USING neardup (minhash64(lower("Body")));
CREATE INDEX ON docs USING neardup (minhash64(("Body" || short)));
CREATE INDEX ON docs USING neardup (site, minhash64("Body"));

-- Functions of whole tables.
CREATE TABLE pages (id int PRIMARY KEY, title varchar(20), body text, hash bigint);
SELECT * FROM neardup_clusters('notes');
SELECT * FROM neardup_pairs('pages', 3);
SELECT * FROM neardup_pairs('pages', 3, column_name => 'body');
SELECT * FROM neardup_pairs('pages', 3, column_name => 'hash');
SELECT * FROM neardup_distance_histogram('notes');
SELECT * FROM neardup_distance_histogram('pages', column_name => 'body');
SELECT * FROM neardup_distance_histogram('pages', column_name => 'none');
SELECT neardup_report('notes');

-- An index on an expression is found, as by the other functions.
INSERT INTO pages SELECT n, 'Page', 'A page about number ' || n / 2 || ' and no other one.'
FROM generate_series(1, 9) n;
CREATE INDEX ON pages USING neardup (minhash64(body));
SELECT count(*) FROM neardup_pairs('pages', 3);
SELECT sum(pairs) FROM neardup_distance_histogram('pages', 3);
SELECT sum(pairs) FROM neardup_distance_histogram('pages', 3, column_name => 'body');
SELECT sum(pairs) FROM neardup_distance_histogram('pages', 3, sample_rows => NULL);

-- The trigger.
CREATE TRIGGER dedup BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION neardup_dedup('body');
INSERT INTO notes VALUES (1, 'one');
CREATE TRIGGER dedup BEFORE INSERT ON docs FOR EACH ROW EXECUTE FUNCTION neardup_dedup('day');
INSERT INTO docs (id) VALUES (1);

SET client_min_messages = warning;
DROP SCHEMA hints_test CASCADE;
