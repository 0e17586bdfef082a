//! Weights of consecutive numbers of bytes, such as a distribution over sizes, and those of sums.

/// Ends of a distribution that are less probable than this are left out by [`Pmf::trimmed`]. Of a sum of n parts that is
/// trimmed after each, at most n · w times as much is missing for w bytes of width: 10⁻⁷ for 64 actions of a thousand
/// sizes, less than any figure is shown to.
pub const UNLIKELY: f64 = 1e-12;

/// What numbers of bytes are weighed with: the cells of a [`Pmf`].
pub trait Weight: Clone {
    /// The weight of what does not occur.
    const NONE: Self;

    fn add_scaled(&mut self, other: &Self, factor: f64);

    fn add_product(&mut self, one: &Self, other: &Self);

    fn is_none(&self) -> bool;
}

impl Weight for f64 {
    const NONE: Self = 0.0;

    #[inline]
    fn add_scaled(&mut self, other: &Self, factor: f64) {
        *self += factor * other;
    }

    #[inline]
    fn add_product(&mut self, one: &Self, other: &Self) {
        *self += one * other;
    }

    #[inline]
    fn is_none(&self) -> bool {
        *self <= 0.0
    }
}

/// The weights of consecutive numbers of bytes; all others have none.
#[derive(Debug, Clone, PartialEq)]
pub struct Pmf<W = f64> {
    least: i64,
    weights: Vec<W>,
}

impl<W> Default for Pmf<W> {
    fn default() -> Self {
        Self { least: 0, weights: Vec::new() }
    }
}

impl<W: Weight> Pmf<W> {
    pub fn one(bytes: i64, weight: W) -> Self {
        Self { least: bytes, weights: vec![weight] }
    }

    pub fn from_least(least: i64, weights: Vec<W>) -> Self {
        Self { least, weights }
    }

    /// Numbers in any order; the weights of equal ones add up.
    pub fn from_values(values: impl IntoIterator<Item = (i64, W)>) -> Self {
        let mut all = Self::default();
        for (bytes, weight) in values {
            all.cover(bytes, 1);
            all.weights[(bytes - all.least) as usize].add_scaled(&weight, 1.0);
        }
        all
    }

    pub fn least(&self) -> i64 {
        self.least
    }

    /// The first number above all.
    pub fn end(&self) -> i64 {
        self.least + self.weights.len().cast_signed() as i64
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    pub fn between(&self, least: i64, most: i64) -> &[W] {
        let at = |bytes: i64| usize::try_from(bytes.saturating_sub(self.least)).unwrap_or(0).min(self.weights.len());
        self.weights.get(at(least)..at(most.saturating_add(1))).unwrap_or_default()
    }

    /// Each number that occurs, with its weight.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &W)> + Clone {
        (self.least..).zip(&self.weights).filter(|(_, weight)| !weight.is_none())
    }

    /// The weight of a number, to change it; `None` beyond those there are.
    pub fn get_mut(&mut self, bytes: i64) -> Option<&mut W> {
        usize::try_from(bytes.wrapping_sub(self.least)).ok().and_then(|at| self.weights.get_mut(at))
    }

    #[must_use]
    pub fn moved(self, bytes: i64) -> Self {
        Self { least: self.least.saturating_add(bytes), ..self }
    }

    /// The same weights of the negative numbers: a sum with them is a difference.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self { least: 1 - self.end(), weights: self.weights.iter().rev().cloned().collect() }
    }

    pub fn add_moved(&mut self, other: &Self, bytes: i64, factor: f64) {
        self.combine(other, bytes, |own, other| own.add_scaled(other, factor));
    }

    #[must_use]
    pub fn convolve(&self, other: &Self) -> Self {
        self.product(other, W::add_product)
    }

    fn product(&self, other: &Self, each: impl Fn(&mut W, &W, &W)) -> Self {
        let (short, long) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        if short.is_empty() {
            return Self::default();
        }
        let mut weights = vec![W::NONE; short.len() + long.len() - 1];
        for (at, one) in short.weights.iter().enumerate().filter(|(_, weight)| !weight.is_none()) {
            for (sum, other) in weights[at..].iter_mut().zip(&long.weights) {
                each(sum, one, other);
            }
        }
        Self { least: short.least.saturating_add(long.least), weights }
    }

    fn combine(&mut self, other: &Self, bytes: i64, each: impl Fn(&mut W, &W)) {
        if other.is_empty() {
            return;
        }
        self.cover(other.least + bytes, other.len());
        let from = (other.least + bytes - self.least) as usize;
        for (own, other) in self.weights[from..].iter_mut().zip(&other.weights) {
            each(own, other);
        }
    }

    /// Makes room for so many numbers from `first` on.
    fn cover(&mut self, first: i64, numbers: usize) {
        if self.is_empty() {
            self.least = first;
        }
        if first < self.least {
            let before = (self.least - first) as usize;
            self.weights.splice(0..0, std::iter::repeat_n(W::NONE, before));
            self.least = first;
        }
        let needed = (first - self.least) as usize + numbers;
        if self.len() < needed {
            self.weights.resize(needed, W::NONE);
        }
    }
}

