//! Labels of a file and the commands they belong to.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use sizeleak_model::{Action, Inventory, InventoryError, LabelZone, Labels, Matching, Model, match_labels};

use crate::error::{EvaluationError, LabelFileError};
use crate::label_clock::{ClockFit, ClockShift, LabelClock, chance_of_matches};
use crate::tolerance::Tolerance;

#[cfg(test)]
mod tests;

/// How many labels or commands a remark names; the others are counted.
const SHOWN: usize = 5;

/// With fewer labels, chance says little.
const FEWEST_FOR_CHANCE: usize = 5;

/// Labels that match as well by chance with this probability are doubtful.
const DOUBTFUL: f64 = 0.01;

/// At most this many decisive shares of labels may be unused: half of those within the time of the captures' commands…
const MOST_UNUSED_WITHIN: usize = 2;

/// …and three quarters of all.
const MOST_UNUSED: usize = 4;

/// How the times of a label file are to be read.
#[derive(Debug, Clone, Default)]
pub struct LabelTimes {
    /// The zone of times that name none.
    pub zone: Option<LabelZone>,
    /// What is added to all times, in nanoseconds; `None` to estimate it.
    pub offset_ns: Option<i64>,
}

/// The labels of a file, at least one.
#[derive(Debug, Clone)]
pub struct LabelFile {
    path: PathBuf,
    labels: Labels,
    /// What the user set the clock to, in nanoseconds to add.
    offset_ns: Option<i64>,
    /// What is known of the clock; `None` before it was compared with commands. The times of the rows are corrected by
    /// it.
    clock: Option<LabelClock>,
    /// What was left out, a sentence each.
    left_out: Vec<String>,
}

impl LabelFile {
    /// Reads labels.
    ///
    /// # Errors
    /// [`LabelFileError`], with the file and the line.
    pub fn read(path: &Path, times: &LabelTimes) -> Result<Self, LabelFileError> {
        let fault = |fault: String| LabelFileError { file: path.display().to_string(), fault };
        let file = File::open(path).map_err(|error| fault(error.to_string()))?;
        let labels = Labels::read_in(file, times.zone.as_ref()).map_err(|error| fault(error.to_string()))?;
        Self::of(path.to_owned(), labels, times.offset_ns)
    }

    /// Labels that come from `path`, a file or whatever else names them.
    pub(crate) fn of(path: PathBuf, labels: Labels, offset_ns: Option<i64>) -> Result<Self, LabelFileError> {
        let file = Self { path, labels, offset_ns, clock: None, left_out: Vec::new() };
        if file.labels.rows.is_empty() {
            return Err(file.fault("there is no row below the header: label at least one command".to_owned()));
        }
        Ok(file)
    }

    /// Checks that some section of the model knows the actions; returns a sentence about those that none knows, whose
    /// commands cannot be recognised.
    ///
    /// # Errors
    /// If no action is known.
    pub fn check_actions(&self, models: &[Model]) -> Result<Option<String>, LabelFileError> {
        let known: BTreeSet<&str> = models.iter().flat_map(Model::action_names).collect();
        let unknown: Vec<String> = self
            .labels
            .actions
            .iter()
            .filter(|name| !known.contains(name.as_str()))
            .map(|name| format!("`{name}`"))
            .collect();
        let names = unknown.join(", ");
        if unknown.len() < self.labels.actions.len() {
            let file = self.path.display();
            return Ok((!unknown.is_empty()).then(|| {
                format!("{file}: the model does not know {names}: commands with them count as not found out")
            }));
        }
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(self.fault(format!("the model knows none of the actions {names}, it has {known}: learn again with them")))
    }

