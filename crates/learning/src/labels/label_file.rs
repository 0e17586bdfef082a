//! Labels of a file and the commands they belong to.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use sizeleak_model::{Action, Inventory, Model};
use sizeleak_text::{TimeRange, counted, listed};
use thiserror::Error;

use crate::labels::capture_names::{LabelledCapture, NameRule};
use crate::labels::clock::{ClockShift, LabelClock, LabelOffset};
use crate::labels::matching::{Matching, Tolerance, match_labels, match_turns};
use crate::labels::rows::{Label, LabelForm, Labels};

#[cfg(test)]
mod tests;

/// At most this many decisive shares of labels may be unused: half of those within the time of the captures' commands…
const MIN_USED_WITHIN: usize = 2;

/// …and three quarters of all.
const MIN_USED: usize = 4;

/// What labels in names are called in messages.
const NAMES: &str = "the captures' names";

/// The most counts (captures times actions) that names may stand for.
const MAX_NAMED_COUNTS: usize = 1 << 26;

/// Why labels cannot be used: one sentence that names the file and, if there is one, the line.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct LabelFileError {
    pub(crate) file: String,
    pub(crate) fault: String,
}

impl LabelFileError {
    fn new(file: &Path, fault: impl Into<String>) -> Self {
        Self { file: file.display().to_string(), fault: fault.into() }
    }

    /// What is wrong, without the name of the file.
    pub fn fault(&self) -> &str {
        &self.fault
    }
}

#[derive(Debug, Clone, Default)]
pub struct LabelTimes {
    pub form: LabelForm,
    /// What is added to all times; `None` to estimate it.
    pub offset: Option<LabelOffset>,
}

/// The labels of a file, at least one.
#[derive(Debug, Clone, Default)]
pub struct LabelFile {
    pub(crate) path: PathBuf,
    pub(crate) labels: Labels,
    /// What the user set the clock to.
    pub(crate) offset: Option<LabelOffset>,
    /// When the rows are from that are kept once their clock is known.
    pub(crate) range: TimeRange,
    /// What is known of the clock, by which the rows' times are corrected; `None` before it was compared with commands.
    pub(crate) clock: Option<LabelClock>,
    /// How the file was read and what was left out, a sentence each.
    pub(crate) left_out: Vec<String>,
    /// Whether a program found them: commands without a label are then no news.
    pub(crate) are_answers: bool,
    /// The captures, by the lines of the rows from 1, if their names are the labels.
    pub(crate) captures: Vec<LabelledCapture>,
    /// When each command of an experiment was handed over, in ascending order; empty if that is not known.
    pub(crate) turns: Vec<i64>,
}

impl LabelFile {
    pub fn read(path: &Path, times: &LabelTimes) -> Result<Self, LabelFileError> {
        let file = File::open(path).map_err(|error| LabelFileError::new(path, error.to_string()))?;
        let labels = Labels::read_in(file, &times.form);
        let labels = labels.map_err(|error| LabelFileError::new(path, error.to_string()))?;
        Self::of(path.to_owned(), labels, times.offset)
    }

    /// Labels that are the names of captures of one command each. A label belongs to the first command in its capture.
    ///
    /// # Errors
    /// [`LabelFileError`], for the first name without an action.
    pub fn of_names(captures: &[LabelledCapture], rule: &NameRule) -> Result<Self, LabelFileError> {
        let mut labels = Labels::default();
        let (named, common_name) = rule.actions(captures.iter().map(|capture| capture.path.as_path()));
        labels.notes.extend(common_name.map(|name| {
            format!(
                "all files are called `{name}`: the names of their folders are the actions (`--labels-from-names=REGEX` \
                 finds others)"
            )
        }));
        for ((capture, action), line) in captures.iter().zip(named).zip(1..) {
            let (action, times) = action.ok_or_else(|| {
                let fault = "neither its name nor that of its folder is an action: name it, or say where it is with \
                             `--labels-from-names=REGEX`";
                LabelFileError::new(&capture.path, fault)
            })?;
            let at = labels.actions.iter().position(|known| *known == action).unwrap_or_else(|| {
                labels.actions.push(action);
                labels.actions.len() - 1
            });
            let mut counts = vec![0; at];
            counts.push(times);
            let time_ns = capture.span.map_or(0, |[first, _]| first);
            labels.rows.push(Label { time_ns, counts, line });
        }
        let actions = labels.actions.len();
        if labels.rows.len().saturating_mul(actions) > MAX_NAMED_COUNTS {
            let fault =
                "too many different actions: name them alike, or say where they are with `--labels-from-names=REGEX`";
            return Err(LabelFileError::new(Path::new(NAMES), fault));
        }
        labels.rows.iter_mut().for_each(|row| row.counts.resize(actions, 0));
        Ok(Self { captures: captures.to_vec(), ..Self::of(PathBuf::from(NAMES), labels, None)? })
    }

