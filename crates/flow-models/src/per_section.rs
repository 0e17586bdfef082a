//! A stage with an instance of another stage for each section of a model set.

use std::fmt::Display;
use std::path::PathBuf;

use sizeleak_frame::{Command, Direction, Flow, Frame, Notice, Session, what};
use sizeleak_model::{Assumption, Choice, Model, ModelSet, Uncovered};
use sizeleak_platform::runtime::{ConfigureError, Emit, Node, Runnable, Stage, StageError};

use crate::FlowModels;

/// A stage that works with one model, of which there is one for each section.
pub trait SectionStage: Stage {
    /// Whether this stage tells the user which flows have no section, or one by an assumption. One stage of a pipeline
    /// does.
    const REPORTS: bool = false;

    fn subject(input: &Self::Input) -> Subject;

    /// What becomes of a frame whose flow has no section.
    fn without_model(input: Self::Input) -> Frame;

    /// Learns of a flow, which is passed on.
    fn see_flow(&mut self, flow: &Flow) {
        let _ = flow;
    }

    /// Learns of a session, which is passed on.
    fn see_session(&mut self, session: &Session) {
        let _ = session;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub flow: u64,
    /// Whether it is about a command or about a report.
    pub direction: Direction,
    pub time_ns: i64,
}

impl From<&Command> for Subject {
    fn from(command: &Command) -> Self {
        Self { flow: command.flow, direction: command.direction, time_ns: command.time_ns }
    }
}

#[derive(Debug)]
pub struct PerSection<S> {
    flows: FlowModels,
    stages: Vec<S>,
    covered: u64,
    assumed: u64,
    uncovered: u64,
}

#[derive(Debug)]
pub enum SectionInput<I> {
    /// A flow: its ends are remembered, and it is passed on.
    Flow(Box<Flow>),
    /// A session: its server name is remembered, and it is passed on.
    Session(Box<Session>),
    Frame(I),
}

impl<I: TryFrom<Frame, Error = Frame>> TryFrom<Frame> for SectionInput<I> {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Flow(flow) => Ok(Self::Flow(flow)),
            Frame::Session(session) => Ok(Self::Session(session)),
            other => I::try_from(other).map(Self::Frame),
        }
    }
}

impl<S: SectionStage> PerSection<S> {
    /// The stages of these sections, each made from its model by `build`; or its first error, with the index of its section.
    pub fn new<E>(models: ModelSet, build: impl Fn(Model) -> Result<S, E>) -> Result<Self, (usize, E)> {
        let flows = FlowModels::new(models.scopes());
        let sections = models.into_sections().into_iter().enumerate();
        let stages = sections.map(|(at, model)| build(model).map_err(|error| (at, error))).collect::<Result<_, _>>()?;
        Ok(Self { flows, stages, covered: 0, assumed: 0, uncovered: 0 })
    }

    fn process_frame(&mut self, input: S::Input, out: &mut dyn Emit) -> Result<(), StageError> {
        let Subject { flow, direction, time_ns } = S::subject(&input);
        let choice = self.flows.choose(flow, direction);
        let (count, section) = match choice {
            Choice::Covered(section) => (&mut self.covered, Some(section)),
            Choice::Assumed(section, _) => (&mut self.assumed, Some(section)),
            Choice::Uncovered(_) => (&mut self.uncovered, None),
        };
        *count += 1;
        if S::REPORTS
            && !matches!(choice, Choice::Covered(_))
            && self.flows.is_news(flow, direction, choice)
            && let Some(notice) = notice_of(S::NAME, flow, time_ns, choice)
        {
            out.emit(notice.into())?;
        }
        match section.and_then(|section| self.stages.get_mut(section)) {
            Some(stage) => stage.process(input, out),
            None => Ok(out.emit(S::without_model(input))?),
        }
    }
}

impl<S: SectionStage> Stage for PerSection<S> {
    const NAME: &'static str = S::NAME;
    type Input = SectionInput<S::Input>;

