//! The stage: answers in; the same answers and deviations out.

use std::collections::BTreeMap;

use sizeleak_frame::{Flow, Frame, Identification, Notice, what};
use sizeleak_habits::{Budget, Deviation, Profile, SeenFlows};
use sizeleak_platform::runtime::{Emit, Stage, StageError};

/// The most flows whose gateway is remembered, and the most homes.
const MAX_FLOWS: usize = 1 << 16;
const MAX_HOMES: usize = 256;

/// Watches the home behind each gateway.
#[derive(Debug)]
pub struct Detector {
    profile: Profile,
    budget: Budget,
    flows: SeenFlows,
    /// The home behind each gateway, and up to when the profile knows it.
    homes: BTreeMap<String, (sizeleak_habits::Detector, i64)>,
    deviations: u64,
    /// Answers that the profile has, or that are older.
    known: u64,
    /// Answers of more homes than are watched.
    unwatched: u64,
}

/// What the detector looks at; all of it is passed on.
#[derive(Debug, Clone, PartialEq)]
pub enum DetectorInput {
    /// The ends of a flow.
    Flow(Box<Flow>),
    /// A command with what it may be.
    Answer(Box<Identification>),
    /// That a model does not fit, among other things.
    Notice(Box<Notice>),
}

impl TryFrom<Frame> for DetectorInput {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Flow(flow) => Ok(Self::Flow(flow)),
            Frame::Identification(answer) => Ok(Self::Answer(answer)),
            Frame::Notice(notice) => Ok(Self::Notice(notice)),
            other => Err(other),
        }
    }
}

impl Detector {
    /// A detector that goes on from a profile.
    pub fn new(profile: Profile, budget: Budget) -> Self {
        let (flows, homes) = (SeenFlows::new(MAX_FLOWS), BTreeMap::new());
        Self { profile, budget, flows, homes, deviations: 0, known: 0, unwatched: 0 }
    }

    /// Says which gateway a flow is of, in the place of a `flow` frame.
    pub fn name_gateway(&mut self, flow: u64, gateway: &str) {
        self.flows.name_gateway(flow, gateway);
    }

    /// Lets time pass in all homes until the traffic was watched no longer, in nanoseconds since the epoch; what should
    /// have come by then is a deviation.
    pub fn watched_until(&mut self, time_ns: Option<i64>, out: &mut Vec<Frame>) {
        for (gateway, (home, _)) in &mut self.homes {
            let deviation = time_ns.and_then(|time_ns| home.advance(time_ns));
            self.deviations += u64::from(deviation.is_some());
            out.extend(deviation.map(|deviation| in_frames(deviation, gateway.clone()).into()));
        }
    }

    /// How many answers the profile has already; they were passed over.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// How many deviations there were.
    pub fn deviations(&self) -> u64 {
        self.deviations
    }

    /// The deviation that an answer, or what should have come before it, is.
    fn look(&mut self, answer: &Identification) -> Option<sizeleak_frame::Deviation> {
        let (gateway, sighting) = self.flows.sighting(answer);
        if !self.homes.contains_key(&gateway) && self.homes.len() >= MAX_HOMES {
            self.unwatched += 1;
            return None;
        }
        let begin = || {
            let home = self.profile.detector(&gateway, self.budget);
            let known_ns = home.home().last_ns().unwrap_or(i64::MIN);
            (home, known_ns)
        };
        let (home, known_ns) = self.homes.entry(gateway.clone()).or_insert_with(begin);
        // A profile has times to the microsecond.
        if answer.command.time_ns.div_euclid(1_000) <= known_ns.div_euclid(1_000) {
            self.known += 1;
            return None;
        }
        let (_, deviation) = home.observe(sighting);
        self.deviations += u64::from(deviation.is_some());
        deviation.map(|deviation| in_frames(deviation, gateway))
    }
}

/// A deviation as a frame has it.
fn in_frames(deviation: Deviation, gateway: String) -> sizeleak_frame::Deviation {
    let Deviation { time_ns, what, p_value, expected, seen, commands } = deviation;
    let at = |(flow, time_ns)| sizeleak_frame::CommandAt { flow, time_ns };
    let commands = commands.into_iter().map(at).collect();
    sizeleak_frame::Deviation { time_ns, gateway, what: what.name().into(), p_value, expected, seen, commands }
}

impl Stage for Detector {
    const NAME: &'static str = "detector";
    type Input = DetectorInput;

    fn process(&mut self, input: DetectorInput, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            DetectorInput::Flow(flow) => {
                self.name_gateway(flow.flow, &flow.gateway.to_string());
                Ok(out.emit(Frame::Flow(flow))?)
            }
            DetectorInput::Notice(notice) => {
                self.flows.note(&notice);
                Ok(out.emit(Frame::Notice(notice))?)
            }
            DetectorInput::Answer(answer) => {
                let deviation = self.look(&answer);
                out.emit(Frame::Identification(answer))?;
                Ok(deviation.map_or(Ok(()), |deviation| out.emit(deviation.into()))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        for (gateway, (home, _)) in &self.homes {
            let days = home.days_needed();
            if days > 0 {
                let of_gateway = if gateway.is_empty() { String::new() } else { format!("gateway {gateway}: ") };
                let detail = format!(
                    "{of_gateway}no alarm yet: {days} more whole days have to be learned to keep {}",
                    self.budget
                );
                let notice = Notice {
                    time_ns: None,
                    stage: Self::NAME.into(),
                    flow: None,
                    what: what::LEARNING.into(),
                    bytes: None,
                    detail: Some(detail),
                };
                out.emit(notice.into())?;
            }
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("deviations", self.deviations), ("known", self.known), ("unwatched", self.unwatched)]
    }
}
