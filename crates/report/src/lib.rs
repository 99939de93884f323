//! Report on the near-duplicates of a table, as one self-contained HTML page.
//!
//! [`page()`] makes the page from plain [`data`]. The page has no script and no link to other
//! resources, and its content security policy allows none: a browser applies only the stylesheet
//! whose digest is in the policy. Parts of the page are folded in `<details>` elements. The reader
//! chooses a radius by radio buttons, and rules of the stylesheet show the results for the checked
//! button. All text from outside passes through [`escape::push_text`].
//!
//! | part | module |
//! |---|---|
//! | head, summary, parameters | `page` |
//! | numbers for each radius | `radii` |
//! | histogram | `chart` |
//! | clusters and their rows | `clusters` |
//! | two texts side by side | `hunks` |
#![forbid(unsafe_code)]

mod chart;
mod clusters;
pub mod data;
pub mod escape;
mod hunks;
pub mod numbers;
mod page;
mod radii;

pub use neardup_textdiff::Host;
pub use page::page;
