//! The best random table.

use std::collections::BTreeSet;

use sizeleak_model::policies::{Draw, PaddingPolicy};

use crate::padding::filling::FloorOf;
use crate::padding::judged_policy::JudgedPolicy;
use crate::padding::padded_home::PaddedHome;
use crate::padding::random_floor::PaddingFloor;
use crate::padding::table_goal::Goal;

/// How far the policy may be from the best, in probability.
const TOLERANCE: f64 = 0.0005;

/// How often budgets are halved for a target.
const ROUNDS: usize = 12;

/// Sizes of which random tables are searched for, at most.
const MOST_SIZES: usize = 600;

/// Bytes to multiples of which sizes are rounded up before the search.
const UNITS: [u64; 6] = [1, 4, 8, 16, 32, 64];

/// The best random table for a goal. The search takes each size that a command is seen with for a command of its own, which
/// underestimates how often the command is named. So sizes are rounded up, too, which leaves a command fewer of them; the
/// table that is exactly the best is taken.
///
/// `None` if none is found that reaches the goal.
pub fn best_random_table(home: &PaddedHome, goal: Goal, draw: Draw) -> Option<(PaddingPolicy, JudgedPolicy)> {
    let found = UNITS.into_iter().filter_map(|unit| CoarseSearch::new(home, unit, draw)?.found(goal));
    let value = |judged: &JudgedPolicy| match goal {
        Goal::Budget(_) => judged.by_size.command.named,
        Goal::Target(_) => judged.added_bytes,
    };
    found.min_by(|(_, one), (_, other)| value(one).total_cmp(&value(other)))
}

/// The search for random tables of sizes that are rounded up.
struct CoarseSearch<'a> {
    home: &'a PaddedHome,
    floor: PaddingFloor,
    /// The expected bytes by which sizes are rounded up.
    rounding: f64,
    draw: Draw,
}

impl<'a> CoarseSearch<'a> {
    /// `None` if there are so many sizes that it takes minutes.
    fn new(home: &'a PaddedHome, unit: u64, draw: Draw) -> Option<Self> {
        let (groups, rounding) = home.coarse(unit);
        let sizes: BTreeSet<u64> = groups.iter().map(|group| group.bytes).collect();
        let search = || Self { home, floor: PaddingFloor::new(&groups, FloorOf::SizePolicies), rounding, draw };
        (sizes.len() <= MOST_SIZES).then(search)
    }

    /// The best table for a goal.
    fn found(&mut self, goal: Goal) -> Option<(PaddingPolicy, JudgedPolicy)> {
        let target = match goal {
            Goal::Budget(bytes) => return (bytes >= self.rounding).then(|| self.within(bytes - self.rounding)),
            Goal::Target(target) => target,
        };
        let (mut too_few, mut enough) = (0.0, self.floor.most_added_bytes());
        let mut found = Some(self.within(enough)).filter(|(_, judged)| is_met(target, judged));
        for _ in 0..ROUNDS {
            found.as_ref()?;
            let bytes = f64::midpoint(too_few, enough);
            let within = self.within(bytes);
            if is_met(target, &within.1) {
                (found, enough) = (Some(within), bytes);
            } else {
                too_few = bytes;
            }
        }
        found
    }

    /// The best table that adds so many expected bytes to sizes that are rounded up.
    fn within(&mut self, bytes: f64) -> (PaddingPolicy, JudgedPolicy) {
        self.floor.refine_at(Goal::Budget(bytes), TOLERANCE);
        let policy = self.floor.policy(bytes, self.draw);
        let judged = JudgedPolicy::new(self.home, &policy);
        (policy, judged)
    }
}

fn is_met(target: f64, judged: &JudgedPolicy) -> bool {
    judged.by_size.command.named <= target * (1.0 + 1e-9)
}
