//! Learning the sizes |ac| and |aᵢ| from labelled commands, and ε with them.

use thiserror::Error;

use crate::epsilon::{Neighbours, Tuple};
use crate::{Action, paper, robust};

/// A command whose actions are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCommand {
    /// |s| in bytes, in the basis the model is to have.
    pub size: i64,
    /// How often each action occurs, in the order of the actions' names.
    pub counts: Vec<u32>,
    /// Records the gateway sent in reply.
    pub replies: u32,
}

/// How sizes are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
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
    /// What was left of each command's size, without the outliers.
    pub neighbours: Neighbours,
    /// How many neighbours to ask for ε.
    pub k: usize,
    /// The commands (by their places) whose size their label does not explain: mis-labelled, or no commands.
    pub outliers: Vec<usize>,
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
    /// The commands do not tell the sizes of some actions apart.
    #[error(
        "the labelled commands do not tell the size of {}: record commands in which {} in other proportions",
        .0.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        if .0.len() == 1 { "it occurs" } else { "they occur" }
    )]
    Unidentifiable(Vec<String>),
    /// An action came out with no size.
    #[error("`{action}` comes out {size} bytes long: check its labels, or record more commands with it")]
    NoSize {
        /// The action.
        action: String,
        /// The size found.
        size: i64,
    },
}

fn times(devices: u32) -> &'static str {
    if devices == 1 { "on one device" } else { "on two devices" }
}

/// The numbers of neighbours that are tried.
const K_TRIED: [usize; 9] = [1, 3, 5, 9, 15, 25, 40, 65, 100];

/// The share of held-out commands whose ε must be offered.
const K_COVERAGE: f64 = 0.995;

impl Fit {
    /// Learns from labelled commands; `names` are the actions, in the order of the commands' counts. `k` is the
    /// smallest number of neighbours that offers the true ε of 99.5 % of the commands when each is left out in turn,
    /// or of as many as any number does.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn learn(method: Method, names: &[String], commands: &[LabelledCommand]) -> Result<Self, FitError> {
        if commands.is_empty() {
            return Err(FitError::NoCommands);
        }
        let sizes = match method {
            Method::Paper => paper::sizes(names, commands)?,
            Method::Robust => robust::sizes(names, commands)?,
        };
        if let Some((action, &size)) = names.iter().zip(&sizes.actions).find(|(_, size)| **size <= 0) {
            return Err(FitError::NoSize { action: action.clone(), size });
        }
        let tuple = |command: &LabelledCommand| Tuple {
            size: command.size,
            epsilon: command.size - sizes.overhead - weigh(&sizes.actions, &command.counts),
        };
        let kept = commands.iter().enumerate().filter(|(at, _)| !sizes.outliers.contains(at));
        let neighbours =
            Neighbours::new(kept.map(|(_, command)| tuple(command)).collect()).map_err(|_| FitError::NoCommands)?;
        let actions = names.iter().zip(&sizes.actions).map(|(name, size)| Action { name: name.clone(), size: *size });
        Ok(Self {
            overhead: sizes.overhead,
            actions: actions.collect(),
            k: choose_k(&neighbours),
            neighbours,
            outliers: sizes.outliers,
        })
    }
}

/// |ac|, every |aᵢ|, and the commands that do not fit.
pub(crate) struct Sizes {
    pub(crate) overhead: i64,
    pub(crate) actions: Vec<i64>,
    pub(crate) outliers: Vec<usize>,
}

/// Σ |aᵢ|·nbᵢ.
pub(crate) fn weigh(sizes: &[i64], counts: &[u32]) -> i64 {
    sizes.iter().zip(counts).map(|(size, count)| size * i64::from(*count)).sum()
}

/// The middle value, the lower one of two; 0 of none.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

fn choose_k(neighbours: &Neighbours) -> usize {
    let count = neighbours.tuples().len();
    let mut best = (0, 1);
    for k in K_TRIED {
        let covered = (0..count).filter(|at| neighbours.covers_left_out(*at, k)).count();
        if covered as f64 >= K_COVERAGE * count as f64 {
            return k;
        }
        if covered > best.0 {
            best = (covered, k);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_as_small_as_coverage_allows() {
        let tuples = |epsilons: &[i64]| {
            let tuples = epsilons.iter().zip(0..).map(|(epsilon, size)| Tuple { size: size * 10, epsilon: *epsilon });
            Neighbours::new(tuples.collect()).unwrap()
        };
        assert_eq!(choose_k(&tuples(&[0; 30])), 1);
        assert_eq!(choose_k(&tuples(&[0, 1].repeat(30))), 3);
        assert_eq!(choose_k(&tuples(&[0])), 1);
    }

    #[test]
    fn errors_say_what_to_record() {
        let names = ["on".to_owned(), "off".to_owned()];
        let command = |size, counts: [u32; 2]| LabelledCommand { size, counts: counts.into(), replies: 0 };
        let alone = [command(150, [1, 0]), command(200, [2, 0])];
        let error = Fit::learn(Method::Paper, &names, &alone).unwrap_err().to_string();
        assert!(error.contains("`off` alone on one device"), "{error}");
        let error = Fit::learn(Method::Robust, &names, &alone).unwrap_err().to_string();
        assert!(error.contains("size of `off`"), "{error}");
        let together = [command(150, [1, 1]), command(200, [2, 2]), command(250, [3, 3])];
        let error = Fit::learn(Method::Robust, &names, &together).unwrap_err().to_string();
        assert!(error.contains("`on`, `off`") && error.contains("other proportions"), "{error}");
        assert_eq!(Fit::learn(Method::Robust, &names, &[]), Err(FitError::NoCommands));
    }
}
