//! What a run says of its results: a line of counts, what has failed, and the exit code.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;
use sizeleak_archive::{FileVerdict, Manifest};
use sizeleak_telemetry::log::complain;

use crate::command::failure::Failure;

/// At most this many files and points that failed are named; `status` names all.
const MOST_NAMED: usize = 20;

/// How much there is.
pub(super) fn counts(manifest: &Manifest) -> String {
    let captures: u64 = manifest.points.iter().map(|point| point.captures).sum();
    let answers: u64 = manifest.points.iter().filter_map(|point| point.identifications).sum();
    let (points, files) = (manifest.points.len(), manifest.files.len());
    let left = |word: &str, verdict| match manifest.count_of(verdict) {
        0 => String::new(),
        count => format!(", {word} {count}"),
    };
    let (growing, outside) = (left("still growing", FileVerdict::Growing), left("outside", FileVerdict::Outside));
    format!("points {points}, files {files}, of these captures {captures}{growing}{outside}, identifications {answers}")
}

/// Says what has failed, by name.
pub(super) fn name(failures: &BTreeSet<(String, String)>) {
    for (name, fault) in failures.iter().take(MOST_NAMED) {
        complain("archive", &sentence(name, fault));
    }
    if let Some(more) = failures.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        complain("archive", &format!("and {more} more"));
    }
}

/// What is wrong with a file or a point.
pub(super) fn sentence(name: &str, fault: &str) -> String {
    // What a stage says of a file names it already.
    if fault.starts_with(name) { fault.to_owned() } else { format!("{name}: {fault}") }
}

/// In words, which points have no packet of a gateway, if some have.
pub(super) fn silence(manifest: &Manifest) -> Option<String> {
    let first = manifest.silent_points().next().filter(|_| !manifest.is_silent())?;
    Some(match manifest.silent_points().count() {
        1 => format!("no packet of `{first}` is from or to a gateway that is named"),
        points => format!("no packet of {points} points, such as `{first}`, is from or to a gateway that is named"),
    })
}

/// Whether all went well.
pub(super) fn check(failures: &BTreeSet<(String, String)>, manifest: &Manifest, out: &Path) -> Result<(), Failure> {
    let shown = out.display();
    if !failures.is_empty() {
        return Err(anyhow!("files are damaged or missing; `sizeleak archive status {shown}` lists them").into());
    }
    if manifest.is_silent() {
        let fault = "no packet of any point is from or to a gateway that is named";
        return Err(anyhow!("{fault}; `sizeleak survey CAPTURE` says which addresses look like gateways").into());
    }
    Ok(())
}

/// That the call was stopped.
pub(super) fn stopped() -> Failure {
    Failure::with_code(130, anyhow!("stopped; the results are whole, and the same call completes them"))
}
