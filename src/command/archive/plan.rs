//! What `sizeleak archive --dry-run` prints.

use bytesize::ByteSize;
use sizeleak_archive::ArchivePlan;

use crate::command::text_table::numbers;

/// A row for each point.
pub(super) fn table(plan: &ArchivePlan) -> String {
    let rows = plan.points.iter().map(|point| {
        let what = match (point.reads_captures, point.makes_answers) {
            (true, _) => "read captures",
            (false, true) => "read records",
            (false, false) => "up to date",
        };
        let size = ByteSize(point.bytes).display().si().to_string();
        [point.point.clone(), point.files.to_string(), size, what.to_owned()]
    });
    numbers(["point", "files", "size", "to do"], rows)
}