impl Pmf {
    pub fn certain(bytes: i64) -> Self {
        Self::one(bytes, 1.0)
    }

    pub fn is_certain(&self) -> bool {
        self.len() == 1
    }

    pub fn at(&self, bytes: i64) -> f64 {
        let at = usize::try_from(bytes.wrapping_sub(self.least)).ok();
        at.and_then(|at| self.weights.get(at)).copied().unwrap_or(0.0)
    }

    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Keeps the greater of each number's weights, of which those of another are multiplied with a factor.
    pub fn raise(&mut self, other: &Self, factor: f64) {
        self.combine(other, 0, |own, other| *own = own.max(factor * other));
    }

    /// The sums of both: weights multiply, and each sum has the greatest.
    #[must_use]
    pub fn convolve_greatest(&self, other: &Self) -> Self {
        self.product(other, |sum, one, other| *sum = sum.max(one * other))
    }

    /// Becomes the convolution of two others, from `least` to `most` bytes, in the room that it has.
    pub fn set_convolution(&mut self, [one, other]: [&Self; 2], least: i64, most: i64) {
        self.weights.clear();
        self.least = 0;
        let start = one.least.saturating_add(other.least);
        let end = (one.end() + other.end() - 1).min(most.saturating_add(1));
        let first = least.max(start);
        if first >= end || one.is_empty() || other.is_empty() {
            return;
        }
        self.least = first;
        self.weights.resize((end - first) as usize, 0.0);
        for (own, weight) in one.iter() {
            // Where the other begins, in the sums that are asked for or before them.
            let begin = own + other.least - first;
            let at = (begin.max(0) as usize).min(self.weights.len());
            let skipped = ((-begin).max(0) as usize).min(other.weights.len());
            for (sum, other) in self.weights[at..].iter_mut().zip(&other.weights[skipped..]) {
                *sum += weight * other;
            }
        }
    }

    pub fn total_between(&self, least: i64, most: i64) -> f64 {
        // Four sums side by side: one alone waits for each addition.
        let (fours, rest) = self.between(least, most).as_chunks::<4>();
        let mut sums = [0.0; 4];
        for four in fours {
            sums.iter_mut().zip(four).for_each(|(sum, weight)| *sum += weight);
        }
        sums.iter().chain(rest).sum()
    }

    pub fn convolved_at(&self, other: &Self, sum: i64) -> f64 {
        // Own numbers whose rest to the sum is in the other.
        let from = (sum + 1).saturating_sub(other.end()).max(self.least);
        let to = (sum + 1).saturating_sub(other.least).min(self.end());
        if from >= to {
            return 0.0;
        }
        let own = &self.weights[(from - self.least) as usize..(to - self.least) as usize];
        let rests = &other.weights[(sum + 1 - to - other.least) as usize..(sum + 1 - from - other.least) as usize];
        own.iter().zip(rests.iter().rev()).map(|(own, rest)| own * rest).sum()
    }

    /// The same without ends that are at most [`UNLIKELY`]; as it is where nothing would be left.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        let is_likely = |weight: &f64| *weight > UNLIKELY;
        let Some(first) = self.weights.iter().position(is_likely) else { return self };
        let last = self.weights.iter().rposition(is_likely).unwrap_or(first);
        self.weights.truncate(last + 1);
        self.weights.drain(..first);
        Self { least: self.least.saturating_add(first.cast_signed() as i64), ..self }
    }

    #[must_use]
    pub fn normalised(mut self) -> Self {
        let all = self.total();
        self.weights.iter_mut().for_each(|weight| *weight /= all);
        self
    }

    /// The most likely number; the smallest one of equals.
    pub fn mode(&self) -> i64 {
        let best =
            self.iter().fold((0, 0.0), |best, (bytes, weight)| if *weight > best.1 { (bytes, *weight) } else { best });
        best.0
    }

    pub fn mean(&self) -> f64 {
        self.iter().map(|(bytes, weight)| bytes as f64 * weight).sum::<f64>() / self.total()
    }
}

/// The distributions of sums of 0, 1, 2… numbers that each have the same distribution, as far as they were asked for.
#[derive(Debug, Clone)]
pub struct Multiples {
    sums: Vec<Pmf>,
    one: Pmf,
}

impl Multiples {
    pub fn new(one: Pmf) -> Self {
        Self { sums: vec![Pmf::certain(0)], one }
    }

    pub fn one(&self) -> &Pmf {
        &self.one
    }

    pub fn sum_of(&mut self, count: u32) -> &Pmf {
        while self.sums.len() <= count as usize {
            let next = self.sums[self.sums.len() - 1].convolve(&self.one).trimmed();
            self.sums.push(next);
        }
        &self.sums[count as usize]
    }
}
