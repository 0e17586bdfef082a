//! Classes of commands: those with the same sum of sizes and the same replies, which nothing ever tells apart.
//!
//! What a class is follows from the model alone, so each is looked for once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::action_group::Groups;
use crate::best_actions::{GroupSums, Member};
use crate::habits::{HabitTable, LearnedHabits};
use crate::inference::ReplyInference;
use crate::number_walk::{Beyond, Evidence, Numbers, Terms, WeightedSum, numbers};

/// The most members of all classes that are remembered, of about 100 bytes each. Beyond, they are looked for again.
const MAX_KNOWN: usize = 1 << 18;

/// What a class takes besides its members, in members.
const CLASS_MEMBERS: usize = 8;

/// The most numbers of actions whose sums are remembered.
const MAX_NUMBERS: usize = 1 << 12;

/// Commands that no size and no reply tells apart.
#[derive(Debug)]
pub(crate) struct CommandClass {
    /// No other class has it.
    pub(crate) id: usize,
    /// Σ |aᵢ|·nᵢ in bytes.
    pub(crate) sum: i64,
    /// How many replies of each class they should have; none where replies say nothing one by one.
    pub(crate) class_counts: Arc<[u32]>,
    /// P(class) by the learned habits, without commands that recur; and of its commands of each number of actions, from 1.
    pub(crate) prior: f64,
    pub(crate) of_numbers: Vec<f64>,
    /// The share of all commands that are such ones because they recur by the model.
    pub(crate) recurring: f64,
    /// P(class) by habits that leave nearly everything open.
    pub(crate) broad: f64,
    /// Those that matter; none where no command matters by itself.
    pub(crate) members: Vec<Member>,
    pub(crate) occurrences: Vec<Occurrence>,
}

/// The commands of a class in which an action occurs some times.
#[derive(Debug)]
pub(crate) struct Occurrence {
    pub(crate) action: u32,
    pub(crate) times: u32,
    pub(crate) prior: f64,
    pub(crate) recurring: f64,
}

type BySum = HashMap<i64, Arc<CommandClass>, RandomState>;

#[derive(Debug, Default)]
pub(crate) struct CommandClasses {
    /// By the replies, then by the sum.
    known: HashMap<Arc<[u32]>, BySum, RandomState>,
    /// The members of those that are known.
    members: usize,
    next_id: usize,
    /// By the numbers of actions of each group.
    sums: HashMap<Vec<u32>, Arc<GroupSums>, RandomState>,
}

impl CommandClasses {
    pub(crate) fn find(
        &mut self,
        class_counts: &[u32],
        sum: i64,
        inference: &ReplyInference,
        habits: Option<&LearnedHabits>,
    ) -> Result<Arc<CommandClass>, Beyond> {
        if let Some(known) = self.known.get(class_counts).and_then(|of_replies| of_replies.get(&sum)) {
            return Ok(Arc::clone(known));
        }
        let sums = [WeightedSum { bytes: sum, weight: 1.0 }];
        let mut evidence = ClassCounts { groups: &inference.groups, class_counts };
        let found = numbers(&inference.groups, &mut evidence, Terms::new(&[1.0]), (&sums, [sum, sum]), 0.0)?;
        let of_numbers: Vec<Arc<GroupSums>> = found.iter().map(|numbers| self.group_sums(numbers, inference)).collect();
        let (of_numbers, members) = inference.members(&of_numbers, sum);
        let of_replies = inference.recurring.iter().filter(|one| one.class_counts == class_counts);
        let recurring = of_replies.map(|one| (&one.actions[..], one.share * one.sums.at(sum)));
        let mut class = CommandClass::new(sum, class_counts.into(), of_numbers, members, recurring, habits);
        class.id = self.next_id;
        self.next_id += 1;
        let members = class.members.len() + CLASS_MEMBERS;
        self.members += members;
        if self.members > MAX_KNOWN {
            self.known.clear();
            self.members = members;
        }
        let class = Arc::new(class);
        self.known.entry(Arc::clone(&class.class_counts)).or_default().insert(sum, Arc::clone(&class));
        Ok(class)
    }

