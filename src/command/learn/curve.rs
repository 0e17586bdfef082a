//! How good a model gets with how many labels: models of the first labels alone, tried on commands none of them learned
//! from.

use std::fmt::{Display, Formatter};
use std::fs;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use serde::Serialize;
use sizeleak_model::{FitMethod, Inventory, Model};

use super::basis::Cipher;
use super::training_set::TrainingSet;
use crate::command::Failure;
use crate::command::evaluate::Outcome;
use crate::command::labelled::LabelFile;
use sizeleak_pipeline::Pipeline;

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// From one number of labels to the next, where the user names none.
const GROWTH: f64 = 1.4;

/// Of the labels one in so many is held out, where there are no captures to test on.
const HELD_OUT: usize = 3;

/// With how many labels to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Counts {
    /// From as many as there are actions to all, each time some more.
    Growing,
    /// These, in order.
    Named(Vec<usize>),
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Growing);
        }
        let count = |part: &str| part.trim().parse().ok().filter(|count| *count > 0);
        let counts: Option<Vec<usize>> = text.split(',').map(count).collect();
        let mut counts = counts.ok_or("write numbers of labels with commas between them, such as 20,60,100")?;
        counts.sort_unstable();
        counts.dedup();
        Ok(Self::Named(counts))
    }
}

impl Counts {
    /// Those of so many labels.
    fn up_to(&self, actions: usize, labels: usize) -> Vec<usize> {
        let all = match self {
            Self::Named(counts) => counts.clone(),
            Self::Growing => {
                let next = |count: &usize| Some((*count as f64 * GROWTH).ceil() as usize);
                std::iter::successors(Some(actions.max(2)), next).take_while(|count| *count < labels).collect()
            }
        };
        let mut counts: Vec<usize> = all.into_iter().filter(|count| *count < labels).collect();
        counts.push(labels);
        counts
    }
}

/// Labels to learn from, and labels to test on with the pipeline that finds their commands.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) lesson: TrainingSet<'a>,
    pub(super) method: FitMethod,
    pub(super) cipher: Option<&'a Cipher>,
    pub(super) inventory: Option<&'a Inventory>,
    /// All sizes are compared with this model's, which says what is no command.
    pub(super) model: &'a Model,
    pub(super) pipeline: Pipeline,
    /// `None` holds out the last of the labels to learn from.
    pub(super) test: Option<LabelFile>,
}

/// The figures by number of labels.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Curve {
    schema: u32,
    /// Labelled commands that every model is tried on.
    tested: usize,
    points: Vec<Point>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Point {
    labels: usize,
    /// How many actions have the size that all labels together give; `None` where nothing could be learned.
    sizes: Option<usize>,
    /// Why nothing could be learned.
    fault: Option<String>,
    #[serde(flatten)]
    outcome: Option<Outcome>,
}

impl Trial<'_> {
    /// Learns from more and more labels, in order of time.
    pub(super) fn run(&self, counts: &Counts) -> Result<Curve, Failure> {
        let labels = self.lesson.labels;
        let rows = labels.in_time();
        let held_out = if self.test.is_some() { 0 } else { rows.len() / HELD_OUT };
        let (learned, tested) = rows.split_at(rows.len() - held_out);
        let held = labels.part(tested);
        let test = self.test.as_ref().unwrap_or(&held);
        if test.labels().rows.is_empty() {
            return Err(anyhow!(
                "{}: too few labels to hold some out: label {HELD_OUT} commands at least, or test on others \
                 (`--test-capture`, `--test-labels`)",
                labels.path().display()
            )
            .into());
        }
        let counts = counts.up_to(labels.labels().actions.len(), learned.len());
        let points = counts.into_iter().map(|count| self.point(learned.get(..count).unwrap_or(learned), test));
        Ok(Curve { schema: SCHEMA, tested: test.labels().rows.len(), points: points.collect::<Result<_, _>>()? })
    }

    /// A model of some of the labels, tried on others.
    fn point(&self, rows: &[usize], test: &LabelFile) -> Result<Point, Failure> {
        let labels = self.lesson.labels.part(rows);
        let lesson = TrainingSet { labels: &labels, ..self.lesson };
        let taught = lesson.learn(self.method, self.cipher.cloned(), self.inventory.cloned(), Vec::new());
        let model = match taught {
            // The commands were found with what all labels show to be none.
            Ok(taught) => Model { noise: self.model.noise.clone(), ..taught.model },
            Err(error) => {
                let fault = Some(error.root_cause().to_string());
                return Ok(Point { labels: rows.len(), sizes: None, fault, outcome: None });
            }
        };
        let folder = tempfile::tempdir().context("a folder for models cannot be made")?;
        let path = folder.path().join("model.toml");
        fs::write(&path, model.to_toml()).context("a model cannot be kept")?;
        let mut pipeline = self.pipeline.clone();
        pipeline.use_model(&path)?;
        let outcome = Outcome::of(&pipeline, &model, test, self.lesson.tolerance)?;
        let same = model.actions.iter().zip(&self.model.actions).filter(|(some, all)| some.size == all.size).count();
        Ok(Point { labels: rows.len(), sizes: Some(same), fault: None, outcome: Some(outcome) })
    }
}

impl Display for Curve {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "models of the first labels alone, tried on {} other commands\n", self.tested)?;
        let names = ["labels", "sizes", "before %", "after %", "first %", "five %", "candidates"];
        writeln!(formatter, "{}", names.map(|name| format!("{name:>10}")).concat())?;
        self.points.iter().try_for_each(|point| writeln!(formatter, "{point}"))?;
        writeln!(
            formatter,
            "\nsizes: actions whose size is that of all labels together; before, after: the truth among the candidates \
             before and after pruning; first, five: the truth the first candidate, or among the first five; candidates: \
             their mean number"
        )
    }
}

impl Display for Point {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let (Some(sizes), Some(outcome)) = (self.sizes, &self.outcome) else {
            return write!(formatter, "{:>10}  {}", self.labels, self.fault.as_deref().unwrap_or_default());
        };
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let share = |part: u64| percent(part as f64 / outcome.commands.max(1) as f64);
        let before = outcome.before_pruning.as_ref().map_or("–".to_owned(), |found| percent(found.precision));
        let after = &outcome.after_pruning;
        let cells = [
            self.labels.to_string(),
            sizes.to_string(),
            before,
            percent(after.precision),
            share(after.top_1),
            share(after.top_5),
            format!("{:.1}", after.candidates),
        ];
        write!(formatter, "{}", cells.map(|cell| format!("{cell:>10}")).concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_labels() {
        assert_eq!("".parse(), Ok(Counts::Growing));
        assert_eq!("60, 20,20".parse(), Ok(Counts::Named(vec![20, 60])));
        assert!("20,".parse::<Counts>().is_err() && "0".parse::<Counts>().is_err());
        assert_eq!(Counts::Growing.up_to(7, 30), [7, 10, 14, 20, 28, 30]);
        assert_eq!(Counts::Growing.up_to(7, 3), [3]);
        assert_eq!(Counts::Named(vec![5, 30, 99]).up_to(7, 30), [5, 30]);
    }
}
