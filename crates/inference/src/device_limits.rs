//! What the inventory makes of the prior: which numbers of actions have a device each, and the share of devices that
//! were still free.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use sizeleak_model::{Condition, Limits, Pmf, Prior, Weight};

/// The most actions of a command that are counted, as in the decomposer's exact table.
pub(crate) const MAX_ACTIONS: u32 = 64;

/// The most states of used devices between two classes.
const MAX_STATES: usize = 1 << 12;

/// The most products of weights for sizes without replies.
const MAX_PRODUCTS: usize = 1 << 31;

/// The most totals whose share is kept.
const MAX_KNOWN_SHARES: usize = 1 << 16;

/// The inventory's limits with the order in which devices are given to classes of actions.
#[derive(Debug, Clone)]
pub(crate) struct DeviceLimits {
    pub(crate) limits: Limits,
    order: Vec<usize>,
    pub(crate) max_actions: u32,
    /// What one action of each class adds to totals.
    places: Vec<u128>,
    known_shares: RefCell<HashMap<u128, f64, RandomState>>,
    /// By the place of the class in the order, once they are needed; `None` where they are too many.
    layers: OnceCell<Option<Vec<Layer>>>,
}

/// The ways to give devices to so many actions of one class, after the classes before.
#[derive(Debug, Clone)]
struct Layer {
    steps: Vec<Step>,
    /// How many states there are behind it.
    width: usize,
}

/// Between states of used devices; behind the last class, a state is the number of all actions.
#[derive(Debug, Clone)]
struct Step {
    from: usize,
    to: usize,
    number: usize,
    /// The prior's factor for free devices.
    factor: f64,
}

impl DeviceLimits {
    /// `None` for more classes and devices than totals can count.
    pub(crate) fn new(limits: &Limits) -> Option<Self> {
        let limits = limits.counting(MAX_ACTIONS);
        let max_actions = limits.max_actions().min(MAX_ACTIONS);
        let base = u128::from(max_actions) + 1;
        let mut places = vec![1_u128];
        for _ in 0..limits.classes() {
            places.push(places.last()?.checked_mul(base)?);
        }
        let (known_shares, layers) = (RefCell::default(), OnceCell::new());
        Some(Self { order: limits.class_order(), limits, max_actions, places, known_shares, layers })
    }

    /// How many actions there are of each class if there are these alone, as the digits of one number: totals add up.
    pub(crate) fn totals_of(&self, class: usize, number: u32) -> u128 {
        self.places[class] * u128::from(number)
    }

    /// The factor of the prior for devices that are free, given how many actions there are of each class; 0 beyond the
    /// limits.
    pub(crate) fn share_of(&self, totals: u128) -> f64 {
        let mut known = self.known_shares.borrow_mut();
        if known.len() >= MAX_KNOWN_SHARES {
            known.clear();
        }
        *known.entry(totals).or_insert_with(|| {
            let digit = |(place, next): (&u128, &u128)| (totals % next / place) as u32;
            let totals: Vec<u32> = self.places.iter().zip(&self.places[1..]).map(digit).collect();
            self.limits.free_shares(&self.order, &totals)
        })
    }

    /// The weights of all multisets of each number of actions together, from 0, given those of k actions of each class.
    /// `None` where devices can be used up in too many ways.
    pub(crate) fn number_totals<W: Weight>(&self, of_class: &[Vec<W>]) -> Option<Vec<W>> {
        let mut before: Option<Vec<W>> = None;
        for (class, layer) in self.order.iter().zip(self.layers()?) {
            let own = of_class.get(*class)?;
            let mut next = vec![W::NONE; layer.width];
            for Step { from, to, number, factor } in &layer.steps {
                let Some(own) = own.get(*number) else { continue };
                let mut both = W::NONE;
                let all = match &before {
                    Some(before) => {
                        both.add_product(&before[*from], own);
                        &both
                    }
                    None => own,
                };
                next[*to].add_scaled(all, *factor);
            }
            before = Some(next);
        }
        before
    }

    /// The greatest [`Self::share_of`] of each number of actions, from 0. `None` where devices can be used up in too many ways.
    pub(crate) fn greatest_shares(&self) -> Option<Vec<f64>> {
        let mut before = vec![1.0];
        for layer in self.layers()? {
            let mut next = vec![0.0_f64; layer.width];
            for Step { from, to, factor, .. } in &layer.steps {
                next[*to] = next[*to].max(before[*from] * factor);
            }
            before = next;
        }
        Some(before)
    }

