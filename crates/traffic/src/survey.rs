//! What a capture holds for somebody who knows nothing of it yet: which addresses look like gateways and why, their
//! services and connections, and what the messages on them look like.
//!
//! A [`SurveyRun`] reads captures once, by the pipeline up to `record-sizer` with every address as the gateway, so that
//! the side that opens a connection counts as its gateway. The segmenter's algorithm `adaptive` says what each record
//! is; no model is needed.
//!
//! ```
//! use sizeleak_platform::runtime::Interrupt;
//! use sizeleak_traffic::survey::{SurveyRun, Verdict};
//!
//! let captures = vec!["../../examples/home/test.pcap".into()];
//! let run = SurveyRun { captures, ..SurveyRun::default() };
//! let survey = run.survey(&Interrupt::new(), &mut |_notice| {})?;
//! let first = &survey.report.addresses[0];
//! assert_eq!((first.address.to_string().as_str(), first.verdict), ("192.168.1.20", Verdict::Likely));
//! # Ok::<(), sizeleak_pipeline::InputError>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod connection;
mod report;
mod run;
mod score;
mod services;

pub use report::{
    MessageKind, OtherPort, Reason, Server, SizeBin, SurveyReport, SurveyedAddress, SurveyedConnection,
    SurveyedService, TimesOfSize, Traffic, Verdict,
};
pub use run::{Coverage, SurveyOutcome, SurveyRun};
pub use score::in_words;
