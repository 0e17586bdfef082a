//! Learning the sizes |ac| and |aᵢ| from labelled commands, and ε with them.

mod fitted_sizes;
mod levels;
mod paper;
mod remainders;
mod robust;
mod size_sampling;
mod size_search;
mod varying_sizes;

use sizeleak_model::{
    Action, EpsilonTuple, FitMethod, LabelledCommand, MAX_ACTION_SIZE, MAX_TUPLES, Neighbours, Smoothing,
};

pub use fitted_sizes::{FitError, MAX_FITTED_ACTIONS};
pub(crate) use remainders::{Remainders, action_bytes};

/// Sizes learned from labelled commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// |ac| in bytes.
    pub overhead: i64,
    pub actions: Vec<Action>,
    /// The least and the greatest size of each action in bytes that a credible interval of 95 % holds. The paper's
    /// procedure has no intervals: its sizes stand alone.
    pub intervals: Vec<[i64; 2]>,
    /// The posterior probability that all actions have exactly these sizes; 1 with the paper's procedure.
    pub certainty: f64,
    /// The ε of each command, without the outliers.
    pub neighbours: Neighbours,
    pub smoothing: Smoothing,
    /// Indices of commands whose label does not explain their size: wrong labels, or not commands at all.
    pub outliers: Vec<usize>,
    /// Shifts in bytes by which the sizes of all actions could be wrong together and fit nearly as well, if a length
    /// field grows between the labelled commands. If there are any, record commands of three actions and more.
    pub ambiguous_shifts: Vec<i64>,
}

impl Fit {
    /// Learns from labelled commands; `names` are the actions, in the order of the commands' counts.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn learn(method: FitMethod, names: &[String], commands: &[LabelledCommand]) -> Result<Self, FitError> {
        if commands.is_empty() {
            return Err(FitError::NoCommands);
        }
        if names.len() > MAX_FITTED_ACTIONS {
            return Err(FitError::TooManyActions(names.len()));
        }
        if let Some(at) = commands.iter().position(|command| !command.is_within_bounds(names.len())) {
            return Err(FitError::OutOfBounds(at));
        }
        let sizes = match method {
            FitMethod::Paper => paper::fit(names, commands)?,
            FitMethod::Robust => robust::fit(names, commands)?,
        };
        let mut fitted = names.iter().zip(&sizes.actions);
        if let Some((action, &size)) = fitted.find(|(_, size)| !(1..=MAX_ACTION_SIZE).contains(*size)) {
            return Err(FitError::NoSize { action: action.clone(), size });
        }
        let tuple = |(command, remainder): (&LabelledCommand, &i64)| {
            let size = action_bytes(&sizes.actions, &command.counts).saturating_add(*remainder);
            EpsilonTuple::new(size, remainder.saturating_sub(sizes.overhead))
        };
        let kept = commands.iter().zip(&sizes.remainders).enumerate();
        let kept = kept.filter(|(at, _)| sizes.outliers.binary_search(at).is_err()).map(|(_, command)| tuple(command));
        let neighbours = Neighbours::new(kept).ok_or(FitError::NoCommands)?;
        if neighbours.tuples().len() > MAX_TUPLES {
            return Err(FitError::TooManyTuples(neighbours.tuples().len()));
        }
        let actions = names.iter().zip(&sizes.actions).map(|(name, size)| Action::new(name, *size));
        Ok(Self {
            overhead: sizes.overhead,
            actions: actions.collect(),
            smoothing: match method {
                FitMethod::Paper => Smoothing::NEAREST,
                FitMethod::Robust => Smoothing::choose(&neighbours),
            },
            intervals: sizes.intervals,
            certainty: sizes.certainty,
            neighbours,
            outliers: sizes.outliers,
            ambiguous_shifts: sizes.ambiguous_shifts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;

    #[test]
    fn out_of_bounds_commands_are_rejected() {
        let names = ["on".to_owned()];
        for wrong in [command(1 << 40, &[1]), command(-1, &[1]), command(9, &[u32::MAX]), command(9, &[])] {
            let learned = Fit::learn(FitMethod::Robust, &names, &[command(9, &[1]), wrong]);
            assert_eq!(learned, Err(FitError::OutOfBounds(1)));
        }
        let names: Vec<String> = (0..257).map(|at| at.to_string()).collect();
        assert_eq!(Fit::learn(FitMethod::Paper, &names, &[command(9, &[0; 257])]), Err(FitError::TooManyActions(257)));
    }

    #[test]
    fn extreme_sizes_and_counts_are_an_error_without_panic() {
        let names = ["on".to_owned(), "off".to_owned()];
        let extreme: Vec<_> = (0..12_u32)
            .map(|at| command(i64::from(at % 3) << 31, &[(1 << 20) * (at % 2), (1 << 20) * (at % 5)]))
            .collect();
        assert!(Fit::learn(FitMethod::Robust, &names, &extreme).is_err());
    }

    #[test]
    fn errors_name_the_missing_commands() {
        let names = ["on".to_owned(), "off".to_owned()];
        let error =
            |method, commands: &[LabelledCommand]| Fit::learn(method, &names, commands).unwrap_err().to_string();

        let only_on = [command(150, &[1, 0]), command(200, &[2, 0])];
        assert!(error(FitMethod::Paper, &only_on).contains("`off` alone on one device"));
        assert!(error(FitMethod::Robust, &only_on).contains("no labelled command has `off`"));
        let together = [command(150, &[1, 1]), command(200, &[2, 2]), command(250, &[3, 3])];
        let error = error(FitMethod::Robust, &together);
        assert!(error.contains("`on`, `off`") && error.contains("same proportions"), "{error}");
        assert_eq!(Fit::learn(FitMethod::Robust, &names, &[]), Err(FitError::NoCommands));
    }
}
