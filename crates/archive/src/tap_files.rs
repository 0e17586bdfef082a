//! The files of one tap in a capture point.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::description::DescribedFile;

/// Which files of a capture point one tap captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TapFiles {
    /// The name of the tap.
    pub(crate) name: String,
    /// Its files, as the point names them.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl TapFiles {
    /// Those of these captures that are its.
    pub(crate) fn captures<'a>(&'a self, captures: &'a [DescribedFile]) -> impl Iterator<Item = &'a DescribedFile> {
        captures.iter().filter(|capture| self.files.contains(Path::new(&capture.file.path)))
    }
}
