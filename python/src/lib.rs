//! Extension module `neardup._neardup` of the package `neardup`.
//!
//! The functions have the names, parameters and results of the SQL functions, with `None` for
//! NULL. Like the server, they call `neardup_sketch` and `neardup_blocktree`.
mod compare;
mod compute;
mod features;
mod fingerprints;
mod keys;
mod options;
mod signature;
mod texts;

use pyo3::prelude::*;

#[pymodule]
mod _neardup {
    #[pymodule_export]
    use crate::compare::{
        fingerprint_similarity, hamming_distance, minhash_distance, minhash_similarity,
        neardup_radius,
    };
    #[pymodule_export]
    use crate::features::{
        minhash_features, minhash64_features, minhash128_features, simhash_features,
        simhash_hashes, simhash128_features,
    };
    #[pymodule_export]
    use crate::fingerprints::{Fingerprint, Fingerprint128, Fingerprint256};
    #[pymodule_export]
    use crate::keys::neardup_band_keys;
    #[pymodule_export]
    use crate::signature::MinHashSignature;
    #[pymodule_export]
    use crate::texts::{
        containment, html_text, jaccard_similarity, longest_sentences_hash, minhash, minhash_many,
        minhash64, minhash64_many, minhash128, minhash128_many, set_jieba_user_words, simhash,
        simhash_many, simhash128, simhash128_many, text_length,
    };

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
