//! Text to features to fingerprints, and the distances between them.
//!
//! Nothing here knows PostgreSQL.
