//! Counts and best candidates against OR-tools' CP-SAT on random instances, if there is Python with OR-tools.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{Correction, Frame, Identification, WeightedEpsilon};
use sizeleak_inference::search::WayCounts;
use sizeleak_model::{Model, Prior};
use sizeleak_platform::runtime::Stage;

/// Logarithms of weights are compared as whole numbers of this many parts.
const PARTS: f64 = 1e7;

/// A home and one sum.
struct Instance {
    sizes: Vec<i64>,
    /// Kinds of device: their count and actions.
    kinds: Vec<(u32, Vec<usize>)>,
    sum: i64,
    prior: Prior,
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }
}

impl Instance {
    fn random(random: &mut Random) -> Self {
        let actions = random.within(2, 5) as usize;
        let sizes: Vec<i64> = (0..actions).map(|_| random.within(20, 32).cast_signed()).collect();
        let mut kinds = vec![(random.within(2, 6) as u32, (0..actions).collect())];
        for _ in 0..random.within(0, 2) {
            let some: Vec<usize> = (0..actions).filter(|_| random.within(0, 1) == 1).collect();
            if !some.is_empty() {
                kinds.push((random.within(1, 3) as u32, some));
            }
        }
        let shares: Vec<f64> = (0..actions).map(|_| random.within(1, 9) as f64).collect();
        let all: f64 = shares.iter().sum();
        let prior = Prior {
            numbers: vec![0.3, 0.25, 0.2],
            decay: 0.7,
            shares: shares.into_iter().map(|share| share / all).collect(),
            concentration: random.within(1, 40) as f64,
            recurring: Vec::new(),
        };
        // The sum of some actions that the first kind can take, or one byte more.
        let taken = random.within(1, kinds[0].0.into());
        let sum: i64 = (0..taken).map(|_| sizes[random.within(0, actions as u64 - 1) as usize]).sum();
        Self { sizes, kinds, sum: sum + random.within(0, 1).cast_signed(), prior }
    }

    fn devices(&self) -> u32 {
        self.kinds.iter().map(|(count, _)| count).sum()
    }

    fn model(&self) -> Model {
        let actions = |places: &[usize]| places.iter().map(usize::to_string).collect::<Vec<_>>();
        let mut text = String::from("schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n");
        for (at, size) in self.sizes.iter().enumerate() {
            writeln!(text, "[[action]]\nname = \"{at}\"\nsize = {size}").unwrap();
        }
        for (at, (count, places)) in self.kinds.iter().enumerate() {
            writeln!(text, "[[device]]\nname = \"{at}\"\ncount = {count}\nactions = {:?}", actions(places)).unwrap();
        }
        text += "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
            [learned]\nmethod = \"robust\"\n\
                 commands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";
        Model { prior: Some(self.prior.clone()), ..Model::from_toml(&text).unwrap() }
    }

    /// What the nth of each action adds to a way's score, and what its number of actions adds. Only for a single kind
    /// of device: then all ways of n actions leave equally many devices free.
    fn scores(&self) -> (Vec<Vec<i64>>, Vec<i64>) {
        if self.kinds.len() > 1 {
            return (Vec::new(), Vec::new());
        }
        let parts = |ln: f64| (ln * PARTS).round() as i64;
        let of_action = |action| (1..=self.devices()).map(|nth| parts(self.prior.ln_next(action, nth))).collect();
        // The total weight of all ways of n actions is that of a Pólya urn.
        let step = |nth: u32| ((1.0 + f64::from(nth - 1) / self.prior.concentration) / f64::from(nth)).ln();
        let urn = |number: u32| (1..=number).map(step).sum::<f64>();
        let of_number = |number: u32| parts(self.prior.ln_number(number).max(-1e3) - urn(number));
        ((0..self.sizes.len()).map(of_action).collect(), (0..=self.devices()).map(of_number).collect())
    }

    fn as_json(&self) -> Value {
        let (scores, number_scores) = self.scores();
        json!({
            "sizes": self.sizes,
            "kinds": self.kinds,
            "sum": self.sum,
            "scores": scores,
            "number_scores": number_scores,
        })
    }

    /// The decomposer's result.
    fn decomposed(&self) -> Identification {
        let command = sizeleak_frame::Command {
            time_ns: 1,
            end_ns: 2,
            flow: 3,
            size: (self.sum + 60) as u64,
            records: 1,
            ..sizeleak_frame::Command::default()
        };
        let epsilons = vec![WeightedEpsilon { epsilon: 0, weight: 1.0 }].into();
        let mut out: Vec<Frame> = Vec::new();
        Decomposer::new(self.model(), 10).unwrap().process(Correction::unshifted(command, epsilons), &mut out).unwrap();
        let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
        *identification
    }

    /// The score of the decomposer's best candidate.
    fn best(&self, identification: &Identification) -> Option<i64> {
        let (scores, number_scores) = self.scores();
        let best = identification.candidates.first().filter(|_| !scores.is_empty())?;
        let of_action = |(name, count): (&std::sync::Arc<str>, u32)| -> i64 {
            scores[name.parse::<usize>().unwrap()].iter().take(count as usize).sum()
        };
        Some(number_scores[best.actions.total() as usize] + best.actions.iter().map(of_action).sum::<i64>())
    }
}

fn solve(instances: &[Instance]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside/cp_sat/cp_sat.py");
    let mut python = Command::new("python3");
    let mut python = python.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = python.stdin.take().unwrap();
    let lines: Vec<String> = instances.iter().map(|instance| instance.as_json().to_string()).collect();
    let asked = thread::spawn(move || writeln!(input, "{}", lines.join("\n")));
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    asked.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "second tier: needs python3 with ortools"]
fn counts_and_best_candidates_agree_with_cp_sat() {
    let mut random = Random(11);
    let instances: Vec<Instance> = (0..120).map(|_| Instance::random(&mut random)).collect();
    let answers = solve(&instances);
    assert_eq!(answers.len(), instances.len());
    let (mut solvable, mut compared) = (0, 0);
    for (instance, answer) in instances.iter().zip(&answers) {
        let model = instance.model();
        let mut counts = WayCounts::new(&model.actions, &model.limits().unwrap()).unwrap();
        assert_eq!(Some(counts.count(instance.sum).unwrap()), answer["count"].as_u64(), "{}", instance.as_json());
        let identification = instance.decomposed();
        assert_eq!(Some(identification.candidate_count), answer["count"].as_u64());
        let (best, expected) = (instance.best(&identification), answer["best"].as_i64());
        assert_eq!(best.is_some(), expected.is_some(), "{}", instance.as_json());
        // Scores of equal weights may differ by the rounding of their parts.
        let differ = best.zip(expected).is_some_and(|(best, expected)| best.abs_diff(expected) > 16);
        assert!(!differ, "{best:?}, not {expected:?}: {}", instance.as_json());
        solvable += u32::from(identification.candidate_count > 0);
        compared += u32::from(expected.is_some());
    }
    assert!(solvable > 60 && compared > 25, "{solvable} {compared}");
}
