//! Whether the model fits the flows, and what that makes of their candidates' probabilities.

use sizeleak_frame::{Candidate, Identification, SharedList};
use sizeleak_model::{FALSE_ALARMS, FitJudgement, JudgedSize, MisfitCause, Model, PaddingTest};
use sizeleak_platform::runtime::TwoGenerationCache;

/// The most flows with a judgement; at least the half used last is kept. Each takes up to 20 kB, most of them far less.
const MAX_FLOWS: usize = 8192;

#[derive(Debug)]
pub(crate) struct FitJudge {
    flows: TwoGenerationCache<u64, FitJudgement>,
    /// How many flows had enough commands to be judged.
    judged: u64,
    /// How many of them the model does not fit.
    misfits: u64,
    padding: Option<PaddingTest>,
}

impl FitJudge {
    pub(crate) fn new(model: &Model) -> Self {
        Self { flows: TwoGenerationCache::new(MAX_FLOWS), judged: 0, misfits: 0, padding: PaddingTest::of(model) }
    }

    /// Judges the flow of an identification that has come in, and whose replies have a probability if the model says
    /// anything about them. Returns what its candidates' probabilities are to be multiplied by, and what is wrong where
    /// the flow is rejected.
    pub(crate) fn judge(
        &mut self,
        model: &Model,
        Identification { command, size_probability, candidate_count, shifts, .. }: &Identification,
        reply_probability: Option<f64>,
    ) -> (f64, Option<String>) {
        // What is left to 1 is for messages that are not the model's.
        let fit = if shifts.is_empty() { 1.0 } else { shifts.iter().map(|shift| shift.probability).sum() };
        if size_probability.is_none() && *candidate_count == 0 {
            return (1.0, None);
        }
        let probability = size_probability.map(|probability| probability.clamp(0.0, 1.0));
        let Ok(sizes) = model.sizes(command.size, command.records, command.plaintext) else { return (1.0, None) };
        let replies = reply_probability.map(|probability| (command.replies, probability));
        let flow = self.flows.get_or_default(command.flow);
        let was_judged = flow.is_judged();
        let padding = self.padding.as_ref();
        let is_rejected = flow.add(JudgedSize { sizes, probability, strange: 1.0 - fit, replies, padding });
        self.judged += u64::from(flow.is_judged() && !was_judged);
        self.misfits += u64::from(is_rejected);
        (flow.weight() * fit, is_rejected.then(|| describe(flow)))
    }

    /// How many flows were judged and how many of them the model does not fit; nothing where it fits all.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = [("judged_flows", self.judged), ("misfit_flows", self.misfits)];
        counters.into_iter().filter(|_| self.misfits > 0)
    }
}

/// What is wrong, and what to do.
fn describe(flow: &FitJudgement) -> String {
    let FitJudgement { commands, unexplained, .. } = flow;
    let cause = match flow.cause() {
        MisfitCause::Sizes => "their sizes are not those of its actions",
        MisfitCause::Replies => "their replies are not those of the actions that their sizes show",
        MisfitCause::Padding => "their sizes are those that padding leaves, which are sums of actions by coincidence",
        MisfitCause::Messages => {
            "their sizes are those of its actions only if both habits and lengths are other than the learned ones"
        }
    };
    format!(
        "this model does not fit this gateway: {unexplained} of {commands} commands unexplained, and {cause} (false \
         alarms: {FALSE_ALARMS} of flows); probabilities are lowered from here on: learn a model of this gateway and \
         service"
    )
}

/// Candidates whose probabilities are multiplied by a weight: the list itself where that is 1.
pub(crate) fn weighed(candidates: &SharedList<Candidate>, weight: f64) -> SharedList<Candidate> {
    if weight >= 1.0 {
        return candidates.clone();
    }
    let weigh = |candidate: &Candidate| Candidate { probability: candidate.probability * weight, ..candidate.clone() };
    candidates.iter().map(weigh).collect()
}
