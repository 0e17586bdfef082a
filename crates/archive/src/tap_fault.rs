//! Why taps cannot be used.

use std::path::PathBuf;

use thiserror::Error;

/// The longest name of a tap, in bytes.
pub(crate) const LONGEST_NAME: usize = 32;

/// Why taps cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TapFault {
    /// It is not of the form.
    #[error(
        "write NAME=GLOB, such as lan='captures/mirror/*.pcap*', with a name of at most {LONGEST_NAME} letters, digits, \
         `-` and `_`"
    )]
    Form,
    /// The pattern is none.
    #[error("tap `{tap}`: {pattern} is no pattern: {fault} at character {place}; write `[` as `[[]`")]
    Pattern {
        /// The name of the tap.
        tap: String,
        /// The pattern.
        pattern: String,
        /// What is wrong.
        fault: String,
        /// The character, from 1.
        place: usize,
    },
    /// Nothing matches.
    #[error("tap `{tap}`: no file matches {pattern}: quote it, and check what it would match with `ls`")]
    NoMatch {
        /// The name of the tap.
        tap: String,
        /// The pattern.
        pattern: String,
    },
    /// A file belongs to two taps.
    #[error("{file} is of tap `{one}` and of tap `{other}`: a capture is of one tap", file = file.display())]
    InTwo {
        /// The file.
        file: PathBuf,
        /// The first tap.
        one: String,
        /// The other one.
        other: String,
    },
    /// The point of the taps has the name of a folder.
    #[error("{} is the capture point `{name}`, which would be that of the taps, too: give a tap another name",
        folder.display())]
    SameName {
        /// The name.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The times of packets are not used.
    #[error("taps are compared by the times of their packets: leave out `capture.order`")]
    WithoutTimes,
    /// The folder for results would be read.
    #[error("{file} is in the folder for results, and of tap `{tap}`: name a folder elsewhere", file = file.display())]
    InResults {
        /// The file.
        file: PathBuf,
        /// The name of the tap.
        tap: String,
    },
}
