\set part random(0, 49)
SELECT quietly('DELETE FROM docs WHERE id < (SELECT max(id) - 20000 FROM docs)');
SELECT quietly('DELETE FROM wide WHERE id < (SELECT max(id) - 20000 FROM wide)');
SELECT quietly('DELETE FROM signed WHERE id < (SELECT max(id) - 20000 FROM signed)');
SELECT quietly('DELETE FROM scoped WHERE id < (SELECT max(id) - 20000 FROM scoped)');
SELECT quietly('DELETE FROM apart WHERE id % 50 = :part');
