//! The likelihood of the replies to one command, given how many replies of each class it should have.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::SingleReplies;
use super::interpretation::{Interpretation, RecordReadings, interpretations, ln_bound, ln_factorial};
use super::ways::{ClassShares, TypeShare, Ways};
use crate::statistics::ln_sum;

/// By how much (in nats) an interpretation may be less likely than the best one, before it is left out.
const FAR_LESS_LIKELY: f64 = 30.0;

/// Shares that sum to 1 may differ from it by as much.
const ROUNDING: f64 = 1e-9;

/// The replies to one command, ready to be compared with many candidates.
#[derive(Debug, Clone)]
pub struct SeenReplies {
    /// Classes that have types of replies in common; those of one class first, which are checked quickly.
    pub components: Vec<Component>,
    pub interpretations: Vec<Interpretation>,
}

/// Classes that have types of replies in common, directly or through others. Components do not depend on each other;
/// most are a single class.
#[derive(Debug, Clone)]
pub struct Component {
    pub(super) classes: Vec<ClassShares>,
    /// The types that they have, as indices into the types of the interpretations.
    pub(super) types: Vec<usize>,
    /// How many replies of each type interpretations have, each once, and which of them each interpretation has.
    pub(super) patterns: Vec<Vec<u32>>,
    pattern_of: Vec<usize>,
    /// Where several classes have types in common.
    ways: RefCell<Ways>,
}

/// The most sizes that a reader knows.
const MAX_KNOWN_SIZES: usize = 1 << 12;

/// Reads the replies to one command after the other by one model. Their sizes recur, and what they may be is known then.
#[derive(Debug)]
pub struct ReplyReader {
    model: SingleReplies,
    readings: RefCell<HashMap<[i64; 2], Arc<RecordReadings>, RandomState>>,
    /// The share of each class that has a size.
    shares: RefCell<HashMap<[i64; 2], Arc<[f64]>, RandomState>>,
}

impl ReplyReader {
    pub fn new(model: SingleReplies) -> Self {
        Self { model, readings: RefCell::default(), shares: RefCell::default() }
    }

    /// The replies in records of these sizes: the least and the most bytes of each, in the basis of the model.
    pub fn read(&self, records: &[[i64; 2]]) -> SeenReplies {
        let sorted = sorted(records);
        let readings = self.readings(&sorted);
        let (types, interpretations) = interpretations(&self.model, &sorted, &readings);
        let shares: Vec<Arc<[f64]>> = types.iter().map(|size| self.shares(*size)).collect();
        let components = components(&shares, self.model.classes.len());
        let unread = sorted.chunk_by(|a, b| a == b).zip(&readings).filter(|(_, readings)| readings.is_only_foreign());
        let unread: usize = unread.map(|(equal, _)| equal.len()).sum();
        let missing = |class: usize| self.model.missing(class, unread);
        let components = components.into_iter().map(|classes| Component::new(&shares, classes, missing));
        let mut seen = SeenReplies { components: components.collect(), interpretations };
        seen.find_patterns();
        seen.drop_improbable();
        seen
    }

    /// At least ln P(replies | actions) of such records for any actions.
    pub fn ln_bound(&self, records: &[[i64; 2]]) -> f64 {
        let sorted = sorted(records);
        let readings = self.readings(&sorted);
        ln_bound(&sorted, &readings) - self.model.foreign
    }

    fn readings(&self, sorted: &[[i64; 2]]) -> Vec<Arc<RecordReadings>> {
        let (model, mut readings) = (&self.model, self.readings.borrow_mut());
        if readings.len() > MAX_KNOWN_SIZES {
            readings.clear();
        }
        let of_size = |equal: &[[i64; 2]]| {
            let known = readings.entry(equal[0]).or_insert_with(|| Arc::new(RecordReadings::new(model, equal[0])));
            Arc::clone(known)
        };
        sorted.chunk_by(|a, b| a == b).map(of_size).collect()
    }

