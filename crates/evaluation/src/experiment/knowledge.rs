//! What is known of a gateway after some commands, how uncertain the sizes are, and what one more command would settle.

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
            warnings: model.learned.warnings.clone(),
            sizes,
        }
    }

    /// Whether both know the same sizes. |ac| may move with a message number's width, which is ε.
    pub(crate) fn has_sizes_of(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|it| it.sizes.iter().map(|size| (&size.action, size.size)));
        own.eq(others)
    }
}

/// The standard deviation in bytes of a size of which nothing is known: a message of an action takes up to some hundred.
const UNKNOWN_BYTES: f64 = 100.0;

/// Sizes are whole bytes: one is settled when an error of half a byte is improbable.
const HALF_BYTE: f64 = 0.5;

/// How uncertain the sizes are after some commands.
///
/// The size of a command is linear in |ac| and the |aᵢ|, with ε as noise, so the uncertainty about these depends on
/// which actions were commanded and not on what was seen. The same holds for the number and the bytes of replies: the
/// command that settles most about sizes settles most about them, too.
#[derive(Debug, Clone)]
pub(crate) struct Covariance {
    rows: Vec<Vec<f64>>,
    /// The variance of ε, in square bytes.
    noise: f64,
}

impl Covariance {
    /// The covariance after commands with these counts; `spread` is the standard deviation of ε in bytes.
    pub(crate) fn after<'a>(actions: usize, spread: f64, commands: impl Iterator<Item = &'a [u32]>) -> Self {
        let unknown =
            |row: usize| (0..=actions).map(move |column| if row == column { UNKNOWN_BYTES.powi(2) } else { 0.0 });
        let mut covariance =
            Self { rows: (0..=actions).map(|row| unknown(row).collect()).collect(), noise: spread.powi(2) };
        for counts in commands {
            let (along, variance) = covariance.along(counts);
            for (row, of_row) in covariance.rows.iter_mut().zip(&along) {
                for (cell, of_column) in row.iter_mut().zip(&along) {
                    *cell -= of_row * of_column / variance;
                }
            }
        }
        covariance
    }

    /// The covariance of each size with that of a command, and the variance of this command's size.
    fn along(&self, counts: &[u32]) -> (Vec<f64>, f64) {
        let command: Vec<f64> = std::iter::once(1.0).chain(counts.iter().map(|count| f64::from(*count))).collect();
        let product = |row: &[f64]| row.iter().zip(&command).map(|(cell, count)| cell * count).sum::<f64>();
        let along: Vec<f64> = self.rows.iter().map(|row| product(row)).collect();
        let variance = product(&along) + self.noise;
        (along, variance)
    }

    /// How many sizes of actions are expected to be wrong after one more command, if each is rounded to whole bytes.
    pub(crate) fn unsettled_after(&self, counts: &[u32]) -> f64 {
        let (along, variance) = self.along(counts);
        let cells = self.rows.iter().zip(&along).enumerate().skip(1);
        cells.map(|(at, (row, along))| wrong(row.get(at).map_or(0.0, |cell| cell - along * along / variance))).sum()
    }

    pub(crate) fn unsettled(&self) -> f64 {
        self.rows.iter().enumerate().skip(1).map(|(at, row)| wrong(row.get(at).copied().unwrap_or(0.0))).sum()
    }
}

/// A bound on the probability that a normal error of this variance is above half a byte (Mills' ratio).
///
/// For great variances the bound is no probability, but still grows with the variance, which is all that a choice needs.
fn wrong(variance: f64) -> f64 {
    let deviation = variance.max(f64::MIN_POSITIVE).sqrt();
    let ratio = HALF_BYTE / deviation;
    deviation / (deviation + HALF_BYTE) * (-ratio * ratio / 2.0).exp() + variance * f64::EPSILON
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_settles_what_is_open() {
        let known: [&[u32]; 4] = [&[1, 0], &[2, 0], &[1, 0], &[2, 0]];
        let covariance = Covariance::after(2, 0.5, known.into_iter());
        let after = |counts: &[u32]| covariance.unsettled_after(counts);
        assert!(after(&[0, 1]) < after(&[1, 0]), "of `off` nothing is known");
        assert!(after(&[1, 0]) < covariance.unsettled(), "each command tells something");
        let more = Covariance::after(2, 0.5, known.into_iter().chain([[0, 1].as_slice()]));
        assert!((more.unsettled() - after(&[0, 1])).abs() < 1e-9, "what is expected comes true");
    }

    #[test]
    fn noise_needs_more_commands() {
        let commands = |times: usize| [[1_u32, 0], [0, 1], [1, 1]].repeat(times);
        let unsettled = |spread, times| {
            let commands = commands(times);
            Covariance::after(2, spread, commands.iter().map(<[u32; 2]>::as_slice)).unsettled()
        };
        assert!(unsettled(0.5, 12) < unsettled(0.5, 2) / 4.0);
        assert!(unsettled(0.5, 60) < 0.01);
        assert!(unsettled(2.0, 12) > unsettled(0.5, 12));
    }
}
