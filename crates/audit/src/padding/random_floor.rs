//! The floor of all padding policies, random ones included: no policy that adds as few bytes leaks less.
//!
//! It is the linear programme: minimise the sum over t of max over A of π(A)·P(t|A), where rows of P sum to 1, t is no
//! smaller than the size of A, and the expected bytes added are at most a budget. Padding has no other limit. Only sizes
//! that commands have are needed as t: what goes to another size can go to the next smaller size that some command has,
//! which is no smaller than any command that is sent there, costs less, and adds at most as much vulnerability there as
//! it had. Commands of equal prior and size need not be told apart: the average of their rows is as good, since the
//! greatest of a sum is at most the sum of the greatest. Commands of one size and different priors may be treated
//! differently by a policy that knows commands.
//!
//! For each price of a byte, the least of vulnerability + price · bytes bounds all policies by a line (Lagrange). The
//! floor is the greatest of some lines, so it is a floor at every budget, and between the lines' corners slightly lower
//! than the programme's minimum.

use std::collections::BTreeSet;

use sizeleak_model::policies::{Draw, PaddedSize, PaddingPolicy, RandomRow};

use crate::padding::bucket_table::Goal;
use crate::padding::filling::{Filling, FloorOf};
use crate::padding::padded_home::{JudgedPolicy, PaddedHome};
use sizeleak_inference::space::CommandGroup;

/// Lines of a floor, at most: the gap between a convex curve and its chords falls with the square of their number.
const MAX_LINES: usize = 64;

/// The smallest Bayes vulnerability of any padding policy, for each number of bytes that it adds.
#[derive(Debug)]
pub struct PaddingFloor {
    filling: Filling,
    /// Best policies by ascending bytes.
    corners: Vec<Corner>,
    lines: Vec<Line>,
    /// The vulnerability with all commands of one size.
    guess: f64,
}

/// A best policy.
#[derive(Debug, Clone)]
struct Corner {
    added_bytes: f64,
    vulnerability: f64,
    sums: Vec<i64>,
}

/// No policy is below vulnerability = value − price · bytes.
#[derive(Debug, Clone, Copy)]
struct Line {
    value: f64,
    price: f64,
}

impl PaddingFloor {
    /// A coarse floor of commands: [`Self::refine`] and [`Self::refine_at`] bring it closer to the programme's minimum.
    pub fn new(groups: &[CommandGroup], floor_of: FloorOf) -> Self {
        let filling = Filling::new(groups, floor_of);
        let guess = groups.iter().map(|group| group.probability).fold(0.0, f64::max);
        let mut floor = Self { filling, corners: Vec::new(), lines: Vec::new(), guess };
        let unpadded = floor.filling.unpadded();
        let greatest = groups.iter().map(|group| group.bytes).max().unwrap_or(0) as f64;
        // At this price all bytes together are worth less than any vulnerability that counts.
        let almost_free = guess * 1e-9 / greatest.max(1.0);
        let tight = floor.solve(almost_free, floor.filling.pooled());
        floor.corners = vec![floor.corner(unpadded), tight];
        floor
    }

    /// Brings the floor to within `tolerance` below the programme's minimum at every budget (less, if that takes more
    /// than 64 lines).
    pub fn refine(&mut self, tolerance: f64) {
        while self.refine_once(tolerance) {}
    }

