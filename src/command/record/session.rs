//! A recording from its first command to its last: sends, waits, learns, and writes everything that was found.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use sizeleak_evaluation::Conclusion;
use sizeleak_evaluation::experiment::{
    ActionSize, Decision, Experiment, Half, HeldOut, Journal, Learned, Outcome, PlannedCommand, Recording, Step,
    labels_of,
};
use sizeleak_learning::labels::{LabelFile, LabelOffset, LabelTimes, Labels};
use sizeleak_model::Inventory;
use sizeleak_packet::AddressSet;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{counted, escaped_lines, listed};

use super::options::{Arguments, End};
use super::sender::{self, HANDS_NS, Person, Sender, now_ns};
use super::tap::Tap;
use crate::command::document::paragraph;
use crate::command::failure::{sentence, silent, usage, with_code};
use crate::command::output_option::{print_document, write};

pub(super) const JOURNAL: &str = "record.json";

/// After so many commands in a row that were not sent, the program that sends them does not work.
const MAX_FAILED: usize = 10;

/// After so many commands without a packet the capture does not see the gateway.
const SENT_UNSEEN: usize = 3;

/// A gateway that is never silent is commanded after so many times the silence that is waited for.
const MAX_SILENCES: u32 = 20;

const SHOWN: usize = 20;

const CLOCK_WORTH_A_WORD: i64 = 1_000_000_000;

