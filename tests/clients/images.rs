//! docs/images.md, run with imagehash, psycopg and Django.
use super::applications::run;
use crate::support::Outcome;

#[test]
fn images_in_python_and_django() -> Outcome {
    run("images", "images", "Images in Python and Django", &[])
}
