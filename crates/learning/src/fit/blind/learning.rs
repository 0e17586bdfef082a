//! From observations to sizes, and how certain they are; and the actions that each command probably has, drawn from all
//! that explain it: the most probable ones alone would be those of small commands.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sizeleak_model::Pmf;

use super::lost_replies::silent_start;
use super::naming::{Exchange, Label, Naming, labels, name};
use super::rows::{MAX_ROWS, ReplyClasses, Rows, row};
use super::search::{
    Candidate, MAX_ACTIONS, Step, cost_of_size, fewest_replies, plain_step, planned, search, search_lengths,
};
use super::sparsity::{Atom, atoms, is_artefact, sparsify};
use super::{Alternative, BlindAction, BlindFit, BlindFitError, Observation, UncertainNames};
use crate::fit::evidence::STRONG;
use crate::fit::expectation::{Beforehand, Expected, Parameters, Plan, drawn, expect, shares};

/// The fewest commands to learn from: there are about as many unknown sizes and shares.
const MIN_COMMANDS: usize = 12;
/// The fewest different sizes of commands: any three are explained by an overhead and two sizes of actions.
const MIN_SIZES: usize = 4;
/// The largest share of commands that a fit may leave unexplained: the others decide by far.
const MAX_OUTLIERS: f64 = 0.3;
/// The same from lengths alone, where a wrong fit explains most sizes by chance.
const MAX_OUTLIERS_OF_LENGTHS: f64 = 0.12;
/// The most kinds of actions that are looked for.
const MOST_ACTIONS: usize = 24;
/// How many explanations are refined, a bound of the time.
const FINALISTS: usize = 10;
/// How many of them may have one |ac| and one form of length fields.
const MAX_ALIKE: usize = 6;
/// What is worse by more nats before it is refined is left out: refining adds a few for each of some ten sizes.
const HOPELESS: f64 = 40.0;

struct Refined {
    candidate: Candidate,
    atoms: Vec<Atom>,
    expected: Expected,
    naming: Naming,
    score: f64,
}

