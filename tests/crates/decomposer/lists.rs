//! Lists, counts, probabilities and notices of the stage, and its options.

use sizeleak_decomposer::{Decomposer, Options};
use sizeleak_frame::{
    Actions, Candidate, Command, Correction, Frame, FrameWriter, Identification, WeightedEpsilon, what,
};
use sizeleak_inference::space::PriorName;
use sizeleak_model::policies::{Draw, PaddedSize, PaddingPolicy, RandomRow};
use sizeleak_model::{LearnedPadding, Model};
use sizeleak_platform::runtime::{Stage, StageOptions};

/// The end of a model: no replies, and sizes of plaintext.
pub(super) const LEARNED: &str = "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
    [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
    basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n";

fn model(actions: &[(&str, i64)], plugs: Option<u32>) -> Model {
    let list: Vec<String> =
        actions.iter().map(|(name, size)| format!("[[action]]\nname = \"{name}\"\nsize = {size}\n")).collect();
    let names: Vec<&str> = actions.iter().map(|(name, _)| *name).collect();
    let device = plugs
        .map(|count| format!("[[device]]\nname = \"plug\"\ncount = {count}\nactions = {names:?}\n"))
        .unwrap_or_default();
    let head = "schema = 2\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n";
    Model::from_toml(&format!("{head}{}{device}{LEARNED}", list.concat())).unwrap()
}

fn three_plugs(limit: usize) -> Decomposer {
    Decomposer::new(model(&[("on", 40), ("off", 41)], Some(3)), limit).unwrap()
}

/// What `epsilon-corrector` says of a command of which this is known.
pub(super) fn correction(plaintext: [u64; 2], epsilons: &[(i64, f64)]) -> Correction {
    let command = Command {
        time_ns: 1,
        end_ns: 2,
        flow: 3,
        size: plaintext[1],
        plaintext: Some(plaintext),
        records: 1,
        ..Command::default()
    };
    let epsilons = epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
    Correction::unshifted(command, epsilons.collect())
}

/// The answer, and what is said before it.
pub(super) fn answered(decomposer: &mut Decomposer, correction: Correction) -> (Identification, Vec<Frame>) {
    let mut out: Vec<Frame> = Vec::new();
    decomposer.process(correction, &mut out).unwrap();
    let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
    (*identification, out)
}

pub(super) fn decompose(
    decomposer: &mut Decomposer,
    plaintext: [u64; 2],
    epsilons: &[(i64, f64)],
) -> (Identification, Vec<Frame>) {
    answered(decomposer, correction(plaintext, epsilons))
}

fn listed(identification: &Identification) -> Vec<([u32; 2], i64, f64)> {
    let counts = |actions: &Actions| [actions.count("on"), actions.count("off")];
    let listed = identification.candidates.iter();
    listed.map(|candidate| (counts(&candidate.actions), candidate.epsilon, candidate.probability)).collect()
}

pub(super) fn detail(notices: &[Frame]) -> &str {
    let [Frame::Notice(notice)] = notices else { panic!("{notices:?}") };
    assert_eq!((&*notice.what, notice.flow), (what::UNEXPLAINED, Some(3)));
    notice.detail.as_deref().unwrap()
}

#[test]
fn heavier_epsilons_come_first_and_probabilities_sum_to_one() {
    let mut decomposer = three_plugs(10);
    let (identification, _) = decompose(&mut decomposer, [141, 141], &[(0, 0.75), (1, 0.25)]);
    assert_eq!(listed(&identification), [([1, 1], 0, 0.75), ([2, 0], 1, 0.25)]);
    let (identification, _) = decompose(&mut decomposer, [141, 141], &[(7, 0.9), (0, 0.1)]);
    assert_eq!(listed(&identification), [([1, 1], 0, 1.0)], "an ε without candidates takes no share");
}

#[test]
fn candidates_stay_within_the_inventory() {
    let (identification, notices) = decompose(&mut three_plugs(10), [220, 220], &[(0, 1.0)]);
    assert_eq!((identification.candidate_count, identification.listed), (0, 0), "four actions, three plugs");
    assert!(detail(&notices).contains("add up to the 220 bytes"));
}

/// Commands of one action nine times in ten; `on` three times as often as `off`.
const PRIOR: &str = "[prior]\nnumbers = [0.9, 0.09]\ndecay = 0.1\nshares = [0.75, 0.25]\nconcentration = 1e9\n";

#[test]
fn most_probable_candidates_come_first_whatever_their_epsilon() {
    let mut model = model(&[("on", 40), ("off", 41)], None);
    let with_prior = Model::from_toml(&format!("{}{PRIOR}", model.to_toml())).unwrap();
    model.prior = with_prior.prior;
    for limit in [10, 1] {
        let mut decomposer = Decomposer::new(model.clone(), limit).unwrap();
        let (identification, _) = decompose(&mut decomposer, [142, 142], &[(0, 0.1), (1, 0.7), (42, 0.2)]);
        let listed = listed(&identification);
        // off·off: 0.1 · 1/16; on·off: 0.7 · 6/16, both times P(2) = 0.09; on alone: 0.2 · 3/4 · 0.9.
        let weights = [0.2 * 0.75 * 0.9, 0.7 * 0.375 * 0.09, 0.1 * 0.0625 * 0.09];
        let expected = [[1, 0], [1, 1], [0, 2]].into_iter().zip([42, 1, 0]).zip(weights);
        assert_eq!((identification.candidate_count, listed.len()), (3, limit.min(3)));
        for ((counts, epsilon, probability), ((expected, of), weight)) in listed.iter().zip(expected) {
            assert_eq!((counts, *epsilon), (&expected, of));
            let among_all = weight / weights.iter().sum::<f64>();
            assert!((probability - among_all).abs() < 1e-9, "{probability} is not {among_all}, limit {limit}");
        }
    }
}

#[test]
fn a_cut_list_keeps_count_and_probabilities() {
    let mut decomposer = three_plugs(1);
    let (identification, _) = decompose(&mut decomposer, [141, 141], &[(0, 0.5), (1, 0.5)]);
    assert_eq!((identification.candidate_count, identification.listed), (2, 1));
    assert!((identification.candidates[0].probability - 0.5).abs() < 1e-12);
    assert_eq!(decomposer.counters()[2], ("cut_lists", 1));
}

#[test]
fn every_size_of_a_range_is_searched() {
    let (identification, _) = decompose(&mut three_plugs(10), [96, 111], &[(0, 1.0)]);
    assert_eq!(listed(&identification), [([1, 0], 0, 0.5), ([0, 1], 0, 0.5)]);
    let (identification, _) = decompose(&mut three_plugs(10), [140, 142], &[(0, 0.75), (1, 0.25)]);
    assert_eq!(identification.candidate_count, 3, "a multiset that several sizes explain is one candidate");
    let total: f64 = identification.candidates.iter().map(|candidate| candidate.probability).sum();
    assert!((total - 1.0).abs() < 1e-12);
}

#[test]
fn the_overhead_alone_has_no_candidates() {
    assert_eq!(decompose(&mut three_plugs(10), [60, 60], &[(0, 1.0)]).0.candidate_count, 0);
}

#[test]
fn the_count_is_exact_without_an_inventory() {
    let mut decomposer = Decomposer::new(model(&[("on", 2), ("off", 1)], None), 1000).unwrap();
    let (identification, _) = decompose(&mut decomposer, [8060, 8060], &[(0, 1.0)]);
    assert_eq!((identification.candidate_count, identification.listed), (4001, 1000));
    assert!((identification.candidates[999].probability - 1.0 / 4001.0).abs() < 1e-12);
}

#[test]
fn a_list_is_cut_to_fit_its_frame() {
    let names: Vec<String> = (0..8).map(|at| format!("{at}{}", "x".repeat(2000))).collect();
    let actions: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(1..).collect();
    let mut decomposer = Decomposer::new(model(&actions, None), 1_000_000).unwrap();
    let (identification, _) = decompose(&mut decomposer, [200, 200], &[(0, 1.0)]);
    assert!(identification.listed > 500 && identification.candidate_count > identification.listed);
    FrameWriter::new(std::io::sink()).write(&identification.into()).unwrap();
}

#[test]
fn extreme_sizes_are_unexplained() {
    let mut free = Decomposer::new(model(&[("on", 40), ("off", 41)], None), 10).unwrap();
    for range in [[u64::MAX; 2], [0, u64::MAX], [u64::MAX, 0]] {
        let epsilons = [(i64::MIN, 0.5), (i64::MAX, 0.5)];
        let (identification, notices) = decompose(&mut three_plugs(10), range, &epsilons);
        assert_eq!((identification.candidate_count, notices.len()), (0, 1));
        let (identification, notices) = decompose(&mut free, range, &epsilons);
        assert_eq!((identification.candidate_count, notices.len()), (0, 1));
    }
    let (_, notices) = decompose(&mut free, [1 << 40; 2], &[(0, 1.0)]);
    assert!(detail(&notices).contains("256 MiB"), "{notices:?}");
    let (identification, _) = decompose(&mut free, [141, 141], &[(0, 1.0)]);
    assert_eq!(identification.candidate_count, 1, "the run goes on");
    let (_, notices) = decompose(&mut free, [141, 141], &[(0, f64::NAN)]);
    assert_eq!(notices.len(), 1);
}

/// A model whose one action has two sizes.
fn varying(plugs: Option<u32>) -> Model {
    let text = model(&[("on", 40)], plugs).to_toml();
    Model::from_toml(&text.replace("size = 40\n", "size = 40\nsizes = [[40, 0.5], [41, 0.5]]\n")).unwrap()
}

#[test]
fn a_range_that_no_command_has_is_unexplained() {
    let mut decomposer = Decomposer::new(varying(Some(2)), 10).unwrap();
    for target in [39, 42, 79, 83, 1 << 40] {
        let (found, notices) = decompose(&mut decomposer, [60 + target; 2], &[(0, 1.0)]);
        assert_eq!((found.candidate_count, found.listed), (0, 0), "{target}");
        assert!(detail(&notices).contains("no actions add up to"), "{notices:?}");
    }
    let (found, _) = decompose(&mut decomposer, [60 + 81; 2], &[(0, 1.0)]);
    assert_eq!((found.candidate_count, found.listed), (1, 1));
}

#[test]
fn varying_sizes_beyond_the_table_are_refused() {
    let mut decomposer = Decomposer::new(varying(None), 10).unwrap();
    let (_, notices) = decompose(&mut decomposer, [60 + (1 << 40); 2], &[(0, 1.0)]);
    assert!(detail(&notices).contains("bytes are beyond the"), "{notices:?}");
}

/// Actions of these sizes, none of which adds up to another one's.
fn sized(sizes: [i64; 4]) -> Model {
    let names = ["a", "b", "c", "d"];
    model(&names.into_iter().zip(sizes).collect::<Vec<_>>(), None)
}

/// The sums that a list is of, each once: the sizes of its single actions, their ε and weight beside the heaviest, and their
/// probability.
fn sums(model: &Model, range: [u64; 2], epsilons: &[(i64, f64)]) -> Vec<Sum> {
    let (found, _) = decompose(&mut Decomposer::new(model.clone(), 10).unwrap(), range, epsilons);
    let sum = |candidate: &Candidate| {
        let (name, count) = candidate.actions.iter().next().unwrap();
        assert_eq!((count, candidate.actions.len()), (1, 1));
        let size = model.actions.iter().find(|action| *action.name == **name).unwrap().size;
        (size, candidate.epsilon, candidate.likelihood.unwrap(), candidate.probability)
    };
    found.candidates.iter().map(sum).collect()
}

/// A sum and its ε, with its likelihood and its probability.
type Sum = (i64, i64, f64, f64);

fn assert_sums(found: &[Sum], wanted: &[Sum]) {
    let is_same = |(one, other): (&Sum, &Sum)| {
        (one.0, one.1) == (other.0, other.1) && (one.2 - other.2).abs() < 1e-12 && (one.3 - other.3).abs() < 1e-12
    };
    assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(is_same), "{found:?}");
}

