//! The states of a flow's messages: by how many bytes they are longer than those that the model was learned from.

/// The greatest shift that is looked for, in bytes, in either direction.
const MAX_BYTES: i64 = 8;

/// By how many bytes commands and single replies are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShiftState {
    pub(crate) bytes: i64,
    pub(crate) reply_bytes: i64,
}

/// What a gateway or a service may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shifted {
    /// Commands alone: replies are not told apart by their sizes.
    Commands,
    /// Commands, replies, or both by the same number of bytes.
    CommandsAndReplies,
}

/// All states, the one without a shift first, each with the probability that a change leads to it: the kinds of change
/// are equally likely, and so are all numbers of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShiftStates {
    states: Vec<ShiftState>,
    arrivals: Vec<f64>,
}

impl ShiftStates {
    pub(crate) fn new(shifted: Shifted) -> Self {
        let bytes = || (-MAX_BYTES..=MAX_BYTES).filter(|bytes| *bytes != 0);
        let commands = bytes().map(|bytes| ShiftState { bytes, reply_bytes: 0 });
        let both = bytes().map(|bytes| ShiftState { bytes, reply_bytes: bytes });
        let replies = bytes().map(|bytes| ShiftState { bytes: 0, reply_bytes: bytes });
        let unshifted = [ShiftState { bytes: 0, reply_bytes: 0 }];
        let (states, kinds): (Vec<ShiftState>, f64) = match shifted {
            Shifted::Commands => (unshifted.into_iter().chain(commands).collect(), 2.0),
            Shifted::CommandsAndReplies => {
                (unshifted.into_iter().chain(commands).chain(both).chain(replies).collect(), 4.0)
            }
        };
        let each = 1.0 / kinds / bytes().count() as f64;
        let arrivals = (0..states.len()).map(|at| if at == 0 { 1.0 / kinds } else { each }).collect();
        Self { states, arrivals }
    }

    /// The states, in the order of evidence and probabilities.
    pub(crate) fn list(&self) -> &[ShiftState] {
        &self.states
    }

    /// The probability that a change leads to each of them.
    pub(crate) fn arrivals(&self) -> &[f64] {
        &self.arrivals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_a_distribution_and_states_are_distinct() {
        for shifted in [Shifted::Commands, Shifted::CommandsAndReplies] {
            let states = ShiftStates::new(shifted);
            assert!((states.arrivals.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let distinct: std::collections::BTreeSet<_> = states.list().iter().collect();
            assert_eq!(
                (distinct.len(), states.list()[0]),
                (states.list().len(), ShiftState { bytes: 0, reply_bytes: 0 })
            );
        }
    }
}
