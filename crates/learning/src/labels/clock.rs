//! The clock of labels: its shift from that of the captures, constant or growing steadily, found by cross-correlation
//! of labels and commands.
//!
//! Every difference between a command and a label votes for a shift. The shift within 26 hours that gives most labels
//! a command is the best; a clock that drifts is searched for around the best constant shifts. A shift is believed only
//! if it gives many more labels a command than no shift and than any other one does, and more than chance would:
//! labels at equal distances, few labels, and commands everywhere leave the clock as it is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use sizeleak_model::statistics::middle;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::labels::matching::matching_pairs;

/// A shift is believed if chance finds one as good with less than this probability.
const MAX_CHANCE: f64 = 0.001;

/// A shift is believed if it gives at least this many more labels a command than no shift or another one does…
const MIN_MORE: usize = 3;

/// …and this share of the labels.
const MIN_MORE_SHARE: f64 = 0.15;

/// How many of the best constant shifts are looked at closely.
const PEAKS: usize = 12;

/// What is added to the times of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOffset {
    /// So many nanoseconds.
    By(i64),
    /// This time, in nanoseconds since the epoch: that of the captures' first packet, from which the times count.
    From(i64),
}

/// What is known of the clock of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum LabelClock {
    /// Nothing shows that it differs from that of the captures.
    #[default]
    Agrees,
    /// The user set how much is added to it.
    Given(LabelOffset),
    /// It differs, with this certainty.
    Differs(ClockFit),
    /// Several shifts fit equally well, and better than none.
    Ambiguous(ClockFit),
}

/// A shift of the clock of labels, and how certain it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockFit {
    #[serde(flatten)]
    pub shift: ClockShift,
    /// Labels with a command by this shift.
    pub matched: usize,
    /// Labels with a command without any shift.
    pub matched_without: usize,
    /// Labels with a command by the best other shift.
    pub matched_by_next: usize,
    /// That shift, in nanoseconds.
    pub next_ns: i64,
    /// The probability that chance finds a shift as good, at most (a binomial tail for every shift that was tried).
    pub by_chance: f64,
}

impl LabelClock {
    /// The shift to apply; `None` if none is known.
    pub fn shift(&self) -> Option<ClockShift> {
        match self {
            Self::Agrees | Self::Ambiguous(_) => None,
            Self::Given(LabelOffset::By(offset_ns) | LabelOffset::From(offset_ns)) => {
                Some(ClockShift::constant(*offset_ns))
            }
            Self::Differs(fit) => Some(fit.shift),
        }
    }

    /// Estimates the clock of labels from their times and those of the commands, in nanoseconds; a command within
    /// `tolerance_ns` of a label may be its command.
    pub fn estimate(labels: &[i64], commands: &[i64], tolerance_ns: i64) -> Self {
        let tolerance_ns = tolerance_ns.clamp(0, MAX_SHIFT_NS);
        let matched = |shift: &ClockShift| matched(labels, commands, tolerance_ns, shift);
        let matched_without = matched(&ClockShift::default());
        let more = MIN_MORE.max((MIN_MORE_SHARE * labels.len() as f64).ceil() as usize);
        if matched_without + more > labels.len() {
            // No shift can be better by enough.
            return Self::Agrees;
        }
        let Some(search) = Search::new(labels, commands, tolerance_ns) else { return Self::Agrees };
        let refine = |shift: ClockShift| {
            let refined = shift.refined(labels, commands, tolerance_ns);
            [shift, refined].map(|shift| (matched(&shift), shift)).into_iter().max_by_key(|(matched, _)| *matched)
        };
        let constant = distinct_peaks(&search, PEAKS);
        let mut found: Vec<(usize, ClockShift)> =
            constant.iter().filter_map(|offset_ns| refine(ClockShift::constant(*offset_ns))).collect();
        let best_constant = found.iter().map(|(matched, _)| *matched).max().unwrap_or(0);
        if best_constant + more <= labels.len() {
            // A drift is believed if it explains more labels by enough.
            let drifting = drifting_peaks(&search, &constant).into_iter().filter_map(refine);
            found.extend(drifting.filter(|(matched, _)| *matched >= best_constant + more));
        }
        found.sort_by_key(|(matched, shift)| (std::cmp::Reverse(*matched), shift.offset_ns.unsigned_abs()));
        let Some((best, shift)) = found.first().copied() else { return Self::Agrees };
        let is_other = |(_, other): &&(usize, ClockShift)| !shift.is_near(other, labels, 2 * tolerance_ns);
        let (matched_by_next, next_ns) =
            found.iter().find(is_other).map_or((0, 0), |(matched, other)| (*matched, other.offset_ns));
        // Each label has a command with the probability that any moment is near one (Bonferroni's bound over the shifts).
        let by_chance = (by_chance(best, labels.len(), search.coverage) * search.trials).min(1.0);
        let fit = ClockFit { shift, matched: best, matched_without, matched_by_next, next_ns, by_chance };
        let is_better = best >= matched_without + more
            && by_chance < MAX_CHANCE
            && best * 2 >= shift.labels_within(labels, commands, tolerance_ns);
        match is_better {
            false => Self::Agrees,
            true if best >= matched_by_next + more => Self::Differs(fit),
            true => Self::Ambiguous(fit),
        }
    }
}

fn matched(labels: &[i64], commands: &[i64], tolerance_ns: i64, shift: &ClockShift) -> usize {
    matching_pairs(&shift.applied(labels), commands, tolerance_ns).len()
}

/// P(at least `matched` of `labels` have a command), if chance gives each of them one with probability `near`.
pub fn by_chance(matched: usize, labels: usize, near: f64) -> f64 {
    let Some(below) = matched.checked_sub(1) else { return 1.0 };
    Binomial::new(near, labels as u64).map_or(1.0, |chance| chance.sf(below as u64))
}

