//! The stage: commands in, commands with the likely values of ε out.

use sizeleak_flow_models::{SectionStage, Subject};
use sizeleak_frame::{Command, Correction, Direction, Frame, Notice, Session, SharedList, what};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Action, Basis, LearnedPadding, Model, Smoothing};
use sizeleak_platform::runtime::{Emit, Stage, StageError};

use crate::cipher_suites::{CipherSuites, SuiteLengths};
use crate::estimates::{EpsilonEstimates, UnseenSizes};
use crate::flow_shifts::FlowShifts;

/// With more actions nothing is followed: a belief about habits has the covariances of all of them. Of 192 actions it took
/// 0.5 GB for each flow and a third of a second for each command, of 300 no end was seen.
const MAX_ACTIONS: usize = 128;

/// Adds the likely values of ε to every command.
#[derive(Debug)]
pub struct EpsilonCorrector {
    model: Model,
    estimates: EpsilonEstimates,
    cipher_suites: CipherSuites,
    suite_lengths: Option<SuiteLengths>,
    assumed: u64,
    /// How many commands the model cannot be asked of.
    refused: u64,
    unseen_sizes: UnseenSizes,
    /// `None` if shifts of sizes are not followed.
    shifts: Option<FlowShifts>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorrectorInput {
    /// A command, which becomes a correction.
    Command(Box<Command>),
    /// A session: its cipher suite is remembered, and the frame is passed on.
    Session(Box<Session>),
}

impl TryFrom<Frame> for CorrectorInput {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Command(command) => Ok(Self::Command(command)),
            Frame::Session(session) => Ok(Self::Session(session)),
            other => Err(other),
        }
    }
}

impl EpsilonCorrector {
    /// A corrector that estimates ε from the model's labelled commands with this smoothing, and follows gateways whose
    /// messages become longer or shorter. Without smoothing, as in the paper, it follows none: the nearest command's ε
    /// does not say how probable others are, so that nothing tells them from a shift.
    pub fn new(model: Model, smoothing: Smoothing) -> Self {
        let estimates = EpsilonEstimates::new(model.neighbours.clone(), smoothing);
        let (unseen_sizes, suite_lengths) = (UnseenSizes::new(&model), SuiteLengths::of(&model));
        let is_followed = smoothing.strength > 0.0 && Self::not_followed(&model).is_none();
        let shifts = if is_followed { FlowShifts::new(&model) } else { None };
        let cipher_suites = CipherSuites::default();
        Self { model, estimates, cipher_suites, suite_lengths, assumed: 0, refused: 0, unseen_sizes, shifts }
    }

    /// Why messages of a gateway that become longer or shorter are not followed with a model, as a sentence goes on behind
    /// "because"; `None` where they are.
    pub fn not_followed(model: &Model) -> Option<&'static str> {
        // The size of a padded message hardly says whether it is longer.
        let is_padded =
            matches!(&model.learned.padding, Some(LearnedPadding::Policy(policy)) if *policy != PaddingPolicy::None);
        // What is learned from ranges is not exact enough to tell a shift from an action's other sizes.
        let is_of_ranges = SuiteLengths::of(model) == Some(SuiteLengths::Blocks);
        let varies = model.actions.iter().any(Action::varies);
        let reasons = [
            (model.kinds.is_some(), "it has kinds of commands, which are no sums"),
            (is_padded, "its messages are padded"),
            (model.prior.is_none(), "it has no prior"),
            (is_of_ranges && varies, "its actions have several sizes, learned from ranges"),
            (model.actions.len() > MAX_ACTIONS, "it has more than 128 actions"),
        ];
        reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, reason)| reason)
    }

    /// The same corrector, which takes all messages to be as long as those that the model was learned from.
    #[must_use]
    pub fn fixed(self) -> Self {
        Self { shifts: None, ..self }
    }

    /// Counts a command if something has to be assumed about its session's cipher suite to convert its size to the
    /// model's basis. Reports it once for each session.
    fn report_assumption(&mut self, command: &Command, out: &mut dyn Emit) -> Result<(), StageError> {
        let own = self.cipher_suites.of_flow(command.flow);
        let model = match &self.model.learned.basis {
            Basis::Plaintext { cipher_suite, .. } => Some(cipher_suite.as_str()),
            Basis::Wire => None,
        };
        // Without any suite, a model of wire sizes is used as intended; with one, only where it knows the service.
        if model.is_some() && command.plaintext.is_some() || own == model {
            return Ok(());
        }
        self.assumed += 1;
        if std::mem::replace(&mut self.cipher_suites.entry(command.flow).is_reported, true) {
            return Ok(());
        }
        let detail = match (self.cipher_suites.of_flow(command.flow), model) {
            (Some(own), Some(model)) => format!(
                "what its cipher suite {own} adds to a record is not known: taken to add what {model} does, which the \
                 model was learned on"
            ),
            (Some(own), None) => format!(
                "its cipher suite is {own}, the model was learned on sizes on the wire: taken to be of the same suite"
            ),
            (None, model) => format!(
                "its handshake was not seen: taken to use the model's cipher suite, {}",
                model.unwrap_or_default()
            ),
        };
        Ok(out.emit(notice(command, what::ASSUMED, detail).into())?)
    }

    /// Why a session whose handshake was not captured cannot use the model's cipher suite, if that is certain by now.
    fn other_suite(&mut self, command: &Command) -> Option<String> {
        let suite_lengths = self.suite_lengths.filter(|_| command.plaintext.is_none())?;
        let suite = self.cipher_suites.entry(command.flow);
        if suite.name.is_some() {
            return None;
        }
        let found = suite.evidence.contradiction(command, suite_lengths);
        if found.is_none() && !suite.is_refused {
            return None;
        }
        let why = found.unwrap_or_default();
        Some(format!(
            "its handshake was not seen, and its cipher suite is another one than the model's: {why}; learn a model of \
             such sessions"
        ))
    }

    /// Passes on a command that the model cannot be asked of, without values of ε. Reports it once for each session.
    fn refuse(&mut self, command: Box<Command>, why: String, out: &mut dyn Emit) -> Result<(), StageError> {
        self.refused += 1;
        if !std::mem::replace(&mut self.cipher_suites.entry(command.flow).is_refused, true) {
            out.emit(notice(&command, what::UNCOVERED, why).into())?;
        }
        Ok(out.emit(without_epsilons(*command))?)
    }
}

