//! The linear programme of random padding, as the sums of what each command may send to the first sizes.
//!
//! A policy sends command A, of prior p and size s, to size t ≥ s with probability P(t|A). Its Bayes vulnerability is
//! the sum over t of m(t) = max over A of p·P(t|A). Once all m are given, each command fills them from its own size on:
//! it leaves max(0, p − (M(t) − M(before s))) for sizes beyond t, where M is the sum of m so far. So the programme is:
//! minimise M(last), plus the price of a byte times the sum over commands and sizes t ≥ s of what is left beyond t times
//! the bytes from t to the next size. That is a convex function of differences of the M. It is least where no set of the
//! M can be moved by one step, all up or all down, to improve it (Murota, "Discrete Convex Analysis", SIAM 2003, chapter
//! 10); the best set to move is a minimum cut, and long strides come first. Probabilities are rounded down to a grid of
//! steps, on which the programme then has a best solution: what is found is never above the true minimum.

use sizeleak_model::policies::PaddedSize;

use crate::padding::min_cut::{Network, Node};
use sizeleak_inference::space::CommandGroup;

/// Steps of the grid in the greatest probability.
const STEPS: f64 = (1_u64 << 24) as f64;

/// Which policies a floor holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloorOf {
    /// All: what a command is padded to may depend on the command.
    AnyPolicy,
    /// Those that know only the size of a command.
    SizePolicies,
}

/// The commands of a size: sums over those whose probability is above a number of steps.
#[derive(Debug, Clone)]
struct Demand {
    bytes: u64,
    /// By descending steps: the steps, and for this and all greater ones the number of commands and the sum of steps.
    levels: Vec<(i64, f64, f64)>,
}

impl Demand {
    /// The demand of commands of one size, by descending probability.
    fn new(groups: &[&CommandGroup], step: f64, floor_of: FloorOf) -> Self {
        let steps = |group: &CommandGroup| (group.probability / step).floor() as i64;
        let bytes = groups.first().map_or(0, |group| group.bytes);
        if let (FloorOf::SizePolicies, Some(first)) = (floor_of, groups.first().filter(|first| first.probability > 0.0))
        {
            // All are treated like the most probable one, and cost as much as several of it.
            let all: f64 = groups.iter().map(|group| group.commands * group.probability).sum();
            let alike = all / first.probability;
            return Self { bytes, levels: vec![(steps(first), alike, alike * steps(first) as f64)] };
        }
        let (mut commands, mut sum) = (0.0, 0.0);
        let level = |group: &&CommandGroup| {
            commands += group.commands;
            sum += group.commands * steps(group) as f64;
            (steps(group), commands, sum)
        };
        Self { bytes, levels: groups.iter().map(level).collect() }
    }

    /// The most steps of a command.
    fn greatest(&self) -> i64 {
        self.levels.first().map_or(0, |(steps, _, _)| *steps)
    }

    /// The sum over commands of the steps that are left if each can leave `taken`.
    fn left(&self, taken: i64) -> f64 {
        let above = self.levels.partition_point(|(steps, _, _)| *steps > taken);
        let last = above.checked_sub(1).and_then(|at| self.levels.get(at));
        last.map_or(0.0, |(_, commands, sum)| sum - commands * taken as f64)
    }
}

/// The programme for some commands. Its variables are the steps that a command may send to the first 0, 1, 2… sizes.
#[derive(Debug)]
pub(crate) struct Filling {
    /// By ascending size.
    demands: Vec<Demand>,
    /// Probability of a step.
    step: f64,
}