    /// Labels that a program found in the commands of captures, with their times. Messages call them `source`.
    ///
    /// # Errors
    /// If there are none.
    pub fn of_answers(source: &str, labels: Labels) -> Result<Self, LabelFileError> {
        let labels = Self::of(PathBuf::from(source), labels, None)?;
        Ok(Self { clock: Some(LabelClock::Agrees), are_answers: true, ..labels })
    }

    /// Labels that come from `path`, a file or whatever else names them.
    fn of(path: PathBuf, labels: Labels, offset: Option<LabelOffset>) -> Result<Self, LabelFileError> {
        let left_out = labels.notes.iter().map(|note| format!("{}: {note}", path.display())).collect();
        let file = Self { path, labels, offset, left_out, ..Self::default() };
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
        let unknown = self.labels.actions.iter().filter(|name| !known.contains(name.as_str()));
        let all_unknown = unknown.clone().count() == self.labels.actions.len();
        let names = listed(unknown.map(|name| format!("`{name}`")), usize::MAX);
        if !all_unknown {
            let file = self.path.display();
            return Ok((!names.is_empty()).then(|| {
                format!("{file}: the model does not know {names}: commands with them count as not found out")
            }));
        }
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Err(self.fault(format!("the model knows none of the actions {names}, it has {known}: learn again with them")))
    }

