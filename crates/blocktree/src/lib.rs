//! Block-permutation keys and the B-link tree that indexes them.
//!
//! Nothing here knows PostgreSQL.
