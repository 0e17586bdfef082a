//! The stage: records in, commands out.

use std::collections::BTreeMap;

use sizeleak_frame::{ContentType, Flow, Frame, Notice, Record, what};
use sizeleak_stage::{ConfigureError, Emit, Stage, StageError};

use crate::adaptive::Adaptive;
use crate::conversation::{Conversation, Turn};
use crate::exchange::{Heard, Weight};
use crate::open::OpenCommands;
use crate::options::{Algorithm, Options, SAME_PACKET, Times};
use crate::verdict::Verdict;

/// Conversations of more flows than this are not kept; those silent for longest are forgotten.
const MOST_FLOWS: usize = 100_000;

/// What TLS adds to a record whose cipher suite was not seen, in bytes: TLS 1.2 with AES-GCM, the most common case.
const USUAL_OVERHEAD: u64 = 24;

/// Tells commands from other records and counts the replies to them.
#[derive(Debug)]
pub struct CommandSegmenter {
    min_size: u64,
    times: Times,
    algorithm: State,
    open: OpenCommands,
    /// The time of the traffic, as far as it was decided about.
    now_ns: i64,
    counts: Counts,
}

/// What an algorithm remembers.
#[derive(Debug)]
enum State {
    /// `gap` and `record`, which differ in when a record continues a command.
    Rules { conversations: BTreeMap<u64, Conversation>, continued_within: Option<i64> },
    /// `adaptive`.
    Adaptive(Box<Adaptive>),
}

/// What the segmenter consumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A record.
    Record(Record),
    /// A flow: its ends are remembered, and it is passed on as it came.
    Flow(Flow),
}

impl TryFrom<Frame> for Input {
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
struct Counts {
    commands: u64,
    replies: u64,
    answers: u64,
    keep_alives: u64,
    tiny: u64,
    handshake: u64,
    unprompted: u64,
    evicted_flows: u64,
}

impl CommandSegmenter {
    /// A segmenter with these options.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where a time is negative or longer than a day.
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let times = options.times()?;
        let rules = |continued_within| State::Rules { conversations: BTreeMap::new(), continued_within };
        let algorithm = match options.algorithm {
            Algorithm::Gap => rules(Some(times.gap)),
            Algorithm::Record => rules(None),
            Algorithm::Adaptive => State::Adaptive(Box::default()),
        };
        Ok(Self {
            min_size: options.min_size,
            times,
            algorithm,
            open: OpenCommands::default(),
            now_ns: i64::MIN,
            counts: Counts::default(),
        })
    }

    fn record(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let is_data = !record.handshake && record.content_type == ContentType::ApplicationData;
        self.counts.handshake += u64::from(!is_data);
        let heard = Heard { record, weight: self.weight(record) };
        match &mut self.algorithm {
            State::Rules { .. } => {
                self.advance(record, out)?;
                if is_data {
                    let verdict = self.by_rules(heard);
                    self.apply(verdict, record);
                }
                self.forget_silent(out)
            }
            State::Adaptive(_) if !is_data => Ok(()),
            State::Adaptive(adaptive) => {
                let before = adaptive.forgotten();
                adaptive.learn(heard, &self.times);
                while let Some(record) = self.ready() {
                    self.by_habits(&record, out)?;
                }
                self.tell_forgotten(before, out)
            }
        }
    }

    /// The next record that has waited long enough to be decided about.
    fn ready(&mut self) -> Option<Record> {
        match &mut self.algorithm {
            State::Rules { .. } => None,
            State::Adaptive(adaptive) => adaptive.ready(&self.times),
        }
    }

    /// A flow has come to a time: commands on it and on others may be complete.
    fn advance(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.now_ns = self.now_ns.max(record.time_ns);
        self.open.advance(record.flow, record.time_ns, &self.times);
        while let Some(command) = self.open.complete(self.now_ns, &self.times) {
            out.emit(command.into())?;
        }
        Ok(())
    }

    /// Whether a record is too small to be anything but a keep-alive or an acknowledgement.
    fn weight(&self, record: &Record) -> Weight {
        let most = record.plaintext.map_or(u64::from(record.length).saturating_sub(USUAL_OVERHEAD), |[_, most]| most);
        if most < self.min_size { Weight::Tiny } else { Weight::Full }
    }

