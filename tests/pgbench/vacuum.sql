\set table random(1, 5)
\if :table = 1
VACUUM (INDEX_CLEANUP ON) docs;
\elif :table = 2
VACUUM (INDEX_CLEANUP ON) wide;
\elif :table = 3
VACUUM (INDEX_CLEANUP ON) scoped;
\elif :table = 4
VACUUM (INDEX_CLEANUP ON) signed;
\else
VACUUM (INDEX_CLEANUP ON) apart;
\endif
