//! The shifts of labels at which most of them have a command nearby.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::shift::ClockShift;

/// Shifts up to this are searched for: every time zone, and some seconds more.
pub(super) const MAX_SHIFT_NS: i64 = (26 * 3600 + 120) * 1_000_000_000;

/// The most differences between a label and a command that are held at once.
const MAX_DIFFERENCES: usize = 1 << 21;

const MIN_LABELS: usize = 3;

/// The most labels that a drift is searched with.
const MAX_DRIFTING_LABELS: usize = 400;

/// A drift changes the shift by at most this many tolerances over all labels, either way.
const MAX_DRIFT: i64 = 16;

/// How many of the best constant shifts a drift is searched around.
const DRIFTING_REGIONS: usize = 6;

/// Labels and commands in order of time, some labels left out if there are too many.
pub(super) struct Search {
    labels: Vec<i64>,
    commands: Vec<i64>,
    tolerance_ns: i64,
    /// The share of moments that are near a command, from the first command to the last.
    pub(super) coverage: f64,
    /// How many shifts are tried that do not overlap.
    pub(super) trials: f64,
}

/// A shift and how many labels are near a command by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Peak {
    near: usize,
    offset_ns: i64,
}

impl Search {
    /// `None` if there are too few labels or commands to show anything.
    pub(super) fn new(labels: &[i64], commands: &[i64], tolerance_ns: i64) -> Option<Self> {
        let [mut labels, mut commands] = [labels.to_vec(), commands.to_vec()];
        labels.sort_unstable();
        commands.sort_unstable();
        let span = |times: &[i64]| Some(times.last()?.abs_diff(*times.first()?));
        let (of_labels, of_commands) = (span(&labels)?, span(&commands)?);
        let width = tolerance_ns.unsigned_abs().saturating_mul(2).max(1);
        let near: u64 = commands.windows(2).map(|pair| span(pair).unwrap_or(0).min(width)).sum();
        let coverage = near.saturating_add(width) as f64 / of_commands.saturating_add(width) as f64;
        let searched = (2 * MAX_SHIFT_NS.unsigned_abs()).min(of_labels.saturating_add(of_commands));
        let trials = searched as f64 / width as f64 + 1.0;
        let mut search = Self { labels, commands, tolerance_ns, coverage, trials };
        let differences: usize = search.labels.iter().map(|label| search.near(*label, 0, MAX_SHIFT_NS).len()).sum();
        let step = differences.div_ceil(MAX_DIFFERENCES).max(1);
        search.labels = search.labels.iter().step_by(step).copied().collect();
        (search.labels.len() >= MIN_LABELS).then_some(search)
    }

    /// The commands within `distance_ns` of a label that is shifted.
    fn near(&self, label: i64, offset_ns: i64, distance_ns: i64) -> &[i64] {
        let time = label.saturating_add(offset_ns);
        let start = self.commands.partition_point(|command| *command < time.saturating_sub(distance_ns));
        let end = self.commands.partition_point(|command| *command <= time.saturating_add(distance_ns));
        self.commands.get(start..end).unwrap_or_default()
    }

    /// The best shift of each part of `offset_ns ± distance_ns` that is two tolerances wide.
    fn peaks(&self, labels: &[i64], offset_ns: i64, distance_ns: i64) -> BTreeMap<i64, Peak> {
        let of_label = |(at, label): (usize, &i64)| {
            let label = *label;
            self.near(label, offset_ns, distance_ns).iter().map(move |command| (command.saturating_sub(label), at))
        };
        let mut differences: Vec<(i64, usize)> = labels.iter().enumerate().flat_map(of_label).collect();
        differences.sort_unstable();
        let width = self.tolerance_ns.saturating_mul(2).max(1);
        let mut best: BTreeMap<i64, Peak> = BTreeMap::new();
        let mut times_in_window = vec![0_u32; labels.len()];
        let mut window: VecDeque<(i64, usize)> = VecDeque::new();
        let mut near = 0;
        for (difference, at) in differences {
            window.push_back((difference, at));
            near += usize::from(times_in_window[at] == 0);
            times_in_window[at] += 1;
            while let Some((_, at)) = window.front().copied().filter(|(first, _)| difference - first > width) {
                window.pop_front();
                times_in_window[at] -= 1;
                near -= usize::from(times_in_window[at] == 0);
            }
            let first = window.front().map_or(difference, |(first, _)| *first);
            let peak = Peak { near, offset_ns: first.midpoint(difference) };
            let known = best.entry(peak.offset_ns.div_euclid(width)).or_insert(peak);
            if peak.near > known.near {
                *known = peak;
            }
        }
        best
    }
}

/// The best constant shifts, at least two tolerances apart, the best first.
pub(super) fn distinct_peaks(search: &Search, most: usize) -> Vec<i64> {
    let mut peaks: Vec<Peak> = search.peaks(&search.labels, 0, MAX_SHIFT_NS).into_values().collect();
    peaks.sort_unstable_by_key(|peak| (Reverse(peak.near), peak.offset_ns.unsigned_abs(), peak.offset_ns));
    let apart = search.tolerance_ns.unsigned_abs().saturating_mul(2);
    let mut distinct: Vec<i64> = Vec::new();
    for peak in peaks {
        if distinct.len() == most {
            break;
        }
        if distinct.iter().all(|offset_ns| offset_ns.abs_diff(peak.offset_ns) > apart) {
            distinct.push(peak.offset_ns);
        }
    }
    distinct
}

/// For some of these constant shifts, and for none, the best drifting one around it.
pub(super) fn drifting_peaks(search: &Search, around: &[i64]) -> Vec<ClockShift> {
    let (Some(first), Some(last)) = (search.labels.first(), search.labels.last()) else { return Vec::new() };
    let span = last.saturating_sub(*first);
    if span <= 0 {
        return Vec::new();
    }
    let step = search.labels.len().div_ceil(MAX_DRIFTING_LABELS);
    let labels: Vec<i64> = search.labels.iter().step_by(step).copied().collect();
    let reference_ns = first.midpoint(*last);
    let distance_ns = search.tolerance_ns.saturating_mul(MAX_DRIFT);
    let around = around.iter().take(DRIFTING_REGIONS).copied().chain([0]);
    let best_around = |centre: i64| {
        let drifts = (-MAX_DRIFT..=MAX_DRIFT).filter(|steps| *steps != 0);
        let shifted = drifts.filter_map(|steps| {
            let change = steps.saturating_mul(search.tolerance_ns);
            let drift = change as f64 / span as f64;
            let line = ClockShift { offset_ns: 0, drift, reference_ns };
            let peaks = search.peaks(&line.applied(&labels), centre, distance_ns);
            let best = peaks.into_values().max_by_key(|peak| (peak.near, Reverse(peak.offset_ns.unsigned_abs())))?;
            Some((best.near, ClockShift { offset_ns: best.offset_ns, ..line }))
        });
        shifted.max_by_key(|(near, shift)| (*near, Reverse(shift.offset_ns.unsigned_abs()))).map(|(_, shift)| shift)
    };
    around.filter_map(best_around).collect()
}
