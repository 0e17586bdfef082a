//! Labels: which actions the users' commands had, and when.
//!
//! [`Labels`] reads and writes the two forms of label files. A [`LabelFile`] is read with its clock in doubt:
//! [`LabelFile::aligned`] compares it with the times of commands, [`match_labels`] gives each label the nearest command.
//! Labels know no frames; learning and evaluation both stand on them.
//!
//! ```
//! use sizeleak_learning::labels::{Labels, Tolerance, match_labels};
//!
//! let labels = Labels::read(&b"time,on,off\n10,1,0\n20,0,2\n"[..])?;
//! let times: Vec<i64> = labels.rows.iter().map(|row| row.time_ns).collect();
//! let matching = match_labels(&times, &[10_400_000_000, 50_000_000_000], Tolerance::USUAL.nanoseconds());
//! assert_eq!((matching.pairs, matching.missed, matching.spurious), (vec![(0, 0)], vec![1], vec![1]));
//! # Ok::<(), sizeleak_learning::labels::LabelError>(())
//! ```

mod capture_names;
mod clock;
mod error;
mod event_log;
mod label_file;
mod label_map;
mod matching;
mod remarks;
mod rows;
mod table;

pub use capture_names::{LabelledCapture, NameRule};
pub use clock::{ClockFit, ClockShift, LabelClock, LabelOffset, by_chance, near_by_chance};
pub use error::LabelError;
pub use label_file::{LabelFile, LabelFileError, LabelTimes};
pub use label_map::LabelMap;
pub use matching::{MatchCounts, Matching, Tolerance, match_labels};
pub use rows::{DateFormat, Label, LabelForm, LabelZone, Labels};
