//! What the inventory makes of the prior: which numbers of actions have a device each, and the share of devices that
//! were still free.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Add;

use foldhash::fast::RandomState;
use sizeleak_model::{Condition, Limits, Pmf, Prior};

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
    limits: Limits,
    order: Vec<usize>,
    max_actions: u32,
    /// What one action of each class adds to [`Totals`].
    places: Vec<u128>,
    known_shares: RefCell<HashMap<Totals, f64, RandomState>>,
}

/// How many actions there are of each class of the inventory, as the digits of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Totals(u128);

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// What there is before the last class of actions.
#[derive(Debug, Clone, Copy)]
struct BeforeLast<'a> {
    /// How many actions.
    actions: usize,
    /// The prior's factor for free devices.
    factor: f64,
    /// Their sums; the devices' factors of earlier classes are in the weights.
    sums: &'a Pmf,
}

impl DeviceLimits {
    /// `None` for more classes and devices than [`Totals`] can count.
    pub(crate) fn new(limits: &Limits) -> Option<Self> {
        let limits = limits.counting(MAX_ACTIONS);
        let max_actions = limits.max_actions().min(MAX_ACTIONS);
        let base = u128::from(max_actions) + 1;
        let mut places = vec![1_u128];
        for _ in 0..limits.classes() {
            places.push(places.last()?.checked_mul(base)?);
        }
        Some(Self { order: limits.class_order(), limits, max_actions, places, known_shares: RefCell::default() })
    }

    pub(crate) fn totals_of(&self, class: usize, number: u32) -> Totals {
        Totals(self.places[class] * u128::from(number))
    }

    /// See [`Self::share`].
    pub(crate) fn share_of(&self, totals: Totals) -> f64 {
        let mut known = self.known_shares.borrow_mut();
        if known.len() >= MAX_KNOWN_SHARES {
            known.clear();
        }
        *known.entry(totals).or_insert_with(|| {
            let digit = |(place, next): (&u128, &u128)| (totals.0 % next / place) as u32;
            self.share(&self.places.iter().zip(&self.places[1..]).map(digit).collect::<Vec<u32>>())
        })
    }

    pub(crate) fn class_of(&self, action: usize) -> usize {
        self.limits.class_of(action)
    }

    pub(crate) fn classes(&self) -> usize {
        self.limits.classes()
    }

    pub(crate) fn max_of_class(&self, class: usize) -> u32 {
        self.limits.max_of_class(class).min(MAX_ACTIONS)
    }

    /// The most actions of a command.
    pub(crate) fn max_actions(&self) -> u32 {
        self.max_actions
    }

    /// The factor of the prior for devices that are free, given how many actions there are of each class; 0 beyond the
    /// limits.
    pub(crate) fn share(&self, totals: &[u32]) -> f64 {
        let mut used = vec![0; self.limits.conditions().len()];
        let mut share = 1.0;
        for class in &self.order {
            for _ in 0..totals.get(*class).copied().unwrap_or(0) {
                let Some(factor) = self.take(*class, &mut used) else { return 0.0 };
                share *= factor;
            }
        }
        share
    }

    /// Takes a device for an action of a class, given how far each condition is used up. Returns the share of its
    /// devices that were free; `None` if none is.
    fn take(&self, class: usize, used: &mut [u32]) -> Option<f64> {
        let held = || self.limits.conditions().iter().enumerate().filter(|(_, one)| one.holds_class(class));
        let (mut free, mut devices) = (u32::MAX, u32::MAX);
        for (at, condition) in held() {
            let used = used.get_mut(at)?;
            if *used >= condition.max() {
                return None;
            }
            if condition.devices() < u32::MAX {
                free = free.min(condition.devices().saturating_sub(*used));
                devices = devices.min(condition.devices());
            }
            *used += 1;
        }
        Some(if devices == u32::MAX { 1.0 } else { f64::from(free) / f64::from(devices) })
    }