    /// The labels that an inventory allows, or all without one; [`LabelFile::unmatched`] names the others.
    ///
    /// # Errors
    /// If the inventory contradicts itself or allows none of the labels.
    pub fn within(mut self, inventory: Option<&Inventory>) -> Result<Self, LabelFileError> {
        let Some(inventory) = inventory else { return Ok(self) };
        inventory.check().map_err(|error| self.fault(error.to_string()))?;
        let (all, names) = (&self.labels.actions, inventory.action_names());
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            (0..all.len()).partition(|at| names.contains(&all[*at].as_str()));
        let actions: Vec<String> = known.iter().map(|at| all[*at].clone()).collect();
        let names = unknown.iter().map(|at| format!("`{}`", all[*at])).collect::<Vec<_>>().join(" or ");
        let no_device = format!("no device of the inventory has the action {names}");
        if actions.is_empty() {
            let remedy = "name the labels' actions in the inventory as in the labels";
            return Err(self.fault(format!("{no_device}: {remedy}")));
        }
        let limits = inventory.limits(&actions.iter().map(|name| Action::new(name, 1)).collect::<Vec<_>>());
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
                kept.push(Label { counts, ..row.clone() });
            } else {
                beyond.push(at);
            }
        }
        let (file, rows) = (self.path.display(), self.labels.rows.len());
        let mut left_out = Vec::new();
        let too_few = "the inventory has too few devices for their actions".to_owned();
        for (rows_left, why) in
            [(without_device, no_device), (beyond, too_few)].iter().filter(|(rows, _)| !rows.is_empty())
        {
            let (count, lines) = (rows_left.len(), self.lines(rows_left));
            let (all, are) = (counted(rows, "label", "labels"), if count == 1 { "is" } else { "are" });
            left_out.push(format!("{file}: {count} of {all} {are} left out, because {why}: {lines}"));
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

    /// Leaves out the rows that are not of this time, by the clock of the captures.
    #[must_use]
    pub fn of_time(self, range: TimeRange) -> Self {
        Self { range, ..self }
    }

    pub fn fault(&self, fault: String) -> LabelFileError {
        LabelFileError::new(&self.path, fault)
    }

    /// The content of the file; its times are corrected once it is [aligned](LabelFile::aligned).
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The time of each row, in nanoseconds since 1970.
    pub fn times(&self) -> Vec<i64> {
        self.labels.rows.iter().map(|row| row.time_ns).collect()
    }

    pub fn order_by_time(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.labels.rows.len()).collect();
        rows.sort_by_key(|row| self.labels.rows.get(*row).map(|row| row.time_ns));
        rows
    }

    #[must_use]
    pub fn subset(&self, rows: &[usize]) -> Self {
        let rows = rows.iter().filter_map(|row| self.labels.rows.get(*row)).cloned().collect();
        let actions = self.labels.actions.clone();
        let labels = Labels { actions, rows, notes: Vec::new(), is_to_the_minute: self.labels.is_to_the_minute };
        let (captures, turns) = (self.captures.clone(), self.turns.clone());
        Self { path: self.path.clone(), labels, left_out: Vec::new(), captures, turns, ..*self }
    }

    /// The same without some rows, as if they were not in the file.
    pub(crate) fn without(&self, rows: &BTreeSet<usize>) -> Self {
        let kept: Vec<usize> = (0..self.labels.rows.len()).filter(|row| !rows.contains(row)).collect();
        Self { left_out: self.left_out.clone(), ..self.subset(&kept) }
    }

    /// The same without those of some actions, by index, that no row has.
    pub(crate) fn without_actions(mut self, left_out: &BTreeSet<usize>) -> Self {
        let Labels { actions, rows, .. } = &mut self.labels;
        let has = |row: &Label, action: &usize| row.counts.get(*action).is_some_and(|count| *count > 0);
        for at in left_out.iter().rev() {
            if *at < actions.len() && !rows.iter().any(|row| has(row, at)) {
                actions.remove(*at);
                rows.iter_mut().filter(|row| *at < row.counts.len()).for_each(|row| _ = row.counts.remove(*at));
            }
        }
        self
    }

    /// The same of an experiment whose commands were handed over at these times, in nanoseconds since 1970, those of other
    /// labels included: the message of a label was sent in its turn.
    #[must_use]
    pub fn in_turns(mut self, mut starts: Vec<i64>) -> Self {
        starts.sort_unstable();
        self.turns = starts;
        self
    }

    /// The tolerance that was given, or the usual one of labels with or without seconds.
    pub fn tolerance(&self, given: Option<Tolerance>) -> Tolerance {
        if !self.captures.is_empty() {
            // Aligned labels have the times of their commands.
            return Tolerance::EXACT;
        }
        given.unwrap_or(if self.labels.is_to_the_minute { Tolerance::OF_MINUTES } else { Tolerance::USUAL })
    }

    /// The labels with times on the clock of the captures: it is compared with these commands, unless it already was.
    #[must_use]
    pub fn aligned(&self, command_times: &[i64], tolerance: Tolerance) -> Self {
        if self.clock.is_some() {
            return self.clone();
        }
        let mut aligned = if self.captures.is_empty() {
            self.aligned_by_clock(command_times, tolerance)
        } else {
            self.aligned_by_capture(command_times)
        };
        aligned.left_out.extend(aligned.clock_in_words());
        if !self.range.is_everything() {
            let rows = &mut aligned.labels.rows;
            rows.retain(|row| self.range.contains(row.time_ns));
            let (kept, all, range) = (rows.len(), self.labels.rows.len(), self.range);
            let (all, are) = (counted(all, "label", "labels"), if kept == 1 { "is" } else { "are" });
            aligned.left_out.push(format!("{}: {kept} of {all} {are} {range}", self.path.display()));
        }
        aligned
    }

    fn aligned_by_clock(&self, command_times: &[i64], tolerance: Tolerance) -> Self {
        let clock = match self.offset {
            Some(offset) => LabelClock::Given(offset),
            None => LabelClock::estimate(&self.times(), command_times, tolerance.nanoseconds()),
        };
        let mut aligned = self.clone();
        if let Some(shift) = clock.shift() {
            aligned.labels.rows.iter_mut().for_each(|row| row.time_ns = shift.apply(row.time_ns));
        }
        aligned.clock = Some(clock);
        aligned
    }

    /// Each label with the time of the first command in its capture.
    fn aligned_by_capture(&self, command_times: &[i64]) -> Self {
        let mut commands = command_times.to_vec();
        commands.sort_unstable();
        let mut aligned = Self { clock: Some(LabelClock::Agrees), ..self.clone() };
        let mut with_several = 0;
        for row in &mut aligned.labels.rows {
            let at = usize::try_from(row.line).ok().and_then(|line| line.checked_sub(1));
            let Some([first, last]) = at.and_then(|at| self.captures.get(at)?.span) else { continue };
            let start = commands.partition_point(|time| *time < first);
            let mut within = commands.iter().skip(start).take_while(|time| **time <= last);
            // Without a command its time is the capture's first, at which there is none.
            row.time_ns = within.next().copied().unwrap_or(first);
            with_several += usize::from(within.next().is_some());
        }
        if with_several > 0 {
            let all = self.labels.rows.len();
            aligned.left_out.push(format!(
                "{with_several} of {} several commands: the label is taken for the first of each",
                if with_several == 1 {
                    counted(all, "capture holds", "captures holds")
                } else {
                    format!("{all} captures hold")
                }
            ));
        }
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
    pub fn matching(&self, command_times: &[i64], tolerance: Tolerance) -> Result<Matching, LabelFileError> {
        if command_times.is_empty() {
            return Err(self.fault("there is no command in the captures".to_owned()));
        }
        let aligned = self.aligned(command_times, tolerance);
        let (times, tolerance_ns) = (aligned.times(), tolerance.nanoseconds());
        let matching = if self.turns.is_empty() {
            match_labels(&times, command_times, tolerance_ns)
        } else {
            match_turns(&times, command_times, &self.turns, tolerance_ns)
        };
        if times.is_empty() {
            return Err(self.fault(format!("no label is {}", self.range)));
        }
        if matching.pairs.is_empty() {
            return Err(aligned.unused(&matching, command_times, tolerance));
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
        let is_used =
            matched * MIN_USED_WITHIN >= aligned.within_time(command_times, tolerance) && matched * MIN_USED >= all;
        if is_used { Ok(()) } else { Err(aligned.unused(matching, command_times, tolerance)) }
    }

    pub(crate) fn within_time(&self, command_times: &[i64], tolerance: Tolerance) -> usize {
        ClockShift::default().labels_within(&self.times(), command_times, tolerance.nanoseconds())
    }
}
