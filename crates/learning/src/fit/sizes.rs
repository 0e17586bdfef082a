//! Learning the sizes |ac| and |aᵢ| from labelled commands, and ε with them: by the paper's procedure, or robustly.

pub(crate) mod fitted_sizes;
mod size_sampling;
mod varying_sizes;

use sizeleak_model::step_function::STEP_NATS;
use sizeleak_model::{FitMethod, LabelledCommand, MAX_MESSAGE_SIZE, Smoothing};

use crate::fit::experiment_design::undetermined_actions;
use crate::fit::least_absolute_deviations::least_absolute_deviations;
use fitted_sizes::{EqualCommands, Remainder, action_bytes, fitted, median};
pub use fitted_sizes::{Fit, FitError, MAX_FITTED_ACTIONS};
use size_sampling::{MAX_SAMPLED, SampledSizes, SizeSearch};

impl Fit {
    /// Learns from labelled commands; `names` are the actions, in the order of the commands' counts.
    pub fn learn(method: FitMethod, names: &[String], commands: &[LabelledCommand]) -> Result<Self, FitError> {
        if commands.is_empty() {
            return Err(FitError::NoCommands);
        }
        if names.len() > MAX_FITTED_ACTIONS {
            return Err(FitError::TooManyActions(names.len()));
        }
        if let Some(at) = commands.iter().position(|command| !command.is_within_bounds(names.len())) {
            return Err(FitError::OutOfBounds(at));
        }
        match method {
            FitMethod::Paper => paper_fit(names, commands),
            FitMethod::Robust => robust_fit(names, commands),
        }
    }
}

/// The greatest distance of a command's remainder from its level, in bytes; beyond it, the command is an outlier. Ids
/// and length fields take fewer bytes. [`sizeleak_model::step_function`] caps deviations there, too.
const OUTLIER_BYTES: i64 = 8;

/// The most commands that sizes are searched with, a bound of the time.
const MAX_SEARCHED: usize = 20_000;

/// An outlier is none if this share of all commands deviates alike: the gateway has two forms. Fewer labels are wrong.
const MESSAGE_FORM_SHARE: f64 = 0.1;

/// The robust fit: integer sizes from all labelled commands, regardless of their actions.
///
/// The search starts from least absolute deviations, which wrong labels bias little. It then improves the integer sizes
/// one change at a time. The criterion is how well the remainders of the commands fit a step function of the bytes of
/// their actions ([`sizeleak_model::step_function`]): growing length fields are not mistaken for bytes of actions, and
/// the cost of a wrong label is bounded.
fn robust_fit(names: &[String], commands: &[LabelledCommand]) -> Result<Fit, FitError> {
    FitError::unless_identified(names, commands, &undetermined_actions(names.len(), commands))?;
    let start = least_absolute_deviations(names.len(), commands);
    let searched = thinned(commands, MAX_SEARCHED);
    let start: Vec<i64> = start.iter().skip(1).map(|size| rounded(*size)).collect();
    let (_, step_bytes) = fitted(&start, &searched);
    let searched = EqualCommands::new(&searched);
    let mut search = SizeSearch::new(start, |sizes, limit| searched.cost(sizes, step_bytes, limit));
    search.descend();
    let is_exact = commands.iter().all(|command| command.sizes[0] == command.sizes[1]);
    let (scale, most) = if is_exact { (scale(&search.sizes, commands), MAX_SAMPLED) } else { (1.0, usize::MAX) };
    let used = thinned(commands, most);
    let used = EqualCommands::new(&used);
    let scaled_step = if is_exact { step_bytes.max((STEP_NATS * scale) as i64) } else { step_bytes };
    let cost = |sizes: &[i64], limit: f64| Some(used.cost(sizes, scaled_step, limit * scale)? / scale);
    let sampled = SampledSizes::sample(SizeSearch::new(search.sizes.clone(), cost));
    let actions = if is_exact { search.sizes } else { sampled.means() };
    let (intervals, certainty) = (sampled.intervals(&actions), sampled.share_of(&actions));
    let (fitted, _) = fitted(&actions, commands);
    let outliers = outliers(&fitted);
    let remainders = if is_exact {
        sampled.remainders(&actions, commands, &outliers)
    } else {
        sampled.remainders_of_ranges(&actions, commands)
    };
    let kept = fitted.iter().enumerate().filter(|(at, _)| outliers.binary_search(at).is_err());
    let mut kept: Vec<i64> = kept.map(|(_, remainder)| remainder.value).collect();
    let ambiguous_shifts = ambiguous_shifts(&actions, commands, step_bytes);
    let fit = Fit::of(names, &actions, median(&mut kept), commands, &remainders, outliers)?;
    Ok(Fit { intervals, certainty, ambiguous_shifts, smoothing: Smoothing::choose(&fit.neighbours), ..fit })
}

