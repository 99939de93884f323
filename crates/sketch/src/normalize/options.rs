//! Accents removed, digits made alike: what comes before the normal form if it is asked for.

use std::borrow::Cow;

use crate::options::Normalize;

/// `text` with what `options` make alike made alike.
pub(crate) fn prepared<'a>(
    text: Cow<'a, str>,
    options: Normalize,
    _check: &mut dyn FnMut(),
) -> Cow<'a, str> {
    if options == Normalize::DEFAULT {
        return text;
    }
    unimplemented!("accents and digits")
}