/// Learns sizes from commands of which few or none are labelled. `names` are the actions that labels count; `is_wire`:
/// sizes are those on the wire, of which an unknown part is due to encryption.
pub fn learn(observations: &[Observation], names: &[String], is_wire: bool) -> Result<BlindFit, BlindFitError> {
    let mut counts = observations.iter().filter_map(|observation| observation.counts.as_ref());
    if let Some(counts) = counts.find(|counts| counts.len() != names.len()) {
        return Err(BlindFitError::LabelLength { counts: counts.len(), names: names.len() });
    }
    let mut classes = ReplyClasses::of(observations);
    let mut rows = Rows::of(observations, &classes);
    if rows.commands < MIN_COMMANDS {
        return Err(BlindFitError::TooFewCommands { commands: rows.commands, needed: MIN_COMMANDS });
    }
    let sizes = rows.rows.iter().map(|row| row.size).collect::<std::collections::BTreeSet<i64>>().len();
    if sizes < MIN_SIZES {
        return Err(BlindFitError::TooFewSizes { sizes, needed: MIN_SIZES });
    }
    let (mut found, silent) = if classes.sizes.is_empty() {
        rows = rows.of_small_sizes();
        (search_lengths(&rows, is_wire), MAX_ACTIONS / 2)
    } else {
        (search(&rows, classes.sizes.len(), is_wire), 3)
    };
    while let Some(class) = found.first().and_then(foreign_class) {
        classes = classes.without(class);
        rows = Rows::of(observations, &classes);
        for candidate in &mut found {
            candidate.parameters.sizes.remove(class);
        }
    }
    let not_additive = BlindFitError::NotAdditive { explained: 0, commands: rows.commands };
    let Some((used, plan)) = planned(&rows, fewest_replies(&rows, 1000, 0.95), MAX_ROWS, classes.sizes.len(), silent)
    else {
        return Err(not_additive);
    };
    let step = plain_step(&rows, MOST_ACTIONS);
    let labels = labels(observations, &classes);
    let mut refined: Vec<Refined> = Vec::new();
    for mut candidate in finalists(found) {
        if plan.actions > 1 {
            candidate.parameters.silent = silent_start(&plan, 0.05);
        }
        candidate.improve(&plan, 8, Step { splits_lost: plan.actions > 1, ..step });
        // Fewer sizes hardly explain more.
        let best = refined.iter().map(|refined| refined.expected.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
        if candidate.log_likelihood > best - HOPELESS / 2.0 {
            refined.push(refine(candidate, &plan, step, &labels));
        }
    }
    refined.sort_by(|a, b| b.score.total_cmp(&a.score));
    let Some(best) = refined.first() else { return Err(not_additive) };
    let mut fit = result(best, &plan, step, &classes, names);
    let most_outliers = if classes.sizes.is_empty() { MAX_OUTLIERS_OF_LENGTHS } else { MAX_OUTLIERS };
    if fit.actions.is_empty() || fit.outliers > most_outliers {
        let explained = ((1.0 - fit.outliers) * used.commands as f64) as usize;
        return Err(BlindFitError::NotAdditive { explained, commands: used.commands });
    }
    fit.alternatives = alternatives(&refined, fit.overhead);
    if classes.sizes.is_empty() {
        determined(&refined, used.commands)?;
    }
    fit.commands = used.commands;
    let closest = fit.alternatives.first().map_or(f64::INFINITY, |alternative| alternative.difference);
    fit.more_commands_needed = fit.more_commands_needed.max(more_commands(used.commands, closest));
    let candidate = &best.candidate;
    let drawing = Drawing { fit: &fit, candidate, classes: &classes, beforehand: step.beforehand };
    fit.drawn = drawing.actions(observations);
    Ok(fit)
}

/// The explanations that are worth refining: the best, and the best of each form of length fields.
fn finalists(found: Vec<Candidate>) -> Vec<Candidate> {
    let best = found.first().map_or(f64::NEG_INFINITY, Candidate::score);
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        let kind = |candidate: &Candidate| std::mem::discriminant(&candidate.form.fields);
        let alike = kept.iter().filter(|other| kind(other) == kind(&candidate));
        let is_first = alike.clone().next().is_none();
        let same = alike.filter(|other| other.overhead == candidate.overhead).count();
        let is_near = kept.len() < FINALISTS && same < MAX_ALIKE && candidate.score() > best - HOPELESS;
        if is_first || is_near {
            kept.push(candidate);
        }
    }
    kept
}

/// Lengths alone are ambiguous more often than replies: what is hardly better than something else is no answer.
fn determined(refined: &[Refined], commands: usize) -> Result<(), BlindFitError> {
    let Some((best, others)) = refined.split_first() else { return Ok(()) };
    let differs = |other: &&Refined| other.candidate.overhead != best.candidate.overhead;
    let mut overheads = vec![best.candidate.overhead];
    let is_close = |other: &&Refined| best.score - other.score < STRONG;
    overheads.extend(others.iter().filter(differs).filter(is_close).map(|other| other.candidate.overhead));
    let Some(second) = others.iter().find(differs).filter(|_| overheads.len() > 1) else { return Ok(()) };
    Err(BlindFitError::Undetermined { overheads, more_commands: more_commands(commands, best.score - second.score) })
}

/// A class whose replies add nothing to the size of commands.
fn foreign_class(candidate: &Candidate) -> Option<usize> {
    let (_, classes) = candidate.parameters.sizes.split_last()?;
    let adds_nothing = |sizes: &Pmf| sizes.at(0) > 0.9;
    classes.iter().position(adds_nothing).filter(|_| classes.len() > 1)
}

