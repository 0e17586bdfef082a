//! Models of few labelled commands answer widely: the candidates that hold 99.9 % hold the truth as often as they say,
//! or more.

use sizeleak_learning::fit::{learn_prior, learn_reply_bytes, learn_reply_counts, learn_single_replies};
use sizeleak_model::{
    Action, EpsilonDistribution, EpsilonTuple, LabelledCommand, Limits, Neighbours, Prior, ReplyBytesModel,
    ReplyCountModel, SeenReplies, SingleReplies, Smoothing,
};

const ACTIONS: [&str; 3] = ["on", "off", "dim"];
const SIZES: [i64; 3] = [28, 29, 36];
const SHARES: [f64; 3] = [0.4, 0.4, 0.2];
const MOST: u32 = 8;

/// The share of commands that have as many actions as the one before it in this list, and one more.
const DECAY: f64 = 0.6;

/// What the pruner keeps.
const KEEP: f64 = 0.999;

struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }

    fn action(&mut self) -> usize {
        let at = self.next();
        if at < SHARES[0] { 0 } else { 1 + usize::from(at >= SHARES[0] + SHARES[1]) }
    }

    fn counts(&mut self) -> Vec<u32> {
        let mut counts = vec![0; 3];
        loop {
            counts[self.action()] += 1;
            if self.next() >= DECAY || counts.iter().sum::<u32>() == MOST {
                return counts;
            }
        }
    }

    /// ε is the digits of a number: one in ten has one digit less, one in a hundred two.
    fn epsilon(&mut self) -> i64 {
        let at = self.next();
        -(i64::from(at < 0.1) + i64::from(at < 0.01) + i64::from(at < 0.001))
    }

    /// A reply to each action: `dim` has one of varying size. Some are lost, some share a record, and another record may
    /// be among them.
    fn replies(&mut self, counts: &[u32]) -> Vec<i64> {
        let mut sent = Vec::new();
        for (action, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                let size = if action == 2 { 33 + self.below(4).cast_signed() as i64 } else { 25 };
                sent.extend((self.next() >= 0.01).then_some(size));
            }
        }
        for at in (1..sent.len()).rev() {
            let other = self.below(at + 1);
            sent.swap(at, other);
        }
        let mut records: Vec<i64> = Vec::new();
        for size in sent {
            match records.last_mut() {
                Some(last) if self.next() < 0.02 => *last += size,
                _ => records.push(size),
            }
        }
        if self.next() < 0.04 {
            let at = self.below(records.len() + 1);
            records.insert(at, 26);
        }
        records
    }

    fn command(&mut self, counts: Vec<u32>) -> (EpsilonTuple, LabelledCommand) {
        let epsilon = self.epsilon();
        let size = SIZES.iter().zip(&counts).map(|(size, count)| size * i64::from(*count)).sum::<i64>() + epsilon;
        let replies = self.replies(&counts);
        let command = LabelledCommand {
            sizes: [size; 2],
            counts,
            replies: replies.len() as u32,
            reply_bytes: replies.iter().sum(),
            single_replies: Some(replies),
            has_own_replies: true,
        };
        (EpsilonTuple::new(size, epsilon), command)
    }
}

/// What is learned from commands.
struct Learned {
    epsilon: EpsilonDistribution,
    /// P(A) of each multiset.
    prior: Vec<(Vec<u32>, f64)>,
    single_replies: Option<SingleReplies>,
    reply_bytes: Option<ReplyBytesModel>,
    replies: ReplyCountModel,
}

impl Learned {
    fn of(commands: &[(EpsilonTuple, LabelledCommand)]) -> Self {
        let actions: Vec<Action> = ACTIONS.iter().zip(SIZES).map(|(name, size)| Action::new(*name, size)).collect();
        let neighbours = Neighbours::new(commands.iter().map(|(tuple, _)| *tuple)).unwrap();
        let commands: Vec<LabelledCommand> = commands.iter().map(|(_, command)| command.clone()).collect();
        let single_replies = learn_single_replies(&commands, 3);
        let reply_bytes = learn_reply_bytes(&commands, 3).filter(|_| single_replies.is_none());
        // Experiments alone say nothing of usage.
        let prior = learn_prior(&commands, &actions, None, &Limits::free(3)).unwrap_or_else(|| Prior {
            numbers: vec![1.0 / f64::from(MOST); MOST as usize],
            decay: 0.5,
            shares: vec![1.0 / 3.0; 3],
            concentration: 1.0,
            recurring: Vec::new(),
        });
        Self {
            epsilon: EpsilonDistribution::new(&neighbours, Smoothing::choose(&neighbours)),
            prior: probabilities(&prior),
            replies: learn_reply_counts(&commands),
            single_replies,
            reply_bytes,
        }
    }

