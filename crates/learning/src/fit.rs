//! Learning what the sizes of a gateway's messages mean, from commands with labels ([`Fit`]) and without ([`blind`]).
//!
//! [`Fit`] learns the sizes of actions and ε; [`learn_kinds`] commands as they are, where labels do not separate their
//! actions; [`learn_prior`] the probability of actions; [`learn_reply_counts`], [`learn_reply_bytes`] and
//! [`learn_single_replies`] how replies depend on them. The types are those of `sizeleak-model`. Numbers and names
//! only: no frames, captures or clocks.
//!
//! ```
//! use sizeleak_learning::fit::Fit;
//! use sizeleak_model::{FitMethod, LabelledCommand};
//!
//! // Each action on one device and on two: the commands of the paper's procedure.
//! let command = |size, counts: [u32; 2]| LabelledCommand {
//!     sizes: [size; 2],
//!     counts: counts.to_vec(),
//!     replies: 0,
//!     reply_bytes: 0,
//!     single_replies: None,
//!     has_own_replies: true,
//! };
//! let commands = [command(140, [1, 0]), command(180, [2, 0]), command(145, [0, 1]), command(190, [0, 2])];
//! let fit = Fit::learn(FitMethod::Robust, &["on".to_owned(), "off".to_owned()], &commands)?;
//! assert_eq!((fit.overhead, fit.actions[0].size, fit.actions[1].size), (100, 40, 45));
//! # Ok::<(), sizeleak_learning::fit::FitError>(())
//! ```

mod additivity;
pub mod blind;
mod evidence;
mod expectation;
mod experiment_design;
mod kinds;
mod least_absolute_deviations;
mod prior;
mod replies;
mod single_replies;
mod sizes;
#[cfg(test)]
pub(crate) mod testing;

pub use additivity::{Additivity, padding};
pub use experiment_design::{ExperimentDesign, Separation};
pub use kinds::{doubted_labels, learn_kinds, size_dependence};
pub use prior::learn_prior;
pub use replies::{learn_reply_bytes, learn_reply_counts};
pub use single_replies::learn_single_replies;
pub use sizes::{Fit, FitError, MAX_FITTED_ACTIONS};
