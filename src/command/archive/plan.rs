//! What `sizeleak archive --dry-run` prints.

use bytesize::ByteSize;
use sizeleak_archive::ArchivePlan;

use crate::command::text_table::numbers;

/// A row for each point, and what is read in all.
pub(super) fn table(plan: &ArchivePlan) -> String {
    let rows = plan.points.iter().map(|point| {
        let what = match (point.files_to_read, point.makes_answers) {
            (0, true) => "read records".to_owned(),
            (0, false) => "up to date".to_owned(),
            (files, _) => format!("read {}", files_of(files, point.bytes_to_read)),
        };
        [point.point.clone(), point.files.to_string(), size(point.bytes), what]
    });
    let table = numbers(["point", "files", "size", "to do"], rows);
    let files = plan.points.iter().map(|point| point.files_to_read).sum();
    if files == 0 {
        return table;
    }
    let bytes = plan.points.iter().map(|point| point.bytes_to_read).sum();
    format!("{table}\nIn all: read {}\n", files_of(files, bytes))
}

fn files_of(files: usize, bytes: u64) -> String {
    let word = if files == 1 { "file" } else { "files" };
    format!("{files} {word} ({})", size(bytes))
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).display().si().to_string()
}