    fn group_sums(&mut self, numbers: &Numbers, inference: &ReplyInference) -> Arc<GroupSums> {
        if let Some(known) = self.sums.get(&numbers.of_groups) {
            return Arc::clone(known);
        }
        if self.sums.len() >= MAX_NUMBERS {
            self.sums.clear();
        }
        let found = Arc::new(inference.group_sums(numbers));
        self.sums.insert(numbers.of_groups.clone(), Arc::clone(&found));
        found
    }
}

/// That a command has just so many replies of each class.
struct ClassCounts<'a> {
    groups: &'a Groups,
    class_counts: &'a [u32],
}

impl Evidence for ClassCounts<'_> {
    fn weigh<'r>(
        &mut self,
        group: usize,
        class_counts: &[u32],
        before: Terms<'r>,
        _: &'r mut Vec<f64>,
    ) -> (Terms<'r>, f64) {
        let open = &self.groups.open[group];
        let is_possible = |(class, _): &(usize, u32)| {
            let (sent, wanted) = (class_counts[*class], self.class_counts[*class]);
            if open[*class] { sent <= wanted } else { sent == wanted }
        };
        let terms = before.times(if self.groups.list[group].sent.iter().all(is_possible) { 1.0 } else { 0.0 });
        (terms, terms.likelihood())
    }

    fn is_beyond_help(&self, group: usize, class_counts: &[u32]) -> bool {
        let is_beyond = |(class, _): &(usize, u32)| class_counts[*class] >= self.class_counts[*class];
        self.groups.list[group].sent.iter().any(is_beyond)
    }
}

impl CommandClass {
    pub(crate) fn new<'a>(
        sum: i64,
        class_counts: Arc<[u32]>,
        of_numbers: Vec<f64>,
        mut members: Vec<Member>,
        recurring_commands: impl IntoIterator<Item = (&'a [(u32, u32)], f64)>,
        habits: Option<&LearnedHabits>,
    ) -> Self {
        let prior: f64 = of_numbers.iter().sum();
        let all: f64 = members.iter().map(|one| one.prior).sum();
        for one in &mut members {
            one.prior *= if all > 0.0 { prior / all } else { 0.0 };
        }
        let (broad, recurring, occurrences) = (0.0, 0.0, Vec::new());
        let mut class = Self { id: 0, sum, class_counts, prior, of_numbers, recurring, broad, members, occurrences };
        class.broad = habits.map_or(prior, |habits| class.weight(&habits.broad_shares, &habits.broad));
        let mut by_occurrence: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
        let mut count = |actions: &[(u32, u32)], prior: f64, recurring: f64| {
            for occurrence in actions {
                let [all_prior, all_recurring] = by_occurrence.entry(*occurrence).or_default();
                *all_prior += prior;
                *all_recurring += recurring;
            }
        };
        class.members.iter().for_each(|one| count(&one.actions, one.prior, 0.0));
        for (actions, share) in recurring_commands.into_iter().filter(|(_, share)| *share > 0.0) {
            class.recurring += share;
            count(actions, 0.0, share);
        }
        let occurrence = |((action, times), [prior, recurring]): ((u32, u32), [f64; 2])| Occurrence {
            action,
            times,
            prior,
            recurring,
        };
        class.occurrences = by_occurrence.into_iter().map(occurrence).collect();
        class
    }

    pub(crate) fn most_actions(&self) -> usize {
        self.of_numbers.iter().rposition(|prior| *prior > 0.0).map_or(0, |at| at + 1)
    }

    /// P(class) by habits that are factors on the learned ones, and make numbers of actions so many times as frequent. Where no
    /// member matters by itself, only their number is known.
    pub(crate) fn weight(&self, of_numbers: &[f64], habits: &HabitTable) -> f64 {
        if self.members.is_empty() {
            return self.of_numbers.iter().zip(of_numbers).map(|(prior, times)| prior * times).sum();
        }
        self.members.iter().map(|one| one.prior * habits.factor(&one.actions)).sum()
    }
}