    /// The labels that an inventory allows; the others are left out and named by [`LabelFile::unmatched`].
    ///
    /// # Errors
    /// If the inventory contradicts itself or allows none of the labels.
    pub fn within(mut self, inventory: &Inventory) -> Result<Self, LabelFileError> {
        let action = |name: &String| Action { name: name.clone(), size: 1 };
        let has_device = |name: &String| {
            let limits = inventory.limits(&[action(name)]);
            !matches!(limits, Err(InventoryError::UnknownAction(_)))
        };
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            (0..self.labels.actions.len()).partition(|at| self.labels.actions.get(*at).is_some_and(has_device));
        let actions: Vec<String> = known.iter().filter_map(|at| self.labels.actions.get(*at)).cloned().collect();
        let names: Vec<String> =
            unknown.iter().filter_map(|at| self.labels.actions.get(*at)).map(|name| format!("`{name}`")).collect();
        if actions.is_empty() {
            let fault = format!("no device of the inventory has the action {}", names.join(" or "));
            return Err(self.fault(format!("{fault}: name the labels' actions in the inventory as in the labels")));
        }
        let limits = inventory.limits(&actions.iter().map(action).collect::<Vec<_>>());
        let limits = limits.map_err(|error| self.fault(error.to_string()))?;
        let pick = |counts: &[u32], picked: &[usize]| -> Vec<u32> {
            picked.iter().map(|at| counts.get(*at).copied().unwrap_or(0)).collect()
        };
        let (mut kept, mut without_device, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
        for (at, row) in self.labels.rows.iter().enumerate() {
            let counts = pick(&row.counts, &known);
            if pick(&row.counts, &unknown).iter().any(|count| *count > 0) {
                without_device.push(at);
            } else if limits.admits(&counts) {
                kept.push(sizeleak_model::Label { counts, ..row.clone() });
            } else {
                beyond.push(at);
            }
        }
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut left_out = Vec::new();
        if !without_device.is_empty() {
            let (count, lines) = (without_device.len(), self.lines(&without_device));
            left_out.push(format!(
                "{file}: {count} of {rows} labels are left out, because no device of the inventory has the action {}: \
                 {lines}",
                names.join(" or ")
            ));
        }
        if !beyond.is_empty() {
            let (count, lines) = (beyond.len(), self.lines(&beyond));
            left_out.push(format!(
                "{file}: {count} of {rows} labels are left out, because the inventory has too few devices for their \
                 actions: {lines}"
            ));
        }
        if kept.is_empty() {
            let all = left_out.join("; ");
            let all = all.strip_prefix(&format!("{file}: ")).unwrap_or(&all).to_owned();
            return Err(self.fault(format!("{all}; no label remains: correct the labels or the inventory")));
        }
        self.labels = Labels { actions, rows: kept, ..self.labels };
        self.left_out.extend(left_out);
        Ok(self)
    }

    /// An error that names this file.
    fn fault(&self, fault: String) -> LabelFileError {
        LabelFileError { file: self.path.display().to_string(), fault }
    }

    /// The content of the file; its times are corrected once it is [aligned](LabelFile::aligned).
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The time of each row, in nanoseconds since 1970.
    pub fn times(&self) -> Vec<i64> {
        self.labels.rows.iter().map(|row| row.time_ns).collect()
    }

    /// The indices of the rows, ordered by time.
    pub fn order_by_time(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.labels.rows.len()).collect();
        rows.sort_by_key(|row| self.labels.rows.get(*row).map(|row| row.time_ns));
        rows
    }

    /// Some of the rows alone.
    #[must_use]
    pub fn subset(&self, rows: &[usize]) -> Self {
        let rows = rows.iter().filter_map(|row| self.labels.rows.get(*row)).cloned().collect();
        let labels = Labels { actions: self.labels.actions.clone(), rows, ..self.labels };
        Self { path: self.path.clone(), labels, left_out: Vec::new(), ..*self }
    }

    /// The tolerance that was given, or the usual one of labels with or without seconds.
    pub fn tolerance(&self, given: Option<Tolerance>) -> Tolerance {
        given.unwrap_or(if self.labels.is_to_the_minute { Tolerance::OF_MINUTES } else { Tolerance::USUAL })
    }

