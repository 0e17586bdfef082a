//! The stage: commands in, commands with the likely values of ε out.

use std::fmt::{Display, Formatter};

use sizeleak_frame::{Command, Correction, Frame, Notice, Session, what};
use sizeleak_model::{Basis, Model, Smoothing};
use sizeleak_runtime::{Emit, Stage, StageError};

use crate::estimates::Estimates;
use crate::sessions::Sessions;
use crate::unseen_sizes::UnseenSizes;

/// Adds the likely values of ε to every command.
#[derive(Debug)]
pub struct EpsilonCorrector {
    model: Model,
    estimates: Estimates,
    sessions: Sessions,
    assumed: u64,
    strangers: UnseenSizes,
}

/// What the corrector consumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A command, made into a correction.
    Command(Box<Command>),
    /// A session: remembered, and passed on as it came.
    Session(Box<Session>),
}

impl TryFrom<Frame> for Input {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Command(command) => Ok(Self::Command(command)),
            Frame::Session(session) => Ok(Self::Session(session)),
            other => Err(other),
        }
    }
}

/// What is assumed of a session.
#[derive(Debug, Clone, Copy)]
enum Assumption<'a> {
    /// Its cipher suite adds to a record what the model's does.
    AddsAsMuch { own: &'a str, models: &'a str },
    /// It uses the model's cipher suite.
    UsesTheModels(&'a str),
    /// The sizes the model was learned on are of its suite.
    IsTheSame { own: &'a str },
}

impl Display for Assumption<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AddsAsMuch { own, models } => write!(
                formatter,
                "what its cipher suite {own} adds to a record is not known: taken to add what {models} does, which the \
                 model was learned on"
            ),
            Self::UsesTheModels(models) => {
                write!(formatter, "its handshake was not seen: taken to use the model's cipher suite, {models}")
            }
            Self::IsTheSame { own } => write!(
                formatter,
                "its cipher suite is {own}, the model was learned on sizes on the wire: taken to be of the same suite"
            ),
        }
    }
}

impl EpsilonCorrector {
    /// A corrector that asks the labelled commands of the model in this way.
    pub fn new(model: Model, smoothing: Smoothing) -> Self {
        let estimates = Estimates::new(model.neighbours.clone(), smoothing);
        let strangers = UnseenSizes::of(&model);
        Self { model, estimates, sessions: Sessions::default(), assumed: 0, strangers }
    }