    /// One line of [`Self::refine`]; whether there was one to add.
    pub fn refine_once(&mut self, tolerance: f64) -> bool {
        let gaps = self.corners.windows(2).enumerate().map(|(at, pair)| (at, self.gap(pair)));
        match gaps.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, gap)) if gap > tolerance && self.lines.len() < MAX_LINES => {
                self.split(at);
                true
            }
            _ => false,
        }
    }

    /// Brings the floor to within `tolerance` of the programme's minimum at one budget; or the bytes with which a target is
    /// reached to within this share of the most that best policies add.
    pub fn refine_at(&mut self, goal: Goal, tolerance: f64) {
        while self.refine_once_at(goal, tolerance) {}
    }

    /// One line of [`Self::refine_at`]; whether there was one to add.
    pub fn refine_once_at(&mut self, goal: Goal, tolerance: f64) -> bool {
        let is_beyond = |corner: &Corner| match goal {
            Goal::Budget(bytes) => corner.added_bytes > bytes,
            Goal::Target(vulnerability) => corner.vulnerability <= vulnerability,
        };
        let Some(at) = self.corners.iter().position(is_beyond).and_then(|at| at.checked_sub(1)) else { return false };
        let (Some(left), Some(right)) = (self.corners.get(at), self.corners.get(at + 1)) else { return false };
        let slope = (left.vulnerability - right.vulnerability) / (right.added_bytes - left.added_bytes);
        let gap = match goal {
            Goal::Budget(bytes) => left.vulnerability - slope * (bytes - left.added_bytes) - self.vulnerability(bytes),
            Goal::Target(target) => {
                let bytes = left.added_bytes + (left.vulnerability - target) / slope;
                (bytes - self.added_bytes(target).unwrap_or(bytes)) / self.most_added_bytes().max(f64::MIN_POSITIVE)
            }
        };
        let is_refined = gap > tolerance && self.lines.len() < MAX_LINES;
        if is_refined {
            self.split(at);
        }
        is_refined
    }

    /// The smallest vulnerability of policies that add at most so many expected bytes to a command.
    pub fn vulnerability(&self, added_bytes: f64) -> f64 {
        self.lines.iter().map(|line| line.value - line.price * added_bytes).fold(self.guess, f64::max)
    }

    /// The fewest expected bytes added to a command with which any policy reaches a vulnerability; `None` if none does.
    pub fn added_bytes(&self, vulnerability: f64) -> Option<f64> {
        let bytes = self.lines.iter().map(|line| (line.value - vulnerability) / line.price).fold(0.0, f64::max);
        (vulnerability >= self.guess).then_some(bytes)
    }

    /// The most expected bytes that best policies add: more bring the vulnerability no lower.
    pub fn most_added_bytes(&self) -> f64 {
        self.corners.last().map_or(0.0, |corner| corner.added_bytes)
    }

    /// The best random policy that adds at most so many expected bytes to a command. It is for commands whose size alone
    /// is known: each is treated like the most probable one of its size, whose vulnerability it does not exceed.
    pub fn policy(&self, added_bytes: f64, draw: Draw) -> PaddingPolicy {
        let above = self.corners.partition_point(|corner| corner.added_bytes <= added_bytes);
        let left = above.checked_sub(1).and_then(|at| self.corners.get(at)).or(self.corners.first());
        let Some(left) = left else { return PaddingPolicy::None };
        let right = self.corners.get(above).filter(|right| right.added_bytes > left.added_bytes).unwrap_or(left);
        let between = right.added_bytes - left.added_bytes;
        let share = if between > 0.0 { ((added_bytes - left.added_bytes) / between).clamp(0.0, 1.0) } else { 0.0 };
        let rows = self.filling.shares(&left.sums).into_iter().zip(self.filling.shares(&right.sums));
        let rows = rows.map(|((size, left), (_, right))| RandomRow { size, padded: mixed(&left, &right, share) });
        PaddingPolicy::RandomTable { rows: rows.collect(), draw }
    }

    /// Looks for a corner between this one and the next.
    fn split(&mut self, at: usize) {
        let (Some(left), Some(right)) = (self.corners.get(at), self.corners.get(at + 1)) else { return };
        let price = (left.vulnerability - right.vulnerability) / (right.added_bytes - left.added_bytes);
        let (least, most, sums) = (left.added_bytes, right.added_bytes, right.sums.clone());
        let found = self.solve(price, sums);
        // Otherwise both ends are on the new line.
        if found.added_bytes > least && found.added_bytes < most {
            self.corners.insert(at + 1, found);
        }
    }

    /// How far the floor may be below the chord of two neighbouring corners.
    fn gap(&self, pair: &[Corner]) -> f64 {
        let [left, right] = pair else { return 0.0 };
        let between = right.added_bytes - left.added_bytes;
        if between <= 0.0 {
            return 0.0;
        }
        let slope = (left.vulnerability - right.vulnerability) / between;
        // The floor is convex, the chord straight: they are the furthest apart at an end or where two lines meet.
        let meeting = self.lines.iter().flat_map(|a| {
            self.lines.iter().filter(|b| b.price < a.price).map(|b| (a.value - b.value) / (a.price - b.price))
        });
        let inside = meeting.filter(|bytes| *bytes > left.added_bytes && *bytes < right.added_bytes);
        let gap = |bytes: f64| left.vulnerability - slope * (bytes - left.added_bytes) - self.vulnerability(bytes);
        // No line of the unpadded commands is needed: nothing is between them and the next corner's line but a chord.
        inside.chain([left.added_bytes, right.added_bytes]).map(gap).fold(0.0, f64::max)
    }

    /// Finds the best policy at a price, and the line below all others.
    fn solve(&mut self, price: f64, from: Vec<i64>) -> Corner {
        let corner = self.corner(self.filling.best(price, from));
        self.lines.push(Line { value: corner.vulnerability + price * corner.added_bytes, price });
        corner
    }

    fn corner(&self, sums: Vec<i64>) -> Corner {
        let (added_bytes, vulnerability) = (self.filling.added_bytes(&sums), self.filling.vulnerability(&sums));
        Corner { added_bytes, vulnerability, sums }
    }
}

/// One distribution, or with a probability of `share` the other.
fn mixed(one: &[PaddedSize], other: &[PaddedSize], share: f64) -> Vec<PaddedSize> {
    let weighed = |padded: &PaddedSize, weight: f64| PaddedSize { probability: padded.probability * weight, ..*padded };
    let mut both: Vec<PaddedSize> = one.iter().map(|padded| weighed(padded, 1.0 - share)).collect();
    both.extend(other.iter().map(|padded| weighed(padded, share)));
    both.sort_by_key(|padded| padded.bytes);
    both.dedup_by(|next, kept| {
        let is_same = next.bytes == kept.bytes;
        kept.probability += if is_same { next.probability } else { 0.0 };
        is_same
    });
    both.retain(|padded| padded.probability > 0.0);
    both
}

/// How far the policy may be from the best, in probability.
const TOLERANCE: f64 = 0.0005;

/// How often budgets are halved for a target.
const ROUNDS: usize = 12;

/// Sizes of which random tables are searched for, at most: time grows with the fourth power, and the floor of 830 sizes,
/// of which a target needs a dozen budgets, takes 40 s.
const MAX_SIZES: usize = 600;

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
        (sizes.len() <= MAX_SIZES).then(search)
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