impl Filling {
    pub(crate) fn new(groups: &[CommandGroup], floor_of: FloorOf) -> Self {
        let greatest = groups.iter().map(|group| group.probability).fold(0.0, f64::max);
        let step = if greatest > 0.0 { greatest / STEPS } else { 1.0 };
        let mut sorted: Vec<&CommandGroup> = groups.iter().filter(|group| group.commands > 0.0).collect();
        sorted.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(b.probability.total_cmp(&a.probability)));
        let demands =
            sorted.chunk_by(|a, b| a.bytes == b.bytes).map(|of_size| Demand::new(of_size, step, floor_of)).collect();
        Self { demands, step }
    }

    /// Each size takes its own commands.
    pub(crate) fn unpadded(&self) -> Vec<i64> {
        let mut sum = 0;
        let own = self.demands.iter().map(|demand| {
            sum += demand.greatest();
            sum
        });
        std::iter::once(0).chain(own).collect()
    }

    /// All commands go to the last size.
    pub(crate) fn pooled(&self) -> Vec<i64> {
        let greatest = self.demands.iter().map(Demand::greatest).max().unwrap_or(0);
        let mut sums = vec![0; self.demands.len()];
        sums.push(greatest);
        sums
    }

    /// The bytes from each size to the next; for the last, none.
    fn gaps(&self) -> Vec<f64> {
        let next = self.demands.iter().skip(1).map(|demand| demand.bytes);
        self.demands.iter().zip(next).map(|(demand, next)| (next - demand.bytes) as f64).collect()
    }

    /// The steps of added bytes.
    fn bytes(&self, sums: &[i64], gaps: &[f64]) -> f64 {
        let mut bytes = 0.0;
        for (at, (demand, before)) in self.demands.iter().zip(sums).enumerate() {
            for (gap, sum) in gaps.iter().zip(sums.iter().skip(1)).skip(at) {
                if sum - before >= demand.greatest() {
                    break;
                }
                bytes += gap * demand.left(sum - before);
            }
        }
        bytes
    }

    /// The Bayes vulnerability with these sums.
    pub(crate) fn vulnerability(&self, sums: &[i64]) -> f64 {
        sums.last().copied().unwrap_or(0) as f64 * self.step
    }

    /// The expected bytes added to a command with these sums.
    pub(crate) fn added_bytes(&self, sums: &[i64]) -> f64 {
        self.bytes(sums, &self.gaps()) * self.step
    }

    /// Of the commands of each size the size in bytes, and of the most probable one the share that each size from its
    /// own on takes.
    pub(crate) fn shares(&self, sums: &[i64]) -> Vec<(u64, Vec<PaddedSize>)> {
        let of_demand = |(at, demand): (usize, &Demand)| {
            let greatest = demand.greatest();
            let before = sums.get(at).copied().unwrap_or(0);
            let taken = |to: usize| sums.get(to).map_or(greatest, |sum| (sum - before).min(greatest));
            let to_size = |(to, size): (usize, &Demand)| PaddedSize {
                bytes: size.bytes,
                probability: (taken(to + 1) - taken(to)) as f64 / greatest as f64,
            };
            let mut padded: Vec<PaddedSize> = self.demands.iter().enumerate().skip(at).map(to_size).collect();
            padded.retain(|padded| padded.probability > 0.0);
            if padded.is_empty() {
                // The probability is less than a step.
                padded.push(PaddedSize { bytes: demand.bytes, probability: 1.0 });
            }
            (demand.bytes, padded)
        };
        self.demands.iter().enumerate().map(of_demand).collect()
    }

    /// The best sums for a price of bytes in vulnerability, found from some sums.
    pub(crate) fn best(&self, price: f64, from: Vec<i64>) -> Vec<i64> {
        let gaps = self.gaps();
        let value = |sums: &[i64]| sums.last().copied().unwrap_or(0) as f64 + price * self.bytes(sums, &gaps);
        let mut sums = from;
        let mut least = value(&sums);
        let mut stride = 1_i64 << sums.last().and_then(|sum| sum.checked_ilog2()).unwrap_or(0);
        while stride > 0 {
            let mut is_moving = true;
            while is_moving {
                is_moving = false;
                for stride in [stride, -stride] {
                    let moved = self.moved(&sums, stride, price, &gaps);
                    let of_moved = value(&moved);
                    if of_moved < least - least.abs() * 1e-13 {
                        (sums, least, is_moving) = (moved, of_moved, true);
                    }
                }
            }
            stride /= 2;
        }
        sums
    }

    /// The sums of which the best set is moved by a stride; it may be negative.
    fn moved(&self, sums: &[i64], stride: i64, price: f64, gaps: &[f64]) -> Vec<i64> {
        let last = sums.len().saturating_sub(1);
        // Moving a set down is moving all others up; the first sum stays.
        let (size, first) = if stride > 0 { (stride, Node::Sink) } else { (-stride, Node::Source) };
        let node = |at: usize| if at == 0 { first } else { Node::Inner(at - 1) };
        let mut network = Network::new(last);
        let mut gains = vec![0.0; sums.len()];
        let mut gain = |at: usize, cost: f64| {
            if let Some(gain) = gains.get_mut(at) {
                *gain += cost;
            }
        };
        gain(last, size as f64);
        for (at, (demand, before)) in self.demands.iter().zip(sums).enumerate() {
            for ((to, sum), gap) in sums.iter().enumerate().skip(at + 1).zip(gaps.iter().skip(at)) {
                let taken = sum - before;
                if taken >= demand.greatest() + size {
                    break;
                }
                let left = demand.left(taken);
                let less = price * gap * (demand.left(taken + size) - left);
                let more = price * gap * (demand.left(taken - size) - left);
                gain(to, less);
                gain(at, -less);
                network.add(node(at), node(to), less + more);
            }
            let sum = |at: usize| sums.get(at).copied().unwrap_or(0);
            if sum(at + 1) - before < size {
                network.add(node(at), node(at + 1), f64::INFINITY);
            }
            if sum(last) - before < demand.greatest() + size {
                network.add(node(at), node(last), f64::INFINITY);
            }
        }
        for (at, gain) in gains.into_iter().enumerate().skip(1) {
            network.add(node(at), Node::Sink, gain);
            network.add(Node::Source, node(at), -gain);
        }
        let is_up = network.source_side();
        let step = |is_up: bool| match (stride > 0, is_up) {
            (true, true) => size,
            (false, false) => -size,
            _ => 0,
        };
        let moved = sums.iter().skip(1).zip(is_up).map(|(sum, is_up)| sum + step(is_up));
        std::iter::once(0).chain(moved).collect()
    }
}