fn refine(mut candidate: Candidate, plan: &Plan, step: Step, labels: &[(Label, usize)]) -> Refined {
    sparsify(&mut candidate, plan, step);
    // The most frequent ε is 0.
    let most = candidate.parameters.epsilon.mode();
    candidate.overhead += most;
    candidate.parameters.epsilon = candidate.parameters.epsilon.moved(-most);
    let expected = expect(plan, &candidate.targets(plan), &candidate.parameters, step.beforehand);
    let all = atoms(&candidate.parameters, &expected);
    let silent = plan.actions - 1;
    let atoms: Vec<Atom> = all.iter().copied().filter(|atom| !is_artefact(atom, &all, silent)).collect();
    let naming = name(labels, &candidate, &atoms, step.beforehand.outlier_density);
    let score =
        expected.log_likelihood - candidate.form.cost() - cost_of_size(plan) * all.len() as f64 + naming.log_likelihood;
    Refined { candidate, atoms, expected, naming, score }
}

fn result(best: &Refined, plan: &Plan, step: Step, classes: &ReplyClasses, names: &[String]) -> BlindFit {
    let Candidate { form, overhead, parameters, .. } = &best.candidate;
    let total: f64 = best.atoms.iter().map(|atom| atom.count).sum::<f64>().max(1.0);
    let action = |name: Option<&usize>, size: i64, class: usize, interval: [i64; 2], frequency: f64| BlindAction {
        name: name.and_then(|name| names.get(*name)).cloned(),
        size,
        interval,
        reply: classes.sizes.get(class).copied(),
        frequency,
    };
    let (mut actions, mut closest) = (Vec::new(), f64::INFINITY);
    let labelled = &best.naming.names;
    for atom in &best.atoms {
        let of_atom = labelled.iter().filter(|(_, named)| (named.size, named.class) == (atom.size, atom.class));
        let called: Vec<&usize> = of_atom.map(|(name, _)| name).collect();
        let (ends, difference) = interval(&best.candidate, plan, *atom, step);
        closest = closest.min(difference);
        let frequency = atom.count / total / called.len().max(1) as f64;
        let nameless = called.is_empty().then_some(None);
        let called = called.into_iter().map(Some).chain(nameless);
        actions.extend(called.map(|name| action(name, atom.size, atom.class, ends, frequency)));
    }
    for (name, own) in labelled {
        if !best.atoms.iter().any(|atom| (own.size, own.class) == (atom.size, atom.class)) {
            actions.push(action(Some(name), own.size, own.class, [own.size; 2], 1.0 / (total + 1.0)));
        }
    }
    actions.sort_by(|a, b| (a.size, a.reply, &a.name).cmp(&(b.size, b.reply, &b.name)));
    let sum: f64 = actions.iter().map(|action| action.frequency).sum::<f64>().max(f64::MIN_POSITIVE);
    for action in &mut actions {
        action.frequency /= sum;
    }
    let epsilons = parameters.epsilon.iter().map(|(epsilon, probability)| (epsilon, *probability));
    BlindFit {
        overhead: *overhead,
        alternatives: Vec::new(),
        length_fields: form.fields,
        epsilons: epsilons.filter(|(_, probability)| *probability > 1e-6).collect(),
        actions,
        uncertain_names: uncertain_names(&best.naming, names),
        outliers: parameters.outliers,
        log_likelihood: best.expected.log_likelihood + best.naming.log_likelihood,
        lost: best.lost(),
        commands: 0,
        drawn: Vec::new(),
        more_commands_needed: more_commands(plan.commands as usize, closest),
    }
}

fn uncertain_names(naming: &Naming, names: &[String]) -> Vec<UncertainNames> {
    let uncertain = |exchange: &Exchange| {
        let [one, other] = exchange.names.map(|name| names.get(name).cloned());
        Some(UncertainNames { names: [one?, other?], probability: 1.0 / (1.0 + exchange.difference.max(0.0).exp()) })
    };
    naming.exchanges.iter().filter_map(uncertain).collect()
}

