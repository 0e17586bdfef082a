//! Commands that are not what a home usually does, within the false alarms that its user allows: an optional stage behind
//! the pruner. Answers pass through; a `deviation` follows what it is about. `sizeleak-habits` has the method.
//!
//! ```
//! use sizeleak_detector::Detector;
//! use sizeleak_frame::{Candidate, Command, Frame, Identification};
//! use sizeleak_habits::{Budget, Profile};
//! use sizeleak_platform::runtime::Stage;
//!
//! let mut detector = Detector::new(Profile::new("UTC")?, Budget::WEEKLY);
//! let candidate =
//!     Candidate { actions: [("on".into(), 1)].into_iter().collect(), epsilon: 0, probability: 1.0, likelihood: Some(1.0) };
//! let answer = Identification { candidates: [candidate].into(), ..Identification::unanswered(Command::default()) };
//! let mut out: Vec<Frame> = Vec::new();
//! detector.process(Frame::from(answer).try_into().unwrap(), &mut out)?;
//! detector.finish(&mut out)?;
//! // Nothing is known of the home yet: no alarm.
//! let [Frame::Identification(_), Frame::Notice(notice)] = &out[..] else { panic!("{out:?}") };
//! assert_eq!(notice.detail.as_deref(), Some("no alarm yet: 10 more whole days have to be learned to keep 1/week"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod detector;
mod options;

pub use detector::{Detector, DetectorInput};
pub use options::Options;