#[test]
fn sums_have_the_weight_of_all_that_leaves_them_beside_the_heaviest_epsilon() {
    let model = sized([37, 39, 40, 41]);
    let of_one_size = sums(&model, [100, 100], &[(0, 0.5), (1, 0.25), (3, 0.25)]);
    assert_sums(&of_one_size, &[(40, 0, 1.0, 0.5), (37, 3, 0.5, 0.25), (39, 1, 0.5, 0.25)]);
    let of_two = sums(&model, [100, 101], &[(1, 0.25), (0, 0.75)]);
    assert_sums(&of_two, &[(40, 0, 4.0 / 3.0, 0.5), (41, 0, 1.0, 0.375), (39, 1, 1.0 / 3.0, 0.125)]);
    let one_byte = sized([1, 1000, 2000, 3000]);
    assert_sums(&sums(&one_byte, [60, 60], &[(0, 0.75), (-1, 0.25)]), &[(1, -1, 0.25 / 0.75, 1.0)]);
    assert_eq!(sums(&one_byte, [0, 0], &[(0, 1.0)]), []);
    assert_eq!(sums(&model, [100, 100], &[(0, f64::MAX), (0, f64::MAX), (1, 1.0)])[0].2.to_bits(), 1.0_f64.to_bits());
}

#[test]
fn sizes_weigh_as_much_as_it_is_probable_that_they_are_padded_to_what_was_seen() {
    let padded = |bytes: u64, probability: f64| PaddedSize { bytes, probability };
    let quarter = || vec![padded(102, 0.25), padded(200, 0.75)];
    let beyond = || vec![padded(200, 1.0)];
    let rows = [(99, beyond()), (100, quarter()), (101, beyond()), (102, quarter())];
    let rows = rows.into_iter().map(|(size, padded)| RandomRow { size, padded }).collect();
    let policy = PaddingPolicy::RandomTable { rows, draw: Draw::Independent };
    let mut model = sized([39, 40, 41, 42]);
    model.learned.padding = Some(LearnedPadding::Policy(policy));
    let found = sums(&model, [102, 102], &[(0, 1.0), (1, 0.5)]);
    let (third, sixth) = (1.0 / 3.0, 1.0 / 6.0);
    let wanted = [(40, 0, 0.25, third), (42, 0, 0.25, third), (39, 1, 0.125, sixth), (41, 1, 0.125, sixth)];
    assert_sums(&found, &wanted);
}