impl Refined {
    /// The probability that a reply is lost.
    fn lost(&self) -> f64 {
        let Some((of_mute, replying)) = self.expected.sizes.split_last().filter(|(_, replying)| !replying.is_empty())
        else {
            return 0.0;
        };
        let answered = replying.iter().flat_map(Pmf::iter).filter(|(size, _)| *size != 0).map(|(_, count)| count);
        let silent: f64 = of_mute.iter().map(|(_, count)| count).sum();
        let own: f64 = self.atoms.iter().filter(|atom| atom.class == replying.len()).map(|atom| atom.count).sum();
        let lost = (silent - own).max(0.0);
        lost / (answered.sum::<f64>() + lost).max(1.0)
    }
}

/// The explanations that the best hardly beats, best first.
fn alternatives(refined: &[Refined], overhead: i64) -> Vec<Alternative> {
    let Some((best, rest)) = refined.split_first() else { return Vec::new() };
    let sizes = |one: &Refined| one.atoms.iter().map(|atom| (atom.class, atom.size)).collect::<Vec<_>>();
    let is_other = |other: &&Refined| other.candidate.overhead != overhead || sizes(other) != sizes(best);
    let is_near = |other: &&Refined| best.score - other.score < 2.0 * EXCLUDED;
    let alternative = |other: &Refined| Alternative {
        overhead: other.candidate.overhead,
        length_fields: other.candidate.form.fields,
        actions: other.atoms.len(),
        difference: best.score - other.score,
    };
    rest.iter().filter(is_near).filter(is_other).map(alternative).collect()
}

/// An explanation that is less likely by more than this in nats is excluded: it is one of about a hundred and fifty.
const EXCLUDED: f64 = 5.0;
/// How far from its most probable size an action's size is tried, in bytes; beyond it, other explanations are nearer.
const REACH: i64 = 4;

/// The smallest and the largest size of an action in bytes that the rows do not exclude, all else being equal; and by
/// how much the next best size is less likely, in nats.
pub(super) fn interval(candidate: &Candidate, plan: &Plan, atom: Atom, step: Step) -> ([i64; 2], f64) {
    let targets = candidate.targets(plan);
    let best = expect(plan, &targets, &candidate.parameters, step.beforehand).log_likelihood;
    let difference = |size: i64| {
        let mut moved = candidate.parameters.clone();
        let sizes = moved.sizes.get_mut(atom.class).filter(|_| size >= 1)?;
        let moved_size = |old: i64| if old == atom.size { size } else { old };
        *sizes = shares(sizes.iter().map(|(old, probability)| (moved_size(old), *probability)));
        Some(best - expect(plan, &targets, &moved, step.beforehand).log_likelihood)
    };
    let (mut ends, mut least) = ([atom.size; 2], f64::INFINITY);
    for (end, direction) in ends.iter_mut().zip([-1, 1]) {
        for size in (1..=REACH).map(|by| atom.size + direction * by) {
            let Some(difference) = difference(size) else { break };
            least = least.min(difference);
            if difference >= EXCLUDED {
                break;
            }
            *end = size;
        }
    }
    (ends, least)
}

/// How many more commands make a difference of log-likelihoods large enough, if it goes on growing as it did.
pub(super) fn more_commands(commands: usize, difference: f64) -> Option<usize> {
    let missing = EXCLUDED - difference;
    if missing <= 0.0 {
        return None;
    }
    let more = commands as f64 * missing / difference.max(0.0);
    (more.is_finite() && more < 1e7).then_some(more.ceil() as usize)
}

/// The most actions without a reply in a command that has replies, and in one that has none.
const MOST_SILENT: usize = 3;
const MOST_ALONE: usize = 16;

/// The least share of a reply that is lost, or foreign: nothing is impossible.
const MIN_SHARE: f64 = 1e-3;

/// How many commands' actions are drawn at once, a bound of memory.
const AT_ONCE: usize = 500;

struct Drawing<'a> {
    fit: &'a BlindFit,
    candidate: &'a Candidate,
    classes: &'a ReplyClasses,
    beforehand: Beforehand,
}

