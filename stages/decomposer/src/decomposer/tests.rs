//! Lists, counts, probabilities and notices of the stage.

use sizeleak_frame::{Actions, Command, Frame, FrameWriter};

use super::*;

const LEARNED: &str = "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
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

fn decompose(
    decomposer: &mut Decomposer,
    plaintext: [u64; 2],
    epsilons: &[(i64, f64)],
) -> (Identification, Vec<Frame>) {
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
    let mut out: Vec<Frame> = Vec::new();
    decomposer.process(Correction::unshifted(command, epsilons.collect()), &mut out).unwrap();
    let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
    (*identification, out)
}

fn listed(identification: &Identification) -> Vec<([u32; 2], i64, f64)> {
    let counts = |actions: &Actions| [actions.count("on"), actions.count("off")];
    let listed = identification.candidates.iter();
    listed.map(|candidate| (counts(&candidate.actions), candidate.epsilon, candidate.probability)).collect()
}

fn detail(notices: &[Frame]) -> &str {
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
