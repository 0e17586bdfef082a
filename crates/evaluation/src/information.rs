//! How much is given away, in bits: the uncertainty about a command before its size is seen, and after.

use serde::Serialize;
use sizeleak_inference::space::{CommandSpace, Home, Premises, PriorName};
use sizeleak_model::{Action, Kind, Model};
use sizeleak_pipeline::Pipeline;

use crate::judge::Judgement;

/// Means over all labelled commands, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Information {
    /// The entropy without the size: by the prior that made the candidates' probabilities, or over all commands the
    /// inventory allows, each equally likely. Null if nothing bounds them.
    pub prior_bits: Option<f64>,
    /// The entropy of the candidates; for a command without candidates, that of the prior.
    pub posterior_bits: f64,
    /// Their difference.
    pub leaked_bits: Option<f64>,
    /// Whether truncated lists make `posterior_bits` an upper bound and `leaked_bits` a lower one.
    pub is_bound: bool,
}

impl Information {
    /// The information about labelled commands, found or not, given the entropy of the prior.
    pub(crate) fn new<'a>(labels: impl Iterator<Item = Option<&'a Judgement>>, prior_bits: Option<f64>) -> Self {
        let (mut sum, mut counted, mut is_bound) = (0.0, 0_u64, false);
        for judgement in labels {
            let known = judgement.filter(|judgement| judgement.candidates > 0);
            let bits = known.map(|judgement| judgement.probabilities.entropy_bits).or(prior_bits);
            let Some(bits) = bits else { continue };
            sum += bits;
            counted += 1;
            is_bound |= known.is_some_and(|judgement| judgement.is_truncated);
        }
        let posterior_bits = if counted > 0 { sum / counted as f64 } else { 0.0 };
        let leaked_bits = prior_bits.filter(|_| counted > 0).map(|prior| prior - posterior_bits);
        Self { prior_bits, posterior_bits, leaked_bits, is_bound }
    }
}

/// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` if nothing bounds it, if
/// there are too many combinations of devices, or where each of several sections of the model knows something else.
/// Commands of more actions than are counted are left out.
pub(crate) fn prior_bits(pipeline: &Pipeline, sections: &[Model]) -> Option<f64> {
    let [model] = sections else { return None };
    let option = |key| pipeline.option("decomposer", key);
    let wanted = option("prior").and_then(|name| name.clone().try_into().ok()).unwrap_or_default();
    let prior = if model.prior.is_some() { wanted } else { PriorName::Flat };
    let inventory = model.inventory.as_ref().filter(|_| option("free") != Some(&true.into()));
    let of_sums = || bits_of_sums(&Home { inventory, ..Home::from(model) }, prior);
    let Some(kinds) = &model.kinds else { return of_sums() };
    let times: Vec<u64> = kinds.list.iter().map(Kind::commands).collect();
    let of_kinds: u64 = times.iter().fold(0, |sum, times| sum.saturating_add(*times));
    let additive = model.learned.commands.saturating_sub(of_kinds);
    let all = of_kinds.saturating_add(additive).max(1) as f64;
    let bits = |times: u64| {
        let share = times as f64 / all;
        if share > 0.0 { -share * share.log2() } else { 0.0 }
    };
    let within_sums = if model.actions.is_empty() { 0.0 } else { additive as f64 / all * of_sums()? };
    Some(times.into_iter().map(bits).sum::<f64>() + bits(additive) + within_sums)
}

/// The entropy of the commands of a home: −Σ P(A) log₂ P(A).
fn bits_of_sums(home: &Home<'_>, prior: PriorName) -> Option<f64> {
    // How many bytes they have does not matter.
    let actions: Vec<Action> = home.actions.iter().map(|action| Action::new(action.name.clone(), 1)).collect();
    let home = Home { overhead: 0, actions: &actions, ..*home };
    let space = CommandSpace::new(home, &Premises { prior, decay: None }).ok()?;
    let all = 1.0 - space.left_out();
    let plogp: f64 = space.size_rows().ok()?.iter().map(|row| row.plogp).sum();
    Some((all.log2() - plogp / all).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{ProbabilitySummary, TruthRank};

    /// Three devices that are switched `on` or `off`; `on` is three times as likely.
    const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
        [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
        [prior]\nnumbers = [0.5, 0.25, 0.25]\ndecay = 0.5\nshares = [0.75, 0.25]\nconcentration = 1e9\n\
        [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

    /// The probabilities of all commands of one, two and three actions.
    const BINOMIAL: [f64; 9] = [
        0.5 * 0.75,
        0.5 * 0.25,
        9.0 / 64.0,
        6.0 / 64.0,
        1.0 / 64.0,
        27.0 / 256.0,
        27.0 / 256.0,
        9.0 / 256.0,
        1.0 / 256.0,
    ];

    fn bits(model: &Model, prior: PriorName) -> Option<f64> {
        bits_of_sums(&Home::from(model), prior)
    }

    fn entropy(probabilities: &[f64]) -> f64 {
        probabilities.iter().map(|p| -p * p.log2()).sum()
    }

    #[test]
    fn entropy_is_summed_over_all_commands() {
        let model = Model::from_toml(MODEL).unwrap();
        let found = bits(&model, PriorName::Learned).unwrap();
        assert!((found - entropy(&BINOMIAL)).abs() < 1e-6, "{found}");
        assert!((bits(&model, PriorName::Flat).unwrap() - 9_f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn entropy_counts_commands_that_recur() {
        let recurring = "recurring = [{ counts = [2, 0], share = 0.2 }, { counts = [0, 9], share = 0.1 }]\n[replies]";
        let model = Model::from_toml(&MODEL.replace("[replies]", recurring)).unwrap();
        let mut probabilities = BINOMIAL.map(|p| 0.8 * p);
        // `on` twice; `off` nine times is not possible.
        probabilities[2] += 0.2;
        let found = bits(&model, PriorName::Recurring).unwrap();
        assert!((found - entropy(&probabilities)).abs() < 1e-6, "{found}");
    }

    #[test]
    fn entropy_is_finite_without_an_inventory_if_habits_are_known() {
        let mut model = Model::from_toml(MODEL).unwrap();
        model.inventory = None;
        let free = bits(&model, PriorName::Learned).unwrap();
        assert!(free > 2.0 && free < 8.0, "{free}");
        assert_eq!(bits(&model, PriorName::Flat), None);
    }

    #[test]
    fn missed_command_leaks_no_bits() {
        let probabilities = ProbabilitySummary { entropy_bits: 2.0, ..ProbabilitySummary::default() };
        let rank = TruthRank::Listed(1);
        let found = Judgement { rank, candidates: 4, is_truncated: true, first: None, probabilities };
        let labels = || [Some(&found), None].into_iter();
        let known = Information::new(labels(), Some(10.0));
        assert_eq!((known.posterior_bits, known.leaked_bits, known.is_bound), (6.0, Some(4.0), true));
        let unbounded = Information::new(labels(), None);
        assert_eq!((unbounded.posterior_bits, unbounded.leaked_bits), (2.0, None));
    }
}
