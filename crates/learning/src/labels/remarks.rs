//! What is said of labels: their clock, and those without a command.

use jiff::{SignedDuration, Timestamp};
use sizeleak_text::{counted, listed};

use crate::labels::clock::{ClockFit, ClockShift, LabelClock, LabelOffset, chance_of_matches};
use crate::labels::label_file::{LabelFile, LabelFileError};
use crate::labels::matching::{Matching, Tolerance};

/// How many labels or commands a remark names; the others are counted.
const SHOWN: usize = 5;

/// With fewer labels, chance says little.
const MIN_FOR_CHANCE: usize = 5;

/// No smaller probability is named: labels are not as independent as that.
const MIN_CHANCE: f64 = 1e-9;

/// The tolerance is halved so often, down to some milliseconds of the usual two seconds.
const TRIED: u32 = 8;

/// Labels that match as well by chance with this probability are doubtful.
const DOUBTFUL: f64 = 0.01;

impl LabelFile {
    pub(crate) fn unused(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> LabelFileError {
        let (all, matched) = (self.labels.rows.len(), matching.pairs.len());
        let within = self.within_time(command_times, tolerance);
        let share = if matched == 0 { "none".to_owned() } else { format!("only {matched}") };
        let shown = |time: Option<i64>| time.map_or_else(String::new, timestamp);
        let first_command = shown(command_times.iter().copied().min());
        let place = if within == 0 {
            format!(
                "its first label is at {}, the first of {} at {}",
                shown(self.labels.rows.iter().map(|row| row.time_ns).min()),
                counted(command_times.len(), "command", "commands"),
                first_command,
            )
        } else if within == all {
            format!("all lie within the time of the captures' {}", counted(command_times.len(), "command", "commands"))
        } else {
            let (outside, last) = (all - within, shown(command_times.iter().copied().max()));
            let lie = if outside == 1 { "lies" } else { "lie" };
            format!("{outside} of them {lie} outside the time of the captures' commands, {first_command} to {last}")
        };
        let reason = self.reason(within * 2 < all);
        let are = if matched > 1 { "are" } else { "is" };
        let found = match all {
            1 if matched == 0 => "its one label is not".to_owned(),
            all => format!("{share} of its {} {are}", counted(all, "label", "labels")),
        };
        self.fault(format!("{found} within {tolerance} of a command: {place}; {reason}"))
    }

    /// Why most labels have no command, as far as it can be told.
    fn reason(&self, are_outside: bool) -> String {
        match self.clock.unwrap_or_default() {
            LabelClock::Given(_) => "is the `--label-offset` right?".to_owned(),
            LabelClock::Ambiguous(fit) => format!(
                "their clock may be off, but a shift by {} fits as well as one by {} (labels at equal distances): give \
                 the right one with `--label-offset`",
                signed(fit.shift.offset_ns),
                signed(fit.next_ns),
            ),
            LabelClock::Agrees | LabelClock::Differs(_) => if are_outside && self.labels.count_from_a_start() {
                "no capture is as old as that: if the times count from the first packet, `learn` and `evaluate` take \
                 `--label-offset start`"
            } else if are_outside {
                "name the captures that cover the labels, or correct the labels' clock (`sizeleak labels` with \
                 `--label-offset` or `--label-zone`)"
            } else {
                "no shift of their clock up to 26 h helps: are these the captures of the labels, is it the right \
                 gateway, and does the segmenter find its commands (`--set command-segmenter.…`)?"
            }
            .to_owned(),
        }
    }

    /// A sentence for the clock, for labels that were left out, and for each kind of label or command without a partner,
    /// with the first few of each.
    pub fn unmatched(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Vec<String> {
        let aligned = self.aligned(command_times, tolerance);
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut remarks = aligned.left_out.clone();
        if self.labels.is_to_the_minute && tolerance == Tolerance::OF_MINUTES {
            remarks.push(format!(
                "{file}: the times have no seconds, so a command may be {tolerance} away (`--tolerance` sets another \
                 limit)"
            ));
        }
        remarks.extend(aligned.doubt(matching, command_times, tolerance));
        let some_labels = |some: &[usize], what: &dyn Fn(usize) -> String| {
            let (count, lines) = (some.len(), aligned.lines(some));
            let all = counted(rows, "label", "labels");
            (count > 0).then(|| format!("{file}: {count} of {all} {}: {lines}", what(count)))
        };
        remarks.extend(some_labels(&matching.missed, &|count| {
            format!("{} no command within {tolerance}", if count == 1 { "has" } else { "have" })
        }));
        let count = rows.saturating_sub(aligned.within_time(command_times, tolerance));
        if count > 0 {
            remarks.push(format!(
                "{file}: {} outside the time of the captures' commands",
                counted(count, "label lies", "labels lie")
            ));
        }
        remarks.extend(some_labels(&matching.ambiguous, &|count| {
            format!("{} only near commands of other labels", if count == 1 { "is" } else { "are" })
        }));
        if !matching.spurious.is_empty() && !self.are_answers {
            let (count, all) = (matching.spurious.len(), command_times.len());
            let times = matching.spurious.iter().filter_map(|at| command_times.get(*at)).map(|time| timestamp(*time));
            let (all, have) = (counted(all, "command", "commands"), if count == 1 { "has" } else { "have" });
            remarks.push(format!("{count} of {all} {have} no label: {}", listed(times, SHOWN)));
        }
        remarks
    }

    pub(crate) fn clock_in_words(&self) -> Option<String> {
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let text = match self.clock.unwrap_or_default() {
            LabelClock::Agrees => return None,
            LabelClock::Given(LabelOffset::By(offset_ns)) => {
                format!("{} is added to all times, as given", signed(offset_ns))
            }
            LabelClock::Given(LabelOffset::From(start_ns)) => {
                format!("times count from the first packet, at {}, as given", timestamp(start_ns))
            }
            LabelClock::Ambiguous(fit) => format!(
                "the clock may be off: a shift by {} gives {} labels a command, one by {} gives {}, and none {}; none is \
                 applied (`--label-offset` sets one)",
                signed(fit.shift.offset_ns),
                fit.matched,
                signed(fit.next_ns),
                fit.matched_by_next,
                fit.matched_without,
            ),
            LabelClock::Differs(fit) => {
                let ClockFit { matched, matched_without, matched_by_next, next_ns, by_chance, .. } = fit;
                format!(
                    "labels are {}: {matched} of {rows} labels match, {matched_without} without the shift, \
                     {matched_by_next} by the next best of {}; chance finds such a shift with p < {:.0e} \
                     (`--label-offset` sets another)",
                    self.distance(&fit.shift),
                    signed(next_ns),
                    by_chance.max(MIN_CHANCE),
                )
            }
        };
        Some(format!("{file}: {text}"))
    }

    fn distance(&self, shift: &ClockShift) -> String {
        let times = || self.labels.rows.iter().map(|row| row.time_ns);
        let at = |time: Option<i64>| {
            let offset_ns = time.map_or(shift.offset_ns, |time| shift.at(time));
            let side = if offset_ns < 0 { "ahead of" } else { "behind" };
            format!("{} {side} the capture", duration(offset_ns))
        };
        let [first, last] = [times().min(), times().max()].map(at);
        if shift.drift == 0.0 { first } else { format!("{first} at first and {last} in the end (their clock drifts)") }
    }

    /// A warning, if chance would give as many labels a command. Labels that lie much closer to their commands than the
    /// tolerance are right whatever it is, so shorter ones are tried, too.
    fn doubt(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Option<String> {
        let (times, matched) = (self.times(), matching.pairs.len());
        let distance = |(row, at): &(usize, usize)| Some(times.get(*row)?.abs_diff(*command_times.get(*at)?));
        let distances: Vec<u64> = matching.pairs.iter().filter_map(distance).collect();
        let chance_within = |tried: u32| {
            let within_ns = tolerance.nanoseconds() >> tried;
            let near = distances.iter().filter(|distance| **distance <= within_ns.unsigned_abs()).count();
            chance_of_matches(&times, command_times, within_ns, near)
        };
        // Each that is tried is another occasion for chance.
        let least = (0..TRIED).map(chance_within).fold(1.0, f64::min);
        let is_chance = least * f64::from(TRIED) > DOUBTFUL;
        (times.len() >= MIN_FOR_CHANCE && is_chance).then(|| {
            let chance = chance_within(0);
            format!(
                "{}: commands are so frequent that chance gives {matched} labels a command within {tolerance} with \
                 probability {chance:.2}: check the labels' clock, or narrow `--tolerance`",
                self.path.display()
            )
        })
    }

    /// The first few of these rows, by line and time.
    pub fn lines(&self, rows: &[usize]) -> String {
        let named = rows.iter().filter_map(|row| self.labels.rows.get(*row));
        let capture = |line: u64| self.captures.get(usize::try_from(line.checked_sub(1)?).ok()?);
        let named = named.map(|row| match capture(row.line) {
            Some(capture) => capture.path.display().to_string(),
            None => format!("line {} ({})", row.line, timestamp(row.time_ns)),
        });
        listed(named, SHOWN)
    }
}

fn timestamp(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| format!("{time_ns} ns"), |time| time.to_string())
}

/// Decimals of seconds are shown below this.
const LONG_NS: i64 = 120_000_000_000;

/// A duration without its sign, to a tenth of a second.
fn duration(nanoseconds: i64) -> String {
    let nanoseconds = nanoseconds.saturating_abs();
    if nanoseconds < LONG_NS {
        return format!("{:.1} s", nanoseconds as f64 / 1e9);
    }
    let tenth = 100_000_000;
    format!("{:#}", SignedDuration::from_nanos(nanoseconds.saturating_add(tenth / 2) / tenth * tenth))
}

fn signed(nanoseconds: i64) -> String {
    format!("{}{}", if nanoseconds < 0 { '-' } else { '+' }, duration(nanoseconds))
}
