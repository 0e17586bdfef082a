//! What is known of a gateway after some commands.

use std::fmt::{self, Display, Formatter};

use sizeleak_learning::LearnedModel;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionSize {
    pub action: String,
    /// Its most probable size, in bytes.
    pub size: i64,
    /// The least and the greatest size that a credible interval of 95 % holds.
    pub interval: [i64; 2],
}

impl Display for ActionSize {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { action, size, interval: [least, greatest] } = self;
        write!(formatter, "{action} {size}")?;
        if least == greatest { Ok(()) } else { write!(formatter, " ({least}–{greatest})") }
    }
}

/// What the commands to learn from say.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// |ac| in bytes.
    pub overhead: i64,
    /// The sizes of the actions that the commands tell apart.
    pub sizes: Vec<ActionSize>,
    /// The posterior probability that all of these are right; 0 if some action has none.
    pub certainty: f64,
    /// The standard deviation of ε, in bytes.
    pub spread: f64,
    /// Commands that would tell where length fields grow, by how often each action occurs; none if nothing is open.
    pub longer: Vec<Vec<u32>>,
    /// Labels that no command was found for, or whose command has a size that no sum explains.
    pub unexplained: usize,
    /// Why no sum of sizes holds, however many commands are recorded.
    pub without_sums: Option<String>,
    pub warnings: Vec<String>,
}

/// How the commands that were held back fit a model that has not seen them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldOut {
    pub commands: u64,
    /// Those whose true actions are among the candidates.
    pub explained: u64,
}

/// Sizes are whole bytes, so ε is known no better than within one.
const MIN_SPREAD: f64 = 0.5;

impl Knowledge {
    pub(crate) fn of(learned: &LearnedModel, actions: &[String], unexplained: usize) -> Self {
        let model = &learned.model;
        let size = |(action, interval): (&sizeleak_model::Action, &[i64; 2])| ActionSize {
            action: action.name.clone(),
            size: action.size,
            interval: *interval,
        };
        let sizes: Vec<ActionSize> = model.actions.iter().zip(&learned.intervals).map(size).collect();
        let is_complete = actions.iter().all(|name| sizes.iter().any(|size| size.action == *name));
        let tuples = || model.neighbours.tuples().iter().map(|tuple| (tuple.epsilon as f64, tuple.times as f64));
        let times: f64 = tuples().map(|(_, times)| times).sum();
        let mean = tuples().map(|(epsilon, times)| epsilon * times).sum::<f64>() / times.max(1.0);
        let variance = tuples().map(|(epsilon, times)| (epsilon - mean).powi(2) * times).sum::<f64>() / times.max(1.0);
        let is_open = learned.plan.commands().iter().any(|counts| counts.iter().sum::<u32>() > 2);
        Self {
            overhead: model.overhead,
            certainty: if is_complete { model.learned.certainty } else { 0.0 },
            spread: variance.sqrt().max(MIN_SPREAD),
            longer: if is_open { learned.plan.commands().to_vec() } else { Vec::new() },
            unexplained,
            without_sums: learned.without_sums.clone(),
            warnings: learned.warnings.clone(),
            sizes,
        }
    }

    /// Whether both know the same sizes. |ac| may move with a message number's width, which is ε.
    pub(crate) fn has_sizes_of(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|it| it.sizes.iter().map(|size| (&size.action, size.size)));
        own.eq(others)
    }
}