#[test]
fn values_of_epsilon_without_weight_and_more_than_can_be_tried_are_counted_as_unused() {
    let unused = |range, epsilons: &[(i64, f64)]| {
        let mut decomposer = Decomposer::new(sized([3, 5, 7, 9]), 1).unwrap();
        let (found, _) = decompose(&mut decomposer, range, epsilons);
        let counters = decomposer.counters();
        let unused = counters.iter().find(|(name, _)| *name == "unused_epsilons").unwrap().1;
        (found.candidate_count > 0, unused)
    };
    assert_eq!(unused([100, 100], &[(0, f64::NAN), (1, -1.0), (2, f64::INFINITY), (3, 0.0)]), (false, 4));
    let many: Vec<(i64, f64)> = (0..5000).map(|epsilon| (epsilon, 1.0)).collect();
    assert_eq!(unused([10_000, 14_095], &many), (true, 5000 - 256));
}

#[test]
fn a_missing_model_and_a_limit_of_zero_are_usage_errors() {
    let exit_code = |options: Options| options.build().map(|_| "a stage").unwrap_err().exit_code();
    assert_eq!(exit_code(Options::default()), 2);
    let model = vec!["no-such-folder/model.toml".into()];
    assert_eq!(exit_code(Options { model: model.clone(), limit: 0, ..Options::default() }), 2);
    assert_eq!(exit_code(Options { model, ..Options::default() }), 1);
}

#[test]
fn keys_are_those_of_the_pipeline_file() {
    let options: Options = toml::from_str("model = \"m.toml\"\nlimit = 5").unwrap();
    assert_eq!(options, Options { model: vec!["m.toml".into()], limit: 5, ..Options::default() });
    let options: Options = toml::from_str("prior = \"flat\"\nfree = true").unwrap();
    assert_eq!((options.prior, options.free), (PriorName::Flat, true));
    assert!(toml::from_str::<Options>("prior = \"best\"").is_err());
    assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
    assert!(toml::from_str::<Options>("limits = 5").is_err());
}