    fn shares(&self, size: [i64; 2]) -> Arc<[f64]> {
        let (model, mut shares) = (&self.model, self.shares.borrow_mut());
        if shares.len() > MAX_KNOWN_SIZES {
            shares.clear();
        }
        let known = shares.entry(size);
        Arc::clone(known.or_insert_with(|| model.classes.iter().map(|class| class.share(size)).collect()))
    }
}

fn sorted(records: &[[i64; 2]]) -> Vec<[i64; 2]> {
    let mut sorted = records.to_vec();
    sorted.sort_unstable();
    sorted
}

impl SeenReplies {
    /// The replies in records of these sizes: the least and the most bytes of each, in the basis of the model. See
    /// [`ReplyReader`] for many commands.
    pub fn new(model: &SingleReplies, records: &[[i64; 2]]) -> Self {
        ReplyReader::new(model.clone()).read(records)
    }

    fn find_patterns(&mut self) {
        for component in &mut self.components {
            component.find_patterns(&self.interpretations);
        }
    }

    /// Leaves the interpretations that can matter: even with the actions that suit them best, the others are far less
    /// likely than the best one.
    fn drop_improbable(&mut self) {
        let greatest = |(at, one): (usize, &Interpretation)| {
            let counts = self.probable_counts(one);
            let of_components =
                self.components.iter().map(|component| component.ln_ways(component.pattern_of(at), &counts));
            one.ln_weight + of_components.sum::<f64>()
        };
        let likelihoods: Vec<f64> = self.interpretations.iter().enumerate().map(greatest).collect();
        let least = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max) - FAR_LESS_LIKELY;
        let (all, mut likelihoods) = (likelihoods.len(), likelihoods.into_iter());
        self.interpretations.retain(|_| likelihoods.next().is_some_and(|likelihood| likelihood >= least));
        if self.interpretations.len() < all {
            self.find_patterns();
        }
    }

    /// ln P(replies | how many replies of each class there should be); −∞ where it is 0.
    pub fn ln_likelihood(&self, class_counts: &[u32]) -> f64 {
        let mut terms: Vec<f64> = self.interpretations.iter().map(|one| one.ln_weight).collect();
        let mut of_patterns = Vec::new();
        for component in &self.components {
            of_patterns.clear();
            of_patterns.extend((0..component.patterns()).map(|pattern| component.ln_ways(pattern, class_counts)));
            if of_patterns.iter().all(|ln_ways| *ln_ways == f64::NEG_INFINITY) {
                return f64::NEG_INFINITY;
            }
            for (term, pattern) in terms.iter_mut().zip(&component.pattern_of) {
                *term += of_patterns[*pattern];
            }
        }
        ln_sum(&terms)
    }

    /// At least ln P(replies | actions) for any actions.
    pub fn ln_greatest(&self) -> f64 {
        let ln_term = |(at, one): (usize, &Interpretation)| {
            one.ln_weight + self.components.iter().map(|own| own.ln_greatest(own.pattern_of(at))).sum::<f64>()
        };
        let ln_terms: Vec<f64> = self.interpretations.iter().enumerate().map(ln_term).collect();
        ln_sum(&ln_terms).min(0.0)
    }

    /// The numbers of replies of each class that an interpretation shows.
    fn probable_counts(&self, interpretation: &Interpretation) -> Vec<u32> {
        let classes = self.components.iter().map(|one| one.classes.len()).sum();
        let mut counts = vec![0_u32; classes];
        for component in &self.components {
            for (index, at) in component.types.iter().enumerate() {
                let share = |class: &ClassShares| {
                    let of_type = class.types.iter().find(|of_type| of_type.index == index);
                    of_type.map_or(0.0, |of_type| of_type.share * (1.0 - class.missing))
                };
                let most = component.classes.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
                if let Some(count) = most.and_then(|class| counts.get_mut(class.class)) {
                    *count = count.saturating_add(interpretation.replies.get(*at).copied().unwrap_or(0));
                }
            }
        }
        counts
    }
}

