//! Which named action is which: labelled commands say.

use std::collections::{BTreeMap, BTreeSet};

use super::Observation;
use super::rows::ReplyClasses;
use super::search::Candidate;
use super::sparsity::Atom;

/// The most different labelled commands that are looked at, those of few actions first; a bound of the time.
const MAX_LABELS: usize = 400;
/// The largest size of a named action in bytes.
const MAX_NAMED_BYTES: i64 = 100_000;
/// What a reply too many or too few costs, in nats: one in fifty is lost or belongs to something else.
const WRONG_REPLY: f64 = 4.0;
/// What a size that unlabelled commands do not show must explain better, in nats: it is one of about four hundred.
const OWN_SIZE: f64 = 6.0;
/// Names are certain where every other assignment is less likely by this, in nats: a hundred times.
const CERTAIN: f64 = 4.6;
/// What it costs that an action shares its size and reply with another, in nats: by chance one in 150 does.
const SHARED: f64 = 5.0;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    actions: u64,
    /// Names and how often they occur.
    counts: Vec<(usize, u32)>,
    size: i64,
    replies: Option<Vec<u8>>,
}

/// The labelled commands, with the number of equal ones.
pub(super) fn labels(observations: &[Observation], classes: &ReplyClasses) -> Vec<(Label, usize)> {
    let mut found: BTreeMap<Label, usize> = BTreeMap::new();
    for observation in observations.iter().filter(|observation| (1..=1 << 20).contains(&observation.size)) {
        let Some(counts) = &observation.counts else { continue };
        let counts: Vec<(usize, u32)> = counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
        let actions = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        if !(1..=64).contains(&actions) {
            continue;
        }
        let replies = observation.replies.as_ref().filter(|_| !classes.sizes.is_empty());
        let replies = replies.and_then(|replies| classes.counts(replies)).map(|(counts, _)| counts);
        *found.entry(Label { actions, counts, size: observation.size, replies }).or_default() += 1;
    }
    found.into_iter().take(MAX_LABELS).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedSize {
    pub(super) size: i64,
    pub(super) class: usize,
}

/// What labels say in the light of a candidate.
pub(super) struct Naming {
    /// The sizes of the names that labels determine.
    pub(super) names: BTreeMap<usize, NamedSize>,
    /// In nats.
    pub(super) log_likelihood: f64,
    /// Other assignments that the labels hardly distinguish from this, each of two names exchanged.
    pub(super) exchanges: Vec<Exchange>,
}

/// Two names that may be the other way round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exchange {
    pub(super) names: [usize; 2],
    /// By how much that is less likely, in nats.
    pub(super) difference: f64,
}

struct Evidence<'a> {
    labels: &'a [(Label, usize)],
    candidate: &'a Candidate,
    density: f64,
    /// The class of actions without a reply.
    silent: usize,
}

/// Matches names with the actions of a candidate, or with sizes of their own where labels ask for it.
pub(super) fn name(labels: &[(Label, usize)], candidate: &Candidate, atoms: &[Atom], density: f64) -> Naming {
    let silent = candidate.parameters.sizes.len().saturating_sub(1);
    let evidence = Evidence { labels, candidate, density, silent };
    let mut names = BTreeMap::new();
    let all: BTreeSet<usize> =
        labels.iter().flat_map(|(label, _)| label.counts.iter().map(|(name, _)| *name)).collect();
    for _ in 0..4 {
        let before = names.clone();
        for name in &all {
            if let Some(best) = evidence.best(*name, &names, atoms) {
                names.insert(*name, best);
            }
        }
        if names == before {
            break;
        }
    }
    evidence.exchange(&mut names);
    let log_likelihood = evidence.of_all(&names);
    let exchanges = evidence.exchanges(&names, log_likelihood);
    Naming { names, log_likelihood, exchanges }
}

fn exchanged(names: &BTreeMap<usize, NamedSize>, [one, other]: [usize; 2]) -> BTreeMap<usize, NamedSize> {
    let mut exchanged = names.clone();
    exchanged.extend([(one, names[&other]), (other, names[&one])]);
    exchanged
}

