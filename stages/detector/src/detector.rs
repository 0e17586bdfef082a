//! The stage: answers in; the same answers and deviations out.

use sizeleak_frame::{Flow, Frame, Identification, Notice, what};
use sizeleak_habits::{Budget, Deviation, Disorder, Homes, Profile};
use sizeleak_platform::runtime::{Emit, Stage, StageError};
use sizeleak_text::{counted, utc};

/// Watches the home behind each gateway.
#[derive(Debug)]
pub struct Detector {
    budget: Budget,
    homes: Homes<sizeleak_habits::Detector>,
    deviations: u64,
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
    pub fn new(profile: Profile, budget: Budget) -> Self {
        Self { budget, homes: Homes::new(profile), deviations: 0 }
    }

    /// Says which gateway a flow is of, in the place of a `flow` frame.
    pub fn name_gateway(&mut self, flow: u64, gateway: &str) {
        self.homes.flows.name_gateway(flow, gateway);
    }

    /// Lets time pass in all homes until the traffic was watched no longer, in nanoseconds since the epoch; what should
    /// have come by then is a deviation.
    pub fn watched_until(&mut self, time_ns: Option<i64>, out: &mut Vec<Frame>) {
        let before = out.len();
        for (gateway, home) in self.homes.iter_mut() {
            let found = time_ns.map(|time_ns| home.advance(time_ns)).unwrap_or_default();
            out.extend(found.into_iter().map(|deviation| Frame::from(in_frames(deviation, gateway.to_owned()))));
        }
        self.deviations += (out.len() - before) as u64;
    }

    /// How many answers the profile has already; they were passed over.
    pub fn known(&self) -> u64 {
        self.homes.passed_over().0
    }

    /// The first answers of a home that go back in time; they are passed over.
    pub fn disorder(&self) -> Option<Disorder> {
        self.homes.disorders().map(|(_, disorder)| disorder).next()
    }

    pub fn deviations(&self) -> u64 {
        self.deviations
    }

    /// The deviations that an answer, and what should have come before it, are.
    fn look(&mut self, answer: &Identification) -> Vec<sizeleak_frame::Deviation> {
        let begin = |profile: &Profile, gateway: &str| {
            let detector = profile.detector(gateway, self.budget);
            let known_ns = detector.home().last_ns();
            (detector, known_ns)
        };
        let Some((gateway, home, sighting)) = self.homes.see(answer, begin) else { return Vec::new() };
        let found = home.observe(sighting);
        self.deviations += found.len() as u64;
        found.into_iter().map(|deviation| in_frames(deviation, gateway.to_owned())).collect()
    }
}

fn in_frames(deviation: Deviation, gateway: String) -> sizeleak_frame::Deviation {
    let Deviation { time_ns, what, p_value, expected, seen, commands } = deviation;
    let at = |(flow, time_ns)| sizeleak_frame::CommandAt { flow, time_ns };
    let commands = commands.into_iter().map(at).collect();
    sizeleak_frame::Deviation { time_ns, gateway, what: what.to_string(), p_value, expected, seen, commands }
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
                self.homes.flows.note(&notice);
                Ok(out.emit(Frame::Notice(notice))?)
            }
            DetectorInput::Answer(answer) => {
                let deviations = self.look(&answer);
                out.emit(Frame::Identification(answer))?;
                Ok(deviations.into_iter().try_for_each(|deviation| out.emit(deviation.into()))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let named = |gateway: &str| if gateway.is_empty() { String::new() } else { format!("gateway {gateway}: ") };
        for (gateway, Disorder { answers, first_ns, before_ns }) in self.homes.disorders() {
            let answers = counted(answers, "answer goes", "answers go");
            let detail = format!(
                "{}{answers} back in time, the first from {} to {}, and did not count: a clock was set, or the answers are \
                 not in order",
                named(gateway),
                utc(before_ns),
                utc(first_ns)
            );
            out.emit(Notice::new(Self::NAME, what::CLOCK, detail).into())?;
        }
        for (gateway, home) in self.homes.iter_mut() {
            let days = home.days_needed();
            if days > 0 {
                let detail = format!(
                    "{}no alarm yet: {days} more whole days have to be learned to keep {}",
                    named(gateway),
                    self.budget
                );
                out.emit(Notice::new(Self::NAME, what::LEARNING, detail).into())?;
            }
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (known, unwatched) = self.homes.passed_over();
        vec![("deviations", self.deviations), ("known", known), ("unwatched", unwatched)]
    }
}
