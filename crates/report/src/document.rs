//! What a report holds, whatever form it is written in: a verdict, three tiles and sections, whose figures are tables that
//! a chart may show; which parts it has, in their order, and what to give so that there are figures.

use sizeleak_evaluation::statistics::{Interval, percent_within};
pub use sizeleak_output::plot::ChartKind;
use sizeleak_output::plot::{Chart, ChartValue, PictureSize};
use sizeleak_text::percent;

/// A value that is not known.
pub const NONE: &str = "–";

/// A share that is shown as less than the least that has digits, and not as rounding.
const LEAST: f64 = 1e-6;

/// What everybody should know of all figures.
pub(crate) const CAPTION: &str = "Nothing is decrypted for any of this: whoever sees the lengths of encrypted records can \
    do it. All figures are sums over many commands; nothing here names a single command, or the time of a single event.";

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The figure that matters most.
    pub verdict: Verdict,
    /// Who names what how often.
    pub tiles: Vec<Tile>,
    pub fix: String,
    /// Everything else, in the order of the page.
    pub sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub sentence: String,
    pub meaning: String,
}

/// How often a secret is named by observers who see more and more.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    pub title: &'static str,
    pub source: String,
    /// The share of commands, for each of the observers; `None` if nothing is known of the secret.
    pub named: Option<[Value; 3]>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    pub id: &'static str,
    /// What its figures show, a paragraph each, or what to give so that there are any. Words between backticks are code.
    pub text: Vec<String>,
    pub figures: Vec<Figure>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in links and files.
    pub id: &'static str,
    pub title: String,
    /// How the table is read.
    pub note: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    pub drawn: Option<Drawn>,
}

/// A value of a table, which each form shows in its own way.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words, which may come from outside.
    Words(String),
    Count(f64),
    /// A number of which so many decimals are shown.
    Number(f64, usize),
    /// A change, with its sign and so many decimals.
    Change(f64, usize),
    Share(f64),
    /// A sum of probabilities, each of which counts, however small it is.
    Sum(f64),
    /// A share that is at most so much.
    AtMost(f64),
    /// A share with its interval.
    Within(f64, Interval),
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    kind: ChartKind,
    /// Which columns of the table, in the order of the kind.
    columns: &'static [usize],
    /// Where a line says what guessing reaches.
    guessing: Option<f64>,
    /// How the drawing is read, where it does not say that itself.
    pub(crate) reading: &'static str,
}

impl Figure {
    /// A table, whose columns are named between bars, as in `action | bytes | named`.
    pub fn new<const N: usize>(id: &'static str, columns: &str, rows: impl IntoIterator<Item = [Value; N]>) -> Self {
        let columns = columns.split('|').map(|name| name.trim().to_owned()).collect();
        let rows = rows.into_iter().map(Vec::from).collect();
        Self::of(id, columns, rows)
    }

    pub fn of(id: &'static str, columns: Vec<String>, rows: Vec<Vec<Value>>) -> Self {
        Self { id, title: String::new(), note: String::new(), columns, rows, drawn: None }
    }

    #[must_use]
    pub fn titled(self, title: impl Into<String>, note: impl Into<String>) -> Self {
        Self { title: title.into(), note: note.into(), ..self }
    }

    #[must_use]
    pub fn drawn(self, kind: ChartKind, columns: &'static [usize]) -> Self {
        Self { drawn: Some(Drawn { kind, columns, guessing: None, reading: "" }), ..self }
    }

    #[must_use]
    pub fn beside_guessing(self, guessing: f64) -> Self {
        Self { drawn: self.drawn.map(|drawn| Drawn { guessing: Some(guessing), ..drawn }), ..self }
    }

    /// The same with how its drawing is read, which stands only where the drawing does.
    #[must_use]
    pub fn read_by(self, reading: &'static str) -> Self {
        Self { drawn: self.drawn.map(|drawn| Drawn { reading, ..drawn }), ..self }
    }

    /// What is drawn of it; `None` if nothing is.
    pub fn chart(&self) -> Option<Chart> {
        let Drawn { kind, columns, guessing, .. } = self.drawn.as_ref()?;
        let drawn = |row: &[Value]| columns.iter().filter_map(|at| row.get(*at)).map(Value::drawn).collect();
        let name = |row: &[Value]| {
            let drawn = || columns.iter().filter_map(|at| row.get(*at));
            let words = drawn().find(|value| matches!(value, Value::Words(_)));
            words.or(drawn().next()).map_or_else(String::new, Value::shown)
        };
        let column = |at: &usize| {
            let is_share = |row: &Vec<Value>| row.get(*at).is_some_and(Value::is_share);
            (self.columns.get(*at).cloned().unwrap_or_default(), self.rows.iter().any(is_share))
        };
        Some(Chart {
            kind: *kind,
            size: PictureSize::default(),
            heading: None,
            title: self.title.clone(),
            about: self.note.clone(),
            columns: columns.iter().map(column).collect(),
            rows: self.rows.iter().map(|row| (name(row), drawn(row))).collect(),
            guessing: *guessing,
        })
    }

