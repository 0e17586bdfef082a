//! What `sizeleak archive --dry-run` prints.

use bytesize::ByteSize;
use sizeleak_archive::ArchivePlan;
use sizeleak_text::counted;

use crate::command::document::{Document, blank, line, numbers};

/// A row for each point, and what is read in all.
pub(super) fn table(plan: &ArchivePlan) -> Document {
    let rows = plan.points.iter().map(|point| {
        let what = match (point.files_to_read.len(), point.makes_answers) {
            (0, true) => "read records".to_owned(),
            (0, false) => "up to date".to_owned(),
            (files, _) => format!("read {}", files_of(files, point.bytes_to_read())),
        };
        [point.point.clone(), point.files.to_string(), size(point.bytes), what]
    });
    let table = numbers(["point", "files", "size", "to do"], rows);
    let files = plan.files_to_read().count();
    if files == 0 {
        return table;
    }
    let all = format!("In all: read {}", files_of(files, plan.bytes_to_read()));
    [table, blank(), line(all)].concat()
}

fn files_of(files: usize, bytes: u64) -> String {
    format!("{} ({})", counted(files, "file", "files"), size(bytes))
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).display().si().to_string()
}
