//! Which parts a report has, in their order: what each is called, and what to give so that there are figures.

use crate::document::{Figure, Report, Section};

const MODEL: &str = "Name a model: `sizeleak report --model model.toml -o report.html`. `sizeleak learn` makes one.";

const LABELS: &str =
    "Name labelled captures: `sizeleak report test.pcap --labels test.csv --gateway 192.168.1.20 -o report.html`.";

/// The names of parts in links, their headings, and what is said where nothing was given for them.
const PARTS: [(&str, &str, &str); 13] = [
    ("seen", "What an observer sees", "Name answers: `sizeleak report answers.frames -o report.html`."),
    ("sizes", "Sizes and collisions", MODEL),
    ("anonymity", "Anonymity", MODEL),
    ("padding", "Padding", MODEL),
    ("countermeasures", "Countermeasures", MODEL),
    ("measured", "What labelled commands show", LABELS),
    (
        "calibration",
        "Calibration",
        "Name labelled captures and a model: `sizeleak report test.pcap --labels test.csv --gateway 192.168.1.20 --model model.toml`.",
    ),
    ("learning", "Learning curve", LABELS),
    (
        "habits",
        "Habits of the home",
        "Learn a profile from the answers of some weeks, and name it: `sizeleak profile answers.frames -o home.profile.toml`.",
    ),
    (
        "deviations",
        "Deviations",
        "Look for them, and name them: `sizeleak detect answers.frames --profile home.profile.toml -o deviations.ndjson`.",
    ),
    (
        "latency",
        "Latencies of the pipeline",
        "Answers that were saved as frames say how long stages took: `sizeleak run CAPTURE --model model.toml -o answers.frames`.",
    ),
    ("provenance", "Provenance", ""),
    ("glossary", "Glossary", ""),
];

/// The name of the part that says what is left out.
const LEFT_OUT: &str = "left-out";

/// What the words of a report mean.
const WORDS: [(&str, &str); 12] = [
    ("action", "what a command tells a device to do: on, off, dim"),
    ("anonymity set", "the commands that a size leaves possible; the more there are, the less it gives away"),
    (
        "bits given away",
        "the mutual information of command and size: how much less uncertain a command is once its size is seen",
    ),
    ("calibrated", "answers of probability p are right in a share p of cases"),
    ("command", "an encrypted message that makes devices act; one may tell several devices what to do"),
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

impl Report {
    /// The same with its parts in order, and the glossary. Parts without figures are left out; one part says why.
    pub(crate) fn with_all_parts(mut self) -> Self {
        let rows = WORDS.map(|(word, meaning)| [word.into(), meaning.into()]);
        self.sections.push(Section::new(
            "glossary",
            Vec::new(),
            vec![Figure::new("words", "word | meaning", rows).titled("Words", "")],
        ));
        let (mut parts, mut left_out) = (Vec::new(), Vec::<(String, Vec<&str>)>::new());
        for (id, title, missing) in PARTS {
            let given = self.sections.iter().find(|section| section.id == id);
            match given {
                Some(given) if !given.figures.is_empty() => parts.push(given.clone()),
                _ => {
                    let why = given.map_or_else(|| missing.to_owned(), |given| given.text.join(" "));
                    match left_out.iter_mut().find(|(other, _)| *other == why) {
                        Some((_, titles)) => titles.push(title),
                        None if why.is_empty() => {}
                        None => left_out.push((why, vec![title])),
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let text = left_out.into_iter().map(|(why, titles)| format!("{}: {why}", titles.join(", "))).collect();
            let before = parts.iter().position(|part| part.id == "provenance").unwrap_or(parts.len());
            parts.insert(before, Section::new(LEFT_OUT, text, Vec::new()));
        }
        self.sections = parts;
        self
    }
}

impl Section {
    pub(crate) fn title(&self) -> &'static str {
        PARTS.iter().find(|(id, ..)| *id == self.id).map_or("What is left out", |(_, title, _)| title)
    }
}
