\set table random(1, 4)
\if :table = 1
VACUUM (INDEX_CLEANUP ON) docs;
\elif :table = 2
VACUUM (INDEX_CLEANUP ON) wide;
\elif :table = 3
VACUUM (INDEX_CLEANUP ON) scoped;
\else
VACUUM (INDEX_CLEANUP ON) apart;
\endif
