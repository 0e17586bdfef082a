//! The stage: identifications in, with fewer and better ordered candidates out.

use sizeleak_frame::{Command, Frame, Identification, Notice, what};
use sizeleak_model::{InventoryError, Model};
use sizeleak_runtime::{Emit, Stage, StageError};

use crate::evidence::{Bounds, Evidence};
use crate::inventory::Inventory;
use crate::options::Mode;
use crate::posterior::{Distribution, Held};
use crate::remembered::{Pruned, Remembered};

/// Drops the candidates that the inventory or the replies speak against.
///
/// A list that the decomposer cut leaves candidates that cannot be looked at. They still count in `candidate_count`, as
/// many as they were, unless mode [`Mode::Learned`] finds all it has to keep among the listed ones. In every other case
/// `candidate_count` is the number of candidates kept.
#[derive(Debug)]
pub struct Pruner {
    mode: Mode,
    keep: f64,
    model: Model,
    inventory: Inventory,
    remembered: Remembered,
    told_cut: bool,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    candidates_in: u64,
    candidates_out: u64,
    beyond_inventory: u64,
    cut_lists: u64,
    emptied: u64,
}

impl Pruner {
    /// A pruner by this model; `keep` is the probability that the truth is kept in mode [`Mode::Learned`].
    ///
    /// # Errors
    /// [`InventoryError`] where the model's inventory does not fit its actions.
    pub fn new(model: &Model, mode: Mode, keep: f64) -> Result<Self, InventoryError> {
        Ok(Self {
            mode,
            keep,
            model: model.clone(),
            inventory: Inventory::new(model)?,
            remembered: Remembered::default(),
            told_cut: false,
            counts: Counts::default(),
        })
    }

    /// Leaves the candidates that inventory and replies allow.
    fn prune(&mut self, identification: &mut Identification, out: &mut dyn Emit) -> Result<(), StageError> {
        let had_some = identification.candidate_count > 0;
        let reply_bytes = if self.model.reply_bytes.is_some() { identification.command.reply_bytes } else { 0 };
        let pruned = self.remembered.recall(identification, reply_bytes).unwrap_or_else(|| {
            let pruned = self.work_out(identification);
            self.remembered.remember(identification, reply_bytes, pruned.clone());
            pruned
        });
        self.counts.beyond_inventory += pruned.beyond_inventory;
        identification.candidate_count = pruned.unlisted.saturating_add(pruned.candidates.len() as u64);
        identification.candidates = pruned.candidates;
        identification.min_actions = pruned.bounds.map(|bounds| bounds.least);
        identification.max_actions = pruned.bounds.and_then(|bounds| bounds.most);
        if pruned.unlisted > 0 {
            self.tell_cut(identification, out)?;
        }
        if had_some && identification.candidate_count == 0 {
            self.counts.emptied += 1;
            let cause = if pruned.is_possible { "the replies contradict every" } else { "the inventory allows no" };
            let detail = format!("{cause} candidate: the gateway may have changed, or replies were lost");
            out.emit(notice(identification, what::UNEXPLAINED, detail).into())?;
        }
        Ok(())
    }

    fn work_out(&self, identification: &Identification) -> Pruned {
        let listed = &identification.candidates;
        let unlisted = unlisted(identification.candidate_count, listed.len() as u64);
        let mut distribution = Distribution::new(listed, unlisted);
        let mut check = self.inventory.check();
        let beyond_inventory = distribution.retain(|candidate| check.allows(&candidate.actions));
        let is_possible = distribution.len() > 0;
        let (bounds, held) = self.weigh(&mut distribution, &identification.command);
        let unlisted = if held == Held::Enough { 0 } else { unlisted };
        Pruned { candidates: distribution.candidates(), unlisted, bounds, beyond_inventory, is_possible }
    }

    /// Keeps what the replies leave, and says which numbers of actions that is; all where they say nothing.
    fn weigh(&self, distribution: &mut Distribution<'_>, command: &Command) -> (Option<Bounds>, Held) {
        let Some(mut evidence) = Evidence::new(&self.model, command) else { return (None, Held::AllThereIs) };
        if self.mode == Mode::Paper {
            let bounds = evidence.paper_bounds();
            distribution.retain(|candidate| bounds.allow(candidate.actions.total()));
            return (Some(bounds), Held::AllThereIs);
        }
        let greatest = evidence.greatest(self.inventory.max_actions());
        distribution.weigh(&mut evidence, greatest);
        let held = distribution.keep(self.keep);
        (Some(evidence.learned_bounds(self.keep)), held)
    }

    /// Tells once that candidates which are not listed were not weighed.
    fn tell_cut(&mut self, identification: &Identification, out: &mut dyn Emit) -> Result<(), StageError> {
        if std::mem::replace(&mut self.told_cut, true) {
            return Ok(());
        }
        let detail =
            "candidates that are not listed cannot be weighed, and still count: raise the decomposer's `limit`";
        Ok(out.emit(notice(identification, what::TRUNCATED, detail.to_owned()).into())?)
    }
}

impl Stage for Pruner {
    const NAME: &'static str = "pruner";
    /// Which leaves in the box it came in.
    type Input = Box<Identification>;

