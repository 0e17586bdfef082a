//! The prior probability of commands as a product: P(A) = g(t) · Π fₐ(cₐ), for the counts c of the actions and the
//! totals t of their classes (actions that the same kinds of device have).
//!
//! | prior | fₐ(c) | g(t) |
//! |---|---|---|
//! | learned | Pólya's urn, as [`Prior::ln_next`] | P(n) · share of free devices / sum over all commands of n actions |
//! | recurring | the same | the same · (1 − Σ hⱼ), and hⱼ more for each recurring command |
//! | devices | 1 / c! | P(n) / C(devices, n) · ways to give the actions to devices · Π t! |
//! | flat | 1 | 1 / number of commands |

use std::collections::BTreeMap;

use sizeleak_model::{Limits, Prior, choose};

use super::device_ways::{DeviceWays, WayWeight};
use super::premises::{Home, Premises, PriorName, SpaceError};

/// The most combinations of totals: as many take about a second and 50 MB.
const MAX_TOTALS: usize = 1 << 18;

/// The factors of the probability of commands.
#[derive(Debug, Clone)]
pub struct CommandWeights {
    /// fₐ(c) by action and count.
    pub of_action: Vec<Vec<f64>>,
    /// g(t), where it is above 0.
    pub of_totals: BTreeMap<Vec<u32>, f64>,
    /// hⱼ of each command that recurs, by the counts of its actions.
    pub recurring: Vec<(Vec<u32>, f64)>,
}

impl CommandWeights {
    /// The weights of the commands of a home that `limits` allow; these count actions ([`Limits::counting`]).
    pub fn new(home: &Home<'_>, limits: &Limits, premises: &Premises) -> Result<Self, SpaceError> {
        let most = limits.max_actions();
        let totals = all_totals(limits)?;
        let of_action: Vec<Vec<f64>> = (0..home.actions.len())
            .map(|action| {
                factors(home.prior, premises.prior, action, limits.max_of_class(limits.class_of(action)).min(most))
            })
            .collect::<Option<_>>()
            .ok_or(SpaceError::NoPrior)?;
        let weights: Vec<f64> = match premises.prior {
            PriorName::Learned | PriorName::Recurring => {
                let order = limits.class_order();
                totals.iter().map(|totals| limits.free_shares(&order, totals)).collect()
            }
            PriorName::Flat => vec![1.0; totals.len()],
            PriorName::Devices => {
                let inventory = home.inventory.ok_or(SpaceError::NoInventory("devices"))?;
                let ways = DeviceWays::new(inventory, home.actions, limits, WayWeight::Share, |_| 1)?;
                let devices = inventory.devices.iter().fold(0_u32, |sum, kind| sum.saturating_add(kind.count));
                let weight = |totals: &Vec<u32>| {
                    let orders: f64 = totals.iter().map(|total| factorial(*total)).product();
                    ways.all(totals) * orders / choose(devices, totals.iter().sum())
                };
                totals.iter().map(weight).collect()
            }
        };
        let of_class = class_sums(&of_action, limits);
        let mut by_number = vec![0.0; most as usize + 1];
        for (totals, weight) in totals.iter().zip(&weights) {
            let all: f64 = of_class.iter().zip(totals).map(|(sums, total)| sums[*total as usize]).product();
            by_number[number_of(totals)] += weight * all;
        }
        let of_number = if premises.prior == PriorName::Flat { None } else { Some(numbers(home, premises, most)?) };
        let scales = scales(&by_number, of_number.as_deref());
        let mut of_totals = BTreeMap::new();
        for (totals, weight) in totals.into_iter().zip(weights) {
            let number = number_of(&totals);
            let of_command = weight * scales[number];
            let has_no_share = of_number.as_ref().is_some_and(|shares| shares[number] == 0.0);
            if of_command.is_normal() {
                of_totals.insert(totals, of_command);
            } else if number > 0 && weight != 0.0 && !has_no_share {
                return Err(SpaceError::OutOfRange);
            }
        }
        let prior = home.prior.filter(|_| premises.prior == PriorName::Recurring);
        let allowed = prior.into_iter().flat_map(|prior| prior.recurring_within(limits));
        let recurring: Vec<(Vec<u32>, f64)> = allowed.map(|command| (command.counts.clone(), command.share)).collect();
        let by_habit = 1.0 - recurring.iter().map(|(_, share)| share).sum::<f64>();
        for weight in of_totals.values_mut() {
            *weight *= by_habit;
        }
        Ok(Self { of_action, of_totals, recurring })
    }