fn without_epsilons(command: Command) -> Frame {
    Correction::unshifted(command, SharedList::default()).into()
}

impl SectionStage for EpsilonCorrector {
    const REPORTS: bool = true;

    fn subject(input: &CorrectorInput) -> Subject {
        match input {
            CorrectorInput::Command(command) => (&**command).into(),
            CorrectorInput::Session(session) => {
                Subject { flow: session.flow, direction: Direction::ToGateway, time_ns: session.time_ns }
            }
        }
    }

    fn without_model(input: CorrectorInput) -> Frame {
        match input {
            CorrectorInput::Command(command) => without_epsilons(*command),
            CorrectorInput::Session(session) => Frame::Session(session),
        }
    }

    fn see_session(&mut self, session: &Session) {
        self.cipher_suites.update(session.flow, session.cipher_suite.as_deref());
    }
}

impl Stage for EpsilonCorrector {
    const NAME: &'static str = "epsilon-corrector";
    type Input = CorrectorInput;

    fn process(&mut self, input: CorrectorInput, out: &mut dyn Emit) -> Result<(), StageError> {
        let command = match input {
            CorrectorInput::Command(command) => command,
            CorrectorInput::Session(session) => {
                self.see_session(&session);
                return Ok(out.emit(Frame::Session(session))?);
            }
        };
        let sizes = match self.model.sizes(command.size, command.records, command.plaintext) {
            Ok(sizes) => sizes,
            Err(why) => return self.refuse(command, why.to_string(), out),
        };
        if let Some(why) = self.other_suite(&command) {
            return self.refuse(command, why, out);
        }
        self.report_assumption(&command, out)?;
        if let Some((distance, detail)) = self.unseen_sizes.check(self.model.neighbours.tuples(), sizes) {
            out.emit(Notice { bytes: Some(distance), ..notice(&command, what::ASSUMED, detail) }.into())?;
        }
        let epsilons = self.estimates.over(sizes);
        let Some(shifts) = &mut self.shifts else {
            return Ok(out.emit(Correction::unshifted(*command, epsilons).into())?);
        };
        let (correction, news) = shifts.follow(&self.model, *command, sizes, epsilons);
        for (what, detail) in news {
            out.emit(notice(&correction.command, what, detail).into())?;
        }
        Ok(out.emit(correction.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = vec![
            ("assumed_cipher", self.assumed),
            ("without_near_neighbours", self.unseen_sizes.commands),
            ("forgotten_flows", self.cipher_suites.evicted),
        ];
        let shifted = self.shifts.as_ref().map_or(0, |shifts| shifts.shifted);
        let rare = [("other_cipher", self.refused), ("shifted", shifted)];
        counters.extend(rare.into_iter().filter(|(_, count)| *count > 0));
        counters
    }
}

fn notice(command: &Command, what: &'static str, detail: String) -> Notice {
    let notice = Notice::new(EpsilonCorrector::NAME, what, detail);
    Notice { time_ns: Some(command.time_ns), flow: Some(command.flow), ..notice }
}

#[cfg(test)]
mod tests;