    /// Whether the pruner keeps the truth; `None` if it is no candidate.
    fn keeps_truth(&self, (tuple, command): &(EpsilonTuple, LabelledCommand)) -> Option<bool> {
        let records: Vec<[i64; 2]> = command.single_replies.iter().flatten().map(|size| [*size; 2]).collect();
        let seen = self.single_replies.as_ref().map(|model| SeenReplies::new(model, &records));
        let estimate = self.epsilon.estimate(tuple.size);
        let weighed = self.prior.iter().map(|(counts, probability)| {
            let sum: i64 = SIZES.iter().zip(counts).map(|(size, count)| size * i64::from(*count)).sum();
            let epsilon = estimate.iter().find(|value| value.epsilon == tuple.size - sum);
            let of_size = epsilon.map_or(0.0, |value| value.weight);
            (counts, of_size * probability)
        });
        let candidates = weighed.filter(|(_, weight)| *weight > 0.0).map(|(counts, weight)| {
            let of_replies = if let (Some(seen), Some(model)) = (&seen, &self.single_replies) {
                seen.ln_likelihood(&model.class_counts(counts.iter().copied().enumerate())).exp()
            } else {
                let of_bytes = self.reply_bytes.as_ref().map_or(1.0, |bytes| {
                    bytes.likelihood(command.reply_bytes, command.replies, counts.iter().copied())
                });
                of_bytes * self.replies.likelihood(command.replies, counts.iter().sum())
            };
            (counts, weight * of_replies)
        });
        let mut candidates: Vec<(&Vec<u32>, f64)> = candidates.collect();
        candidates.sort_by(|one, other| other.1.total_cmp(&one.1));
        let at = candidates.iter().position(|(counts, _)| **counts == command.counts)?;
        let all: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let before: f64 = candidates.iter().take(at).map(|(_, weight)| weight).sum();
        Some(before < KEEP * all)
    }
}

/// P(A) of all multisets of up to the most actions.
fn probabilities(prior: &Prior) -> Vec<(Vec<u32>, f64)> {
    let mut all = Vec::new();
    for total in 1..=MOST {
        let of_total = (0..=total).flat_map(|on| (0..=total - on).map(move |off| vec![on, off, total - on - off]));
        let weight = |counts: &Vec<u32>| -> f64 {
            let of_action =
                |(action, count): (usize, &u32)| -> f64 { (1..=*count).map(|nth| prior.ln_next(action, nth)).sum() };
            counts.iter().enumerate().map(of_action).sum::<f64>().exp()
        };
        let weighed: Vec<(Vec<u32>, f64)> =
            of_total.map(|counts| (weight(&counts), counts)).map(|(w, c)| (c, w)).collect();
        let sum: f64 = weighed.iter().map(|(_, weight)| weight).sum();
        all.extend(weighed.into_iter().map(|(counts, weight)| (counts, prior.ln_number(total).exp() * weight / sum)));
    }
    all
}

/// The share of truths that are lost among the candidates of 4,000 commands, over 20 models of so many labels, of which
/// the first are the paper's experiments.
fn lost(labels: usize, experiments: usize) -> f64 {
    let (mut listed, mut lost) = (0.0, 0.0);
    for seed in 0..20 {
        let mut draws = Draws(seed * 7_919 + labels as u64);
        let commands: Vec<_> = (0..labels)
            .map(|at| {
                let counts = if at < experiments {
                    (0..3).map(|action| if action == at / 2 % 3 { 1 + at as u32 % 2 } else { 0 }).collect()
                } else {
                    draws.counts()
                };
                draws.command(counts)
            })
            .collect();
        let learned = Learned::of(&commands);
        for _ in 0..200 {
            let counts = draws.counts();
            if let Some(is_kept) = learned.keeps_truth(&draws.command(counts)) {
                listed += 1.0;
                lost += f64::from(u8::from(!is_kept));
            }
        }
    }
    assert!(listed > 3_900.0, "{labels} labels: the truth is a candidate of {listed} commands");
    lost / listed
}

/// Three standard deviations of a share of 0.001 of 4,000.
const SAMPLING: f64 = 0.0015;

#[test]
fn the_truth_is_kept_as_often_as_promised_from_few_labels_on() {
    for (labels, experiments) in [(20, 0), (20, 18), (40, 0), (40, 18), (80, 0), (80, 18)] {
        let lost = lost(labels, experiments);
        assert!(lost <= 1.0 - KEEP + SAMPLING, "{labels} labels, {experiments} of them experiments: {lost} are lost");
    }
}
