//! The stage: records in, commands out.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_frame::{ContentType, Flow, Frame, Notice, Record, what};
use sizeleak_runtime::{ConfigureError, Emit, Stage, StageError};

use crate::adaptive::AdaptiveAlgorithm;
use crate::flow_history::{SizeClass, SizedRecord};
use crate::learned::LearnedAlgorithm;
use crate::open_commands::{FinishedCommand, OpenCommands};
use crate::options::{Method, Options, SAME_PACKET, TimeLimits};
use crate::record_class::RecordClass;
use crate::rules::{Conversation, Turn};
use crate::service_classifier::Decision;

/// Conversations of more flows than this are not kept; those silent for longest are forgotten.
const MOST_FLOWS: usize = 100_000;

/// Tells commands from other records and counts the replies to them.
#[derive(Debug)]
pub struct CommandSegmenter {
    min_size: u64,
    times: TimeLimits,
    algorithm: AlgorithmState,
    open: OpenCommands,
    /// The time of the traffic, as far as it was decided about.
    now_ns: i64,
    counts: RecordCounts,
}

/// What an algorithm remembers.
#[derive(Debug)]
enum AlgorithmState {
    /// `gap` and `record`, which differ in when a record continues a command.
    Rules { conversations: HashMap<u64, Conversation, RandomState>, continued_within: Option<i64> },
    /// `adaptive`.
    Adaptive(Box<AdaptiveAlgorithm>),
    /// `learned`.
    Learned(Box<LearnedAlgorithm>),
}

/// What the segmenter consumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmenterInput {
    /// A record.
    Record(Record),
    /// A flow: its ends are remembered, and it is passed on as it came.
    Flow(Box<Flow>),
}

impl TryFrom<Frame> for SegmenterInput {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Record(record) => Ok(Self::Record(record)),
            Frame::Flow(flow) => Ok(Self::Flow(flow)),
            other => Err(other),
        }
    }
}

#[derive(Debug, Default)]
struct RecordCounts {
    commands: u64,
    replies: u64,
    answers: u64,
    keep_alives: u64,
    tiny: u64,
    handshake: u64,
    unprompted: u64,
    unexplained: u64,
    evicted_flows: u64,
}