impl Drawing<'_> {
    /// How often each action of the fit occurs in each command; `None` if nothing explains it.
    fn actions(&self, observations: &[Observation]) -> Vec<Option<Vec<u32>>> {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut found = vec![None; observations.len()];
        for (observations, found) in observations.chunks(AT_ONCE).zip(found.chunks_mut(AT_ONCE)) {
            let mut plan = Plan::new(self.classes.sizes.len() + 1);
            let rows =
                observations.iter().zip(found).filter_map(|(one, found)| Some((row(one, self.classes, 2)?, found)));
            let (rows, found): (Vec<_>, Vec<_>) = rows.unzip();
            for row in &rows {
                row.add_to(&mut plan, MOST_SILENT, MOST_ALONE);
            }
            let parameters = self.parameters(&plan, observations);
            let targets = self.candidate.targets(&plan);
            let sums = plan.distributions(&parameters, targets.iter().map(|target| [*target; 2]));
            for (row, found) in plan.rows.iter().zip(targets).zip(found) {
                let parts = plan.draw(row, &sums, &parameters, self.beforehand, &mut random);
                *found = parts.and_then(|parts| self.counts(&parts, &mut random));
            }
        }
        found
    }

    fn class(&self, action: &BlindAction) -> usize {
        let mute = self.classes.sizes.len();
        action.reply.and_then(|reply| self.classes.sizes.binary_search(&reply).ok()).unwrap_or(mute)
    }

    /// How often an action shows as one of a class: by its reply, or, where that is lost, as one without.
    fn share(&self, action: &BlindAction, class: usize) -> f64 {
        let lost = self.fit.lost.clamp(MIN_SHARE, 0.5);
        match (self.class(action) == class, class == self.classes.sizes.len()) {
            (true, true) => action.frequency,
            (true, false) => action.frequency * (1.0 - lost),
            (false, true) => action.frequency * lost,
            (false, false) => 0.0,
        }
    }

    /// The parameters of the actions of the fit alone.
    fn parameters(&self, plan: &Plan, observations: &[Observation]) -> Parameters {
        let actions = &self.fit.actions;
        let mute = self.classes.sizes.len();
        let of_class = |class: usize| {
            let foreign = (0, if class < mute { MIN_SHARE } else { 0.0 });
            shares(actions.iter().map(|action| (action.size, self.share(action, class))).chain([foreign]))
        };
        let mean_size: f64 = actions.iter().map(|action| action.size as f64 * action.frequency).sum();
        let bytes = observations.iter().map(|one| one.size.saturating_sub(self.fit.overhead).max(0) as f64);
        let mean = bytes.sum::<f64>() / observations.len().max(1) as f64 / mean_size.max(1.0);
        // Of actions without a reply there is one more with this probability.
        let more = 1.0 - 1.0 / mean.max(1.0 + MIN_SHARE);
        let silent: f64 = actions.iter().map(|action| self.share(action, mute)).sum();
        Parameters {
            sizes: (0..=mute).map(of_class).collect(),
            silent: silent_start(plan, more * silent),
            ..self.candidate.parameters.clone()
        }
    }

    /// How often each action occurs in single sizes of classes.
    fn counts(&self, parts: &[(usize, i64)], random: &mut ChaCha8Rng) -> Option<Vec<u32>> {
        let actions = &self.fit.actions;
        let mut counts = vec![0; actions.len()];
        for (class, size) in parts.iter().filter(|(class, size)| *class <= self.classes.sizes.len() && *size > 0) {
            let weight = |action: &BlindAction| if action.size == *size { self.share(action, *class) } else { 0.0 };
            counts[drawn(actions.iter().map(weight), random)?] += 1;
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_grows_with_the_commands() {
        assert_eq!(more_commands(100, 2.5), Some(100));
        assert_eq!(more_commands(100, 5.0), None);
        assert_eq!(more_commands(100, 0.0), None);
    }
}
