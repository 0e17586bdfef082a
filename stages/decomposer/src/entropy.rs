//! What is unknown of a command before its size is seen: the entropy of the prior over what the inventory allows.

use sizeleak_model::{Limits, Model, Prior};

use crate::count::sizes;
use crate::inventory::Automaton;
use crate::ranking::{COUNTED, MAX_TURNS, turns_from};

/// The walks into a state: the sum of their weights, and that of each weight times its logarithm.
#[derive(Debug, Clone, Copy, Default)]
struct Walks {
    mass: f64,
    weighted_ln: f64,
}

impl Walks {
    /// Adds walks that go on with a weight.
    fn add(&mut self, other: Self, weight: f64, ln: f64) {
        self.mass += weight * other.mass;
        self.weighted_ln += weight * (other.weighted_ln + ln * other.mass);
    }
}

/// The entropy of the actions of a command by the model's prior, in bits: H(A) = −Σ P(A) log₂ P(A) over all multisets within
/// the inventory. Of commands without end (no inventory), over those of up to 64 actions, or as many as can be counted.
/// `None` where the model has no prior, or its inventory is too tangled to walk through.
pub fn prior_bits(model: &Model) -> Option<f64> {
    let prior = model.prior.as_ref()?;
    let limits = model.limits().ok()?;
    let sizes = sizes(&model.actions).ok()?;
    COUNTED.iter().find_map(|most| {
        let limits = limits.counting(*most);
        entropy_bits(&Automaton::new(&sizes, &limits)?, &limits, prior)
    })
}

/// The entropy over the walks through an automaton whose states know the number of actions.
fn entropy_bits(automaton: &Automaton, limits: &Limits, prior: &Prior) -> Option<f64> {
    let mut into = vec![Walks { mass: 1.0, weighted_ln: 0.0 }];
    let mut by_number = vec![Walks::default(); limits.max_actions() as usize + 1];
    let mut turns = 0;
    for (place, layer) in automaton.layers.iter().enumerate() {
        let after = automaton.layers.get(place + 1);
        let mut into_next = vec![Walks::default(); after.map_or(0, |next| next.steps.len())];
        for (state, walks) in into.iter().enumerate() {
            for (turn, actions) in turns_from(layer, state, limits, prior) {
                let target = match after {
                    Some(_) => into_next.get_mut(turn.pass as usize),
                    None => by_number.get_mut(actions),
                };
                if let Some(target) = target {
                    target.add(*walks, turn.weight, turn.ln);
                }
                turns += 1;
            }
            if turns > MAX_TURNS {
                return None;
            }
        }
        into = into_next;
    }
    // P(A) = P(n) · weight / all weights of n actions; numbers that nothing allows take no share.
    let possible = || by_number.iter().zip(0_u32..).skip(1).filter(|(walks, _)| walks.mass > 0.0);
    let all: f64 = possible().map(|(_, number)| prior.ln_number(number).exp()).sum();
    let of_number = |(walks, number): (&Walks, u32)| {
        let share = prior.ln_number(number).exp() / all;
        share * (walks.mass.ln() - walks.weighted_ln / walks.mass - share.ln())
    };
    let nats: f64 = possible().map(of_number).sum();
    nats.is_finite().then(|| nats.max(0.0) / std::f64::consts::LN_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three devices that are told `on` or `off`, of which `on` is three times as likely.
    const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
        [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
        [prior]\nnumbers = [0.5, 0.25, 0.25]\ndecay = 0.5\nshares = [0.75, 0.25]\nconcentration = 1e9\n\
        [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

    #[test]
    fn the_entropy_is_that_of_all_commands() {
        let model = Model::from_toml(MODEL).unwrap();
        let binomial = [
            vec![0.75, 0.25],
            vec![9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0],
            vec![27.0 / 64.0, 27.0 / 64.0, 9.0 / 64.0, 1.0 / 64.0],
        ];
        let commands = binomial.into_iter().zip([0.5, 0.25, 0.25]);
        let probabilities = commands.flat_map(|(given, share)| given.into_iter().map(move |p| p * share));
        let expected: f64 = probabilities.map(|p: f64| -p * p.log2()).sum();
        let bits = prior_bits(&model).unwrap();
        assert!((bits - expected).abs() < 1e-6, "{bits} is not {expected}");
    }

    #[test]
    fn without_inventory_there_is_still_an_entropy() {
        let mut model = Model::from_toml(MODEL).unwrap();
        model.inventory = None;
        let free = prior_bits(&model).unwrap();
        assert!(free > 2.0 && free < 8.0, "{free}");
        model.prior = None;
        assert_eq!(prior_bits(&model), None);
    }
}
