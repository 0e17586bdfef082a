//! The stage: commands in, commands with the likely values of ε out.

use std::fmt::{Display, Formatter};

use sizeleak_frame::{Command, Correction, Frame, Notice, Session, what};
use sizeleak_model::{Basis, Model, Smoothing};
use sizeleak_runtime::{Emit, Stage, StageError};

use crate::cipher_suites::CipherSuites;
use crate::estimates::EpsilonEstimates;
use crate::unseen_sizes::UnseenSizes;

/// Adds the likely values of ε to every command.
#[derive(Debug)]
pub struct EpsilonCorrector {
    model: Model,
    estimates: EpsilonEstimates,
    cipher_suites: CipherSuites,
    assumed: u64,
    unseen_sizes: UnseenSizes,
}

/// What the corrector consumes.
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

/// What is assumed of a session's cipher suite.
#[derive(Debug, Clone, Copy)]
enum CipherAssumption<'a> {
    /// It adds as many bytes to a record as the model's suite.
    SameOverhead { own: &'a str, models: &'a str },
    /// It is the model's suite.
    ModelsSuite(&'a str),
    /// It is the suite of the sizes that the model was learned on.
    SuiteOfModelSizes { own: &'a str },
}

impl Display for CipherAssumption<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SameOverhead { own, models } => write!(
                formatter,
                "what its cipher suite {own} adds to a record is not known: taken to add what {models} does, which the \
                 model was learned on"
            ),
            Self::ModelsSuite(models) => {
                write!(formatter, "its handshake was not seen: taken to use the model's cipher suite, {models}")
            }
            Self::SuiteOfModelSizes { own } => write!(
                formatter,
                "its cipher suite is {own}, the model was learned on sizes on the wire: taken to be of the same suite"
            ),
        }
    }
}

impl EpsilonCorrector {
    /// A corrector that estimates ε from the model's labelled commands with this smoothing.
    pub fn new(model: Model, smoothing: Smoothing) -> Self {
        let estimates = EpsilonEstimates::new(model.neighbours.clone(), smoothing);
        let unseen_sizes = UnseenSizes::new(&model);
        Self { model, estimates, cipher_suites: CipherSuites::default(), assumed: 0, unseen_sizes }
    }

    /// What has to be assumed of a command's session to convert its size to the model's basis; `None` if nothing has.
    fn assumption(&self, command: &Command) -> Option<CipherAssumption<'_>> {
        if command.plaintext.is_some() {
            return None;
        }
        match (&self.model.learned.basis, self.cipher_suites.of_flow(command.flow)) {
            (Basis::Plaintext { cipher_suite, .. }, Some(own)) if own == cipher_suite => None,
            (Basis::Plaintext { cipher_suite, .. }, own) => Some(match own {
                Some(own) => CipherAssumption::SameOverhead { own, models: cipher_suite },
                None => CipherAssumption::ModelsSuite(cipher_suite),
            }),
            (Basis::Wire, Some(own)) => Some(CipherAssumption::SuiteOfModelSizes { own }),
            // Neither suite is known. A model of wire sizes is for sessions of the same suite.
            (Basis::Wire, None) => None,
        }
    }

    /// Counts a command whose session something is assumed of; reports it once for each session.
    fn report_assumption(&mut self, command: &Command, out: &mut dyn Emit) -> Result<(), StageError> {
        let Some(assumption) = self.assumption(command) else { return Ok(()) };
        // Most commands belong to sessions that were reported, and need no text.
        let detail = (!self.cipher_suites.is_reported(command.flow)).then(|| assumption.to_string());
        self.assumed += 1;
        let Some(detail) = detail else { return Ok(()) };
        self.cipher_suites.set_reported(command.flow);
        Ok(out.emit(assumed(command, None, detail).into())?)
    }
}

impl Stage for EpsilonCorrector {
    const NAME: &'static str = "epsilon-corrector";
    type Input = CorrectorInput;

    fn process(&mut self, input: CorrectorInput, out: &mut dyn Emit) -> Result<(), StageError> {
        let command = match input {
            CorrectorInput::Command(command) => command,
            CorrectorInput::Session(session) => {
                self.cipher_suites.update(session.flow, session.cipher_suite.as_deref());
                return Ok(out.emit(Frame::Session(session))?);
            }
        };
        let sizes = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        self.report_assumption(&command, out)?;
        if let Some(unseen) = self.unseen_sizes.check(self.model.neighbours.tuples(), sizes) {
            out.emit(assumed(&command, Some(unseen.distance), unseen.detail).into())?;
        }
        let epsilons = self.estimates.over(sizes);
        Ok(out.emit(Correction { command: *command, epsilons }.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("assumed_cipher", self.assumed),
            ("without_near_neighbours", self.unseen_sizes.commands),
            ("forgotten_flows", self.cipher_suites.evicted),
        ]
    }
}

fn assumed(command: &Command, bytes: Option<u64>, detail: String) -> Notice {
    Notice {
        time_ns: Some(command.time_ns),
        stage: EpsilonCorrector::NAME.into(),
        flow: Some(command.flow),
        what: what::ASSUMED.into(),
        bytes,
        detail: Some(detail),
    }
}

#[cfg(test)]
mod tests;