    /// What has to be assumed of a command's session for its size to be in the model's basis; `None` if nothing has.
    fn assumption(&self, command: &Command) -> Option<Assumption<'_>> {
        if command.plaintext.is_some() {
            return None;
        }
        match (&self.model.learned.basis, self.sessions.cipher_suite(command.flow)) {
            (Basis::Plaintext { cipher_suite, .. }, Some(own)) if own == cipher_suite => None,
            (Basis::Plaintext { cipher_suite, .. }, own) => Some(match own {
                Some(own) => Assumption::AddsAsMuch { own, models: cipher_suite },
                None => Assumption::UsesTheModels(cipher_suite),
            }),
            (Basis::Wire, Some(own)) => Some(Assumption::IsTheSame { own }),
            // Neither side's suite is known; that they are the same is what a model of wire sizes is for.
            (Basis::Wire, None) => None,
        }
    }

    /// Tells once a session what is assumed of it.
    fn tell_assumption(&mut self, command: &Command, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.assumption(command).is_none() {
            return Ok(());
        }
        self.assumed += 1;
        if !self.sessions.is_news(command.flow) {
            return Ok(());
        }
        // In words only here: commands are many.
        let detail = self.assumption(command).map(|assumption| assumption.to_string());
        let notice = Notice {
            time_ns: Some(command.time_ns),
            stage: Self::NAME.into(),
            flow: Some(command.flow),
            what: what::ASSUMED.into(),
            bytes: None,
            detail,
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for EpsilonCorrector {
    const NAME: &'static str = "epsilon-corrector";
    type Input = Input;

    fn process(&mut self, input: Input, out: &mut dyn Emit) -> Result<(), StageError> {
        let command = match input {
            Input::Command(command) => command,
            Input::Session(session) => {
                self.sessions.begin(session.flow, session.cipher_suite.as_deref());
                return Ok(out.emit(Frame::Session(session))?);
            }
        };
        let sizes = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        self.tell_assumption(&command, out)?;
        if let Some(notice) = self.strangers.notice(&self.model, &command, sizes) {
            out.emit(notice.into())?;
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
            ("without_near_neighbours", self.strangers.seen),
            ("forgotten_flows", self.sessions.forgotten),
        ]
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::SharedList;

    use super::*;

    const MODEL: &str = "schema = 1\noverhead = 60\nk = 2\ntuples = [[100, 0, 1], [102, 1, 1], [200, 5, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 3\nversion = \"0.1.0\"\n";

    fn corrector(basis: &str) -> EpsilonCorrector {
        let model = Model::from_toml(&format!("{MODEL}{basis}")).unwrap();
        let smoothing = model.smoothing;
        EpsilonCorrector::new(model, smoothing)
    }

    fn plaintext_basis() -> EpsilonCorrector {
        corrector("basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n")
    }

    /// One that takes the nearest at its word.
    fn nearest() -> EpsilonCorrector {
        EpsilonCorrector::new(plaintext_basis().model, Smoothing::NEAREST)
    }

    fn command(size: u64, plaintext: Option<[u64; 2]>) -> Command {
        Command { time_ns: 1, end_ns: 2, flow: 3, size, plaintext, records: 1, replies: 0, reply_bytes: 0 }
    }

    /// The values of ε and how many notices came with them.
    fn correct(corrector: &mut EpsilonCorrector, command: &Command) -> (Vec<(i64, f64)>, Vec<Frame>) {
        let mut out: Vec<Frame> = Vec::new();
        corrector.process(Input::Command(command.clone().into()), &mut out).unwrap();
        let Some(Frame::Correction(correction)) = out.pop() else { panic!("{out:?}") };
        assert_eq!(correction.command, *command);
        (correction.epsilons.iter().map(|value| (value.epsilon, value.weight)).collect(), out)
    }

    /// What is assumed of a command on the wire alone.
    fn assumed(corrector: &mut EpsilonCorrector) -> Option<String> {
        let (_, notices) = correct(corrector, &command(124, None));
        let notice = notices.into_iter().next().map(Notice::try_from)?.unwrap();
        assert_eq!((&*notice.what, notice.flow), (what::ASSUMED, Some(3)));
        notice.detail
    }

    fn open_session(corrector: &mut EpsilonCorrector, cipher_suite: Option<&str>) {
        let cipher_suite = cipher_suite.map(str::to_owned);
        let session = Session { time_ns: 0, flow: 3, server_name: None, tls_version: None, cipher_suite };
        let mut out: Vec<Frame> = Vec::new();
        corrector.process(Input::Session(session.clone().into()), &mut out).unwrap();
        assert_eq!(out, [session.into()]);
    }

    #[test]
    fn neighbours_are_those_of_what_the_actions_explain() {
        let mut corrector = plaintext_basis();
        // Of |s| = 100, ε = 0 is that of x = 100 and ε = 1 that of x = 99, whose two nearest are the same two.
        let both = vec![(0, 0.5), (1, 0.5)];
        assert_eq!(correct(&mut corrector, &command(999, Some([100, 100]))).0, both);
        assert_eq!(correct(&mut corrector, &command(124, None)).0, both, "24 bytes of cipher");
        let mut corrector = nearest();
        assert_eq!(correct(&mut corrector, &command(0, Some([170, 170]))).0, [(5, 1.0)]);
    }

    #[test]
    fn values_the_neighbours_do_not_have_get_a_share() {
        let mut smooth = EpsilonCorrector::new(plaintext_basis().model, Smoothing { k: 2, strength: 3.0 });
        let smoothed = correct(&mut smooth, &command(999, Some([100, 100]))).0;
        assert!(smoothed.iter().any(|(epsilon, _)| *epsilon == -1), "{smoothed:?}");
        assert!((smoothed.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sizes_far_from_all_labels_are_told() {
        let mut corrector = plaintext_basis();
        let far = |size: u64| command(0, Some([size; 2]));
        assert_eq!(correct(&mut corrector, &far(140)).1, [], "one action from the nearest");
        let (_, notices) = correct(&mut corrector, &far(150));
        let [Frame::Notice(notice)] = &notices[..] else { panic!("{notices:?}") };
        let detail = notice.detail.as_deref().unwrap();
        assert!(notice.what == what::ASSUMED && detail.contains("between 102 and 200 bytes"), "{detail}");
        assert_eq!(correct(&mut corrector, &far(155)).1, [], "told once");
        let detail = |notices: &[Frame]| format!("{notices:?}");
        assert!(detail(&correct(&mut corrector, &far(900)).1).contains("more than 200 bytes"));
        assert!(detail(&correct(&mut corrector, &far(9)).1).contains("less than 100 bytes"));
        assert_eq!(corrector.counters()[1], ("without_near_neighbours", 4));
    }

    #[test]
    fn what_is_assumed_of_a_session_is_told_once() {
        let mut corrector = plaintext_basis();
        assert_eq!(correct(&mut corrector, &command(999, Some([100, 100]))).1, []);
        assert!(assumed(&mut corrector).unwrap().contains("handshake was not seen"));
        assert_eq!(assumed(&mut corrector), None);
        open_session(&mut corrector, Some("Y"));
        assert!(assumed(&mut corrector).unwrap().contains("cipher suite Y"));
        assert_eq!(assumed(&mut corrector), None);
        open_session(&mut corrector, Some("X"));
        assert_eq!(assumed(&mut corrector), None, "the model's own suite");
        assert_eq!(corrector.counters()[0], ("assumed_cipher", 4));
    }

    #[test]
    fn a_model_of_wire_sizes_refuses_a_known_cipher() {
        let mut corrector = corrector("basis = \"wire\"\n");
        assert_eq!(assumed(&mut corrector), None);
        open_session(&mut corrector, Some("0x1a2b"));
        assert!(assumed(&mut corrector).unwrap().contains("0x1a2b"));
        let mut out: Vec<Frame> = Vec::new();
        let error = corrector.process(Input::Command(command(100, Some([76, 76])).into()), &mut out).unwrap_err();
        assert!(error.to_string().contains("learn again"), "{error}");
        assert!(out.is_empty());
    }

    #[test]
    fn other_frames_are_not_its_own() {
        let other = Frame::from(Correction { command: command(1, None), epsilons: SharedList::default() });
        assert_eq!(Input::try_from(other.clone()), Err(other));
    }
}
