//! The stage: it finds commands among records and counts the replies to them.

use sizeleak_flow_models::SectionInput;
use sizeleak_frame::{ContentType, Direction, Flow, Frame, Notice, Record, what};
use sizeleak_model::{ModelSet, ReplyWindows};
use sizeleak_platform::counters;
use sizeleak_platform::runtime::{
    ClockEvent, ConfigureError, Emit, Node, Runnable, Stage, StageError, StageOptions, TrafficClock, describe_odd_time,
};

use crate::adaptive::{AdaptiveAlgorithm, ProfiledFlows, Queued, reversed};
use crate::flow_history::{MAX_FLOWS, SizeClass, SizedRecord};
use crate::learned::LearnedAlgorithm;
use crate::noise_model::NoiseModels;
use crate::open_commands::{FinishedCommand, OpenCommands};
use crate::options::{Algorithm, CommandDirection, Options, TimeLimits};
use crate::record_class::{ClassifiedRecord, CommandCondition, Decision, RecordClass, RuleAlgorithm};

/// How far times may go back in nanoseconds, besides the wait for missing bytes.
const LAG_NS: i64 = 2_000_000_000;

/// Fewer records show no usual silence: of as many, the next silence is the longest in 1 case of 100 by chance.
const MIN_RECORDS: u64 = 100;

/// A silence this many times as long as every earlier one is unusual.
const UNUSUAL: i64 = 10;

#[derive(Debug)]
pub struct CommandSegmenter {
    min_size: u64,
    limits: TimeLimits,
    direction: CommandDirection,
    algorithm: AlgorithmState,
    /// With the direction `both`.
    reports: Option<Box<ProfiledFlows>>,
    commands: OpenCommands,
    clock: TrafficClock<Record>,
    silences: Silences,
    now_ns: i64,
    counts: RecordCounts,
    /// What every record was taken for since that was last asked; `None` if nobody asks.
    roles: Option<Vec<ClassifiedRecord>>,
    /// Options that the model was learned with, as TOML lines, where others are given. Empty once that was reported.
    differing: Vec<String>,
}

#[derive(Debug)]
enum AlgorithmState {
    /// `gap` and `record`.
    Rules(RuleAlgorithm),
    Adaptive(Box<AdaptiveAlgorithm>),
    Learned(Box<LearnedAlgorithm>),
}

impl AlgorithmState {
    fn evicted(&self) -> u64 {
        match self {
            Self::Rules(rules) => rules.evicted(),
            Self::Adaptive(adaptive) => adaptive.flows.evicted(),
            Self::Learned(learned) => learned.evicted(),
        }
    }

    fn knows(&self, flow: u64) -> bool {
        match self {
            Self::Rules(rules) => rules.knows(flow),
            Self::Adaptive(adaptive) => adaptive.flows.knows(flow),
            Self::Learned(learned) => learned.knows(flow),
        }
    }

    fn add_flow(&mut self, flow: &Flow) {
        match self {
            Self::Rules(_) => {}
            Self::Adaptive(adaptive) => adaptive.flows.add_flow(flow),
            Self::Learned(learned) => learned.add_flow(flow),
        }
    }

    fn restart_time(&mut self) {
        match self {
            Self::Rules(rules) => rules.restart_time(),
            Self::Adaptive(adaptive) => adaptive.restart_time(),
            Self::Learned(learned) => learned.restart_time(),
        }
    }
}

/// A record, or what is said of its flow.
pub type SegmenterInput = SectionInput<Record>;

counters! {
    RecordCounts
    first {}
    rare { reports odd_times clock_steps }
    counted {
        commands replies answers keep_alives tiny handshake unprompted unexplained decided_early evicted_flows
    }
    last {}
}