    /// The prior probability of a command by habit, given the totals of its classes; 0 if there is none such.
    pub fn by_habit(&self, counts: &[u32], totals: &[u32]) -> f64 {
        let factor = |(action, count): (usize, &u32)| {
            self.of_action.get(action).and_then(|factors| factors.get(*count as usize)).copied().unwrap_or(0.0)
        };
        let factors: f64 = counts.iter().enumerate().map(factor).product();
        factors * self.of_totals.get(totals).copied().unwrap_or(0.0)
    }
}

fn number_of(totals: &[u32]) -> usize {
    totals.iter().sum::<u32>() as usize
}

/// What to multiply the weights of commands of each number of actions by, so that these have the probability
/// `of_number`, or without it all commands have the sum 1. There is no command without actions, and what the limits do
/// not allow takes no share.
fn scales(by_number: &[f64], of_number: Option<&[f64]>) -> Vec<f64> {
    let possible = |number: usize| number > 0 && by_number[number] > 0.0;
    match of_number {
        None => {
            let all: f64 = by_number[1..].iter().sum();
            (0..by_number.len()).map(|number| if number > 0 { 1.0 / all } else { 0.0 }).collect()
        }
        Some(of_number) => {
            let all: f64 =
                (0..by_number.len()).filter(|number| possible(*number)).map(|number| of_number[number]).sum();
            let scale =
                |number: usize| if possible(number) { of_number[number] / all / by_number[number] } else { 0.0 };
            (0..by_number.len()).map(scale).collect()
        }
    }
}

/// The probability of each number of actions up to `most`.
fn numbers(home: &Home<'_>, premises: &Premises, most: u32) -> Result<Vec<f64>, SpaceError> {
    let logarithm = |number: u32| match (premises.decay, home.prior) {
        (Some(decay), _) => Ok(if number > 0 { f64::from(number) * decay.ln() } else { f64::NEG_INFINITY }),
        (None, Some(prior)) => Ok(prior.ln_number(number)),
        (None, None) => Err(SpaceError::NoNumbers),
    };
    let probability = |logarithm: f64| match logarithm.exp() {
        probability if probability.is_normal() || logarithm == f64::NEG_INFINITY => Ok(probability),
        _ => Err(SpaceError::OutOfRange),
    };
    (0..=most).map(|number| logarithm(number).and_then(probability)).collect()
}

/// The probability of more than `most` actions, where nothing limits their number.
pub(super) fn more_actions(prior: Option<&Prior>, premises: &Premises, most: u32) -> f64 {
    match (premises.prior, premises.decay, prior) {
        (PriorName::Flat, ..) | (_, None, None) => 1.0,
        (_, Some(decay), _) => decay.powf(f64::from(most)),
        (_, None, Some(prior)) => (1.0 - (1..=most).map(|number| prior.ln_number(number).exp()).sum::<f64>()).max(0.0),
    }
}

/// fₐ(c) for c up to `most`; `None` if it is not learned.
fn factors(prior: Option<&Prior>, name: PriorName, action: usize, most: u32) -> Option<Vec<f64>> {
    Some(match name {
        PriorName::Flat => vec![1.0; most as usize + 1],
        PriorName::Devices => (0..=most).map(|count| factorial(count).recip()).collect(),
        PriorName::Learned | PriorName::Recurring => {
            let prior = prior?;
            let logarithm = |ln: &mut f64, nth: u32| {
                if nth > 0 {
                    *ln += prior.ln_next(action, nth);
                }
                Some(ln.exp())
            };
            (0..=most).scan(0.0, logarithm).collect()
        }
    })
}

fn all_totals(limits: &Limits) -> Result<Vec<Vec<u32>>, SpaceError> {
    let mut found = vec![vec![0; limits.classes()]];
    for class in 0..limits.classes() {
        let mut more = Vec::new();
        for mut totals in found {
            while limits.admits_totals(&totals) {
                more.push(totals.clone());
                totals[class] += 1;
            }
            if more.len() > MAX_TOTALS {
                return Err(SpaceError::TooMany);
            }
        }
        found = more;
    }
    Ok(found)
}

/// For each class, the sum of Π fₐ(cₐ) over all multisets of its actions, by how many they are.
fn class_sums(of_action: &[Vec<f64>], limits: &Limits) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![1.0]; limits.classes()];
    for (action, factors) in of_action.iter().enumerate() {
        let class = limits.class_of(action);
        let most = limits.max_of_class(class).min(limits.max_actions()) as usize;
        let mut next = vec![0.0; most + 1];
        for (before, sum) in sums[class].iter().enumerate() {
            for (next, factor) in next[before..].iter_mut().zip(factors) {
                *next += sum * factor;
            }
        }
        sums[class] = next;
    }
    sums
}

fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}