    /// The weights of all multisets of each number of actions together, from 0, given those of k actions of each class.
    /// `None` where devices can be used up in too many ways.
    pub(crate) fn number_totals(&self, of_class: &[Vec<f64>]) -> Option<Vec<f64>> {
        let totals: Vec<Vec<Pmf>> =
            of_class.iter().map(|own| own.iter().map(|total| Pmf::one(0, *total)).collect()).collect();
        let mut all = vec![0.0; self.max_actions() as usize + 1];
        let last_class = of_class.get(*self.order.last()?)?;
        self.visit_last(&totals, |before, number| {
            if let Some((all, last)) = all.get_mut(before.actions + number).zip(last_class.get(number)) {
                *all += before.factor * before.sums.total() * last;
            }
        })?;
        Some(all)
    }

    /// What each number of actions weighs, from 0: P(n) over [`Self::number_totals`].
    pub(crate) fn number_weights(&self, prior: &Prior, of_class: &[Vec<Pmf>]) -> Option<Vec<f64>> {
        let totals: Vec<Vec<f64>> = of_class.iter().map(|sums| sums.iter().map(Pmf::total).collect()).collect();
        let weight = |(all, number): (&f64, u32)| (prior.ln_number(number) - all.max(f64::MIN_POSITIVE).ln()).exp();
        Some(self.number_totals(&totals)?.iter().zip(0..).map(weight).collect())
    }

    /// The weights of all sums of actions, whatever the actions.
    pub(crate) fn size_totals(&self, number_weights: &[f64], of_class: &[Vec<Pmf>]) -> Option<Pmf> {
        let last_class = of_class.get(*self.order.last()?)?;
        // What comes before k actions of the last class, by k.
        let mut before = vec![Pmf::default(); last_class.len()];
        self.visit_last(of_class, |state, number| {
            let weight = number_weights.get(state.actions + number).copied().unwrap_or(0.0);
            if let Some(before) = before.get_mut(number) {
                before.add_moved(state.sums, 0, state.factor * weight);
            }
        })?;
        let mut totals = Pmf::default();
        for (before, last) in before.iter().zip(last_class) {
            totals.add_moved(&before.convolve(last), 0, 1.0);
        }
        Some(totals)
    }

    /// Gives devices to one class after the other. Calls `visit` for each state before the last class with each number of
    /// that class's actions; the factor is then that of the last class's devices too.
    fn visit_last(&self, of_class: &[Vec<Pmf>], mut visit: impl FnMut(BeforeLast<'_>, usize)) -> Option<()> {
        let counter = self.limits.counter()?;
        let mut products = 0_usize;
        let mut states = BTreeMap::from([(vec![0; self.limits.conditions().len()], Pmf::one(0, 1.0))]);
        for (position, class) in self.order.iter().enumerate() {
            let is_last = position + 1 == self.order.len();
            let later = self.order.iter().skip(position + 1).fold(0_u64, |set, class| set | 1 << class);
            let mut next: BTreeMap<Vec<u32>, Pmf> = BTreeMap::new();
            for (mut used, sums) in states {
                let mut share = Some(1.0);
                let actions = used.get(counter).copied()? as usize;
                for (number, of_number) in of_class.get(*class)?.iter().enumerate() {
                    let Some(factor) = share else { break };
                    if is_last {
                        visit(BeforeLast { actions, factor, sums: &sums }, number);
                    } else {
                        products = products.saturating_add(sums.len().saturating_mul(of_number.len()));
                        if products > MAX_PRODUCTS {
                            return None;
                        }
                        let key = self.still_open(&used, later, counter);
                        next.entry(key).or_default().add_moved(&sums.convolve(of_number), 0, factor);
                    }
                    share = self.take(*class, &mut used).map(|free| factor * free);
                }
            }
            states = next;
            if states.len() > MAX_STATES {
                return None;
            }
        }
        Some(())
    }

    /// How far conditions are used up, without those that no later class is in.
    fn still_open(&self, used: &[u32], later: u64, counter: usize) -> Vec<u32> {
        let open = |(at, (used, condition)): (usize, (&u32, &Condition))| {
            if at == counter || condition.holds_any(later) { *used } else { 0 }
        };
        used.iter().zip(self.limits.conditions()).enumerate().map(open).collect()
    }
}
