//! Learning the sizes |ac| and |aᵢ| from labelled commands, and ε with them.

mod fitted_sizes;
mod levels;
mod paper;
pub(crate) mod remainders;
mod robust;
mod size_sampling;
mod size_search;
mod varying_sizes;

use sizeleak_model::{FitMethod, LabelledCommand};

pub use fitted_sizes::{Fit, FitError, MAX_FITTED_ACTIONS};

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
        match method {
            FitMethod::Paper => paper::fit(names, commands),
            FitMethod::Robust => robust::fit(names, commands),
        }
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