pub(super) struct Session<'a> {
    arguments: &'a Arguments,
    folder: &'a Path,
    inventory: Inventory,
    experiment: Experiment,
    journal: Journal,
    sender: Sender,
    tap: Option<Tap>,
    interrupt: Interrupt,
    begun: Instant,
    first: usize,
    /// How many commands are to be sent, where nothing is seen of them.
    wanted: usize,
    learned: Option<Learned>,
    fault: Option<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        folder: &'a Path,
        inventory: Inventory,
        experiment: Experiment,
        journal: Journal,
    ) -> Result<Self> {
        let Arguments { command, capture, .. } = arguments;
        let gateway = AddressSet::parse(&capture.gateway).map_err(|error| with_code(2, error))?;
        let captures = capture.capture_with.is_some() || capture.interface.is_some();
        if captures == capture.labels_only {
            return Err(usage!(
                "name what to capture with `--interface IF` or `--capture-with CMD`, or say `--labels-only`"
            ));
        }
        if captures && gateway.is_empty() {
            return Err(usage!("`--gateway IP|CIDR` is missing: name the gateway to record"));
        }
        if !command.ask && command.program.is_none() && command.do_lines.is_none() {
            return Err(usage!(
                "say how commands are sent: `--do CMD`, `--do-lines CMD` or `--ask`; `--dry-run` prints and sends none"
            ));
        }
        let interrupt = Interrupt::on_signals()?;
        let tap = match (&capture.capture_with, &capture.interface) {
            (Some(text), _) => Some(Tap::of_command(text, folder, gateway)?),
            (None, Some(interface)) => Some(Tap::of_interface(interface, folder, gateway)?),
            (None, None) => None,
        };
        let sender = match (&command.program, &command.do_lines) {
            _ if command.ask => Sender::Asked(Person::new(interrupt.clone())),
            (_, Some(fed)) => Sender::fed(fed)?,
            (program, None) => Sender::Started(program.clone().unwrap_or_default()),
        };
        Ok(Self {
            wanted: experiment.commands() + experiment.expected_commands(),
            first: journal.steps.len(),
            arguments,
            folder,
            inventory,
            experiment,
            journal,
            sender,
            tap,
            interrupt,
            begun: Instant::now(),
            learned: None,
            fault: None,
        })
    }

    pub(super) fn record(mut self) -> Result<()> {
        self.write_journal()?;
        if let Some(tap) = &mut self.tap
            && !tap.wait_for_begin()
        {
            return Err(tap.fault());
        }
        if let Some(reconnect) = &self.arguments.command.reconnect {
            sender::run(reconnect, "").map_err(|fault| anyhow!("`--reconnect`: {fault}"))?;
        }
        self.wait()?;
        if !self.journal.steps.is_empty() {
            self.check()?;
        }
        let end = self.commands();
        if let Some(restore) = &self.arguments.command.restore
            && let Err(fault) = sender::run(restore, "")
        {
            say("warning", &format!("the state is not put back: `--restore`: {fault}"));
        }
        let end = match end {
            Ok(end) => end,
            Err(failure) => {
                self.journal.end = Some(sentence(&failure));
                self.write_labels()?;
                self.write_journal()?;
                return Err(failure);
            }
        };
        self.finish(&end)?;
        // What was interrupted is whole as far as it goes, and was said.
        if matches!(end, End::Interrupted) { Err(silent(130)) } else { Ok(()) }
    }

    fn commands(&mut self) -> Result<End> {
        let mut failed = 0;
        loop {
            if self.interrupt.is_set() {
                return Ok(End::Interrupted);
            }
            if self.arguments.max_time.is_some_and(|most| self.begun.elapsed() >= most) {
                return Ok(End::MaxTime);
            }
            // Where `--max-commands` allows no more, what is decided next says so.
            let enough = self.wanted..self.arguments.max_commands;
            if self.tap.is_none() && enough.contains(&self.experiment.commands()) {
                return Ok(End::LabelsComplete);
            }
            let command = match self.experiment.next() {
                Decision::Stop(stop) => return Ok(End::Decided(stop)),
                Decision::Send(command) => command,
            };
            let sent = self.send(&command)?;
            failed = if sent { 0 } else { failed + 1 };
            if failed >= MAX_FAILED {
                let last = self.journal.steps.last().map(|step| step.outcome.clone());
                let reason = if let Some(Outcome::Failed(reason)) = last { reason } else { String::new() };
                return Err(anyhow!("{failed} commands in a row were not sent: {}", escaped_lines(&reason)));
            }
            self.check_capture()?;
            if sent && command.half == Half::Learn && self.tap.is_some() && self.experiment.wants_check() {
                self.check()?;
            }
            self.report(&command, sent);
        }
    }

    fn send(&mut self, command: &PlannedCommand) -> Result<bool> {
        let begun = Instant::now();
        self.journal.begin(command, now_ns());
        // On the disk before the command is on its way: a recording that is killed does not count it.
        self.write_journal()?;
        let Some(step) = self.journal.steps.last_mut() else { return Ok(false) };
        step.handed_over_ns = now_ns();
        let outcome = self.sender.send(step, &self.journal.actions);
        let returned_ns = now_ns();
        step.returned_ns = Some(returned_ns);
        if self.arguments.command.ask {
            step.handed_over_ns = step.handed_over_ns.max(returned_ns - HANDS_NS);
        }
        let sent = outcome.is_ok();
        step.outcome = outcome.map_or_else(Outcome::Failed, |()| Outcome::Sent);
        // Somebody noticed that the command before went wrong.
        if matches!(&self.sender, Sender::Asked(person) if person.takes_back_last) {
            self.take_back_last();
        }
        self.wait()?;
        let left = self.arguments.command.pause.saturating_sub(begun.elapsed());
        if let Some(tap) = &mut self.tap {
            tap.take(left)?;
            let ahead = tap.ahead_ns();
            self.journal.steps.iter_mut().skip(self.first).for_each(|step| step.clock_ahead_ns = ahead);
        } else {
            self.interrupt.wait(left);
        }
        self.experiment.add(command.half, sent.then_some(&command.counts));
        self.write_journal()?;
        Ok(sent)
    }

    /// The command before the last one does not count: it is wanted again.
    fn take_back_last(&mut self) {
        let Some(before) = self.journal.steps.iter_mut().rev().nth(1) else { return };
        if before.outcome == Outcome::Sent {
            before.outcome = Outcome::Failed("it went wrong".to_owned());
            self.experiment.take_back(before.half, &before.counts);
        }
    }

    fn wait(&mut self) -> Result<()> {
        let silence = self.arguments.capture.silence;
        let Some(tap) = &mut self.tap else { return Ok(()) };
        if tap.wait_for_silence(silence, silence * MAX_SILENCES)? { Ok(()) } else { Err(tap.fault()) }
    }

    fn check_capture(&self) -> Result<()> {
        let sent = self.journal.steps.iter().skip(self.first).filter(|step| step.outcome == Outcome::Sent).count();
        match &self.tap {
            Some(tap) if tap.packets == 0 && sent >= SENT_UNSEEN => Err(anyhow!(
                "{sent} commands were sent, and the capture has no data of {}: is this the gateway, and does the capture \
                 see it? (`tcpdump` needs `-U --immediate-mode`)",
                self.arguments.capture.gateway.join(", ")
            )),
            _ => Ok(()),
        }
    }

    fn check(&mut self) -> Result<()> {
        self.write_labels()?;
        let Some((recording, labels)) = self.recording()? else { return Ok(()) };
        match recording.learn(&labels)? {
            Ok(learned) => {
                self.experiment.learned(Some(learned.knowledge.clone()));
                let held_back = self.labels(Half::Test)?;
                let found = held_back.as_ref().map(|held_back| recording.found(held_back, &learned.times));
                let seen = learned.found.rows.iter().map(|row| row.counts.clone()).collect();
                self.experiment.seen(seen, found.map_or(0, |found| found.rows.len()));
                if self.experiment.wants_test()
                    && let Some(held_back) = held_back
                    && let Some(tested) = recording.test(&learned, &held_back)?
                {
                    self.experiment.tested(tested.held_out);
                }
                (self.learned, self.fault) = (Some(learned), None);
            }
            Err(fault) => {
                self.experiment.learned(None);
                (self.learned, self.fault) = (None, Some(fault.to_string()));
            }
        }
        Ok(())
    }

    /// The captures so far and the labels to learn from; `None` while there are none.
    fn recording(&mut self) -> Result<Option<(Recording, LabelFile)>> {
        let Some(labels) = self.labels(Half::Learn)? else { return Ok(None) };
        let Some(tap) = &mut self.tap else { return Ok(None) };
        let files = tap.files()?.to_vec();
        if files.is_empty() {
            return Ok(None);
        }
        let recording = Recording::new(&files, &self.arguments.capture.gateway, &self.inventory, &self.journal.steps);
        Ok(Some((recording?, labels)))
    }

    fn labels(&self, half: Half) -> Result<Option<LabelFile>> {
        if self.journal.sent(half).next().is_none() {
            return Ok(None);
        }
        // Their clock is compared with the capture's packet by packet, which is surer than by commands.
        let times = LabelTimes { offset: Some(LabelOffset::By(0)), ..LabelTimes::default() };
        let labels = LabelFile::read(&self.path(half), &times)?;
        Ok(Some(labels.in_turns(self.journal.steps.iter().map(Step::start_ns).collect())))
    }

    fn path(&self, half: Half) -> PathBuf {
        self.folder.join(if half == Half::Learn { "labels.csv" } else { "test.csv" })
    }

    fn report(&self, command: &PlannedCommand, sent: bool) {
        let Some(step) = self.journal.steps.last() else { return };
        let mut line = in_words(command);
        if let Outcome::Failed(reason) = &step.outcome {
            line = format!("{line}: not sent: {}", escaped_lines(reason.trim()));
        } else if command.half == Half::Learn {
            line = format!("{line} ({})", command.why);
        }
        say(&format!("{:>3}", step.number), &line);
        if sent && command.half == Half::Learn && self.experiment.wants_check() {
            let each = self.begun.elapsed() / u32::try_from(self.journal.steps.len() - self.first).unwrap_or(1).max(1);
            let more = self.experiment.expected_commands();
            let seconds = (each * u32::try_from(more).unwrap_or(u32::MAX)).as_secs();
            // What is needed while nothing is learned, nobody knows.
            let is_begun = self.experiment.knowledge().is_some_and(|knowledge| !knowledge.sizes.is_empty());
            let more = counted(more, "command", "commands");
            let left = if is_begun { format!("; about {more}, {seconds} s left") } else { String::new() };
            say("known", &format!("{}{left}", self.known()));
        }
    }

    fn known(&self) -> String {
        match (self.experiment.knowledge(), &self.fault) {
            (Some(knowledge), _) if !knowledge.sizes.is_empty() => {
                let sizes: Vec<String> = knowledge.sizes.iter().map(ActionSize::to_string).collect();
                let together = if knowledge.longer.is_empty() { "" } else { ", or all off together" };
                format!("{} bytes; all right with probability {:.3}{together}", sizes.join(", "), knowledge.certainty)
            }
            (Some(_), _) => "kinds of commands as a whole, and no sizes of actions".to_owned(),
            (None, Some(fault)) => format!("no model yet: {fault}"),
            _ => "nothing yet".to_owned(),
        }
    }

    fn write_journal(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.journal)?;
        write(&self.folder.join(JOURNAL), format!("{text}\n").as_bytes())
    }

    fn write_labels(&self) -> Result<()> {
        for half in [Half::Learn, Half::Test] {
            self.write_half(half, &labels_of(&self.journal.actions, self.journal.sent(half)))?;
        }
        Ok(())
    }

    fn write_half(&self, half: Half, labels: &Labels) -> Result<()> {
        let mut text = Vec::new();
        labels.write(&mut text)?;
        write(&self.path(half), &text)
    }

    fn finish(mut self, end: &End) -> Result<()> {
        let reason = end.in_words();
        self.journal.end = Some(reason.clone());
        self.write_labels()?;
        self.write_journal()?;
        let commands = self.experiment.commands();
        let commands = counted(commands, "command", "commands");
        say("record", &format!("{reason}: {commands} in {} s", self.begun.elapsed().as_secs()));
        self.report_lateness();
        if self.tap.is_none() {
            say("next", "learn from the capture of the tap with labels.csv, and evaluate it with test.csv");
            return Ok(());
        }
        self.check()?;
        let Some((recording, _)) = self.recording()? else { return Ok(()) };
        let Some(learned) = self.learned.take() else {
            let fault = self.fault.take().unwrap_or_default();
            let folder = self.folder.display();
            return Err(anyhow!("no model can be learned: {fault}; captures and labels are in {folder}"));
        };
        let model = self.folder.join("model.toml");
        write(&model, learned.models.to_toml().as_bytes())?;
        self.write_half(Half::Learn, &learned.found)?;
        let warnings = learned.knowledge.warnings.iter().filter(|warning| !reason.contains(*warning));
        warnings.for_each(|warning| say("warning", warning));
        self.report_losses(&learned);
        say("known", &self.known());
        let held_back = self.labels(Half::Test)?;
        let found = held_back.as_ref().map_or_else(Labels::default, |half| recording.found(half, &learned.times));
        self.note_unseen([&learned.found, &found])?;
        let Some(held_back) = held_back else { return Ok(()) };
        self.write_half(Half::Test, &found)?;
        let Some(tested) = recording.test(&learned, &held_back)? else { return Ok(()) };
        let HeldOut { commands, explained } = tested.held_out;
        say("held back", &format!("{explained} of {commands} have their true actions among the candidates"));
        let Conclusion { sentence, interval, baseline, .. } = tested.evaluation.conclusion;
        let is_worse = interval.zip(baseline).is_some_and(|(interval, baseline)| interval.high < baseline.share);
        let unfit = learned.models.sections().iter().find_map(|section| section.learned.unfit_for_figures());
        // No leak is announced or denied by a model that has failed.
        if let Some(why) = unfit.or_else(|| is_worse.then_some(sentence.clone())) {
            let why = format!("{}: {why}", model.display());
            if !matches!(end, End::Interrupted) {
                return Err(anyhow!(why));
            }
            say("warning", &why);
            return Ok(());
        }
        let next = if learned.models.sections().iter().all(|section| section.actions.is_empty()) {
            let (captures, test) = (self.folder.join("capture-*.pcapng"), self.path(Half::Test));
            let [captures, test, model] = [&captures, &test, &model].map(|path| path.display());
            format!("report {captures} --labels {test} --model {model} -o report.html")
        } else {
            format!("audit --model {}", model.display())
        };
        say("next", &format!("sizeleak {next}"));
        print_document(&paragraph(sentence, 0))
    }

    /// Notes, and says, which commands have no message. Rows of labels have the lines of their half.
    fn note_unseen(&mut self, found: [&Labels; 2]) -> Result<()> {
        let mut lines = [2, 2];
        let mut unseen = Vec::new();
        for step in self.journal.steps.iter_mut().filter(|step| step.outcome == Outcome::Sent) {
            let half = usize::from(step.half == Half::Test);
            if found[half].rows.binary_search_by_key(&lines[half], |row| row.line).is_err() {
                step.outcome = Outcome::NotSeen;
                unseen.push(step.number.to_string());
            }
            lines[half] += 1;
        }
        if !unseen.is_empty() {
            let (count, all, numbers) = (unseen.len(), self.journal.steps.len(), listed(unseen, SHOWN));
            let all = counted(all, "command", "commands");
            let what = match count {
                1 => "has no message in its turn, and does not count",
                _ => "have no message in their turn, and do not count",
            };
            let text = format!("{count} of {all} {what}: {numbers}");
            say("not seen", &text);
        }
        self.write_journal()
    }

    /// Says if packets came later than silence is waited for: then commands went out while the gateway was not silent.
    fn report_lateness(&self) {
        let late = self.tap.as_ref().map_or(Duration::ZERO, Tap::lateness);
        if late > self.arguments.capture.silence {
            let text = format!(
                "packets arrived up to {:.1} s late, longer than `--silence`: have the capture pass them on at once, and \
                 try again (`tcpdump` needs `-U --immediate-mode`)",
                late.as_secs_f64()
            );
            say("note", &text);
        }
    }

    fn report_losses(&self, learned: &Learned) {
        let failed = self.journal.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        if failed > 0 {
            let all = counted(self.journal.steps.len(), "command", "commands");
            let what = if failed == 1 { "was not sent, and does" } else { "were not sent, and do" };
            say("note", &format!("{failed} of {all} {what} not count"));
        }
        let seen = learned.found.rows.len();
        let unexplained = learned.knowledge.unexplained.saturating_sub(self.journal.sent(Half::Learn).count() - seen);
        if unexplained > 0 {
            let seen = counted(seen, "command", "commands");
            let what = if unexplained == 1 { "has a size" } else { "have sizes" };
            let text = format!("{unexplained} of {seen} to learn from {what} that no sum explains");
            say("note", &text);
        }
        let ahead = self.tap.as_ref().map_or(0, Tap::ahead_ns);
        if ahead.abs() >= CLOCK_WORTH_A_WORD {
            let side = if ahead > 0 { "behind" } else { "ahead of" };
            let seconds = ahead.unsigned_abs() as f64 / 1e9;
            say("note", &format!("the capture's clock is {seconds:.1} s {side} this one: labels follow the capture's"));
        }
    }
}

pub(super) fn in_words(command: &PlannedCommand) -> String {
    let half = if command.half == Half::Test { "test " } else { "learn" };
    format!("{half} {}", sender::listed(&command.devices))
}