impl CommandSegmenter {
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let models = match &options.model[..] {
            [] => None,
            files => Some(ModelSet::read(files).map_err(|error| ConfigureError::Input(error.to_string()))?),
        };
        let (learned, differing) = match &models {
            Some(models) => options.as_learned(models)?,
            None => (options.clone(), Vec::new()),
        };
        let options = &learned;
        let direction = options.direction(models.as_ref());
        let noise_models = options.noise_models(models.as_ref(), direction)?;
        let sections = models.iter().flat_map(ModelSet::sections);
        // Replies are counted as they were when each model was learned, or longer.
        let windows = sections.filter_map(|section| section.reply_windows).reduce(ReplyWindows::max);
        Ok(Self { differing, ..Self::with_models(options, direction, noise_models, windows)? })
    }

    fn with_models(
        options: &Options,
        direction: CommandDirection,
        noise_models: Option<NoiseModels>,
        windows: Option<ReplyWindows>,
    ) -> Result<Self, ConfigureError> {
        let limits = options.time_limits(windows)?;
        let rules = |continued_within_ns| {
            AlgorithmState::Rules(RuleAlgorithm::new(continued_within_ns, limits.answer_within_ns))
        };
        let algorithm = match (options.algorithm, noise_models) {
            (_, Some(noise_models)) => AlgorithmState::Learned(Box::new(LearnedAlgorithm::new(noise_models, &limits))),
            (Some(Algorithm::Adaptive | Algorithm::Learned) | None, None) => AlgorithmState::Adaptive(Box::default()),
            (Some(Algorithm::Record), None) => rules(None),
            (Some(Algorithm::Gap), None) => rules(Some(limits.gap_ns)),
        };
        Ok(Self {
            min_size: options.min_size(),
            limits,
            direction,
            algorithm,
            reports: (direction == CommandDirection::Both).then(Box::default),
            commands: OpenCommands::default(),
            clock: TrafficClock::new(limits.hole_wait_ns.saturating_add(LAG_NS)),
            silences: Silences::default(),
            now_ns: i64::MIN,
            counts: RecordCounts::default(),
            roles: None,
            differing: Vec::new(),
        })
    }

    /// The same segmenter, which also keeps what every record is taken for, until [`Self::take_roles`].
    #[must_use]
    pub fn keeping_roles(mut self) -> Self {
        self.roles = Some(Vec::new());
        self
    }

    /// The records of application data that were classified since the last call, in order; the direction is that of the
    /// option `direction`'s view.
    pub fn take_roles(&mut self) -> Vec<ClassifiedRecord> {
        self.roles.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn process_record(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.silences.add(record.time_ns);
        let is_data = !record.handshake && record.content_type == ContentType::ApplicationData;
        self.counts.handshake += u64::from(!is_data);
        if let Some(reports) = self.reports.as_mut().filter(|_| !is_data) {
            reports.add_handshake(&reversed(record));
        }
        if let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm {
            if is_data {
                adaptive.add(record);
            } else {
                adaptive.flows.add_handshake(record);
            }
            self.learn(Queued::Due);
            while let Some(record) = self.next_due() {
                self.advance(&record, out)?;
                self.classify(&record, out)?;
            }
        } else {
            self.advance(record, out)?;
            if let AlgorithmState::Learned(learned) = &mut self.algorithm
                && !is_data
            {
                learned.add_handshake(record);
            }
            if is_data {
                if let Some(reports) = &mut self.reports {
                    reports.learn_report(record, self.min_size, &self.limits);
                }
                self.classify(record, out)?;
            }
        }
        let evicted = self.algorithm.evicted();
        if evicted > self.counts.evicted_flows { self.report_evicted(evicted, out) } else { Ok(()) }
    }

    fn learn(&mut self, which: Queued) {
        while let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm
            && let Some(record) = adaptive.learn_next(which, self.min_size, &self.limits)
        {
            if let Some(reports) = &mut self.reports {
                reports.learn_report(record, self.min_size, &self.limits);
            }
        }
    }

    fn next_due(&mut self) -> Option<Record> {
        let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm else { return None };
        let due = adaptive.next_due(&self.limits);
        self.counts.decided_early = adaptive.decided_early;
        due
    }

    /// Advances the time to that of a record, and emits the commands that are complete then.
    #[inline]
    fn advance(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.now_ns = self.now_ns.max(record.time_ns);
        self.commands.advance(record.flow, record.time_ns, &self.limits);
        while let Some(finished) = self.commands.next_complete(self.now_ns, &self.limits) {
            self.emit(finished, out)?;
        }
        Ok(())
    }

    fn complete_all(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.learn(Queued::All);
        while let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm
            && let Some(record) = adaptive.next()
        {
            self.advance(&record, out)?;
            self.classify(&record, out)?;
        }
        for finished in self.commands.drain() {
            self.emit(finished, out)?;
        }
        Ok(())
    }

    fn emit(&mut self, finished: FinishedCommand, out: &mut dyn Emit) -> Result<(), StageError> {
        match finished {
            FinishedCommand::Command(mut command) if self.direction == CommandDirection::From => {
                command.direction = command.direction.reversed();
                out.emit(Frame::Command(command))?;
            }
            FinishedCommand::Command(command) => out.emit(Frame::Command(command))?,
            FinishedCommand::Noise(command, condition) => {
                match command.direction {
                    Direction::ToGateway => self.counts.commands -= 1,
                    Direction::FromGateway => self.counts.reports -= 1,
                }
                if condition == CommandCondition::UnlessLate {
                    self.counts.answers += 1;
                    self.counts.unexplained += 1;
                    if self.counts.unexplained == 1 {
                        let detail = "a message as long as answers, which nothing asked for and nothing replied to, is taken \
                                      for a late answer and no command; more are counted as `unexplained`";
                        return Self::report_unexplained(command.time_ns, command.flow, command.size, detail, out);
                    }
                } else {
                    self.counts.keep_alives += 1;
                }
            }
        }
        Ok(())
    }

    /// Classifies a record and counts it, also as part of a command or of the replies to one.
    #[inline]
    fn classify(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let sized = SizedRecord::new(record, SizeClass::of(record, self.min_size));
        let Decision { class, condition, .. } = match &mut self.algorithm {
            AlgorithmState::Rules(rules) => rules.classify(sized).into(),
            AlgorithmState::Adaptive(adaptive) => adaptive.flows.classify(sized, &self.limits),
            AlgorithmState::Learned(learned) => learned.classify(sized, &self.limits),
        };
        let is_reply = class == RecordClass::Reply && self.commands.add_reply(record);
        let is_in_command = is_reply || matches!(class, RecordClass::CommandStart | RecordClass::CommandPart);
        let as_report = self.reports.as_mut().map_or(RecordClass::Telemetry, |reports| {
            reports.classify_report(sized, is_in_command, &mut self.commands, &self.limits)
        });
        if let Some(roles) = &mut self.roles {
            let is_unprompted = class == RecordClass::Reply && !is_reply;
            let class = if is_unprompted { RecordClass::Telemetry } else { class };
            roles.push(ClassifiedRecord::new(record, class, as_report));
        }
        match as_report {
            RecordClass::CommandStart => {
                self.counts.reports += 1;
                return Ok(());
            }
            RecordClass::CommandPart | RecordClass::Reply => return Ok(()),
            _ => {}
        }
        match class {
            RecordClass::Reply if is_reply => self.counts.replies += 1,
            RecordClass::Reply | RecordClass::Telemetry => self.counts.unprompted += 1,
            RecordClass::Answer => self.counts.answers += 1,
            RecordClass::KeepAlive => self.counts.keep_alives += 1,
            RecordClass::Tiny => self.counts.tiny += 1,
            RecordClass::CommandPart if self.commands.extend(record, condition) => {}
            RecordClass::CommandPart | RecordClass::CommandStart => {
                self.counts.commands += 1;
                self.commands.start(record, condition, &self.limits);
            }
            RecordClass::Unexplained => {
                self.counts.unexplained += 1;
                let detail = "the service sent what no actions of the model make up and what was not seen when it was \
                              learned: taken for no command";
                return Self::report_unexplained(record.time_ns, record.flow, record.length.into(), detail, out);
            }
        }
        Ok(())
    }

    #[cold]
    fn report_unexplained(ns: i64, flow: u64, bytes: u64, detail: &str, out: &mut dyn Emit) -> Result<(), StageError> {
        let notice = Notice::new(Self::NAME, what::UNEXPLAINED, detail.to_owned());
        Ok(out.emit(Notice { time_ns: Some(ns), flow: Some(flow), bytes: Some(bytes), ..notice }.into())?)
    }

    fn report_differing_options(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.differing.is_empty() {
            return Ok(());
        }
        let learned = std::mem::take(&mut self.differing).join(", ");
        let detail = format!("the model holds for commands found with {learned}, and here they are found otherwise");
        Ok(out.emit(Notice::new(Self::NAME, what::OPTIONS, detail).into())?)
    }

    /// Reports the flows evicted since the last report; `evicted` is how many there were in total.
    #[cold]
    fn report_evicted(&mut self, evicted: u64, out: &mut dyn Emit) -> Result<(), StageError> {
        let new = evicted - self.counts.evicted_flows;
        self.counts.evicted_flows = evicted;
        let detail = format!("more than {MAX_FLOWS} flows at once: the {new} silent for longest are forgotten");
        let notice = Notice { time_ns: Some(self.now_ns), ..Notice::new(Self::NAME, what::EVICTED, detail) };
        Ok(out.emit(notice.into())?)
    }
}

