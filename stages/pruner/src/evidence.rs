//! What the replies to a command say about the number of its actions.

use std::collections::BTreeMap;

use sizeleak_signature::ReplyModel;

/// Where nothing limits the number of actions, likelihoods are looked at up to this many.
const MAX_ACTIONS: u32 = 4096;

/// The replies to one command.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    model: &'a ReplyModel,
    replies: u32,
    /// Likelihoods by number of actions: thousands of candidates have the same few.
    likelihoods: BTreeMap<u64, f64>,
}

/// The least and the greatest number of actions that replies leave possible; `None` where there is no greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u32,
    pub(crate) most: Option<u32>,
}

impl<'a> Evidence<'a> {
    /// The evidence of so many replies; `None` where this gateway's replies say nothing of actions.
    pub(crate) fn new(model: &'a ReplyModel, replies: u32) -> Option<Self> {
        model.is_informative().then(|| Self { model, replies, likelihoods: BTreeMap::new() })
    }

    /// P(replies | so many actions).
    pub(crate) fn likelihood(&mut self, actions: u64) -> f64 {
        let (model, replies) = (self.model, self.replies);
        let likelihood = || model.likelihood(replies, u32::try_from(actions).unwrap_or(u32::MAX));
        *self.likelihoods.entry(actions).or_insert_with(likelihood)
    }

    /// The greatest likelihood that a command of up to `max_actions` can have.
    pub(crate) fn greatest(&self, max_actions: u32) -> f64 {
        let numbers = 1..=max_actions.clamp(1, MAX_ACTIONS);
        numbers.map(|actions| self.model.likelihood(self.replies, actions)).fold(0.0, f64::max)
    }

    /// Bounds that hold for all but 1 − `keep` of commands.
    pub(crate) fn learned_bounds(&self, keep: f64) -> Bounds {
        Bounds::from(self.model.bounds(self.replies, keep))
    }

    /// The bounds where replies are taken at their word.
    pub(crate) fn paper_bounds(&self) -> Bounds {
        Bounds::from(self.model.paper_bounds(self.replies))
    }
}

impl Bounds {
    /// Whether so many actions are within them.
    pub(crate) fn allow(self, actions: u64) -> bool {
        actions >= self.least.into() && self.most.is_none_or(|most| actions <= most.into())
    }
}

impl From<(u32, u32)> for Bounds {
    fn from((least, most): (u32, u32)) -> Self {
        Self { least, most: (most < u32::MAX).then_some(most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MODEL: ReplyModel = ReplyModel { fixed: 1.0, per_action: 1.0, missing: 0.05, surplus: 0.02 };

    fn evidence(replies: u32) -> Evidence<'static> {
        Evidence::new(&MODEL, replies).unwrap()
    }

    #[test]
    fn bounds_widen_with_what_must_be_kept() {
        let evidence = evidence(6);
        assert_eq!(evidence.paper_bounds(), Bounds { least: 5, most: Some(5) });
        let (narrow, wide) = (evidence.learned_bounds(0.9), evidence.learned_bounds(0.999));
        assert!(narrow.allow(5) && wide.least <= narrow.least && wide.most >= narrow.most && wide != narrow);
        assert_eq!(evidence.learned_bounds(1.0), Bounds { least: 0, most: None });
        assert!(wide.allow(6) && !wide.allow(4000) && evidence.learned_bounds(1.0).allow(u64::MAX));
    }

    #[test]
    fn the_greatest_likelihood_is_the_greatest() {
        let mut evidence = evidence(6);
        let likelihoods: Vec<f64> = (1..=16).map(|actions| evidence.likelihood(actions)).collect();
        assert!(likelihoods.iter().all(|likelihood| *likelihood <= evidence.greatest(16)));
        assert!(likelihoods.contains(&evidence.greatest(16)) && likelihoods[4] > likelihoods[0]);
        assert!(evidence.greatest(2) < evidence.greatest(u32::MAX));
        assert!(evidence.likelihood(u64::MAX) > 0.0);
    }

    #[test]
    fn a_silent_gateway_gives_no_evidence() {
        assert!(Evidence::new(&ReplyModel::silent(), 6).is_none());
    }
}
