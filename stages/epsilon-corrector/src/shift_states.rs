//! The states of a flow's messages: by how many bytes all of them, or one action in them, are longer than those that the
//! model was learned from.

/// The greatest shift that is looked for, in bytes, in either direction.
const MAX_BYTES: i64 = 8;

/// How probable it is that one action alone changes, against each change of all messages. With 1, coincidences of another
/// gateway's messages are taken for changes (39 of 1,438 answers above 0.9 in `tests/answers/misfit.rs`, 14 with 0.2, 12
/// with 0.1); with 0.1, `toggle` of `tests/answers/habits.rs` is found after 106 commands, else after 97.
const ONE_ACTION: f64 = 0.2;

/// By how many bytes commands, or one action of them, and single replies are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShiftState {
    pub(crate) bytes: i64,
    pub(crate) reply_bytes: i64,
    /// The only action that is longer, by its index; `None` where whole commands are.
    pub(crate) action: Option<u32>,
}

impl ShiftState {
    /// By how many bytes commands are longer, whatever their actions.
    pub(crate) fn of_commands(&self) -> i64 {
        if self.action.is_none() { self.bytes } else { 0 }
    }
}

/// What a gateway or a service may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shifted {
    /// Commands alone: replies are not told apart by their sizes.
    Commands,
    /// Commands, replies, or both by the same number of bytes.
    CommandsAndReplies,
}

/// All states, the one without a shift first and those of one action last, each with the probability that a change leads
/// to it: the kinds of change are equally likely but that of one action ([`ONE_ACTION`]), and so are all actions and
/// numbers of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShiftStates {
    states: Vec<ShiftState>,
    arrivals: Vec<f64>,
}

impl ShiftStates {
    pub(crate) fn new(shifted: Shifted, action_sizes: &[i64]) -> Self {
        let bytes = || (-MAX_BYTES..=MAX_BYTES).filter(|bytes| *bytes != 0);
        let state = |bytes, reply_bytes, action| ShiftState { bytes, reply_bytes, action };
        // A shift that is nearer to one more action in each command, or to one fewer, may as well be a habit: nothing tells.
        let shortest = action_sizes.iter().copied().min().unwrap_or(i64::MAX);
        let of_all = |commands: i64, replies: i64| {
            let told = bytes().filter(|bytes| commands == 0 || bytes.abs() < shortest - bytes.abs());
            told.map(|bytes| state(commands * bytes, replies * bytes, None)).collect::<Vec<_>>()
        };
        let mut kinds = vec![vec![state(0, 0, None)], of_all(1, 0)];
        if shifted == Shifted::CommandsAndReplies {
            kinds.extend([of_all(1, 1), of_all(0, 1)]);
        }
        let of_one = |(action, size): (u32, &i64)| {
            let size = *size;
            bytes().filter(move |bytes| size + bytes > 0).map(move |bytes| state(bytes, 0, Some(action)))
        };
        kinds.push((0..).zip(action_sizes).flat_map(of_one).collect());
        let of_all_messages = (kinds.len() - 1) as f64;
        let each = |(at, kind): (usize, &Vec<ShiftState>)| {
            let weight = if at + 1 == kinds.len() { ONE_ACTION } else { 1.0 };
            std::iter::repeat_n(weight / (of_all_messages + ONE_ACTION) / kind.len() as f64, kind.len())
        };
        let arrivals = kinds.iter().enumerate().flat_map(each).collect();
        Self { states: kinds.concat(), arrivals }
    }

    /// The actions that are alone longer in the last states, each with the bytes.
    pub(crate) fn longer_actions(&self) -> Vec<(u32, i64)> {
        self.states.iter().filter_map(|state| Some((state.action?, state.bytes))).collect()
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
            let states = ShiftStates::new(shifted, &[4, 7, 30]);
            assert!((states.arrivals.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let distinct: std::collections::BTreeSet<_> = states.list().iter().collect();
            assert_eq!(
                (distinct.len(), states.list()[0]),
                (states.list().len(), ShiftState { bytes: 0, reply_bytes: 0, action: None })
            );
        }
    }
}