    /// Decides about a record that has waited.
    fn by_habits(&mut self, record: &Record, out: &mut dyn Emit) -> Result<(), StageError> {
        self.advance(record, out)?;
        let heard = Heard { record, weight: self.weight(record) };
        if let State::Adaptive(adaptive) = &mut self.algorithm {
            let verdict = adaptive.decide(heard, &self.times);
            self.apply(verdict, record);
        }
        Ok(())
    }

    /// Decides about a record by its time alone.
    fn by_rules(&mut self, heard: Heard<'_>) -> Verdict {
        let State::Rules { conversations, continued_within } = &mut self.algorithm else { return Verdict::Tiny };
        let record = heard.record;
        let is_continued = |since_ns: Option<i64>, most_ns: i64| {
            continued_within
                .zip(since_ns)
                .is_some_and(|(within_ns, since_ns)| record.start_ns.saturating_sub(since_ns) <= within_ns.min(most_ns))
        };
        if heard.weight == Weight::Tiny {
            let Some(conversation) = conversations.get_mut(&record.flow) else { return Verdict::Tiny };
            let since_ns = conversation.tiny(record, self.times.answer_within);
            return if is_continued(since_ns, SAME_PACKET) { Verdict::Continued } else { Verdict::Tiny };
        }
        match conversations.entry(record.flow).or_default().turn(record, self.times.answer_within) {
            Turn::Gateway => Verdict::Reply,
            Turn::Answer => Verdict::Answer,
            Turn::Service { since_ns } if is_continued(since_ns, i64::MAX) => Verdict::Continued,
            Turn::Service { .. } => Verdict::Command,
        }
    }

    fn apply(&mut self, verdict: Verdict, record: &Record) {
        match verdict {
            Verdict::Reply if self.open.reply(record) => self.counts.replies += 1,
            Verdict::Reply | Verdict::Telemetry => self.counts.unprompted += 1,
            Verdict::Answer => self.counts.answers += 1,
            Verdict::KeepAlive => self.counts.keep_alives += 1,
            Verdict::Tiny => self.counts.tiny += 1,
            Verdict::Continued if self.open.extend(record) => {}
            Verdict::Continued | Verdict::Command => {
                self.counts.commands += 1;
                self.open.begin(record);
            }
        }
    }

    /// Forgets the half of all conversations that has been silent for longest: half, so that a flood of flows costs
    /// each of them a constant time.
    fn forget_silent(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let State::Rules { conversations, .. } = &mut self.algorithm else { return Ok(()) };
        if conversations.len() <= MOST_FLOWS {
            return Ok(());
        }
        let mut times: Vec<i64> = conversations.values().map(|conversation| conversation.last_ns).collect();
        let (_, &mut median, _) = times.select_nth_unstable(MOST_FLOWS / 2);
        let before = conversations.len();
        let mut spare = MOST_FLOWS / 2 + 1;
        conversations.retain(|_, conversation| {
            let keep = conversation.last_ns >= median && spare > 0;
            spare -= usize::from(keep);
            keep
        });
        let forgotten = (before - conversations.len()) as u64;
        self.tell_evicted(forgotten, out)
    }

    fn tell_forgotten(&mut self, before: u64, out: &mut dyn Emit) -> Result<(), StageError> {
        let State::Adaptive(adaptive) = &self.algorithm else { return Ok(()) };
        match adaptive.forgotten().saturating_sub(before) {
            0 => Ok(()),
            forgotten => self.tell_evicted(forgotten, out),
        }
    }

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
    type Input = Input;

    fn process(&mut self, input: Input, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            Input::Record(record) => self.record(&record, out),
            Input::Flow(flow) => {
                if let State::Adaptive(adaptive) = &mut self.algorithm {
                    adaptive.flow(&flow);
                }
                Ok(out.emit(flow.into())?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let State::Adaptive(adaptive) = &mut self.algorithm
            && let Some(record) = adaptive.rest()
        {
            self.by_habits(&record, out)?;
        }
        for command in self.open.drain() {
            out.emit(command.into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let decided_early = match &self.algorithm {
            State::Rules { .. } => 0,
            State::Adaptive(adaptive) => adaptive.decided_early,
        };
        vec![
            ("commands", self.counts.commands),
            ("replies", self.counts.replies),
            ("answers", self.counts.answers),
            ("keep_alives", self.counts.keep_alives),
            ("tiny", self.counts.tiny),
            ("handshake", self.counts.handshake),
            ("unprompted", self.counts.unprompted),
            ("decided_early", decided_early),
            ("evicted_flows", self.counts.evicted_flows),
        ]
    }
}

#[cfg(test)]
mod tests;
