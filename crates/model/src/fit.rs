//! Learning the sizes |ac| and |aᵢ| from labelled commands, and ε with them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::epsilon::{EpsilonTuple, Neighbours};
use crate::{Action, Smoothing, paper, robust};

/// A command whose actions are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCommand {
    /// The least and the most that |s| may be, in bytes, in the basis the model is to have: block ciphers leave a range.
    pub sizes: [i64; 2],
    /// How often each action occurs, in the order of the actions' names.
    pub counts: Vec<u32>,
    /// Records the gateway sent in reply.
    pub replies: u32,
    /// Bytes of these records, in the same basis.
    pub reply_bytes: i64,
}

/// The most actions of one fit.
pub const MAX_FITTED_ACTIONS: usize = 256;

/// Sizes beyond this are no message's, in bytes.
pub(crate) const LARGEST_SIZE: i64 = 1 << 32;

/// No gateway has so many devices.
const LARGEST_COUNT: u32 = 1 << 20;

impl LabelledCommand {
    /// The middle of the sizes it may have, the lower one of two.
    pub(crate) fn middle(&self) -> i64 {
        let [least, most] = self.sizes;
        least + (most - least) / 2
    }

    fn is_within_bounds(&self, actions: usize) -> bool {
        let [least, most] = self.sizes;
        (0..=LARGEST_SIZE).contains(&least)
            && (least..=LARGEST_SIZE).contains(&most)
            && self.counts.len() == actions
            && self.counts.iter().all(|count| *count <= LARGEST_COUNT)
    }
}

/// How sizes are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitMethod {
    /// The paper's procedure, from commands of one action on one device and on two.
    Paper,
    /// A fit over all labelled commands that outliers and steps of length fields do not bias.
    Robust,
}

/// What was learned of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// |ac| in bytes.
    pub overhead: i64,
    /// The actions with their sizes.
    pub actions: Vec<Action>,
    /// How uncertain their sizes are, where commands had ranges of sizes: standard deviations in bytes.
    pub deviations: Vec<f64>,
    /// What was left of each command's size, without the outliers.
    pub neighbours: Neighbours,
    /// How ε is found from them.
    pub smoothing: Smoothing,
    /// The commands (by their places) whose size their label does not explain: mis-labelled, or no commands.
    pub outliers: Vec<usize>,
    /// Bytes by which the sizes of all actions could be off together with nearly the same right, if a length field takes a
    /// step between the labelled commands: where there are any, record commands of three actions and more.
    pub ambiguous_shifts: Vec<i64>,
}

/// Why sizes cannot be learned.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum FitError {
    /// No labelled command.
    #[error("there is no labelled command to learn from")]
    NoCommands,
    /// The paper's procedure lacks an experiment.
    #[error("the paper's procedure needs `{action}` alone {}: record it, or use `--method robust`", times(*devices))]
    MissingExperiment {
        /// The action.
        action: String,
        /// On how many devices.
        devices: u32,
    },
    /// Actions that no command has, or that no two commands have in different proportions to the others:
    /// [`crate::ExperimentDesign::missing`] says what to record.
    #[error("{}", unidentified(absent, entangled))]
    Unidentified {
        /// Actions no labelled command has.
        absent: Vec<String>,
        /// Actions that always occur in the same proportion to each other or to the number of commands.
        entangled: Vec<String>,
    },
    /// More actions than a fit takes.
    #[error(
        "the labels have {0} actions, a fit takes {MAX_FITTED_ACTIONS}: split them by gateway, or drop those of no interest"
    )]
    TooManyActions(usize),
    /// A command no message can be.
    #[error(
        "labelled command {0} (from 0) is out of bounds: sizes go up to {LARGEST_SIZE} bytes, counts to {LARGEST_COUNT}, \
         and every action has one"
    )]
    OutOfBounds(usize),
    /// An action came out with no size.
    #[error("`{action}` comes out {size} bytes long: check its labels, or record more commands with it")]
    NoSize {
        /// The action.
        action: String,
        /// The size found.
        size: i64,
    },
}

fn unidentified(absent: &[String], entangled: &[String]) -> String {
    let listed = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !absent.is_empty() {
        parts.push(format!("no labelled command has {}", listed(absent)));
    }
    if !entangled.is_empty() {
        let what = "the labelled commands do not tell the sizes apart of";
        parts.push(format!("{what} {}, which always occur in the same proportions", listed(entangled)));
    }
    parts.join("; ")
}

impl FitError {
    /// Sorts out why actions (by their places) are not identified.
    pub(crate) fn unless_identified(
        names: &[String],
        commands: &[LabelledCommand],
        unidentified: &[usize],
    ) -> Result<(), Self> {
        let occurs = |at: usize| commands.iter().any(|command| command.counts.get(at).is_some_and(|count| *count > 0));
        let pick = |places: &[usize]| places.iter().filter_map(|at| names.get(*at)).cloned().collect();
        let (entangled, absent): (Vec<usize>, Vec<usize>) = unidentified.iter().partition(|at| occurs(**at));
        if unidentified.is_empty() {
            return Ok(());
        }
        Err(Self::Unidentified { absent: pick(&absent), entangled: pick(&entangled) })
    }
}

