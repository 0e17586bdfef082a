//! What an observer learns from one message to the gateway, dummies among them.

use serde::Serialize;
use sizeleak_inference::channel::{Channel, KeyFigures, Observation};

/// What an observer learns from one message to the gateway about the command in it, or one of them.
///
/// Secrets are: a command was sent that is this one; it has so many actions; it addresses these kinds of device. To name
/// one is to be right in both, that the command is no dummy and what it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageLeak {
    /// Whether the figures are exact; else those of leakage are upper bounds.
    pub is_exact: bool,
    /// About the command.
    pub command: KeyFigures,
    /// About the number of its actions.
    pub number: KeyFigures,
    /// About which kinds of device it addresses; `None` without an inventory.
    pub kinds: Option<KeyFigures>,
}

impl MessageLeak {
    /// What is learned where each channel of an observation has these `figures`.
    ///
    /// # Errors
    /// That of `figures`.
    pub(crate) fn new<E>(
        observation: &Observation,
        figures: impl Fn(&Channel) -> Result<KeyFigures, E>,
    ) -> Result<Self, E> {
        Ok(Self {
            is_exact: observation.is_exact,
            command: figures(&observation.command.merged())?,
            number: figures(&observation.number)?,
            kinds: observation.kinds.as_ref().map(figures).transpose()?,
        })
    }

    /// The same where a share of all commands sent are dummies that are drawn and sent like the others.
    pub(crate) fn among_dummies(&self, dummies: f64) -> Self {
        let among = |figures: &KeyFigures| among_dummies(figures, dummies);
        Self {
            is_exact: self.is_exact,
            command: among(&self.command),
            number: among(&self.number),
            kinds: self.kinds.as_ref().map(among),
        }
    }

    /// The same as an upper bound.
    pub(crate) fn at_most(self) -> Self {
        Self { is_exact: false, ..self }
    }
}

/// The figures of a secret among dummies, a share d of all commands, which are seen with the same probabilities as the
/// others: P(t) = Σ π(A) · C(t | A).
///
/// A message t is seen with the probability (1 − d) · P(t) + d · P(t) = P(t), and a real command A in it with
/// (1 − d) · J(A, t). So the best guess of a real command is right in (1 − d) · V, and the greatest posterior is 1 − d
/// times what it was. With S for the secret or "a dummy", I(S; T) = I(real; T) + (1 − d) · I(A; T), and I(real; T) = 0.
/// Every message may be a dummy, which is one possibility more.
///
/// No other way to draw dummies is better: naming has the same (1 − d) · V in any case, I(real; T) is never below 0, and
/// to tell whether a command is real, a fixed guess reaches max(d, 1 − d) already.
fn among_dummies(figures: &KeyFigures, dummies: f64) -> KeyFigures {
    let real = 1.0 - dummies;
    KeyFigures {
        guessing: real * figures.guessing,
        named: real * figures.named,
        times_guessing: figures.times_guessing,
        information_bits: real * figures.information_bits,
        worst_posterior: real * figures.worst_posterior,
        smallest_set: figures.smallest_set + if dummies > 0.0 { 1.0 } else { 0.0 },
    }
}