impl CommandSegmenter {
    /// A segmenter with these options.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where a time is negative or longer than a day, or the algorithm needs a model;
    /// [`ConfigureError::SegmenterInput`] where the model cannot be used.
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        Self::with(options.method()?, options)
    }

    fn with(method: Method, options: &Options) -> Result<Self, ConfigureError> {
        let times = options.times()?;
        let rules = |continued_within| AlgorithmState::Rules { conversations: HashMap::default(), continued_within };
        let algorithm = match method {
            Method::Gap => rules(Some(times.gap)),
            Method::Record => rules(None),
            Method::Adaptive => AlgorithmState::Adaptive(Box::default()),
            Method::Learned(knowledge) => AlgorithmState::Learned(Box::new(LearnedAlgorithm::new(*knowledge))),
        };
        Ok(Self {
            min_size: options.min_size,
            times,
            algorithm,
            open: OpenCommands::default(),
            now_ns: i64::MIN,
            counts: RecordCounts::default(),
        })
    }

    fn record(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let is_data = !record.handshake && record.content_type == ContentType::ApplicationData;
        self.counts.handshake += u64::from(!is_data);
        if let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm {
            if !is_data {
                return Ok(());
            }
            adaptive.learn(SizedRecord::new(record, SizeClass::of(record, self.min_size)), &self.times);
            while let Some(record) = self.ready() {
                self.advance(&record, out)?;
                self.decide(&record, out)?;
            }
        } else {
            self.advance(record, out)?;
            if is_data {
                self.decide(record, out)?;
            }
        }
        match &self.algorithm {
            AlgorithmState::Rules { .. } => self.forget_silent(out),
            AlgorithmState::Adaptive(_) | AlgorithmState::Learned(_) => self.tell_forgotten(out),
        }
    }

    /// The next record that has waited long enough to be decided about.
    fn ready(&mut self) -> Option<Record> {
        match &mut self.algorithm {
            AlgorithmState::Rules { .. } | AlgorithmState::Learned(_) => None,
            AlgorithmState::Adaptive(adaptive) => adaptive.ready(&self.times),
        }
    }

    /// A flow has come to a time: commands on it and on others may be complete.
    #[inline]
    fn advance(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.now_ns = self.now_ns.max(record.time_ns);
        self.open.advance(record.flow, record.time_ns, &self.times);
        if self.open.is_quiet(self.now_ns) { Ok(()) } else { self.hand_on(out) }
    }

    /// Hands on the commands that are complete.
    fn hand_on(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let Some(over) = self.open.complete(self.now_ns, &self.times) {
            self.emit(over, out)?;
        }
        Ok(())
    }

    fn emit(&mut self, over: FinishedCommand, out: &mut dyn Emit) -> Result<(), StageError> {
        match over {
            FinishedCommand::Command(command) => out.emit(Frame::Command(command))?,
            FinishedCommand::Noise => {
                self.counts.commands -= 1;
                self.counts.keep_alives += 1;
            }
        }
        Ok(())
    }

    /// Decides about a record.
    #[inline]
    fn decide(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let heard = SizedRecord::new(record, SizeClass::of(record, self.min_size));
        let decision = match &mut self.algorithm {
            AlgorithmState::Rules { .. } => self.by_rules(heard).into(),
            AlgorithmState::Adaptive(adaptive) => adaptive.decide(heard, &self.times).into(),
            AlgorithmState::Learned(learned) => learned.decide(heard, &self.times),
        };
        self.apply(decision, record);
        if decision.verdict == RecordClass::Unexplained { Self::tell_unexplained(record, out) } else { Ok(()) }
    }

    #[cold]
    fn tell_unexplained(record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let notice = Notice {
            time_ns: Some(record.time_ns),
            stage: Self::NAME.into(),
            flow: Some(record.flow),
            what: what::UNEXPLAINED.into(),
            bytes: Some(record.length.into()),
            detail: Some(
                "the service sent what no actions of the model make up and what was not seen when it was learned: taken \
                 for no command"
                    .to_owned(),
            ),
        };
        Ok(out.emit(notice.into())?)
    }

    /// Decides about a record by its time alone.
    fn by_rules(&mut self, heard: SizedRecord<'_>) -> RecordClass {
        let AlgorithmState::Rules { conversations, continued_within } = &mut self.algorithm else {
            return RecordClass::Tiny;
        };
        let record = heard.record;
        let is_continued = |since_ns: Option<i64>, most_ns: i64| {
            continued_within
                .zip(since_ns)
                .is_some_and(|(within_ns, since_ns)| record.start_ns.saturating_sub(since_ns) <= within_ns.min(most_ns))
        };
        if heard.weight == SizeClass::Tiny {
            let Some(conversation) = conversations.get_mut(&record.flow) else { return RecordClass::Tiny };
            let since_ns = conversation.tiny(record, self.times.answer_within);
            return if is_continued(since_ns, SAME_PACKET) { RecordClass::Continued } else { RecordClass::Tiny };
        }
        match conversations.entry(record.flow).or_default().turn(record, self.times.answer_within) {
            Turn::Gateway => RecordClass::Reply,
            Turn::Answer => RecordClass::Answer,
            Turn::Service { since_ns } if is_continued(since_ns, i64::MAX) => RecordClass::Continued,
            Turn::Service { .. } => RecordClass::Command,
        }
    }

    #[inline]
    fn apply(&mut self, Decision { verdict, belief }: Decision, record: &Record) {
        match verdict {
            RecordClass::Reply if self.open.reply(record) => self.counts.replies += 1,
            RecordClass::Reply | RecordClass::Telemetry => self.counts.unprompted += 1,
            RecordClass::Answer => self.counts.answers += 1,
            RecordClass::KeepAlive => self.counts.keep_alives += 1,
            RecordClass::Tiny => self.counts.tiny += 1,
            RecordClass::Unexplained => self.counts.unexplained += 1,
            RecordClass::Continued if self.open.extend(record, belief) => {}
            RecordClass::Continued | RecordClass::Command => {
                self.counts.commands += 1;
                self.open.begin(record, belief);
            }
        }
    }

    /// Forgets the half of all conversations that has been silent for longest: half, so that a flood of flows costs
    /// each of them a constant time.
    fn forget_silent(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let AlgorithmState::Rules { conversations, .. } = &mut self.algorithm else { return Ok(()) };
        if conversations.len() <= MOST_FLOWS {
            return Ok(());
        }
        let mut times: Vec<i64> = conversations.values().map(|conversation| conversation.last_ns).collect();
        let (_, &mut median, _) = times.select_nth_unstable(MOST_FLOWS / 2);
        let before = conversations.len();
        // Of those silent since the same time the flows with lower numbers, whatever the order of the table.
        let later = conversations.iter().filter(|(_, conversation)| conversation.last_ns >= median);
        let mut kept: Vec<u64> = later.map(|(flow, _)| *flow).collect();
        kept.sort_unstable();
        kept.truncate(MOST_FLOWS / 2 + 1);
        conversations.retain(|flow, _| kept.binary_search(flow).is_ok());
        let forgotten = (before - conversations.len()) as u64;
        self.tell_evicted(forgotten, out)
    }

    /// Tells how many flows the algorithm has forgotten since that was told last.
    #[inline]
    fn tell_forgotten(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let forgotten = match &self.algorithm {
            AlgorithmState::Rules { .. } => 0,
            AlgorithmState::Adaptive(adaptive) => adaptive.forgotten(),
            AlgorithmState::Learned(learned) => learned.forgotten(),
        };
        if forgotten <= self.counts.evicted_flows {
            return Ok(());
        }
        self.tell_evicted(forgotten - self.counts.evicted_flows, out)
    }

    #[cold]
    fn tell_evicted(&mut self, forgotten: u64, out: &mut dyn Emit) -> Result<(), StageError> {
        self.counts.evicted_flows += forgotten;
        let detail = format!("more than {MOST_FLOWS} flows at once: the {forgotten} silent for longest are forgotten");
        let notice = Notice {
            time_ns: Some(self.now_ns),
            stage: Self::NAME.into(),
            flow: None,
            what: what::EVICTED.into(),
            bytes: None,
            detail: Some(detail),
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for CommandSegmenter {
    const NAME: &'static str = "command-segmenter";
    type Input = SegmenterInput;

    fn process(&mut self, input: SegmenterInput, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            SegmenterInput::Record(ref record) => self.record(record, out),
            SegmenterInput::Flow(flow) => {
                match &mut self.algorithm {
                    AlgorithmState::Rules { .. } => {}
                    AlgorithmState::Adaptive(adaptive) => adaptive.flow(&flow),
                    AlgorithmState::Learned(learned) => learned.flow(&flow),
                }
                Ok(out.emit(Frame::Flow(flow))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let AlgorithmState::Adaptive(adaptive) = &mut self.algorithm
            && let Some(record) = adaptive.rest()
        {
            self.advance(&record, out)?;
            self.decide(&record, out)?;
        }
        for over in self.open.drain() {
            self.emit(over, out)?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let decided_early = match &self.algorithm {
            AlgorithmState::Rules { .. } | AlgorithmState::Learned(_) => 0,
            AlgorithmState::Adaptive(adaptive) => adaptive.decided_early,
        };
        vec![
            ("commands", self.counts.commands),
            ("replies", self.counts.replies),
            ("answers", self.counts.answers),
            ("keep_alives", self.counts.keep_alives),
            ("tiny", self.counts.tiny),
            ("handshake", self.counts.handshake),
            ("unprompted", self.counts.unprompted),
            ("unexplained", self.counts.unexplained),
            ("decided_early", decided_early),
            ("evicted_flows", self.counts.evicted_flows),
        ]
    }
}

#[cfg(test)]
mod tests;