    /// The labels with their times on the clock of the captures: the clock is compared with these commands, unless it
    /// already was.
    #[must_use]
    pub fn aligned(&self, command_times: &[i64], tolerance: Tolerance) -> Self {
        if self.clock.is_some() {
            return self.clone();
        }
        let clock = match self.offset_ns {
            Some(offset_ns) => LabelClock::Given(offset_ns),
            None => LabelClock::estimate(&self.times(), command_times, tolerance.nanoseconds()),
        };
        let mut aligned = self.clone();
        if let Some(shift) = clock.shift() {
            aligned.labels.rows.iter_mut().for_each(|row| row.time_ns = shift.apply(row.time_ns));
        }
        aligned.clock = Some(clock);
        aligned
    }

    /// What is known of the clock; `None` before the labels are [aligned](LabelFile::aligned).
    pub fn clock(&self) -> Option<LabelClock> {
        self.clock
    }

    /// Matches the rows with commands, on the clock of the captures.
    ///
    /// # Errors
    /// If no row is near a command: the clocks or files are wrong, and every figure would be too.
    pub fn matching(&self, command_times: &[i64], tolerance: Tolerance) -> Result<Matching, EvaluationError> {
        if command_times.is_empty() {
            return Err(EvaluationError::NoCommands(Box::default()));
        }
        let aligned = self.aligned(command_times, tolerance);
        let matching = match_labels(&aligned.times(), command_times, tolerance.nanoseconds());
        if matching.pairs.is_empty() {
            return Err(aligned.unused(&matching, command_times, tolerance).into());
        }
        Ok(matching)
    }

    /// Checks that most rows have a command, of all that were found in the captures.
    ///
    /// # Errors
    /// If fewer than half of the rows within the time of the commands have one, or fewer than a quarter of all.
    pub fn check_use(
        &self,
        matching: &Matching,
        command_times: &[i64],
        tolerance: Tolerance,
    ) -> Result<(), LabelFileError> {
        let aligned = self.aligned(command_times, tolerance);
        let (all, matched) = (aligned.labels.rows.len(), matching.pairs.len());
        let is_used = matched * MOST_UNUSED_WITHIN >= aligned.within_time(command_times, tolerance)
            && matched * MOST_UNUSED >= all;
        if is_used { Ok(()) } else { Err(aligned.unused(matching, command_times, tolerance)) }
    }

    /// How many rows lie between the first command and the last.
    fn within_time(&self, command_times: &[i64], tolerance: Tolerance) -> usize {
        ClockShift::default().labels_within(&self.times(), command_times, tolerance.nanoseconds())
    }

    /// Why most rows of aligned labels have no command.
    fn unused(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> LabelFileError {
        let (all, matched) = (self.labels.rows.len(), matching.pairs.len());
        let within = self.within_time(command_times, tolerance);
        let share = if matched == 0 { "none".to_owned() } else { format!("only {matched}") };
        let first_command = || command_times.iter().min().map_or_else(String::new, |time| timestamp(*time));
        let place = if within == 0 {
            format!(
                "its first label is at {}, the first of {} commands at {}",
                self.labels.rows.first().map_or(String::new(), |row| timestamp(row.time_ns)),
                command_times.len(),
                first_command(),
            )
        } else {
            let last = command_times.iter().max().map_or_else(String::new, |time| timestamp(*time));
            format!(
                "{} of them lie outside the time of the captures' commands, {} to {last}",
                all - within,
                first_command()
            )
        };
        let reason = self.reason(within * 2 < all);
        self.fault(format!("{share} of its {all} labels is within {tolerance} of a command: {place}; {reason}"))
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
            LabelClock::Agrees | LabelClock::Differs(_) if are_outside => {
                "name the captures that cover the labels, or correct the labels' clock (`--label-offset`, \
                 `--label-zone`)"
                    .to_owned()
            }
            LabelClock::Agrees | LabelClock::Differs(_) => {
                "no shift of their clock up to 26 h helps: are these the captures of the labels, is it the right \
                 gateway, and does the segmenter find its commands (`--set command-segmenter.…`)?"
                    .to_owned()
            }
        }
    }

