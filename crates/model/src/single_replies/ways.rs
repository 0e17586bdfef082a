//! In how many ways replies of several classes that share types may have come, each way with its probability.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::interpretation::ln_factorial;

/// The most terms of a polynomial, and the most partial assignments of replies to classes, times the types of replies; the
/// least probable ones beyond are dropped.
const MAX_TERMS: usize = 2048;

/// The most replies of a class for which their polynomial is multiplied out.
const MAX_FACTORS: u32 = 256;

/// The most terms that are remembered: 2 MB.
const MAX_KNOWN: usize = 1 << 18;

/// What one class says of the types of its component.
#[derive(Debug, Clone)]
pub(super) struct ClassShares {
    pub(super) class: usize,
    pub(super) missing: f64,
    pub(super) ln_missing: f64,
    pub(super) types: Vec<TypeShare>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TypeShare {
    /// Among the types of the component.
    pub(super) index: usize,
    pub(super) share: f64,
    /// ln of the probability that a reply of the class comes and has the type.
    pub(super) ln_comes: f64,
    /// Whether no later class of the component has it.
    pub(super) is_last: bool,
}

/// What the replies of several classes may be, given how many of each class should come: the coefficients of
///
/// ```text
/// Π over classes of (missing + Σ comesₜ · zₜ)^sent,   zₜ a variable for each type
/// ```
///
/// up to the greatest number of replies of each type. One more reply of a class is one more factor, so one polynomial
/// follows from another, and one serves all patterns.
#[derive(Debug, Clone, Default)]
pub(super) struct Ways {
    /// One of all patterns; one of each if that has too many terms.
    polynomials: Vec<Polynomial>,
    /// How many replies of each type each pattern has, and the logarithm of in how many orders equal ones may come.
    patterns: Vec<(Vec<u32>, f64)>,
    /// How many products of two weights it all took so far, about.
    pub(super) products: usize,
}

/// A polynomial, by how many replies of each class should come.
#[derive(Debug, Clone)]
struct Polynomial {
    /// The greatest number of replies of each type.
    most: Vec<u32>,
    /// How many coefficients there are; `None` where there are too many.
    size: Option<usize>,
    /// Where they begin; where the only one is that was computed, if there are too many.
    known: HashMap<Vec<u32>, usize, RandomState>,
    /// The powers of the first type side by side.
    coefficients: Vec<f64>,
}

impl Ways {
    pub(super) fn new(patterns: &[Vec<u32>]) -> Self {
        let greatest = |mut most: Vec<u32>, other: &Vec<u32>| {
            most.iter_mut().zip(other).for_each(|(most, other)| *most = (*most).max(*other));
            most
        };
        let of_all = patterns.iter().cloned().reduce(|most, other| greatest(most, &other)).map(Polynomial::new);
        let polynomials = match of_all {
            Some(one) if one.size.is_some() => vec![one],
            _ => patterns.iter().cloned().map(Polynomial::new).collect(),
        };
        let with_orders = |seen: &Vec<u32>| (seen.clone(), seen.iter().map(|number| ln_factorial(*number)).sum());
        Self { polynomials, patterns: patterns.iter().map(with_orders).collect(), products: 0 }
    }

    pub(super) fn ln_ways(&mut self, classes: &[ClassShares], pattern: usize, sent: &[u32]) -> f64 {
        self.forget_if_full();
        let at = pattern.min(self.polynomials.len() - 1);
        let (polynomial, (seen, ln_orders)) = (&mut self.polynomials[at], &self.patterns[pattern]);
        if let Some((begin, computed)) = polynomial.multiply(classes, sent) {
            self.products += computed * seen.len();
            return polynomial.coefficients[begin + polynomial.place(seen)].ln() + ln_orders;
        }
        // The pattern is part of what is asked: a polynomial may be that of several.
        let known = polynomial.known.entry([sent, &[pattern as u32]].concat());
        let place = *known.or_insert_with(|| {
            let (ways, products) = ways(classes, seen.clone(), sent);
            self.products += products;
            polynomial.coefficients.push(ways);
            polynomial.coefficients.len() - 1
        });
        polynomial.coefficients[place].ln()
    }

    /// [`Self::ln_ways`] of each pattern, as a multiple of a unit of its own that is given as a logarithm; at most, where open
    /// classes may send more.
    ///
    /// A further reply is a further factor, whose coefficients are at most 1 together. So no coefficient exceeds the
    /// greatest of those before it that have as many replies of the types that no open class has.
    pub(super) fn likelihoods(
        &mut self,
        classes: &[ClassShares],
        sent: &[u32],
        is_open: &[bool],
        ln_units: &[f64],
    ) -> Vec<f64> {
        self.forget_if_full();
        let is_fixed = |index: usize| {
            let has = |class: &ClassShares| class.types.iter().any(|of_type| of_type.index == index);
            !classes.iter().zip(is_open).any(|(class, is_open)| *is_open && has(class))
        };
        let mut of_polynomials = Vec::with_capacity(self.polynomials.len());
        for polynomial in &mut self.polynomials {
            let multiplied = polynomial.multiply(classes, sent);
            let (computed, size) = (multiplied.map_or(0, |(_, computed)| computed), polynomial.size.unwrap_or(0));
            self.products += (computed + size) * polynomial.most.len();
            of_polynomials.push(multiplied.map(|(begin, _)| polynomial.greatest(begin, is_fixed)));
        }
        let is_any_open = is_open.contains(&true);
        let mut likelihoods = Vec::with_capacity(ln_units.len());
        for (pattern, ln_unit) in ln_units.iter().enumerate() {
            let at = pattern.min(of_polynomials.len() - 1);
            let (seen, ln_orders) = &self.patterns[pattern];
            likelihoods.push(match &of_polynomials[at] {
                Some(terms) => terms[self.polynomials[at].place(seen)] * (ln_orders - ln_unit).exp(),
                None if is_any_open => (ln_orders - ln_unit).exp(),
                None => (self.ln_ways(classes, pattern, sent) - ln_unit).exp(),
            });
        }
        likelihoods
    }

