//! Report on the near-duplicates of a table, as one HTML page that needs nothing else.
//!
//! [`page`] makes it of plain [`data`]. The page holds no script and no link to other resources,
//! and its content security policy allows none: a browser applies only the one stylesheet whose
//! digest the policy names. What is folded unfolds by `<details>`, and the choice of a radius is a
//! group of radio buttons that the stylesheet reacts to. Each text from outside passes
//! [`escape::push_text`].
//!
//! | part | module |
//! |---|---|
//! | head, summary, parameters | `page` |
//! | numbers for each radius | `radii` |
//! | histogram | `chart` |
//! | groups and their rows | `groups` |
//! | two texts side by side | `hunks` |
#![forbid(unsafe_code)]

mod chart;
pub mod data;
pub mod escape;
mod groups;
mod hunks;
pub mod numbers;
mod page;
mod radii;

pub use neardup_textdiff::Host;
pub use page::page;
