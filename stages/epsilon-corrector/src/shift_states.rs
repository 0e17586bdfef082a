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

/// What a gateway or a service may change for all messages: by how many times the bytes of a change commands are longer, and
/// how many times replies. Where these are not told apart by their sizes, commands alone; else both, or replies alone.
pub(crate) const COMMANDS: &[[i64; 2]] = &[[1, 0]];
pub(crate) const COMMANDS_AND_REPLIES: &[[i64; 2]] = &[[1, 0], [1, 1], [0, 1]];

/// All states, the one without a shift first and those of one action last, each with the probability that a change leads
/// to it: the kinds of change are equally likely but that of one action ([`ONE_ACTION`]), and so are all actions and
/// numbers of bytes.
pub(crate) fn shift_states(changes: &[[i64; 2]], action_sizes: &[i64]) -> (Vec<ShiftState>, Vec<f64>) {
    let bytes = || (-MAX_BYTES..=MAX_BYTES).filter(|bytes| *bytes != 0);
    let state = |bytes, reply_bytes, action| ShiftState { bytes, reply_bytes, action };
    // A shift that is nearer to one more action in each command, or to one fewer, may as well be a habit: nothing tells.
    let shortest = action_sizes.iter().copied().min().unwrap_or(i64::MAX);
    let of_all = |[commands, replies]: &[i64; 2]| {
        let told = bytes().filter(|bytes| *commands == 0 || bytes.abs() < shortest - bytes.abs());
        told.map(|bytes| state(commands * bytes, replies * bytes, None)).collect::<Vec<_>>()
    };
    let mut kinds = vec![vec![state(0, 0, None)]];
    kinds.extend(changes.iter().map(of_all));
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
    (kinds.concat(), arrivals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_a_distribution_and_states_are_distinct() {
        for changes in [COMMANDS, COMMANDS_AND_REPLIES] {
            let (states, arrivals) = shift_states(changes, &[4, 7, 30]);
            assert!((arrivals.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_eq!(arrivals.len(), states.len());
            let distinct: std::collections::BTreeSet<_> = states.iter().collect();
            assert_eq!(
                (distinct.len(), states[0]),
                (states.len(), ShiftState { bytes: 0, reply_bytes: 0, action: None })
            );
        }
    }
}