/// The probability that a label lies within so many nanoseconds of a command if commands among the labels came at any time.
pub fn near_by_chance(labels: &[i64], commands: &[i64], within_ns: i64) -> f64 {
    let (Some(first), Some(last)) = (labels.iter().min(), labels.iter().max()) else { return 1.0 };
    let (first, last) = (first.saturating_sub(within_ns), last.saturating_add(within_ns));
    let among = commands.iter().filter(|time| (first..=last).contains(time)).count();
    let rate = among as f64 / (last.saturating_sub(first) as f64).max(1.0);
    1.0 - (-rate * 2.0 * within_ns as f64).exp()
}

/// The probability that chance gives so many of the labels within the captures a command, without any shift.
pub(crate) fn chance_of_matches(labels: &[i64], commands: &[i64], tolerance_ns: i64, matched: usize) -> f64 {
    let search = Search::new(labels, commands, tolerance_ns.clamp(0, MAX_SHIFT_NS));
    let within = ClockShift::default().labels_within(labels, commands, tolerance_ns);
    search.map_or(1.0, |search| by_chance(matched, within.max(matched), search.coverage))
}

/// How often a line is fitted to the commands that it matches.
const ROUNDS: usize = 3;

/// What must be added to the times of a clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ClockShift {
    /// What is added at the reference, in nanoseconds.
    pub offset_ns: i64,
    /// What is added besides for each nanosecond from the reference on; 0 for a constant shift.
    pub drift: f64,
    /// The reference, a time of the clock that is wrong.
    pub reference_ns: i64,
}

impl ClockShift {
    pub fn constant(offset_ns: i64) -> Self {
        Self { offset_ns, ..Self::default() }
    }

    pub fn apply(&self, time_ns: i64) -> i64 {
        time_ns.saturating_add(self.at(time_ns))
    }

    /// What is added to a wrong time, in nanoseconds.
    pub fn at(&self, time_ns: i64) -> i64 {
        let since = time_ns.saturating_sub(self.reference_ns);
        // At most some minutes: the drift is that of a clock.
        self.offset_ns.saturating_add((self.drift * since as f64).round() as i64)
    }

    pub(crate) fn applied(&self, times: &[i64]) -> Vec<i64> {
        times.iter().map(|time| self.apply(*time)).collect()
    }

    /// How many labels lie between the first command and the last, by this shift.
    pub(crate) fn labels_within(&self, labels: &[i64], commands: &[i64], tolerance_ns: i64) -> usize {
        let (Some(first), Some(last)) = (commands.iter().min(), commands.iter().max()) else { return 0 };
        let span = first.saturating_sub(tolerance_ns)..=last.saturating_add(tolerance_ns);
        labels.iter().filter(|time| span.contains(&self.apply(**time))).count()
    }

    /// Whether two shifts give labels nearly the same time, at the first label or the last.
    pub(crate) fn is_near(&self, other: &Self, labels: &[i64], distance_ns: i64) -> bool {
        let ends = [labels.iter().min(), labels.iter().max()].into_iter().flatten();
        ends.copied().any(|time| self.at(time).abs_diff(other.at(time)) <= distance_ns.unsigned_abs())
    }

    /// The shift that fits the commands it matches best: the median of the differences, and of the slopes between
    /// labels half of them apart (an incomplete Theil-Sen fit, which some wrong matches do not move).
    fn refined(&self, labels: &[i64], commands: &[i64], tolerance_ns: i64) -> Self {
        let mut shift = *self;
        for _ in 0..ROUNDS {
            let matched = matching_pairs(&shift.applied(labels), commands, tolerance_ns);
            let pairs = matched.iter().filter_map(|(row, at)| Some((*labels.get(*row)?, *commands.get(*at)?)));
            let mut points: Vec<(i64, i64)> =
                pairs.map(|(label, command)| (label, command.saturating_sub(label))).collect();
            points.sort_unstable();
            if self.drift != 0.0 {
                let half = points.len() / 2;
                let slopes = points.iter().zip(points.iter().skip(half)).filter_map(|(before, after)| {
                    let apart = after.0.saturating_sub(before.0);
                    (apart > 0).then(|| after.1.saturating_sub(before.1) as f64 / apart as f64)
                });
                shift.drift = median(slopes.collect(), f64::total_cmp).unwrap_or(shift.drift);
            }
            let line = Self { offset_ns: 0, ..shift };
            let rests = points.iter().map(|(label, difference)| difference.saturating_sub(line.at(*label))).collect();
            shift.offset_ns = median(rests, Ord::cmp).unwrap_or(shift.offset_ns);
        }
        shift
    }
}

fn median<T: Copy>(mut values: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    middle(&mut values, order).map(|[_, upper]| upper)
}

/// Shifts up to this are searched for: every time zone, and some seconds more.
const MAX_SHIFT_NS: i64 = (26 * 3600 + 120) * 1_000_000_000;

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
struct Search {
    labels: Vec<i64>,
    commands: Vec<i64>,
    tolerance_ns: i64,
    /// The share of moments that are near a command, from the first command to the last.
    coverage: f64,
    /// How many shifts are tried that do not overlap.
    trials: f64,
}

/// A shift and how many labels are near a command by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Peak {
    near: usize,
    offset_ns: i64,
}

impl Search {
    /// `None` if there are too few labels or commands to show anything.
    fn new(labels: &[i64], commands: &[i64], tolerance_ns: i64) -> Option<Self> {
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
fn distinct_peaks(search: &Search, most: usize) -> Vec<i64> {
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
fn drifting_peaks(search: &Search, around: &[i64]) -> Vec<ClockShift> {
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

#[cfg(test)]
mod tests;
