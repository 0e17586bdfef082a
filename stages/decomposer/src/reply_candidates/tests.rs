//! Cut lists beside complete ones.

use proptest::prelude::*;
use sizeleak_frame::{Candidate, Command, Correction, Frame, Identification, SharedList, SingleReply, WeightedEpsilon};
use sizeleak_model::{Model, SeenReplies};
use sizeleak_platform::runtime::Stage;

use crate::Decomposer;

/// `on` and `off` send the same replies, `dim` others; only the two lamps can be dimmed.
const HOME: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
    [[action]]\nname = \"dim\"\nsize = 42\n\
    [[device]]\nname = \"plug\"\ncount = 5\nactions = [\"on\", \"off\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\", \"dim\"]\n\
    [prior]\nnumbers = [0.4, 0.25, 0.15]\ndecay = 0.6\nshares = [0.5, 0.3, 0.2]\nconcentration = 5.0\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
    [single_replies]\nmerged = 0.03\nshared = 0\nforeign = 0.02\nforeign_sizes = []\nper_command = [0, 0]\n\
    per_action = [[1, 0], [1, 0], [0, 1]]\n\
    [[single_replies.class]]\nmissing = 0.02\nunseen = 0.01\nsizes = [[90, 50]]\n\
    [[single_replies.class]]\nmissing = 0.05\nunseen = 0.0\nsizes = [[95, 30], [96, 10]]\n\
    [learned]\nmethod = \"robust\"\ncommands = 100\nversion = \"0\"\nbasis = \"wire\"\n";

fn decomposed(limit: usize, size: u64, replies: &[u32], epsilons: &[(i64, f64)]) -> Identification {
    let single_replies: SharedList<SingleReply> =
        replies.iter().map(|length| SingleReply { after_ns: 0, length: *length }).collect();
    let command = Command {
        time_ns: 1,
        end_ns: 2,
        flow: 3,
        size,
        records: 1,
        replies: replies.len() as u32,
        reply_bytes: replies.iter().map(|length| u64::from(*length)).sum(),
        single_replies,
        ..Command::default()
    };
    let epsilons = epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
    let mut decomposer = Decomposer::new(Model::from_toml(HOME).unwrap(), limit).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    decomposer.process(Correction::unshifted(command, epsilons.collect()), &mut out).unwrap();
    let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
    *identification
}

fn likelihood(candidate: &Candidate, replies: &[u32]) -> f64 {
    let model = Model::from_toml(HOME).unwrap();
    let single = model.single_replies.as_ref().unwrap();
    let counts = model.actions.iter().map(|action| candidate.actions.count(&action.name)).enumerate();
    let ranges: Vec<[i64; 2]> = replies.iter().map(|length| [i64::from(*length); 2]).collect();
    SeenReplies::new(single, &ranges).ln_likelihood(&single.class_counts(counts)).exp()
}

proptest! {
    #[test]
    fn a_cut_list_holds_what_the_replies_show_with_the_probabilities_of_the_complete_one(
        size in 60u64..360,
        replies in prop::collection::vec(prop::sample::select(vec![90u32, 95, 96, 180, 70]), 0..7),
        limit in 1usize..4,
    ) {
        let epsilons = [(0, 0.6), (1, 0.3), (-1, 0.1)];
        let whole = decomposed(1_000_000, size, &replies, &epsilons);
        let cut = decomposed(limit, size, &replies, &epsilons);
        prop_assert_eq!((whole.candidate_count, whole.reply_probability), (cut.candidate_count, None));
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * other;
        match whole.size_probability {
            None => prop_assert_eq!(cut.size_probability, None),
            Some(wanted) => prop_assert!(near(cut.size_probability.unwrap(), wanted)),
        }
        if whole.candidate_count <= limit as u64 {
            prop_assert_eq!(cut, whole);
            return Ok(());
        }
        let joint = |candidate: &Candidate| candidate.probability * likelihood(candidate, &replies);
        let all: f64 = whole.candidates.iter().map(joint).sum();
        if all == 0.0 {
            prop_assert_eq!(cut.reply_probability, None);
            return Ok(());
        }
        prop_assert!(near(cut.reply_probability.unwrap(), all), "{:?} {all}", cut.reply_probability);
        let mut best: Vec<f64> = whole.candidates.iter().map(joint).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        prop_assert!(cut.candidates.len() <= limit);
        prop_assert!(cut.candidates.is_sorted_by(|a, b| a.probability >= b.probability));
        for candidate in &*cut.candidates {
            let same = whole.candidates.iter().find(|other| other.actions == candidate.actions);
            let same = same.filter(|other| other.epsilon == candidate.epsilon);
            prop_assert!(near(candidate.probability, same.unwrap().probability));
            prop_assert!(joint(candidate) >= best[limit - 1] * (1.0 - 1e-6) - 1e-7 * all, "not one of the best");
        }
    }
}

#[test]
fn replies_that_are_not_all_known_leave_the_list_as_it_is() {
    let replies = [90; 3];
    let with = decomposed(1, 60 + 122, &replies, &[(0, 1.0)]);
    assert!(with.reply_probability.is_some() && with.candidate_count > 1);
    let mut unknown = with.command;
    unknown.single_replies = SharedList::default();
    let epsilons: SharedList<WeightedEpsilon> = [WeightedEpsilon { epsilon: 0, weight: 1.0 }].into_iter().collect();
    let mut decomposer = Decomposer::new(Model::from_toml(HOME).unwrap(), 1).unwrap();
    let mut out: Vec<Frame> = Vec::new();
    decomposer.process(Correction::unshifted(unknown, epsilons), &mut out).unwrap();
    let Some(Frame::Identification(without)) = out.pop() else { panic!("{out:?}") };
    assert_eq!((without.reply_probability, without.listed), (None, 1));
}
