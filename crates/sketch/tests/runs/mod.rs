//! Texts that are one long run.

/// Runs of separators, letters of several scripts, marks, signs and their mixtures.
pub const RUNS: [&str; 23] = [
    "\n",
    "\r\n",
    " ",
    "\u{3000}",
    "\u{1680}",
    "，",
    "’",
    "_",
    "a",
    "a.",
    "1",
    "é",
    "א",
    "カ",
    "ก",
    "क्",
    "的",
    "a中-",
    "①",
    "\u{301}",
    "a\u{301}",
    "\n\u{301}",
    "🇩",
];
