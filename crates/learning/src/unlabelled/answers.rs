//! The answers of a model to the commands of captures, as labels.

use std::collections::BTreeMap;
use std::io::Write;

use sizeleak_evaluation::PipelineInput;
use sizeleak_frame::{Frame, Identification};
use sizeleak_model::{Label, Labels, Model, ModelSet};
use sizeleak_pipeline::Pipeline;

use crate::error::LearningError;

/// Answers less probable than this are no labels.
const LEAST_PROBABILITY: f64 = 0.5;

/// Answers, and how many commands there were.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) labels: Labels,
    pub(super) commands: usize,
}

/// The most probable actions of each command that a whole pipeline finds with a model; true labels, by the time of
/// their command, replace them. `names` are all actions, those of true labels first.
///
/// # Errors
/// If the pipeline does not run.
pub(super) fn answers(
    input: &PipelineInput,
    pipeline: &Pipeline,
    model: Model,
    names: &[String],
    truth: &BTreeMap<i64, Vec<u32>>,
) -> Result<Answers, LearningError> {
    let fault = |fault: String| LearningError::File { file: "the sizes found without labels".to_owned(), fault };
    let models = ModelSet::new(vec![model]).map_err(|error| fault(error.to_string()))?;
    let mut file = tempfile::Builder::new().prefix("sizeleak-").suffix(".toml").tempfile()?;
    file.write_all(models.to_toml().as_bytes())?;
    let mut pipeline = pipeline.clone();
    pipeline.use_model(file.path())?;
    let mut rows = Vec::new();
    let mut commands = 0;
    input.observe(&pipeline, &mut |_| {}, |frame| {
        let Frame::Identification(answer) = frame else { return };
        commands += 1;
        let true_counts = truth.get(&answer.command.time_ns).cloned();
        let counts = true_counts.or_else(|| probable_counts(&answer, names));
        let line = rows.len() as u64 + 1;
        rows.extend(counts.map(|counts| Label { time_ns: answer.command.time_ns, counts, line }));
    })?;
    let labels = Labels { actions: names.to_vec(), rows, is_to_the_minute: false };
    Ok(Answers { labels, commands })
}

/// How often each action occurs in the first candidate, if that is probable.
fn probable_counts(answer: &Identification, names: &[String]) -> Option<Vec<u32>> {
    let first = answer.candidates.first().filter(|first| first.probability >= LEAST_PROBABILITY)?;
    Some(names.iter().map(|name| first.actions.count(name)).collect())
}
