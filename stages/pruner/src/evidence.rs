//! What the replies to a command say about the number of its actions.

use sizeleak_signature::ReplyModel;

/// Numbers of actions beyond this are not told apart.
const MOST_ACTIONS: u32 = 10_000;

/// The least and the greatest number of actions that replies leave possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u32,
    pub(crate) most: u32,
}

/// The number the replies show, taken at their word; `None` where they say nothing.
pub(crate) fn paper_bounds(model: &ReplyModel, replies: u32) -> Option<Bounds> {
    model.seen_actions(replies).map(|seen| Bounds { least: seen, most: seen })
}

/// The numbers of actions that hold `keep` of the likelihood, the likelier ones first; `None` where replies say nothing.
pub(crate) fn learned_bounds(model: &ReplyModel, replies: u32, most_actions: u32, keep: f64) -> Option<Bounds> {
    if !model.is_informative() {
        return None;
    }
    let numbers = 1..=most_actions.clamp(1, MOST_ACTIONS);
    let mut likely: Vec<(u32, f64)> = numbers.map(|actions| (actions, model.likelihood(replies, actions))).collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let total: f64 = likely.iter().map(|(_, likelihood)| likelihood).sum();
    let mut held = 0.0;
    let mut bounds: Option<Bounds> = None;
    for (actions, likelihood) in likely {
        if held >= keep * total && bounds.is_some() {
            break;
        }
        held += likelihood;
        let Bounds { least, most } = bounds.unwrap_or(Bounds { least: actions, most: actions });
        bounds = Some(Bounds { least: least.min(actions), most: most.max(actions) });
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_widen_with_what_must_be_kept() {
        let model = ReplyModel { fixed: 1.0, per_action: 1.0, deviations: vec![[-1, 10], [0, 90]] };
        assert_eq!(paper_bounds(&model, 6), Some(Bounds { least: 5, most: 5 }));
        assert_eq!(learned_bounds(&model, 6, 16, 0.5), Some(Bounds { least: 5, most: 5 }));
        assert_eq!(learned_bounds(&model, 6, 16, 0.95), Some(Bounds { least: 5, most: 6 }));
        let all = learned_bounds(&model, 6, 16, 1.0).unwrap();
        assert!(all.least <= 1 && all.most >= 15, "{all:?}");
        assert_eq!(learned_bounds(&ReplyModel::silent(), 6, 16, 0.9), None);
        assert_eq!(paper_bounds(&ReplyModel::silent(), 6), None);
    }
}
