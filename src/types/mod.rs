//! SQL types: fingerprints of several widths, MinHash signatures, and balls around both.
//!
//! docs/dev/architecture.md lists the files in its section "Code map".
//!
//! Each fingerprint type implements [`Fingerprint`]. Input, output, order, hashing, distance and
//! balls are generic over this trait, and exported for each type.
pub mod ball;
pub mod ball_order;
pub mod decimal;
pub mod distance;
mod export;
pub mod fingerprint;
pub mod fingerprint64;
pub mod hamming_float;
mod hash;
mod integer;
pub mod inverse;
mod order;
pub mod signature;
pub mod text_form;
pub mod wide;

pub use ball::Ball;
pub use fingerprint::Fingerprint;
pub use fingerprint64::{Bigint, Fingerprint64};
pub use wide::{Fingerprint128, Fingerprint256};
