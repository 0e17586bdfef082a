//! The states of a flow's messages: by how many bytes all of them, or one action in them, are longer than those that the
//! model was learned from.

use sizeleak_inference::Beside;

/// The greatest shift that is looked for beside any habits, in bytes, in either direction.
pub(crate) const MAX_BYTES: i64 = 8;

/// The greatest shift of all messages that is looked for beside the learned habits: a key more in each. With other habits,
/// what is longer by so much looks like one more action, or one fewer.
const MAX_FAR_BYTES: i64 = 64;

/// How probable it is that messages change by so much, against each other kind of change. Habits that become others look
/// like that until they are known: with 10⁻³, 50,000 commands of ten homes in `tests/answers/habits.rs` have 7 false
/// notices, with 10⁻⁶ two, with 10⁻⁹ one; and only with that, none of the homes there whose habits and messages change
/// together is said to have a far shift. True changes are followed a few commands later by it.
const FAR: f64 = 1e-9;

pub(crate) fn far_bytes() -> impl Iterator<Item = i64> {
    (-MAX_FAR_BYTES..=MAX_FAR_BYTES).filter(|bytes| bytes.abs() > MAX_BYTES)
}

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
    /// Whether all messages are longer by what is looked for beside any habits.
    pub(crate) fn is_near(&self) -> bool {
        self.action.is_none() && !self.is_far()
    }

    /// Whether they are longer by more than that.
    pub(crate) fn is_far(&self) -> bool {
        self.bytes.abs().max(self.reply_bytes.abs()) > MAX_BYTES
    }

    pub(crate) fn beside(&self) -> Beside {
        match self.action {
            Some(_) => Beside::LearnedHabits,
            None if self.is_far() => Beside::LearnedHabitsSoFar,
            None => Beside::AnyHabits,
        }
    }

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
/// to it: the kinds of change are equally likely but those of one action ([`ONE_ACTION`]) and of many bytes ([`FAR`]), and so
/// are all actions and numbers of bytes.
pub(crate) fn shift_states(changes: &[[i64; 2]], action_sizes: &[i64]) -> (Vec<ShiftState>, Vec<f64>) {
    let bytes = || (-MAX_BYTES..=MAX_BYTES).filter(|bytes| *bytes != 0);
    let state = |bytes, reply_bytes, action| ShiftState { bytes, reply_bytes, action };
    // A shift that is nearer to one more action in each command, or to one fewer, may as well be a habit: nothing tells.
    let shortest = action_sizes.iter().copied().min().unwrap_or(i64::MAX);
    let of_all = |[commands, replies]: &[i64; 2]| {
        let told = bytes().filter(|bytes| *commands == 0 || bytes.abs() < shortest - bytes.abs());
        told.map(|bytes| state(commands * bytes, replies * bytes, None)).collect::<Vec<_>>()
    };
    let mut kinds = vec![(1.0, vec![state(0, 0, None)])];
    kinds.extend(changes.iter().map(|change| (1.0, of_all(change))));
    // Replies that are known one by one show far states: those in which they are longer.
    let are_shown = |[_, replies]: &&[i64; 2]| changes.len() == 1 || *replies > 0;
    let far = |[commands, replies]: &[i64; 2]| {
        far_bytes().map(|bytes| state(commands * bytes, replies * bytes, None)).collect()
    };
    kinds.extend(changes.iter().filter(are_shown).map(|change| (FAR, far(change))));
    let of_one = |(action, size): (u32, &i64)| {
        let size = *size;
        bytes().filter(move |bytes| size + bytes > 0).map(move |bytes| state(bytes, 0, Some(action)))
    };
    kinds.push((ONE_ACTION, (0..).zip(action_sizes).flat_map(of_one).collect()));
    let all: f64 = kinds.iter().map(|(weight, _)| weight).sum();
    let each =
        |(weight, kind): &(f64, Vec<ShiftState>)| std::iter::repeat_n(weight / all / kind.len() as f64, kind.len());
    let arrivals = kinds.iter().flat_map(each).collect();
    (kinds.into_iter().flat_map(|(_, kind)| kind).collect(), arrivals)
}