    /// Which columns have numbers, which are aligned at their ends.
    pub fn numeric(&self) -> Vec<bool> {
        let is_number = |value: &Value| !matches!(value, Value::Words(_) | Value::Unknown);
        let of_column = |at| self.rows.iter().filter_map(|row| row.get(at)).any(is_number);
        (0..self.columns.len()).map(of_column).collect()
    }
}

impl Value {
    /// As people read it.
    pub fn shown(&self) -> String {
        match self {
            Self::Words(words) => sizeleak_text::escaped(words).into_owned(),
            Self::Count(number) | Self::Number(number, _) if number.abs() >= 1e15 => format!("{number:.1e}"),
            Self::Count(number) => thousands(*number),
            Self::Number(number, digits) => format!("{number:.digits$}"),
            Self::Change(change, digits) => format!("{:+.digits$}", change + 0.0),
            Self::Share(share) => percent(*share),
            Self::Sum(share) if *share > 0.0 => percent(share.max(LEAST)),
            Self::Sum(_) => percent(0.0),
            Self::AtMost(share) => format!("≤ {}", percent(*share)),
            Self::Within(share, interval) => percent_within(*share, *interval),
            Self::Unknown => NONE.to_owned(),
        }
    }

    /// As programs read it: all digits of a number, nothing where it is not known.
    pub fn exact(&self) -> String {
        match self {
            Self::Words(words) => sizeleak_text::escaped(words).into_owned(),
            value => value.number().map_or_else(String::new, |number| number.to_string()),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Words(_) | Self::Unknown => None,
            Self::Count(number)
            | Self::Number(number, _)
            | Self::Change(number, _)
            | Self::Share(number)
            | Self::Sum(number)
            | Self::AtMost(number)
            | Self::Within(number, _) => Some(*number),
        }
    }

    fn drawn(&self) -> ChartValue {
        let ends = if let Self::Within(_, Interval { low, high }) = self { Some([*low, *high]) } else { None };
        ChartValue { value: self.number(), ends }
    }

    fn is_share(&self) -> bool {
        matches!(self, Self::Share(_) | Self::Sum(_) | Self::AtMost(_) | Self::Within(..))
    }

    /// A number with about three digits.
    pub fn figure(number: f64) -> Self {
        if number < 100.0 { Self::Number(number, 2) } else { Self::Count(number) }
    }
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digit.is_ascii_digit() && !shown.ends_with('-') && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Count(number as f64)
    }
}

impl From<String> for Value {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl<V: Into<Self>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}

/// What observers see, as tiles name it.
const OBSERVERS: [&str; 3] = ["guessing", "size", "size and replies"];

impl Tile {
    pub(crate) fn observers(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        OBSERVERS.into_iter().zip(self.named.iter().flatten())
    }
}

impl Section {
    pub fn new(id: &'static str, text: Vec<String>, figures: Vec<Figure>) -> Self {
        Self { id, text, figures }
    }

    pub fn missing(id: &'static str, why: impl Into<String>) -> Self {
        Self::new(id, vec![why.into()], Vec::new())
    }
}

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

const LEFT_OUT: &str = "left-out";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_people_read_them() {
        let counts = [0.0, 999.0, 85_932.0, 1_234_567.0, -1_234.0, 1e16].map(|number| Value::Count(number).shown());
        assert_eq!(counts, ["0", "999", "85,932", "1,234,567", "-1,234", "1.0e16"]);
        assert_eq!([0.5, 12.345, 510.4].map(|number| Value::figure(number).shown()), ["0.50", "12.35", "510"]);
        assert_eq!([-0.0, 1.25].map(|change| Value::Change(change, 1).shown()), ["+0.0", "+1.2"]);
        assert_eq!([1.0 - 1e-12, 0.9999].map(|share| Value::Share(share).shown()), ["100.0 %", "99.9 %"]);
        assert_eq!([1e-4, 1e-12, 0.0].map(|share| Value::Share(share).shown()), ["< 0.1 %", "0.0 %", "0.0 %"]);
        let sums = [1.0 - 1e-12, 1e-4, 1e-17, 0.0, -0.0].map(|share| Value::Sum(share).shown());
        assert_eq!(sums, ["100.0 %", "< 0.1 %", "< 0.1 %", "0.0 %", "0.0 %"]);
    }
}
