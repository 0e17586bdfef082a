//! The answers of a model to the commands of captures, as labels.

use std::collections::BTreeMap;

use sizeleak_frame::{Frame, Identification};
use sizeleak_labels::{Label, Labels};
use sizeleak_model::{Model, ModelSet};
use sizeleak_pipeline::{Pipeline, PipelineInput};

use crate::error::{LearningError, Result};
use crate::learning_run::temporary_model;

/// The fractional part of the golden ratio, whose multiples are spread evenly between 0 and 1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// An answer to each command that a whole pipeline finds with a model, and how many commands there were. Answers are
/// drawn from the candidates with their probabilities: the most probable ones alone would be those of small commands.
/// True labels, by the time of their command, replace them. `names` are all actions, those of true labels first.
///
/// # Errors
/// If the pipeline does not run.
pub(super) fn answers(
    input: &PipelineInput,
    pipeline: &Pipeline,
    model: Model,
    names: &[String],
    truth: &BTreeMap<i64, Vec<u32>>,
) -> Result<(Labels, usize)> {
    let fault = |fault: String| LearningError::File { file: "the sizes found without labels".to_owned(), fault };
    let models = ModelSet::new(vec![model]).map_err(|error| fault(error.to_string()))?;
    let file = temporary_model(&models)?;
    let mut pipeline = pipeline.clone();
    pipeline.use_model(file.path())?;
    let mut rows = Vec::new();
    let mut commands: u32 = 0;
    input.observe(&pipeline, &mut |_| {}, |frame| {
        let Frame::Identification(answer) = frame else { return };
        commands = commands.saturating_add(1);
        let true_counts = truth.get(&answer.command.time_ns).cloned();
        let counts = true_counts.or_else(|| drawn_counts(&answer, names, (f64::from(commands) * GOLDEN).fract()));
        let line = rows.len() as u64 + 1;
        rows.extend(counts.map(|counts| Label { time_ns: answer.command.time_ns, counts, line }));
    })?;
    Ok((Labels { actions: names.to_vec(), rows, ..Labels::default() }, commands as usize))
}

/// How often each action occurs in the candidate at this place, from 0 to 1: each is as wide as its probability.
fn drawn_counts(answer: &Identification, names: &[String], place: f64) -> Option<Vec<u32>> {
    let all: f64 = answer.candidates.iter().map(|candidate| candidate.probability).sum();
    let mut left = place * all;
    let drawn = answer.candidates.iter().find(|candidate| {
        left -= candidate.probability;
        left < 0.0
    });
    let drawn = drawn.or(answer.candidates.first())?;
    Some(names.iter().map(|name| drawn.actions.count(name)).collect())
}
