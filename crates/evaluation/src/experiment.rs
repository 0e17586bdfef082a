//! The experiment that runs itself: which command of a home to record next, what is known after it, and when to stop.
//!
//! An [`Experiment`] is numbers and names alone: it chooses commands by what they would settle, and holds back every
//! second one for a test. [`Recording`] learns from the captures so far and says how the commands held back fit. A
//! [`Journal`] holds every step with its reason, and from it an experiment goes on where it was stopped. Nothing here
//! reads a clock, starts a process or captures.
//!
//! ```
//! use sizeleak_model::Inventory;
//! use sizeleak_evaluation::experiment::{Decision, Experiment, MAX_COMMANDS};
//!
//! let home = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]";
//! let experiment = Experiment::new(Inventory::from_toml(home)?, MAX_COMMANDS, 1)?;
//! let Decision::Send(command) = experiment.next() else { panic!("nothing is known yet") };
//! assert_eq!(command.counts, [1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod knowledge;
mod next_command;
mod recording;

pub use knowledge::{ActionSize, HeldOut, Knowledge};
pub use next_command::{Decision, DeviceAction, Experiment, Half, MAX_COMMANDS, PlannedCommand, Stop};
pub use recording::{Journal, JournalError, Learned, Outcome, Recording, RecordingError, Step, Tested, labels_of};
