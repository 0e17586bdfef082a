//! What is unknown about a command before its size is seen: the entropy of the prior over what the inventory allows.

use sizeleak_model::{Kind, Limits, Model, Prior};

use super::automaton::Automaton;
use super::prior_walk::{COUNTED_ACTIONS, WalkPrior, WalkSums, sum_walks, walk_weight};
use super::solver::action_sizes;

/// The entropy of a command's actions under the model's prior, in bits: H(A) = −Σ P(A) log₂ P(A) over all multisets
/// within the inventory, and over the kinds of the model. Without an inventory, over multisets of up to 64 actions, or
/// as many as can be counted. `None` where the model has no prior, or its inventory has too many states.
pub fn prior_bits(model: &Model) -> Option<f64> {
    let Some(kinds) = &model.kinds else { return bits_of_sums(model) };
    let times: Vec<u64> = kinds.list.iter().map(Kind::commands).collect();
    let of_kinds: u64 = times.iter().fold(0, |sum, times| sum.saturating_add(*times));
    let of_sums = model.learned.commands.saturating_sub(of_kinds);
    let all = (of_kinds.saturating_add(of_sums)).max(1) as f64;
    let bits = |times: u64| {
        let share = times as f64 / all;
        if share > 0.0 { -share * share.log2() } else { 0.0 }
    };
    let within_sums = if model.actions.is_empty() { 0.0 } else { of_sums as f64 / all * bits_of_sums(model)? };
    Some(times.into_iter().map(bits).sum::<f64>() + bits(of_sums) + within_sums)
}

fn bits_of_sums(model: &Model) -> Option<f64> {
    let prior = model.prior.as_ref()?;
    let limits = model.limits().ok()?;
    let sizes = action_sizes(&model.actions).ok()?;
    COUNTED_ACTIONS.iter().find_map(|most| {
        let limits = limits.counting(*most);
        entropy_bits(&Automaton::new(&sizes, &limits)?, &limits, prior)
    })
}

/// The entropy over the walks through an automaton whose states count actions.
fn entropy_bits(automaton: &Automaton, limits: &Limits, prior: &Prior) -> Option<f64> {
    let walk_prior = WalkPrior::Habit(prior);
    let by_actions = sum_walks(automaton, limits, &walk_prior, |_| ())?;
    // P(A) = P(n) · weight / weights of all walks of n actions; impossible numbers of actions take no share.
    let possible = || by_actions.iter().zip(0_u32..).skip(1).filter(|(walks, _)| walks.weight > 0.0);
    let all: f64 = possible().map(|(_, actions)| prior.ln_number(actions).exp()).sum();
    let nats_of = |(walks, actions): (&WalkSums, u32)| {
        let share = prior.ln_number(actions).exp() / all;
        share * (walks.weight.ln() - walks.weighted_ln / walks.weight - share.ln())
    };
    let nats: f64 = possible().map(nats_of).sum();
    let by_habit = |counts: &[u32]| {
        let total = counts.iter().fold(0, |sum: u32, count| sum.saturating_add(*count));
        let walks = by_actions.get(total as usize).filter(|walks| walks.weight > 0.0);
        let given = |walks: &WalkSums| walk_weight(automaton, limits, &walk_prior, counts) / walks.weight;
        walks.map_or(0.0, |walks| prior.ln_number(total).exp() / all * given(walks))
    };
    let nats = with_recurring(nats, prior, by_habit);
    nats.is_finite().then(|| nats.max(0.0) / std::f64::consts::LN_2)
}

/// The entropy in nats, given that by habit alone, where some commands recur: their probability by habit, of which the
/// others' share is left, and a share of their own.
fn with_recurring(by_habit: f64, prior: &Prior, probability: impl Fn(&[u32]) -> f64) -> f64 {
    let nats = |share: f64| if share > 0.0 { -share * share.ln() } else { 0.0 };
    let recurring = || prior.recurring.iter().map(|command| (command.share, probability(&command.counts)));
    // What the inventory does not allow does not recur.
    let possible = || recurring().filter(|(_, by_habit)| *by_habit > 0.0);
    let left = 1.0 - possible().map(|(share, _)| share).sum::<f64>();
    let others = by_habit - possible().map(|(_, by_habit)| nats(by_habit)).sum::<f64>();
    let others_share = 1.0 - possible().map(|(_, by_habit)| by_habit).sum::<f64>();
    let of_recurring: f64 = possible().map(|(share, by_habit)| nats(left * by_habit + share)).sum();
    left * others + others_share * nats(left) + of_recurring
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three devices that are switched `on` or `off`; `on` is three times as likely.
    const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
        [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
        [prior]\nnumbers = [0.5, 0.25, 0.25]\ndecay = 0.5\nshares = [0.75, 0.25]\nconcentration = 1e9\n\
        [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

    #[test]
    fn entropy_is_summed_over_all_commands() {
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
    fn entropy_counts_commands_that_recur() {
        let recurring = "recurring = [{ counts = [2, 0], share = 0.2 }, { counts = [0, 9], share = 0.1 }]\n[replies]";
        let model = Model::from_toml(&MODEL.replace("[replies]", recurring)).unwrap();
        let binomial = [
            vec![0.75, 0.25],
            vec![9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0],
            vec![27.0 / 64.0, 27.0 / 64.0, 9.0 / 64.0, 1.0 / 64.0],
        ];
        let commands = binomial.into_iter().zip([0.5, 0.25, 0.25]);
        let mut probabilities: Vec<f64> =
            commands.flat_map(|(given, share)| given.into_iter().map(move |p| 0.8 * p * share)).collect();
        // `on` twice; `off` nine times is not possible.
        probabilities[2] += 0.2;
        let expected: f64 = probabilities.into_iter().map(|p: f64| -p * p.log2()).sum();
        let bits = prior_bits(&model).unwrap();
        assert!((bits - expected).abs() < 1e-6, "{bits} is not {expected}");
    }

    #[test]
    fn entropy_is_finite_without_an_inventory() {
        let mut model = Model::from_toml(MODEL).unwrap();
        model.inventory = None;
        let free = prior_bits(&model).unwrap();
        assert!(free > 2.0 && free < 8.0, "{free}");
        model.prior = None;
        assert_eq!(prior_bits(&model), None);
    }
}