/// The longest silence between two records.
#[derive(Debug, Default)]
struct Silences {
    records: u64,
    last_ns: i64,
    longest_ns: i64,
}

impl Silences {
    #[inline]
    fn add(&mut self, time_ns: i64) {
        if self.records > 0 {
            self.longest_ns = self.longest_ns.max(time_ns.saturating_sub(self.last_ns));
        }
        self.records += 1;
        self.last_ns = time_ns;
    }

    /// The longest silence so far, if this one is unusual compared with it.
    fn exceeded_by(&self, silence_ns: i64) -> Option<i64> {
        let is_unusual = self.records >= MIN_RECORDS && silence_ns / UNUSUAL > self.longest_ns;
        is_unusual.then_some(self.longest_ns)
    }
}

const MAX_CLOCK_NOTICES: u64 = 64;

impl CommandSegmenter {
    fn clock_events(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let Some(event) = self.clock.next_event() {
            match event {
                ClockEvent::Item { mut item, ahead_ns } => {
                    item.time_ns = item.time_ns.saturating_sub(ahead_ns);
                    item.start_ns = item.start_ns.saturating_sub(ahead_ns);
                    self.process_record(&item, out)?;
                }
                ClockEvent::Odd { flow, time_ns, ahead_ns } => {
                    self.counts.odd_times += 1;
                    self.notice(time_ns, Some(flow), describe_odd_time(ahead_ns), out)?;
                }
                ClockEvent::Step { flow, from_ns, to_ns } => self.step(flow, [from_ns, to_ns], out)?,
            }
        }
        Ok(())
    }