    fn process(&mut self, mut identification: Box<Identification>, out: &mut dyn Emit) -> Result<(), StageError> {
        self.counts.candidates_in = self.counts.candidates_in.saturating_add(identification.candidate_count);
        let is_cut = identification.candidate_count > identification.candidates.len() as u64;
        self.counts.cut_lists += u64::from(is_cut);
        if self.mode == Mode::None {
            (identification.min_actions, identification.max_actions) = (None, None);
        } else {
            self.prune(&mut identification, out)?;
        }
        identification.listed = identification.candidates.len() as u64;
        self.counts.candidates_out = self.counts.candidates_out.saturating_add(identification.candidate_count);
        Ok(out.emit(Frame::Identification(identification))?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("candidates_in", self.counts.candidates_in),
            ("candidates_out", self.counts.candidates_out),
            ("beyond_inventory", self.counts.beyond_inventory),
            ("cut_lists", self.counts.cut_lists),
            ("emptied", self.counts.emptied),
        ]
    }
}

/// How many candidates are not listed; `u64::MAX` stands for that many or more.
fn unlisted(count: u64, listed: u64) -> u64 {
    if count == u64::MAX { count } else { count.saturating_sub(listed) }
}

fn notice(identification: &Identification, what: &'static str, detail: String) -> Notice {
    Notice {
        time_ns: Some(identification.command.time_ns),
        stage: Pruner::NAME.into(),
        flow: Some(identification.command.flow),
        what: what.into(),
        bytes: None,
        detail: Some(detail),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use sizeleak_frame::{Actions, Candidate, Command};

    use super::*;

    const ONE_REPLY_AN_ACTION: &str = "per_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n";
    const NO_REPLIES: &str = "per_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n";

    fn pruner(mode: Mode, replies: &str) -> Pruner {
        let model = format!(
            "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
             [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
             [[device]]\nname = \"plug\"\ncount = 5\nactions = [\"on\", \"off\"]\n[replies]\nfixed = 0.0\n{replies}\
             [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
        );
        Pruner::new(&Model::from_toml(&model).unwrap(), mode, 0.9).unwrap()
    }

    /// An identification of equally probable candidates, given by one action each, and three replies.
    fn identification(candidates: &[(u32, &str)], count: u64) -> Identification {
        let candidate = |(times, name): &(u32, &str)| Candidate {
            actions: Actions::from(vec![(Arc::from(*name), *times)]),
            epsilon: 0,
            probability: 1.0 / count as f64,
        };
        Identification {
            command: Command {
                time_ns: 1,
                end_ns: 2,
                flow: 3,
                size: 4,
                plaintext: None,
                records: 1,
                replies: 3,
                reply_bytes: 0,
            },
            candidates: candidates.iter().map(candidate).collect(),
            candidate_count: count,
            listed: candidates.len() as u64,
            min_actions: None,
            max_actions: None,
        }
    }

    fn with_probability(mut identification: Identification, at: usize, probability: f64) -> Identification {
        let mut candidates = identification.candidates.to_vec();
        candidates[at].probability = probability;
        identification.candidates = candidates.into();
        identification
    }

    fn prune(pruner: &mut Pruner, identification: Identification) -> (Identification, Vec<Frame>) {
        let mut out: Vec<Frame> = Vec::new();
        pruner.process(identification.into(), &mut out).unwrap();
        let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
        assert_eq!(identification.listed, identification.candidates.len() as u64);
        (*identification, out)
    }

    fn totals(identification: &Identification) -> Vec<u64> {
        identification.candidates.iter().map(|candidate| candidate.actions.total()).collect()
    }

    fn detail(notices: &[Frame]) -> &str {
        let [Frame::Notice(notice)] = notices else { panic!("{notices:?}") };
        notice.detail.as_deref().unwrap()
    }

    #[test]
    fn paper_takes_replies_at_their_word() {
        let candidates = identification(&[(2, "on"), (3, "on"), (4, "off")], 3);
        let (paper, _) = prune(&mut pruner(Mode::Paper, ONE_REPLY_AN_ACTION), candidates);
        assert_eq!((totals(&paper), paper.candidate_count), (vec![3], 1));
        assert_eq!((paper.min_actions, paper.max_actions), (Some(3), Some(3)));
        assert!((paper.candidates[0].probability - 1.0).abs() < 1e-12);
    }

    #[test]
    fn learned_weighs_them() {
        let candidates = identification(&[(1, "on"), (3, "on"), (4, "off")], 3);
        let (learned, _) = prune(&mut pruner(Mode::Learned, ONE_REPLY_AN_ACTION), candidates);
        assert_eq!((totals(&learned), learned.candidate_count), (vec![3, 4], 2));
        assert!(learned.min_actions.unwrap() <= 3 && learned.max_actions.unwrap() >= 4);
        assert!(learned.candidates[0].probability > learned.candidates[1].probability);
    }

    #[test]
    fn none_passes_everything_on() {
        let before = identification(&[(9, "on"), (1, "blink")], 7);
        let (after, notices) = prune(&mut pruner(Mode::None, ONE_REPLY_AN_ACTION), before.clone());
        assert_eq!((after, notices), (before, vec![]));
    }

    #[test]
    fn a_gateway_without_replies_loses_nothing() {
        for mode in [Mode::Learned, Mode::Paper] {
            let mut before = identification(&[(2, "on"), (3, "on"), (4, "off")], 3);
            before = with_probability(before, 2, 1e-30);
            let (after, _) = prune(&mut pruner(mode, NO_REPLIES), before.clone());
            assert_eq!(after, before);
        }
    }

    #[test]
    fn what_the_inventory_does_not_hold_goes() {
        let mut learned = pruner(Mode::Learned, NO_REPLIES);
        let (pruned, _) = prune(&mut learned, identification(&[(6, "on"), (1, "blink"), (5, "on")], 3));
        assert_eq!((totals(&pruned), pruned.candidate_count), (vec![5], 1));
        assert!((pruned.candidates[0].probability - 1.0).abs() < 1e-12);
        let (emptied, notices) = prune(&mut learned, identification(&[(6, "on")], 1));
        assert_eq!(emptied.candidate_count, 0);
        assert!(detail(&notices).contains("inventory"));
        assert_eq!(learned.counters()[2], ("beyond_inventory", 3));
    }

    #[test]
    fn what_is_not_listed_still_counts() {
        let mut learned = pruner(Mode::Learned, ONE_REPLY_AN_ACTION);
        let (cut, notices) = prune(&mut learned, identification(&[(3, "on"), (1, "off")], 900));
        assert_eq!((cut.candidate_count, cut.listed), (900, 2));
        assert!(cut.candidates[0].probability <= 1.0 / 899.0, "the others are taken to be as likely");
        assert!(detail(&notices).contains("`limit`"));
        assert_eq!(prune(&mut learned, identification(&[(3, "on")], 900)).1, [], "told once");
        assert_eq!(prune(&mut learned, identification(&[(3, "on")], u64::MAX)).0.candidate_count, u64::MAX);
        let mut paper = pruner(Mode::Paper, ONE_REPLY_AN_ACTION);
        let (cut, _) = prune(&mut paper, identification(&[(3, "on"), (1, "off")], 900));
        assert_eq!((cut.candidate_count, cut.listed), (899, 1));
    }

    #[test]
    fn a_cut_list_that_holds_enough_is_all_there_is() {
        let mut before = identification(&[(3, "on"), (1, "off")], 900);
        before = with_probability(before, 0, 0.99);
        let (after, notices) = prune(&mut pruner(Mode::Learned, ONE_REPLY_AN_ACTION), before);
        assert_eq!((after.candidate_count, totals(&after), notices), (1, vec![3], vec![]));
    }

    #[test]
    fn a_contradiction_is_told() {
        let mut paper = pruner(Mode::Paper, ONE_REPLY_AN_ACTION);
        let (emptied, notices) = prune(&mut paper, identification(&[(1, "on")], 1));
        assert_eq!(emptied.candidate_count, 0);
        assert!(detail(&notices).contains("replies contradict"));
        assert_eq!(paper.counters()[4], ("emptied", 1));
        assert_eq!(prune(&mut paper, identification(&[], 0)).1, [], "there was nothing to contradict");
    }

    /// Replies, candidates and how many are not listed, drawn so that the same come again.
    fn asked() -> impl Strategy<Value = Vec<(u32, usize, u64)>> {
        prop::collection::vec((0u32..4, 0usize..4, 0u64..2), 1..40)
    }

    proptest! {
        /// What is remembered of lists pruned before, or of equal ones, is what pruning them comes to.
        #[test]
        fn pruned_again_it_is_the_same(asked in asked(), is_paper in any::<bool>()) {
            let lists = [&[(2, "on"), (3, "on"), (4, "off")][..], &[(9, "on")], &[(3, "off"), (1, "on")], &[]];
            let mode = if is_paper { Mode::Paper } else { Mode::Learned };
            let mut remembering = pruner(mode, ONE_REPLY_AN_ACTION);
            for (replies, list, unlisted) in asked {
                let list = lists[list];
                let mut given = identification(list, list.len() as u64 + unlisted);
                given.command.replies = replies;
                let (worked_out, _) = prune(&mut pruner(mode, ONE_REPLY_AN_ACTION), given.clone());
                for again in [given.clone(), given] {
                    prop_assert_eq!(&prune(&mut remembering, again).0, &worked_out);
                }
            }
        }
    }

    #[test]
    fn lists_are_shared_where_nothing_is_left_out_and_where_the_same_is() {
        let mut learned = pruner(Mode::Learned, NO_REPLIES);
        let whole = identification(&[(2, "on"), (3, "on")], 2);
        assert!(prune(&mut learned, whole.clone()).0.candidates.is_clone_of(&whole.candidates));
        let mut paper = pruner(Mode::Paper, ONE_REPLY_AN_ACTION);
        let once = prune(&mut paper, whole.clone()).0.candidates;
        assert!(once.len() == 1 && prune(&mut paper, whole).0.candidates.is_clone_of(&once));
    }
}
