//! The best table where ε makes sizes of a command vary.

use std::iter;

use sizeleak_model::policies::PaddingPolicy;

use crate::padding::best_table::BestTable;
use crate::padding::bucket_table::{BucketTable, TableSearch};
use crate::padding::judged_policy::JudgedPolicy;
use crate::padding::padded_home::PaddedHome;
use crate::padding::table_goal::Goal;
use crate::padding::table_rules::TableRules;

/// How often the search is repeated.
const ROUNDS: usize = 12;

/// Why no table is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTable {
    /// None obeys the rules.
    Rules,
    /// None reaches the goal.
    Goal,
}

/// The best table for a goal. Where ε makes sizes vary, the search underestimates how often commands are named and
/// overestimates how many share a bucket, so it is repeated with stricter demands until what is asked for is met.
///
/// # Errors
/// [`NoTable`].
pub fn exact_table(
    home: &PaddedHome,
    search: &TableSearch<'_>,
    goal: Goal,
) -> Result<(BestTable, JudgedPolicy), NoTable> {
    let wanted = search.rules;
    let (mut rules, mut named_at_most) = (wanted, f64::INFINITY);
    if let Goal::Target(target) = goal {
        named_at_most = target;
    }
    for _ in 0..ROUNDS {
        let search = TableSearch { rules, ..*search };
        let hull = search.hull();
        let searched = match goal {
            Goal::Budget(bytes) => Goal::Budget(bytes),
            Goal::Target(_) => Goal::Target(named_at_most),
        };
        let Some(table) = search.best_policy(searched, &hull) else {
            let why = if hull.is_empty() { NoTable::Rules } else { NoTable::Goal };
            return cheapest_of(home, &search, &hull, |judged| Demands::met_by(judged, goal, wanted).all()).ok_or(why);
        };
        let judged = JudgedPolicy::new(home, &table.policy);
        let met = Demands::met_by(&judged, goal, wanted);
        if met.all() {
            return Ok((table, judged));
        }
        let command = &judged.by_size.command;
        if let Goal::Target(target) = goal
            && !met.goal
        {
            named_at_most = named_at_most * target / command.named * 0.999;
        }
        if !met.fewest_commands {
            rules.fewest_commands *= (wanted.fewest_commands / command.smallest_set.max(1.0)).max(1.05);
        }
        if !met.most_posterior {
            rules.most_posterior *= wanted.most_posterior / command.worst_posterior * 0.999;
        }
    }
    Err(NoTable::Rules)
}

/// The table with the fewest bytes that is what is asked for, looked for from all commands in one bucket towards fewer
/// bytes: where the target is so close to guessing that ε, or rounding alone, goes beyond it, the search demands too much.
fn cheapest_of(
    home: &PaddedHome,
    search: &TableSearch<'_>,
    hull: &[BucketTable],
    is_within: impl Fn(&JudgedPolicy) -> bool,
) -> Option<(BestTable, JudgedPolicy)> {
    let one_bucket = search.table(&[search.rows.len()]);
    let tables = iter::once(&one_bucket).chain(hull.iter().rev());
    let judged = tables.map(|table| {
        let policy = PaddingPolicy::Table { buckets: table.buckets.clone() };
        let judged = JudgedPolicy::new(home, &policy);
        (BestTable { policy, leakage: table.leakage, added_bytes: table.added_bytes }, judged)
    });
    judged.take_while(|(_, judged)| is_within(judged)).last()
}

/// Which demands a policy meets, but for rounding.
struct Demands {
    goal: bool,
    fewest_commands: bool,
    most_posterior: bool,
}

impl Demands {
    fn met_by(judged: &JudgedPolicy, goal: Goal, rules: TableRules) -> Self {
        let command = &judged.by_size.command;
        Self {
            goal: match goal {
                Goal::Budget(bytes) => judged.added_bytes <= bytes * (1.0 + 1e-9),
                Goal::Target(target) => command.named <= target * (1.0 + 1e-9),
            },
            fewest_commands: command.smallest_set >= rules.fewest_commands * (1.0 - 1e-9),
            most_posterior: command.worst_posterior <= rules.most_posterior * (1.0 + 1e-9),
        }
    }

    fn all(&self) -> bool {
        self.goal && self.fewest_commands && self.most_posterior
    }
}