    /// What each number of actions weighs, from 0: P(n) over [`Self::number_totals`].
    pub(crate) fn number_weights(&self, prior: &Prior, of_class: &[Vec<Pmf>]) -> Option<Vec<f64>> {
        let totals: Vec<Vec<f64>> = of_class.iter().map(|sums| sums.iter().map(Pmf::total).collect()).collect();
        let weight = |(all, number): (&f64, u32)| (prior.ln_number(number) - all.max(f64::MIN_POSITIVE).ln()).exp();
        Some(self.number_totals(&totals)?.iter().zip(0..).map(weight).collect())
    }

    /// The weights of all sums of actions, whatever the actions.
    pub(crate) fn size_totals(&self, number_weights: &[f64], of_class: &[Vec<Pmf>]) -> Option<Pmf> {
        let (mut states, mut products) = (vec![Pmf::one(0, 1.0)], 0_usize);
        let layers = self.layers()?;
        for (position, (class, layer)) in self.order.iter().zip(layers).enumerate() {
            let own = of_class.get(*class)?;
            let is_last = position + 1 == layers.len();
            // Of the last class, what comes before so many actions of it is convolved with them all at once.
            let mut next = vec![Pmf::default(); if is_last { own.len() } else { layer.width }];
            for Step { from, to, number, factor } in &layer.steps {
                let (before, of_number) = (&states[*from], own.get(*number)?);
                if is_last {
                    let weight = number_weights.get(*to).copied().unwrap_or(0.0);
                    next[*number].add_moved(before, 0, factor * weight);
                    continue;
                }
                products = products.saturating_add(before.len().saturating_mul(of_number.len()));
                if products > MAX_PRODUCTS {
                    return None;
                }
                next[*to].add_moved(&before.convolve(of_number), 0, *factor);
            }
            states = next;
        }
        let last_class = of_class.get(*self.order.last()?)?;
        let mut totals = Pmf::default();
        for (before, last) in states.iter().zip(last_class) {
            totals.add_moved(&before.convolve(last), 0, 1.0);
        }
        Some(totals)
    }

    fn layers(&self) -> Option<&[Layer]> {
        self.layers.get_or_init(|| self.compute_layers()).as_deref()
    }

    fn compute_layers(&self) -> Option<Vec<Layer>> {
        let counter = self.limits.counter()?;
        let mut states = vec![vec![0; self.limits.conditions().len()]];
        let mut layers = Vec::new();
        for (position, class) in self.order.iter().enumerate() {
            let is_last = position + 1 == self.order.len();
            let later = self.order.iter().skip(position + 1).fold(0_u64, |set, class| set | 1 << class);
            let mut next: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
            let mut steps = Vec::new();
            for (from, state) in states.iter().enumerate() {
                let (mut used, mut factor) = (state.clone(), 1.0);
                for number in 0..=self.limits.max_of_class(*class) as usize {
                    let places = next.len();
                    let to = if is_last {
                        used[counter] as usize
                    } else {
                        *next.entry(self.still_open(&used, later, counter)).or_insert(places)
                    };
                    steps.push(Step { from, to, number, factor });
                    let Some(free) = self.limits.take(*class, &mut used) else { break };
                    factor *= free;
                }
            }
            if next.len() > MAX_STATES {
                return None;
            }
            layers.push(Layer { steps, width: if is_last { self.max_actions as usize + 1 } else { next.len() } });
            let mut places: Vec<(usize, Vec<u32>)> = next.into_iter().map(|(used, at)| (at, used)).collect();
            places.sort_unstable();
            states = places.into_iter().map(|(_, used)| used).collect();
        }
        Some(layers)
    }

    /// How far conditions are used up, without those that no later class is in.
    fn still_open(&self, used: &[u32], later: u64, counter: usize) -> Vec<u32> {
        let open = |(at, (used, condition)): (usize, (&u32, &Condition))| {
            if at == counter || condition.holds_any(later) { *used } else { 0 }
        };
        used.iter().zip(self.limits.conditions()).enumerate().map(open).collect()
    }
}