/// The classes of each component, given the share of each class that has each type.
fn components(shares: &[Arc<[f64]>], classes: usize) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for class in 0..classes {
        let is_joined = |other: &usize| shares.iter().any(|shares| shares[class] > 0.0 && shares[*other] > 0.0);
        let (joined, apart) = found.into_iter().partition(|classes| classes.iter().any(is_joined));
        let joined: Vec<Vec<usize>> = joined;
        found = apart;
        found.push(joined.into_iter().flatten().chain([class]).collect());
    }
    found.sort_by_key(Vec::len);
    found
}

impl Component {
    fn new(shares: &[Arc<[f64]>], mut classes: Vec<usize>, missing: impl Fn(usize) -> f64) -> Self {
        classes.sort_unstable();
        let share = |class: usize, of_type: usize| shares[of_type][class];
        let types: Vec<usize> =
            (0..shares.len()).filter(|at| classes.iter().any(|class| share(*class, *at) > 0.0)).collect();
        let of_class = |(position, class): (usize, &usize)| {
            let has_later = |at: usize| classes.iter().skip(position + 1).any(|later| share(*later, at) > 0.0);
            let own = types.iter().enumerate().filter(|(_, at)| share(*class, **at) > 0.0);
            let missing = missing(*class);
            let own = own.map(|(index, at)| {
                let share = share(*class, *at);
                TypeShare { index, share, ln_comes: (share * (1.0 - missing)).ln(), is_last: !has_later(*at) }
            });
            ClassShares { class: *class, missing, ln_missing: missing.ln(), types: own.collect() }
        };
        let classes = classes.iter().enumerate().map(of_class).collect();
        Self { classes, types, patterns: Vec::new(), pattern_of: Vec::new(), ways: RefCell::default() }
    }

    pub fn classes(&self) -> impl Iterator<Item = usize> + Clone {
        self.classes.iter().map(|class| class.class)
    }

    fn find_patterns(&mut self, interpretations: &[Interpretation]) {
        self.patterns.clear();
        self.pattern_of.clear();
        for interpretation in interpretations {
            let pattern = || self.types.iter().map(|at| interpretation.replies[*at]);
            let known = self.patterns.iter().position(|known| known.iter().copied().eq(pattern()));
            self.pattern_of.push(known.unwrap_or(self.patterns.len()));
            if known.is_none() {
                self.patterns.push(pattern().collect());
            }
        }
        if self.classes.len() > 1 {
            self.ways = RefCell::new(Ways::new(&self.patterns));
        }
    }

    /// How many different replies of the component's types the interpretations have.
    pub fn patterns(&self) -> usize {
        self.patterns.len()
    }

    pub fn pattern_of(&self, interpretation: usize) -> usize {
        self.pattern_of[interpretation]
    }

    pub fn replies(&self, pattern: usize) -> u32 {
        self.patterns[pattern].iter().sum()
    }

    /// A number of replies of each class from which on further ones only make a pattern less likely.
    pub fn peak(&self, pattern: usize) -> u32 {
        let missing = self.classes.iter().map(|class| class.missing).fold(0.0, f64::max);
        peak(self.replies(pattern), missing)
    }

    /// The logarithm of the probability that the replies of the classes, in an order, have the types of a pattern, summed
    /// over all ways to give the places to them.
    pub fn ln_ways(&self, pattern: usize, class_counts: &[u32]) -> f64 {
        match &self.classes[..] {
            [class] => self.ln_ways_of(class, pattern, class_counts[class.class]),
            classes => {
                let sent = classes.iter().map(|class| class_counts[class.class]);
                if u64::from(self.replies(pattern)) > sent.clone().map(u64::from).sum() {
                    return f64::NEG_INFINITY;
                }
                let sent: Vec<u32> = sent.collect();
                self.ways.borrow_mut().ln_ways(classes, pattern, &sent)
            }
        }
    }

