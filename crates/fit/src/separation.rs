//! Which actions the labelled commands separate: the size of each can be told from |ac| and from the other actions.

use sizeleak_model::LabelledCommand;

use crate::experiment_design::RowSpace;

/// What labelled commands say about the parts of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Separation {
    /// Actions whose size is determined, by commands of such actions alone: indices in ascending order.
    pub separate: Vec<usize>,
    /// Actions that occur, and whose size is tied to |ac| or to the size of other actions.
    pub tied: Vec<usize>,
    pub absent: Vec<usize>,
}

impl Separation {
    /// What commands of `actions` actions separate; those without any may be of another form, and do not count.
    pub fn of(actions: usize, commands: &[LabelledCommand]) -> Self {
        let occurs = |action: &usize| commands.iter().any(|command| count(command, *action) > 0);
        let (present, absent): (Vec<usize>, Vec<usize>) = (0..actions).partition(occurs);
        let mut separate = present.clone();
        // What remains undetermined is left out with its commands, until the rest determines itself.
        loop {
            let left: Vec<LabelledCommand> =
                commands.iter().filter_map(|command| project(command, &separate)).collect();
            let space = RowSpace::of(separate.len(), &left);
            if separate.is_empty() || !space.contains_unit(0) {
                separate.clear();
                break;
            }
            let undetermined = space.undetermined();
            if undetermined.is_empty() {
                break;
            }
            let determined = (0..).zip(separate).filter(|(at, _)| !undetermined.contains(at));
            separate = determined.map(|(_, action)| action).collect();
        }
        let tied = present.into_iter().filter(|action| !separate.contains(action)).collect();
        Self { separate, tied, absent }
    }

    /// The command with the counts of the separate actions alone; `None` if it has no action, or others.
    pub fn project(&self, command: &LabelledCommand) -> Option<LabelledCommand> {
        project(command, &self.separate)
    }
}

fn project(command: &LabelledCommand, actions: &[usize]) -> Option<LabelledCommand> {
    let counts: Vec<u32> = actions.iter().map(|action| count(command, *action)).collect();
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    (total > 0 && total == command.total()).then(|| LabelledCommand { counts, ..command.clone() })
}

fn count(command: &LabelledCommand, action: usize) -> u32 {
    command.counts.get(action).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;

    fn separation(counts: &[&[u32]]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
        let commands: Vec<LabelledCommand> = counts.iter().map(|counts| command(100, counts)).collect();
        let Separation { separate, tied, absent } = Separation::of(counts[0].len(), &commands);
        (separate, tied, absent)
    }

    #[test]
    fn single_actions_separate_nothing() {
        assert_eq!(separation(&[&[1, 0, 0], &[0, 1, 0]]), (vec![], vec![0, 1], vec![2]));
        assert_eq!(separation(&[&[2, 0], &[0, 2]]), (vec![], vec![0, 1], vec![]));
    }

    #[test]
    fn one_double_separates_all_singles() {
        assert_eq!(separation(&[&[1, 0], &[0, 1], &[0, 2]]), (vec![0, 1], vec![], vec![]));
        assert_eq!(separation(&[&[1, 0], &[0, 1], &[1, 1]]), (vec![0, 1], vec![], vec![]));
    }

    #[test]
    fn actions_that_always_occur_together_stay_tied_and_the_rest_is_separate() {
        assert_eq!(separation(&[&[1, 0, 0], &[2, 0, 0], &[0, 1, 1], &[1, 1, 1]]), (vec![0], vec![1, 2], vec![]));
    }

    #[test]
    fn sizes_that_only_tied_commands_determine_are_tied_too() {
        // The size of action 0 is determined, but |ac| only together with action 1.
        assert_eq!(separation(&[&[1, 1], &[2, 1]]), (vec![], vec![0, 1], vec![]));
    }

    #[test]
    fn messages_without_actions_do_not_stand_for_the_overhead() {
        assert_eq!(separation(&[&[1, 0], &[0, 1], &[0, 0]]), (vec![], vec![0, 1], vec![]));
    }

    #[test]
    fn commands_are_projected_to_the_separate_actions() {
        let separation = Separation { separate: vec![1], ..Separation::default() };
        assert_eq!(separation.project(&command(9, &[0, 2])).map(|command| command.counts), Some(vec![2]));
        assert_eq!(separation.project(&command(9, &[1, 2])), None);
        assert_eq!(separation.project(&command(9, &[0, 0])), None);
    }
}
