//! The likelihood of the replies to one command, given how many replies of each class it should have.

use super::classes::{LEAST_SHARE, ReplyClass, SingleReplies};
use super::interpretation::{Interpretation, interpretations, ln_factorial};

/// The most partial assignments of replies to classes, times the types of replies; the least probable ones beyond are
/// dropped.
const MAX_PARTIAL: usize = 2048;

/// By how much (in nats) an interpretation may be less likely than the best one, before it is left out.
const FAR_LESS_LIKELY: f64 = 30.0;

/// How many interpretations are tried in search of the greatest likelihood.
const MAX_TRIED: usize = 16;

/// The replies to one command, ready to be compared with many candidates.
#[derive(Debug, Clone)]
pub struct SeenReplies {
    /// Those of one class first, which are checked quickly.
    pub(super) components: Vec<Component>,
    pub(super) interpretations: Vec<Interpretation>,
}

/// Classes that have types of replies in common, directly or through others. Components do not depend on each other;
/// most are a single class.
#[derive(Debug, Clone)]
pub(super) struct Component {
    pub(super) classes: Vec<ClassShares>,
    /// The types that they have, as indices into the types of the interpretations.
    pub(super) types: Vec<usize>,
}

/// What one class says of the types of its component.
#[derive(Debug, Clone)]
pub(super) struct ClassShares {
    pub(super) class: usize,
    pub(super) missing: f64,
    /// Types that the class has.
    pub(super) types: Vec<TypeShare>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TypeShare {
    /// Among the types of the component.
    pub(super) index: usize,
    pub(super) share: f64,
    /// Whether no later class of the component has it.
    is_last: bool,
}

/// Replies to which some classes are assigned.
#[derive(Debug)]
struct Partial {
    /// Replies that no class explains yet, by type.
    left: Vec<u32>,
    /// Replies of the current class that are not assigned.
    free: u32,
    /// The probability of all ways so far.
    weight: f64,
}

impl SeenReplies {
    /// The replies in records of these sizes: the least and the most bytes of each, in the basis of the model.
    pub fn new(model: &SingleReplies, records: &[[i64; 2]]) -> Self {
        let (types, interpretations) = interpretations(model, records);
        let shares: Vec<Vec<f64>> =
            model.classes.iter().map(|class| types.iter().map(|size| of_class(class, *size)).collect()).collect();
        let components = components(&shares).into_iter().map(|classes| Component::new(model, &shares, classes));
        let mut seen = Self { components: components.collect(), interpretations };
        seen.drop_improbable();
        seen
    }

    /// Leaves the interpretations that can matter: even with the actions that suit them best, the others are far less
    /// likely than the best one.
    fn drop_improbable(&mut self) {
        let greatest = |one: &Interpretation| self.ln_likelihood_by(one, &self.probable_counts(one));
        let likelihoods: Vec<f64> = self.interpretations.iter().map(greatest).collect();
        let least = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max) - FAR_LESS_LIKELY;
        let mut likelihoods = likelihoods.into_iter();
        self.interpretations.retain(|_| likelihoods.next().is_some_and(|likelihood| likelihood >= least));
    }

    fn ln_likelihood_by(&self, interpretation: &Interpretation, class_counts: &[u32]) -> f64 {
        let add = |sum: f64, component: &Component| {
            let sum = sum + component.ln_ways(&interpretation.replies, class_counts);
            (sum > f64::NEG_INFINITY).then_some(sum)
        };
        self.components.iter().try_fold(interpretation.ln_weight, add).unwrap_or(f64::NEG_INFINITY)
    }

    /// ln P(replies | how many replies of each class there should be); −∞ where it is 0.
    pub fn ln_likelihood(&self, class_counts: &[u32]) -> f64 {
        let terms: Vec<f64> = self.interpretations.iter().map(|one| self.ln_likelihood_by(one, class_counts)).collect();
        let greatest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if greatest == f64::NEG_INFINITY {
            return greatest;
        }
        greatest + terms.iter().map(|term| (term - greatest).exp()).sum::<f64>().ln()
    }