/// Evenly spaced ones of very many commands, at most so many: more are hardly better.
fn thinned(commands: &[LabelledCommand], most: usize) -> Vec<LabelledCommand> {
    commands.iter().step_by(commands.len() / most + 1).cloned().collect()
}

/// How broad the deviations of commands from their levels are, in bytes: the scale of the discrete Laplace distribution that
/// is as dense in its middle, which decides how exact least absolute deviations are (Koenker and Bassett 1978). The
/// middle reaches to the mean deviation. As many commands as there are sizes are explained in any case, so the fewer others
/// there are, the less their deviations say.
fn scale(actions: &[i64], commands: &[LabelledCommand]) -> f64 {
    let (fitted, _) = fitted(actions, commands);
    let deviations = || fitted.iter().map(|at| at.value.abs_diff(at.level).min(OUTLIER_BYTES.unsigned_abs()));
    // As if one more command deviated much.
    let all = commands.len() as f64 + 1.0;
    let middle = (deviations().sum::<u64>() as f64 / all).round();
    let within = deviations().filter(|deviation| *deviation as f64 <= middle).count();
    let density = within.max(1) as f64 / all / (2.0 * middle + 1.0);
    let free = commands.len().saturating_sub(actions.len() + 1) as f64 + 1.0;
    all / free / ((1.0 + density) / (1.0 - density)).ln()
}

/// The commands that are far from their level and unlike most others.
fn outliers(remainders: &[Remainder]) -> Vec<usize> {
    let deviations: Vec<i64> = remainders.iter().map(|at| at.value.saturating_sub(at.level)).collect();
    let is_outlier = |deviation: i64| {
        let similar = || deviations.iter().filter(|other| other.abs_diff(deviation) <= 1).count();
        deviation.saturating_abs() > OUTLIER_BYTES && (similar() as f64) < MESSAGE_FORM_SHARE * remainders.len() as f64
    };
    let outliers = deviations.iter().enumerate().filter(|(_, deviation)| is_outlier(**deviation));
    outliers.map(|(at, _)| at).collect()
}

fn rounded(size: f64) -> i64 {
    (size.round() as i64).clamp(-MAX_MESSAGE_SIZE, MAX_MESSAGE_SIZE)
}

/// Shifts in bytes of all sizes together that cost no more than one further step. If all commands have one or two
/// actions, a length field that grows between them cannot be distinguished from larger actions.
fn ambiguous_shifts(actions: &[i64], commands: &[LabelledCommand], step_bytes: i64) -> Vec<i64> {
    let commands = EqualCommands::new(commands);
    let Some(cost) = commands.cost(actions, step_bytes, f64::INFINITY) else { return Vec::new() };
    let limit = cost + (2 * step_bytes) as f64;
    let shifted = |by: &i64| actions.iter().map(|size| size.saturating_add(*by)).collect::<Vec<_>>();
    let fits = |by: &i64| commands.cost(&shifted(by), step_bytes, limit).is_some();
    [-3, -2, -1, 1, 2, 3].into_iter().filter(fits).collect()
}

/// The paper's procedure (section IV): |aᵢ| = |s₂ᵢ| − |sᵢ|, |ac| = |sᵢ| − |aᵢ|, from one action on one device and two.
///
/// Of repeated experiments the median counts; |ac| is the median over the actions. As in the paper, the estimate is
/// biased if a length field grows between the single and the double.
fn paper_fit(names: &[String], commands: &[LabelledCommand]) -> Result<Fit, FitError> {
    let mut actions = Vec::new();
    let mut overheads = Vec::new();
    for (action, name) in names.iter().enumerate() {
        let one = size_alone(name, action, 1, commands)?;
        let size = size_alone(name, action, 2, commands)? - one;
        actions.push(size);
        overheads.push(one - size);
    }
    // The paper knows no ranges of sizes: take their middle.
    let remainder =
        |command: &LabelledCommand| command.middle().saturating_sub(action_bytes(&actions, &command.counts));
    let remainders: Vec<i64> = commands.iter().map(remainder).collect();
    Fit::of(names, &actions, median(&mut overheads), commands, &remainders, Vec::new())
}

/// The median size of the commands that consist of this action alone, on `devices` devices.
fn size_alone(name: &str, action: usize, devices: u32, commands: &[LabelledCommand]) -> Result<i64, FitError> {
    let is_alone = |command: &&LabelledCommand| {
        command.counts.iter().enumerate().all(|(at, count)| *count == if at == action { devices } else { 0 })
    };
    let mut sizes: Vec<i64> = commands.iter().filter(is_alone).map(LabelledCommand::middle).collect();
    if sizes.is_empty() {
        return Err(FitError::MissingExperiment { action: name.to_owned(), devices });
    }
    Ok(median(&mut sizes))
}

#[cfg(test)]
mod tests;