    /// Adds how likely each pattern is ([`Self::ln_ways`]), as a multiple of a unit of its own that is given as a logarithm:
    /// at most, where more replies than those counted may come of open classes.
    pub fn add_likelihoods(&self, class_counts: &[u32], is_open: &[bool], ln_units: &[f64], to: &mut Vec<f64>) {
        match &self.classes[..] {
            [class] => {
                let number = |pattern| {
                    let counted = class_counts[class.class];
                    if is_open[class.class] { counted.max(self.peak(pattern)) } else { counted }
                };
                let multiple = |(pattern, ln_unit): (usize, &f64)| {
                    (self.ln_ways_of(class, pattern, number(pattern)) - ln_unit).exp()
                };
                to.extend(ln_units.iter().enumerate().map(multiple));
            }
            classes => {
                let sent: Vec<u32> = self.classes().map(|class| class_counts[class]).collect();
                let is_open: Vec<bool> = self.classes().map(|class| is_open[class]).collect();
                if is_open.contains(&true) && !self.is_disjoint() {
                    let greatest = |(pattern, ln_unit): (usize, &f64)| (self.ln_greatest(pattern) - ln_unit).exp();
                    return to.extend(ln_units.iter().enumerate().map(greatest));
                }
                to.extend(self.ways.borrow_mut().likelihoods(classes, &sent, &is_open, ln_units));
            }
        }
    }

    /// How many products of two weights it took so far to say how likely patterns are of classes that share types, about.
    pub fn products(&self) -> usize {
        self.ways.borrow().products
    }

    /// At least the logarithm of the likelihood of a pattern, whatever the actions.
    ///
    /// Of M replies that come, each has a type with the greatest share of a class at most; where types are disjoint, all
    /// ways to have these types together have a probability of at most 1, too.
    pub fn ln_greatest(&self, pattern: usize) -> f64 {
        if let [class] = &self.classes[..] {
            return self.ln_ways_of(class, pattern, self.peak(pattern));
        }
        let seen = || self.patterns[pattern].iter().enumerate().filter(|(_, number)| **number > 0);
        let shares =
            |index: usize| self.classes.iter().flat_map(|class| &class.types).filter(move |own| own.index == index);
        let ln_share = |index: usize| shares(index).map(|own| own.share).fold(0.0, f64::max).ln();
        let by_shares = seen().map(|(index, number)| f64::from(*number) * ln_share(index)).sum::<f64>();
        let by_shares = ln_factorial(self.replies(pattern)) + by_shares;
        let ln_orders = seen().map(|(_, number)| ln_factorial(*number)).sum();
        if self.is_disjoint() { by_shares.min(ln_orders) } else { by_shares }
    }

    /// Whether no size is of several types, as the ranges of block ciphers may be.
    fn is_disjoint(&self) -> bool {
        self.classes.iter().all(|class| class.types.iter().map(|own| own.share).sum::<f64>() < 1.0 + ROUNDING)
    }

    /// [`Self::ln_ways`] of the only class.
    fn ln_ways_of(&self, class: &ClassShares, pattern: usize, count: u32) -> f64 {
        let (mut free, mut ln_ways) = (count, 0.0);
        for TypeShare { index, ln_comes, .. } in &class.types {
            let number = self.patterns[pattern][*index];
            if number > free {
                return f64::NEG_INFINITY;
            }
            if number > 0 {
                ln_ways += f64::from(number) * ln_comes;
                ln_ways += ln_factorial(free) - ln_factorial(free - number);
                free -= number;
            }
        }
        ln_ways + if free > 0 { f64::from(free) * class.ln_missing } else { 0.0 }
    }
}

/// The number of replies that makes it most likely that `places` of them come.
pub(super) fn peak(places: u32, missing: f64) -> u32 {
    (f64::from(places) / (1.0 - missing)).floor() as u32
}