    /// About the greatest ln P(replies | actions) of any actions: each reply is one of the class that has its size most
    /// often.
    pub fn greatest_ln_likelihood(&self) -> f64 {
        let of = |interpretation: &Interpretation| self.ln_likelihood(&self.probable_counts(interpretation));
        self.interpretations.iter().take(MAX_TRIED).map(of).fold(f64::NEG_INFINITY, f64::max)
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
fn components(shares: &[Vec<f64>]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for class in 0..shares.len() {
        let has = |class: usize, of_type: usize| {
            shares.get(class).and_then(|shares| shares.get(of_type)).is_some_and(|share| *share > 0.0)
        };
        let is_joined =
            |other: &usize| (0..shares.first().map_or(0, Vec::len)).any(|at| has(class, at) && has(*other, at));
        let (joined, apart) = found.into_iter().partition(|classes| classes.iter().any(is_joined));
        let joined: Vec<Vec<usize>> = joined;
        found = apart;
        found.push(joined.into_iter().flatten().chain([class]).collect());
    }
    found.sort_by_key(Vec::len);
    found
}

impl Component {
    fn new(model: &SingleReplies, shares: &[Vec<f64>], mut classes: Vec<usize>) -> Self {
        classes.sort_unstable();
        let share = |class: usize, of_type: usize| {
            shares.get(class).and_then(|shares| shares.get(of_type)).copied().unwrap_or(0.0)
        };
        let all_types = 0..shares.first().map_or(0, Vec::len);
        let types: Vec<usize> = all_types.filter(|at| classes.iter().any(|class| share(*class, *at) > 0.0)).collect();
        let of_class = |(position, class): (usize, &usize)| {
            let has_later = |at: usize| classes.iter().skip(position + 1).any(|later| share(*later, at) > 0.0);
            let own = types.iter().enumerate().filter(|(_, at)| share(*class, **at) > 0.0);
            let own = own.map(|(index, at)| TypeShare { index, share: share(*class, *at), is_last: !has_later(*at) });
            let missing = model.classes.get(*class).map_or(0.0, |class| class.missing).max(LEAST_SHARE);
            ClassShares { class: *class, missing, types: own.collect() }
        };
        let classes = classes.iter().enumerate().map(of_class).collect();
        Self { classes, types }
    }

    /// The logarithm of the probability that the replies of the classes, in an order, have the types that are seen,
    /// summed over all ways to give the places to them.
    pub(super) fn ln_ways(&self, seen: &[u32], class_counts: &[u32]) -> f64 {
        let seen = |index: usize| self.types.get(index).and_then(|at| seen.get(*at)).copied().unwrap_or(0);
        let count = |class: &ClassShares| class_counts.get(class.class).copied().unwrap_or(0);
        match &self.classes[..] {
            [class] => {
                let (mut free, mut ln_ways) = (count(class), 0.0);
                for TypeShare { index, share, .. } in &class.types {
                    let number = seen(*index);
                    if number > free {
                        return f64::NEG_INFINITY;
                    }
                    if number > 0 {
                        ln_ways += f64::from(number) * (share * (1.0 - class.missing)).ln();
                        ln_ways += ln_factorial(free) - ln_factorial(free - number);
                        free -= number;
                    }
                }
                ln_ways + if free > 0 { f64::from(free) * class.missing.ln() } else { 0.0 }
            }
            classes => {
                let seen: Vec<u32> = (0..self.types.len()).map(seen).collect();
                let sent: Vec<u32> = classes.iter().map(count).collect();
                if seen.iter().map(|seen| u64::from(*seen)).sum::<u64>()
                    > sent.iter().map(|sent| u64::from(*sent)).sum()
                {
                    return f64::NEG_INFINITY;
                }
                self.ways(seen, &sent).ln()
            }
        }
    }

    /// The same of several classes that share types, not as a logarithm.
    fn ways(&self, seen: Vec<u32>, sent: &[u32]) -> f64 {
        let most = (MAX_PARTIAL / seen.len().max(1)).max(16);
        let mut partial = vec![Partial { left: seen, free: 0, weight: 1.0 }];
        for (class, count) in self.classes.iter().zip(sent) {
            for one in &mut partial {
                one.free = *count;
            }
            for of_type in &class.types {
                partial = partial.iter().flat_map(|one| one.take(of_type, class.missing)).collect();
                join_equal(&mut partial, most);
            }
            for one in &mut partial {
                one.weight *= class.missing.powi(i32::try_from(one.free).unwrap_or(i32::MAX));
                one.free = 0;
            }
            join_equal(&mut partial, most);
        }
        partial.iter().filter(|one| one.left.iter().all(|left| *left == 0)).map(|one| one.weight).sum()
    }
}

/// The share of a class that has a size; 0 where it hardly ever has it, so that most replies have one class.
fn of_class(class: &ReplyClass, size: [i64; 2]) -> f64 {
    let share = class.share(size);
    if share > LEAST_SHARE { share } else { 0.0 }
}

impl Partial {
    /// Gives some of the places of a type to replies of the class, in all ways. The places are chosen, and which replies
    /// are at them.
    fn take(&self, of_type: &TypeShare, missing: f64) -> impl Iterator<Item = Self> + use<'_> {
        let TypeShare { index, share, is_last } = *of_type;
        let seen = self.left.get(index).copied().unwrap_or(0);
        let mut weight = self.weight;
        (0..=seen.min(self.free)).filter_map(move |taken| {
            let here = weight;
            let (places, free) = (f64::from(seen - taken), f64::from(self.free - taken));
            weight *= places / f64::from(taken + 1) * free * share * (1.0 - missing);
            if is_last && taken < seen {
                return None;
            }
            let mut left = self.left.clone();
            *left.get_mut(index)? = seen - taken;
            Some(Self { left, free: self.free - taken, weight: here })
        })
    }
}

/// Joins equal ones, and leaves the most probable.
fn join_equal(partial: &mut Vec<Partial>, most: usize) {
    partial.sort_unstable_by(|a, b| (a.free, &a.left).cmp(&(b.free, &b.left)));
    partial.dedup_by(|later, first| {
        let is_equal = later.free == first.free && later.left == first.left;
        first.weight += if is_equal { later.weight } else { 0.0 };
        is_equal
    });
    if partial.len() > most {
        // Those with as many replies left compete: weights of others do not compare.
        let left = |one: &Partial| one.left.iter().fold(0_u32, |sum, left| sum.saturating_add(*left));
        partial.sort_by(|a, b| left(a).cmp(&left(b)).then(b.weight.total_cmp(&a.weight)));
        let groups = partial.chunk_by(|a, b| left(a) == left(b)).count();
        let mut rank = (u32::MAX, 0);
        partial.retain(|one| {
            rank = if rank.0 == left(one) { (rank.0, rank.1 + 1) } else { (left(one), 1) };
            rank.1 <= (most / groups).max(1)
        });
    }
}
