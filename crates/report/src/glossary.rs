//! What the words of a report mean.

use crate::document::Unit::Words;
use crate::document::{Figure, Section, Table};

const WORDS: [(&str, &str); 13] = [
    ("action", "what a command tells a device to do: on, off, dim"),
    ("anonymity set", "the commands that a size leaves possible; the more there are, the less it gives away"),
    (
        "bits given away",
        "the mutual information of command and size: how much less uncertain a command is once its size is seen",
    ),
    ("calibrated", "answers of probability p are right in a share p of cases"),
    ("command", "an encrypted message that makes devices act; one may tell several devices what to do"),
    ("floor", "what no padding policy, random or not, can go below with as few bytes"),
    ("guessing", "to name what is most frequent, without seeing anything"),
    (
        "interval of 95 %",
        "the values that the data do not exclude; with other commands, the figure would lie in such a range in 95 of 100 cases",
    ),
    ("named", "an observer who sees one command names it exactly as the best guess"),
    ("padding", "bytes without meaning that make messages longer, so that lengths say less"),
    ("prior", "how probable commands are before their size is seen"),
    ("reply", "a record that the gateway sends back once a device has acted"),
    ("size", "the length of a command in bytes, which encryption does not hide"),
];

/// The words.
pub(crate) fn section() -> Section {
    let rows = WORDS.map(|(word, meaning)| [word.into(), meaning.into()]);
    let figure = Figure::new("words", "Words", "", Table::new([("word", Words), ("meaning", Words)], rows), None);
    Section::new("glossary", "Glossary", Vec::new(), vec![figure])
}