    /// Goes on at another time. A step forward is mostly a silence; only one that is unusual is reported, and only
    /// where a flow goes on behind it: else this may be another capture.
    fn step(&mut self, flow: u64, [from_ns, to_ns]: [i64; 2], out: &mut dyn Emit) -> Result<(), StageError> {
        if to_ns < from_ns {
            self.counts.clock_steps += 1;
            self.complete_all(out)?;
            self.algorithm.restart_time();
            if let Some(reports) = &mut self.reports {
                reports.restart_time();
            }
            self.now_ns = i64::MIN;
            let detail = format!(
                "the time of all traffic went back by {}: the commands before that end there",
                seconds(from_ns.saturating_sub(to_ns))
            );
            return self.notice(to_ns, None, detail, out);
        }
        let silence_ns = to_ns.saturating_sub(from_ns);
        let Some(longest_ns) = self.silences.exceeded_by(silence_ns).filter(|_| self.algorithm.knows(flow)) else {
            return Ok(());
        };
        self.counts.clock_steps += 1;
        let detail = format!(
            "nothing was captured for {}, but never for more than {} before: the capture paused, or its clock was set",
            seconds(silence_ns),
            seconds(longest_ns)
        );
        self.notice(to_ns, None, detail, out)
    }

    fn notice(&self, time_ns: i64, flow: Option<u64>, detail: String, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.counts.odd_times + self.counts.clock_steps > MAX_CLOCK_NOTICES {
            return Ok(());
        }
        let notice = Notice { time_ns: Some(time_ns), flow, ..Notice::new(Self::NAME, what::CLOCK, detail) };
        Ok(out.emit(notice.into())?)
    }
}

fn seconds(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

impl Stage for CommandSegmenter {
    const NAME: &'static str = "command-segmenter";
    type Input = SegmenterInput;

    fn process(&mut self, input: SegmenterInput, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            SegmenterInput::Frame(record) => {
                let record = if self.direction == CommandDirection::From { reversed(&record) } else { record };
                if self.clock.follows(record.flow, record.time_ns) {
                    self.process_record(&record, out)
                } else {
                    self.clock.add(record.flow, record.time_ns, record);
                    self.clock_events(out)
                }
            }
            SegmenterInput::Flow(flow) => {
                self.report_differing_options(out)?;
                self.algorithm.add_flow(&flow);
                if let Some(reports) = &mut self.reports {
                    reports.add_flow(&flow);
                }
                Ok(out.emit(Frame::Flow(flow))?)
            }
            SegmenterInput::Session(session) => {
                if let AlgorithmState::Learned(learned) = &mut self.algorithm {
                    learned.add_session(&session);
                }
                Ok(out.emit(Frame::Session(session))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.clock.finish();
        self.clock_events(out)?;
        self.complete_all(out)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.all()
    }
}

impl StageOptions for Options {
    const NAME: &'static str = CommandSegmenter::NAME;
    const ABOUT: &'static str = "Finds commands to a gateway among TLS records, and counts the replies to them";
    const EXAMPLES: &'static [&'static str] = &[
        "command-segmenter --gap 80ms < records.frames | sizeleak frames --kind command",
        "command-segmenter --algorithm adaptive < records.frames > commands.frames",
    ];

    const PATHS: &'static [&'static str] = &["model"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(CommandSegmenter::new(self)?)))
    }
}

#[cfg(test)]
mod tests;