impl Evidence<'_> {
    /// The log-likelihood of all labels whose names have sizes.
    fn of_all(&self, names: &BTreeMap<usize, NamedSize>) -> f64 {
        self.labels.iter().filter_map(|(label, n)| Some(*n as f64 * self.of(label, names)?)).sum()
    }

    /// Exchanges names while that makes the labels more likely: each was matched by itself.
    fn exchange(&self, names: &mut BTreeMap<usize, NamedSize>) {
        for _ in 0..names.len() {
            let now = self.of_all(names);
            let all = self.exchanges(names, now);
            let best = all.iter().min_by(|a, b| a.difference.total_cmp(&b.difference));
            let Some(better) = best.filter(|best| best.difference < 0.0) else { break };
            *names = exchanged(names, better.names);
        }
    }

    /// The exchanges of two names that are not much less likely than what the names are now.
    fn exchanges(&self, names: &BTreeMap<usize, NamedSize>, log_likelihood: f64) -> Vec<Exchange> {
        let mut found = Vec::new();
        for (one, size) in names {
            for (other, _) in names.iter().filter(|(other, its_size)| *other > one && *its_size != size) {
                let names_exchanged = exchanged(names, [*one, *other]);
                let difference = log_likelihood - self.of_all(&names_exchanged);
                if difference < CERTAIN {
                    found.push(Exchange { names: [*one, *other], difference });
                }
            }
        }
        found
    }

    /// The best size of a name, given those of the others.
    fn best(&self, name: usize, names: &BTreeMap<usize, NamedSize>, atoms: &[Atom]) -> Option<NamedSize> {
        let mut names = names.clone();
        names.remove(&name);
        let count_in = |label: &Label| label.counts.iter().find(|(other, _)| *other == name).map(|(_, count)| *count);
        let mine = self.labels.iter().filter_map(|(label, n)| Some((label, *n, count_in(label)?)));
        let is_known = |other: usize| other == name || names.contains_key(&other);
        let mine = mine.filter(|(label, _, _)| label.counts.iter().all(|(other, _)| is_known(*other)));
        let mine: Vec<(&Label, usize, u32)> = mine.take(60).collect();
        let mut options: BTreeMap<NamedSize, f64> = BTreeMap::new();
        for (label, _, count) in mine.iter().take(12) {
            let others: i64 =
                label.counts.iter().filter_map(|(other, n)| Some(names.get(other)?.size * i64::from(*n))).sum();
            let size = (self.target(label) - others) / i64::from(*count);
            for class in 0..=self.silent {
                let occurs = label.replies.as_ref().and_then(|replies| replies.get(class)).is_some_and(|n| *n > 0);
                if (1..=MAX_NAMED_BYTES).contains(&size) && (occurs || class == self.silent) {
                    options.insert(NamedSize { size, class }, -OWN_SIZE);
                }
            }
        }
        options.extend(atoms.iter().map(|atom| (NamedSize { size: atom.size, class: atom.class }, 0.0)));
        let score = |option: &NamedSize, prior: f64| {
            let mut with = names.clone();
            with.insert(name, *option);
            let shared = if names.values().any(|other| other == option) { SHARED } else { 0.0 };
            prior - shared
                + mine.iter().filter_map(|(label, n, _)| Some(*n as f64 * self.of(label, &with)?)).sum::<f64>()
        };
        if mine.is_empty() {
            return None;
        }
        let rated = options.iter().map(|(option, prior)| (score(option, *prior), *option));
        rated.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1))).map(|(_, option)| option)
    }

    fn target(&self, label: &Label) -> i64 {
        label.size - self.candidate.form.grown(label.size) - self.candidate.overhead
    }

    /// The log-likelihood of a labelled command; `None` if one of its names has no size yet.
    fn of(&self, label: &Label, names: &BTreeMap<usize, NamedSize>) -> Option<f64> {
        let mut rest = self.target(label);
        let mut replies = vec![0_i64; self.silent];
        for (name, count) in &label.counts {
            let has = names.get(name)?;
            rest -= has.size * i64::from(*count);
            if let Some(expected) = replies.get_mut(has.class) {
                *expected += i64::from(*count);
            }
        }
        let parameters = &self.candidate.parameters;
        let outliers = parameters.outliers.max(0.01);
        let size = ((1.0 - outliers) * parameters.epsilon.at(rest) + outliers * self.density).ln();
        let wrong: i64 = label.replies.as_ref().map_or(0, |seen| {
            seen.iter().zip(&replies).map(|(seen, expected)| (i64::from(*seen) - expected).abs()).sum()
        });
        Some(size - WRONG_REPLY * wrong.min(5) as f64)
    }
}
