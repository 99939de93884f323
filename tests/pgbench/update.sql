\set part random(0, 99)
\set by random(0, 2000)
SELECT quietly('UPDATE docs SET fp = fp_of(id + :by) WHERE id % 100 = :part');
SELECT quietly('UPDATE wide SET fp = wide_of(id + :by) WHERE id % 100 = :part');
SELECT quietly('UPDATE signed SET fp = signature_of(id + :by) WHERE id % 100 = :part');
SELECT quietly('UPDATE scoped SET site = ''site '' || :by % 9 WHERE id % 100 = :part');