    fn process(&mut self, input: Self::Input, out: &mut dyn Emit) -> Result<(), StageError> {
        match input {
            SectionInput::Frame(input) => self.process_frame(input, out),
            SectionInput::Flow(flow) => {
                self.flows.add_flow(&flow);
                self.stages.iter_mut().for_each(|stage| stage.see_flow(&flow));
                Ok(out.emit(Frame::Flow(flow))?)
            }
            SectionInput::Session(session) => {
                self.flows.add_session(&session);
                self.stages.iter_mut().for_each(|stage| stage.see_session(&session));
                Ok(out.emit(Frame::Session(session))?)
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.stages.iter_mut().try_for_each(|stage| stage.finish(out))
    }

    /// Those of the sections' stages, added up, and what is rare: commands whose section is assumed, and those that have
    /// none; then also how many have one.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters: Vec<(&'static str, u64)> = Vec::new();
        for (name, count) in self.stages.iter().flat_map(Stage::counters) {
            match counters.iter_mut().find(|(other, _)| *other == name) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => counters.push((name, count)),
            }
        }
        let rare = [
            ("assumed_model", self.assumed),
            ("without_model", self.uncovered),
            ("forgotten_model_flows", self.flows.evicted()),
        ];
        counters.extend(rare.into_iter().filter(|(_, count)| *count > 0));
        let with_model = self.covered.saturating_add(self.assumed);
        counters.extend((self.uncovered > 0).then_some(("with_model", with_model)));
        counters
    }
}

fn notice_of(stage: &'static str, flow: u64, time_ns: i64, choice: Choice) -> Option<Notice> {
    let (what, detail) = match choice {
        Choice::Covered(_) => return None,
        Choice::Assumed(_, assumption) => (what::ASSUMED, Assumption::to_string(&assumption)),
        Choice::Uncovered(why) => (what::UNCOVERED, Uncovered::to_string(&why)),
    };
    let (what, detail) = (what.into(), Some(detail));
    Some(Notice { time_ns: Some(time_ns), stage: stage.into(), flow: Some(flow), what, bytes: None, detail })
}

/// Reads the model files that a stage's option names, and builds the stage with a part for each section.
pub fn build_per_section<S: SectionStage + 'static, E: Display>(
    files: &[PathBuf],
    build: impl Fn(Model) -> Result<S, E>,
) -> Result<Box<dyn Runnable>, ConfigureError> {
    let [first, ..] = files else {
        return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
    };
    let models = ModelSet::read(files).map_err(|error| ConfigureError::Input(error.to_string()))?;
    let scopes: Vec<String> = models.sections().iter().map(|model| model.scope.to_string()).collect();
    let stage = PerSection::new(models, build).map_err(|(at, error)| {
        let section = scopes.get(at).filter(|_| scopes.len() > 1);
        let section = section.map_or_else(String::new, |scope| format!("the section of {scope}: "));
        ConfigureError::Input(format!("{}: {section}{error}", first.display()))
    })?;
    Ok(Box::new(Node::new(stage)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_option_is_a_usage_error_and_an_unusable_model_an_input_error() {
        struct Nothing;
        impl Stage for Nothing {
            const NAME: &'static str = "nothing";
            type Input = sizeleak_frame::Correction;
            fn process(&mut self, _: Self::Input, _: &mut dyn Emit) -> Result<(), StageError> {
                Ok(())
            }
            fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
                Ok(())
            }
        }
        impl SectionStage for Nothing {
            fn subject(correction: &Self::Input) -> Subject {
                (&correction.command).into()
            }
            fn without_model(correction: Self::Input) -> Frame {
                correction.into()
            }
        }
        let error_of = |files: &[PathBuf]| {
            let built = build_per_section(files, |_| Ok::<_, String>(Nothing));
            built.map(|_| "a stage").unwrap_err()
        };
        assert_eq!(error_of(&[]).exit_code(), 2);
        let missing = error_of(&["no-such-folder/m.toml".into()]);
        assert_eq!(missing.exit_code(), 1);
        assert!(missing.to_string().starts_with("no-such-folder/m.toml: "), "{missing}");
    }
}
