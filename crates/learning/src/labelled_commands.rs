//! Labelled commands as an observer sees them, without a model of their gateway.

use sizeleak_evaluation::{EvaluationError, LabelFile, MatchCounts, PipelineInput, Tolerance};
use sizeleak_frame::{Command, Notice};
use sizeleak_model::{Basis, Matching};
use sizeleak_pipeline::{Pipeline, RunError};
use toml::Value;

use crate::error::LearningError;
use crate::observed_commands::{ObservedCommands, observe_commands};
use crate::size_basis::{self, ObservedCommand, choose_basis};

const SEGMENTER: &str = "command-segmenter";

/// The algorithms that need no model, each with how long it may wait before it decides.
const ALGORITHMS: [(&str, Option<&str>); 3] = [("adaptive", Some("24h")), ("gap", None), ("record", None)];

/// The commands that labels belong to, in order of time.
#[derive(Debug)]
pub struct LabelledCommands {
    /// The names of the actions.
    pub actions: Vec<String>,
    /// The commands.
    pub commands: Vec<SeenCommand>,
    /// How labels and commands match.
    pub matches: MatchCounts,
    /// What is to be said of labels and sizes, a sentence each.
    pub remarks: Vec<String>,
    /// What is wrong with the captures; commands are those before the damage.
    pub damage: Option<RunError>,
}

/// A labelled command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenCommand {
    /// How often each action occurs in it, by its label.
    pub counts: Vec<u32>,
    /// As it was found.
    pub command: Command,
    /// Its size in bytes: of plaintext where the captures show the cipher, else on the wire; under a block cipher the
    /// greatest that it may have.
    pub size: u64,
    /// The bytes of the replies to it.
    pub reply_bytes: u64,
}

impl SeenCommand {
    /// Its size in bytes in the basis of a model, the greatest that it may have; `None` if the model is of sizes on the
    /// wire under a cipher that it does not know, while this session's is known.
    pub fn size_in(&self, basis: &Basis) -> Option<u64> {
        size_in(basis, &self.command)
    }
}

impl LabelledCommands {
    /// Finds the commands of labels. Where nothing says how, the algorithm is used that leaves the fewest labels without a
    /// command: it does not look at sizes, so that it makes them say no more than they do. Notices of the first run go to
    /// `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run, or most labels belong to no command.
    pub fn find(
        input: &PipelineInput,
        pipeline: &Pipeline,
        labels: &LabelFile,
        tolerance: Tolerance,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<Self, LearningError> {
        let is_set = |key: &str| pipeline.option(SEGMENTER, key).and_then(Value::as_str).is_some();
        if is_set("algorithm") || is_set("model") || !pipeline.has(SEGMENTER) || !input.has_records(pipeline)? {
            return Found::new(input, pipeline, labels, tolerance, on_notice)?.labelled(tolerance);
        }
        let mut best: Option<Found> = None;
        for (algorithm, look_ahead) in ALGORITHMS {
            let mut pipeline = pipeline.clone();
            pipeline.set(SEGMENTER, "algorithm", algorithm)?;
            if let Some(look_ahead) = look_ahead {
                pipeline.set(SEGMENTER, "look-ahead", look_ahead)?;
            }
            let is_first = best.is_none();
            let found = Found::new(input, &pipeline, labels, tolerance, &mut |notice| {
                if is_first {
                    on_notice(notice);
                }
            })?;
            if best.as_ref().is_none_or(|best| found.unmatched() < best.unmatched()) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.unmatched() == 0) {
                break;
            }
        }
        best.ok_or(LearningError::NoSizes)?.labelled(tolerance)
    }
}

/// The commands of one run, with the labels on their clock.
struct Found {
    observed: ObservedCommands,
    labels: LabelFile,
    times: Vec<i64>,
    /// `None` if no label is near a command.
    matching: Option<Matching>,
}

impl Found {
    fn new(
        input: &PipelineInput,
        pipeline: &Pipeline,
        labels: &LabelFile,
        tolerance: Tolerance,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<Self, LearningError> {
        let observed = observe_commands(input, pipeline, on_notice)?;
        let times: Vec<i64> = observed.commands.iter().map(|observed| observed.command.time_ns).collect();
        let labels = labels.aligned(&times, tolerance);
        let matching = labels.matching(&times, tolerance).ok();
        Ok(Self { observed, labels, times, matching })
    }

    /// How many labels have no command.
    fn unmatched(&self) -> usize {
        let unmatched = |matching: &Matching| matching.missed.len() + matching.ambiguous.len();
        self.matching.as_ref().map_or(usize::MAX, unmatched)
    }

    fn labelled(self, tolerance: Tolerance) -> Result<LabelledCommands, LearningError> {
        let Self { observed, labels, times, .. } = self;
        let ObservedCommands { commands, seen, damage, .. } = observed;
        if commands.is_empty() {
            return Err(match damage {
                Some(damage) => EvaluationError::from(damage).into(),
                None => EvaluationError::NoCommands(Box::new(seen)).into(),
            });
        }
        let matching = labels.matching(&times, tolerance)?;
        if damage.is_none() {
            // Before the damage there need not be commands of all labels.
            labels.check_use(&matching, &times, tolerance).map_err(EvaluationError::from)?;
        }
        let mut remarks = labels.unmatched(&matching, &times, tolerance);
        let mut pairs: Vec<(&[u32], &ObservedCommand)> = matching
            .pairs
            .iter()
            .filter_map(|(row, at)| Some((&*labels.labels().rows.get(*row)?.counts, commands.get(*at)?)))
            .collect();
        pairs.sort_by_key(|(_, observed)| observed.command.time_ns);
        let matched: Vec<ObservedCommand> = pairs.iter().map(|(_, observed)| (*observed).clone()).collect();
        let chosen = choose_basis(&matched, None);
        let mixed = matched.iter().filter(|observed| observed.command.plaintext.is_none()).count();
        if mixed > 0 && mixed < matched.len() {
            remarks.extend(chosen.remarks);
        }
        let seen = |(counts, observed): &(&[u32], &ObservedCommand)| SeenCommand {
            counts: counts.to_vec(),
            command: observed.command.clone(),
            size: size_in(&chosen.basis, &observed.command).unwrap_or(observed.command.size),
            reply_bytes: unsigned(size_basis::reply_bytes(&chosen.basis, &observed.command)),
        };
        Ok(LabelledCommands {
            actions: labels.labels().actions.clone(),
            commands: pairs.iter().map(seen).collect(),
            matches: MatchCounts::new(&matching),
            remarks,
            damage,
        })
    }
}

/// The size of a command in a basis, the greatest that it may have; `None` on the wire where the cipher is known.
fn size_in(basis: &Basis, command: &Command) -> Option<u64> {
    let [_, most] = basis.sizes(command.size, command.records, command.plaintext).ok()?;
    Some(unsigned(most))
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}
