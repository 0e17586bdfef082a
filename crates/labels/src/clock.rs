//! The clock of labels: how far it is from that of the captures, found by cross-correlation of labels and commands.
//!
//! Every difference between a command and a label votes for a shift. The shift within 26 hours that gives most labels
//! a command is the best; a clock that drifts is searched for around the best constant shifts. A shift is believed only
//! if it gives many more labels a command than no shift and than any other one does, and more than chance would:
//! labels at equal distances, few labels, and commands everywhere leave the clock as it is.

mod peaks;
mod shift;

use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::matching::matching_pairs;
use peaks::{MAX_SHIFT_NS, Search, distinct_peaks, drifting_peaks};
pub use shift::ClockShift;

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

/// The probability that chance gives so many of the labels within the captures a command, without any shift.
pub(crate) fn chance_of_matches(labels: &[i64], commands: &[i64], tolerance_ns: i64, matched: usize) -> f64 {
    let search = Search::new(labels, commands, tolerance_ns.clamp(0, MAX_SHIFT_NS));
    let within = ClockShift::default().labels_within(labels, commands, tolerance_ns);
    search.map_or(1.0, |search| by_chance(matched, within.max(matched), search.coverage))
}

#[cfg(test)]
mod tests;