    fn forget_if_full(&mut self) {
        if self.polynomials.iter().map(|one| one.coefficients.len()).sum::<usize>() > MAX_KNOWN {
            for one in &mut self.polynomials {
                one.known.clear();
                one.coefficients.clear();
            }
        }
    }
}

impl Polynomial {
    fn new(most: Vec<u32>) -> Self {
        let size = most.iter().try_fold(1_usize, |size, most| size.checked_mul(*most as usize + 1));
        let (known, coefficients) = (HashMap::default(), Vec::new());
        Self { most, size: size.filter(|size| *size <= MAX_TERMS), known, coefficients }
    }

    /// Where the coefficient of these powers is.
    fn place(&self, powers: &[u32]) -> usize {
        let place = |above: usize, (power, most): (&u32, &u32)| above * (*most as usize + 1) + *power as usize;
        powers.iter().zip(&self.most).rev().fold(0, place)
    }

    /// For each coefficient, the greatest of those before it that have as many replies of fixed types.
    fn greatest(&self, begin: usize, is_fixed: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut greatest = self.coefficients[begin..begin + self.size.unwrap_or(0)].to_vec();
        for index in (0..self.most.len()).filter(|index| !is_fixed(*index)) {
            let stride = stride(&self.most, index);
            for block in greatest.chunks_exact_mut(stride * (self.most[index] as usize + 1)) {
                for at in stride..block.len() {
                    block[at] = block[at].max(block[at - stride]);
                }
            }
        }
        greatest
    }

    /// Where the coefficients begin, and how many numbers were computed for it; `None` where there are too many, or too many
    /// factors.
    fn multiply(&mut self, classes: &[ClassShares], sent: &[u32]) -> Option<(usize, usize)> {
        let size = self.size.filter(|_| sent.iter().all(|sent| *sent <= MAX_FACTORS))?;
        if let Some(begin) = self.known.get(sent) {
            return Some((*begin, 0));
        }
        // Down to what is known, one factor less at a time, and up again.
        let (mut from, mut further) = (sent.to_vec(), Vec::new());
        let mut begin = loop {
            if let Some(begin) = self.known.get(&from) {
                break *begin;
            }
            let Some(class) = from.iter().rposition(|number| *number > 0) else {
                let begin = self.coefficients.len();
                self.coefficients.resize(begin + size, 0.0);
                self.coefficients[begin] = 1.0;
                self.known.insert(from.clone(), begin);
                break begin;
            };
            from[class] -= 1;
            further.push(class);
        };
        let computed = size * (further.len() + 1);
        for class in further.into_iter().rev() {
            begin = self.multiply_once(&classes[class], begin, size);
            from[class] += 1;
            self.known.insert(from.clone(), begin);
        }
        Some((begin, computed))
    }

    /// Adds the product with the factor of one reply of a class; returns where it begins.
    fn multiply_once(&mut self, class: &ClassShares, begin: usize, size: usize) -> usize {
        let end = self.coefficients.len();
        self.coefficients.resize(end + size, 0.0);
        let (known, product) = self.coefficients.split_at_mut(end);
        let terms = &known[begin..begin + size];
        product.iter_mut().zip(terms).for_each(|(product, term)| *product = class.missing * term);
        for own in &class.types {
            let stride = stride(&self.most, own.index);
            let block = stride * (self.most[own.index] as usize + 1);
            let comes = own.share * (1.0 - class.missing);
            for (product, terms) in product.chunks_exact_mut(block).zip(terms.chunks_exact(block)) {
                for (above, below) in product[stride..].iter_mut().zip(terms) {
                    *above += comes * below;
                }
            }
        }
        end
    }
}

/// How far the coefficients for one more reply of a type are, given the greatest number of each.
fn stride(most: &[u32], index: usize) -> usize {
    most[..index].iter().map(|most| *most as usize + 1).product()
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

/// The probability of all ways where a polynomial has too many terms, without those that hardly matter; and how many numbers
/// that took.
fn ways(classes: &[ClassShares], seen: Vec<u32>, sent: &[u32]) -> (f64, usize) {
    let (types, mut numbers) = (seen.len(), 0);
    let most = (MAX_TERMS / types.max(1)).max(16);
    let mut partial = vec![Partial { left: seen, free: 0, weight: 1.0 }];
    for (class, count) in classes.iter().zip(sent) {
        for one in &mut partial {
            one.free = *count;
        }
        for of_type in &class.types {
            partial = partial.iter().flat_map(|one| one.take(of_type, class.missing)).collect();
            numbers += partial.len() * types;
            join_equal(&mut partial, most);
        }
        for one in &mut partial {
            one.weight *= class.missing.powi(i32::try_from(one.free).unwrap_or(i32::MAX));
            one.free = 0;
        }
        join_equal(&mut partial, most);
    }
    let explained = partial.iter().filter(|one| one.left.iter().all(|left| *left == 0));
    (explained.map(|one| one.weight).sum(), numbers)
}

impl Partial {
    /// Gives some of the places of a type to replies of the class, in all ways. The places are chosen, and which replies
    /// are at them.
    fn take(&self, of_type: &TypeShare, missing: f64) -> impl Iterator<Item = Self> + use<'_> {
        let TypeShare { index, share, is_last, .. } = *of_type;
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
