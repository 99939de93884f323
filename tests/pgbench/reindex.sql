\set table random(1, 3)
\if :table = 1
REINDEX INDEX CONCURRENTLY docs_fp;
\elif :table = 2
REINDEX INDEX CONCURRENTLY wide_fp;
\else
REINDEX INDEX CONCURRENTLY scoped_fp;
\endif