fn times(devices: u32) -> &'static str {
    if devices == 1 { "on one device" } else { "on two devices" }
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
            FitMethod::Paper => paper::sizes(names, commands)?,
            FitMethod::Robust => robust::sizes(names, commands)?,
        };
        if let Some((action, &size)) = names.iter().zip(&sizes.actions).find(|(_, size)| **size <= 0) {
            return Err(FitError::NoSize { action: action.clone(), size });
        }
        let tuple = |(command, remainder): (&LabelledCommand, &i64)| {
            let size = weigh(&sizes.actions, &command.counts).saturating_add(*remainder);
            EpsilonTuple::new(size, remainder.saturating_sub(sizes.overhead))
        };
        let kept = commands.iter().zip(&sizes.remainders).enumerate();
        let kept = kept.filter(|(at, _)| sizes.outliers.binary_search(at).is_err()).map(|(_, command)| tuple(command));
        let neighbours = Neighbours::new(kept).map_err(|_| FitError::NoCommands)?;
        let actions = names.iter().zip(&sizes.actions).map(|(name, size)| Action { name: name.clone(), size: *size });
        Ok(Self {
            overhead: sizes.overhead,
            actions: actions.collect(),
            smoothing: match method {
                FitMethod::Paper => Smoothing::NEAREST,
                FitMethod::Robust => Smoothing::choose(&neighbours),
            },
            deviations: sizes.deviations,
            neighbours,
            outliers: sizes.outliers,
            ambiguous_shifts: sizes.ambiguous_shifts,
        })
    }
}

/// |ac|, every |aᵢ|, and the commands that do not fit.
pub(crate) struct Sizes {
    pub(crate) overhead: i64,
    pub(crate) actions: Vec<i64>,
    /// How uncertain each is: a standard deviation in bytes.
    pub(crate) deviations: Vec<f64>,
    /// What remains of each command without its actions; of a range one that may.
    pub(crate) remainders: Vec<i64>,
    /// In order.
    pub(crate) outliers: Vec<usize>,
    pub(crate) ambiguous_shifts: Vec<i64>,
}

/// Σ |aᵢ|·nbᵢ.
pub(crate) fn weigh(sizes: &[i64], counts: &[u32]) -> i64 {
    let weights = sizes.iter().zip(counts).map(|(size, count)| size.saturating_mul(i64::from(*count)));
    weights.fold(0, i64::saturating_add)
}

/// The middle value, the lower one of two; 0 of none.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;

    #[test]
    fn commands_out_of_bounds_are_refused() {
        let names = ["on".to_owned()];
        for wrong in [command(1 << 40, &[1]), command(-1, &[1]), command(9, &[u32::MAX]), command(9, &[])] {
            let learned = Fit::learn(FitMethod::Robust, &names, &[command(9, &[1]), wrong]);
            assert_eq!(learned, Err(FitError::OutOfBounds(1)));
        }
        let names: Vec<String> = (0..257).map(|at| at.to_string()).collect();
        assert_eq!(Fit::learn(FitMethod::Paper, &names, &[command(9, &[0; 257])]), Err(FitError::TooManyActions(257)));
        let names = ["on".to_owned(), "off".to_owned()];
        let wild: Vec<_> = (0..12_u32)
            .map(|at| command(i64::from(at % 3) << 31, &[(1 << 20) * (at % 2), (1 << 20) * (at % 5)]))
            .collect();
        assert!(Fit::learn(FitMethod::Robust, &names, &wild).is_err(), "no panic, and no size");
    }

    #[test]
    fn errors_say_what_is_lacking() {
        let names = ["on".to_owned(), "off".to_owned()];

        let alone = [command(150, &[1, 0]), command(200, &[2, 0])];
        let error = Fit::learn(FitMethod::Paper, &names, &alone).unwrap_err().to_string();
        assert!(error.contains("`off` alone on one device"), "{error}");
        let error = Fit::learn(FitMethod::Robust, &names, &alone).unwrap_err().to_string();
        assert!(error.contains("no labelled command has `off`"), "{error}");
        let together = [command(150, &[1, 1]), command(200, &[2, 2]), command(250, &[3, 3])];
        let error = Fit::learn(FitMethod::Robust, &names, &together).unwrap_err().to_string();
        assert!(error.contains("`on`, `off`") && error.contains("same proportions"), "{error}");
        assert_eq!(Fit::learn(FitMethod::Robust, &names, &[]), Err(FitError::NoCommands));
    }
}