    /// A sentence for the clock, for labels that were left out, and for each kind of label or command without a partner,
    /// with the first few of each.
    pub fn unmatched(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Vec<String> {
        let aligned = self.aligned(command_times, tolerance);
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut remarks = self.left_out.clone();
        if self.labels.is_to_the_minute && tolerance == Tolerance::OF_MINUTES {
            remarks.push(format!(
                "{file}: the times have no seconds, so a command may be {tolerance} away (`--tolerance` sets another \
                 limit)"
            ));
        }
        remarks.extend(aligned.clock_in_words());
        remarks.extend(aligned.doubt(matching, command_times, tolerance));
        if !matching.missed.is_empty() {
            let (count, lines) = (matching.missed.len(), aligned.lines(&matching.missed));
            remarks.push(format!("{file}: {count} of {rows} labels have no command within {tolerance}: {lines}"));
        }
        let count = rows.saturating_sub(aligned.within_time(command_times, tolerance));
        if count > 0 {
            remarks.push(format!("{file}: {count} of these lie outside the time of the captures' commands"));
        }
        if !matching.ambiguous.is_empty() {
            let (count, lines) = (matching.ambiguous.len(), aligned.lines(&matching.ambiguous));
            remarks.push(format!("{file}: {count} of {rows} labels are only near commands of other labels: {lines}"));
        }
        if !matching.spurious.is_empty() {
            let (count, all) = (matching.spurious.len(), command_times.len());
            let times = matching.spurious.iter().filter_map(|at| command_times.get(*at)).map(|time| timestamp(*time));
            remarks.push(format!("{count} of {all} commands have no label: {}", first_few(times, count)));
        }
        remarks
    }

    /// What is known of the clock, if it is not simply right.
    fn clock_in_words(&self) -> Option<String> {
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let text = match self.clock.unwrap_or_default() {
            LabelClock::Agrees => return None,
            LabelClock::Given(offset_ns) => format!("{} is added to all times, as given", signed(offset_ns)),
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
                     {matched_by_next} by the next best of {}; chance finds such a shift with p < {by_chance:.0e} \
                     (`--label-offset` sets another)",
                    self.distance(&fit.shift),
                    signed(next_ns),
                )
            }
        };
        Some(format!("{file}: {text}"))
    }

    /// How far the clock is from that of the captures, in words.
    fn distance(&self, shift: &ClockShift) -> String {
        let ends = [
            self.labels.rows.iter().map(|row| row.time_ns).min(),
            self.labels.rows.iter().map(|row| row.time_ns).max(),
        ];
        let at = |time: Option<i64>| {
            let offset_ns = time.map_or(shift.offset_ns, |time| shift.at(time));
            let side = if offset_ns < 0 { "ahead of" } else { "behind" };
            format!("{} {side} the capture", duration(offset_ns))
        };
        let [first, last] = ends.map(at);
        if shift.drift == 0.0 { first } else { format!("{first} at first and {last} in the end (their clock drifts)") }
    }

    /// A warning, if chance would give as many labels a command.
    fn doubt(&self, matching: &Matching, command_times: &[i64], tolerance: Tolerance) -> Option<String> {
        let matched = matching.pairs.len();
        let chance = chance_of_matches(&self.times(), command_times, tolerance.nanoseconds(), matched);
        (self.labels.rows.len() >= FEWEST_FOR_CHANCE && chance > DOUBTFUL).then(|| {
            format!(
                "{}: commands are so frequent that chance gives {matched} labels a command within {tolerance} with \
                 probability {chance:.2}: check the labels' clock, or find fewer commands",
                self.path.display()
            )
        })
    }

    /// The first few of these rows, by line and time.
    pub fn lines(&self, rows: &[usize]) -> String {
        let named = rows.iter().filter_map(|row| self.labels.rows.get(*row));
        let named = named.map(|row| format!("line {} ({})", row.line, timestamp(row.time_ns)));
        first_few(named, rows.len())
    }
}

/// A time in RFC 3339.
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

fn first_few(named: impl Iterator<Item = String>, all: usize) -> String {
    let text = named.take(SHOWN).collect::<Vec<_>>().join(", ");
    if all > SHOWN { format!("{text} and {} more", all - SHOWN) } else { text }
}
