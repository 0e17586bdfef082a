//! Processes archives of rotated captures: many files of several capture points, read once, with results in a folder
//! that later calls complete.
//!
//! An [`ArchiveRun`] finds the captures below some folders. The files of one folder are a *capture point*: they are read
//! together, merged by time, so flows go on from file to file. Of every point the output of the first three stages is
//! kept, and rebuilt only when a capture or an option has changed; the answers of the other stages are made from it
//! and written as partitions by gateway and day. A [`Manifest`] says what became of every file.
//!
//! Everything appears by a rename, and a description of the point last: a run that is killed leaves nothing that a later
//! one would take for a result.

mod answers;
mod archive_run;
mod chain;
mod description;
mod discovery;
mod found_file;
mod layout;
mod left_out;
mod manifest;
mod point_run;
mod unit_store;

pub use archive_run::{ArchiveRun, ArchiveWatch, RoundResults, RunResults, WatchRound, forget_point};
pub use description::{
    AnswersDescription, CaptureFile, DamagedPlace, FileVerdict, PartFormat, PointDescription, RecordsDescription,
};
pub use layout::ArchiveError;
pub use manifest::{Manifest, ManifestPoint};
pub use point_run::PlannedPoint;
