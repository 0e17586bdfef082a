//! A simulated home on disk, and the program run on it as by a user.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use sha2::{Digest, Sha256};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_simulator::{Scenario, Simulation, simulate};
use tempfile::TempDir;

use crate::programs::{GATEWAY, feed, sizeleak, stderr, stdout, with};

/// The captures, labels and inventory of a simulation, in a temporary folder.
pub struct Home {
    folder: TempDir,
}

/// What is made once in a test program and then only read, by what it is made of.
struct MadeOnce<T>(Mutex<BTreeMap<Vec<u8>, Arc<OnceLock<T>>>>);

impl<T> MadeOnce<T> {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What is made of this, after `make` has made it if it was not there.
    fn of(&self, what: Vec<u8>, make: impl FnOnce() -> T) -> Arc<OnceLock<T>> {
        let once = Arc::clone(self.0.lock().unwrap().entry(what).or_default());
        once.get_or_init(make);
        once
    }
}

impl Home {
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        static SIMULATIONS: MadeOnce<Simulation> = MadeOnce::new();
        let folder = tempfile::tempdir().unwrap();
        let what = format!("{seed}\n{}", toml::to_string(scenario).unwrap());
        let made = SIMULATIONS.of(what.into_bytes(), || simulate(scenario, seed).unwrap());
        made.wait().write_to(folder.path()).unwrap();
        Self { folder }
    }

    /// The same by `sizeleak simulate` with further arguments.
    pub fn simulated(scenario: &Scenario, seed: u64, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        fs::write(&file, toml::to_string(scenario).unwrap()).unwrap();
        let mut command = sizeleak("simulate --quiet --scenario");
        command.arg(&file).args(["--seed", &seed.to_string(), "-o"]).arg(folder.path()).args(more);
        let output = run(&mut command);
        assert!(output.status.success(), "{}", stderr(&output));
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The records of one of its captures as a stream.
    pub fn records(&self, capture: &str) -> PathBuf {
        let packets = stdout(&mut with("capture", self.path(capture).to_str().unwrap()));
        let segments = feed(with("flow-filter", &format!("--gateway {GATEWAY}")), packets).stdout;
        let path = self.path(&format!("{capture}.frames"));
        fs::write(&path, feed(with("record-sizer", ""), segments).stdout).unwrap();
        path
    }

    /// Writes the model that `from` was learned as, with a policy that it knows, to `model.toml`.
    pub fn add_policy(&self, from: &Self, policy: &PaddingPolicy) {
        let text = fs::read_to_string(from.path("model.toml")).unwrap();
        let mut model: toml::Table = text.parse().unwrap();
        model.insert("schema".to_owned(), 2.into());
        let padding = toml::Value::try_from(policy).unwrap();
        model["learned"].as_table_mut().unwrap().insert("padding".to_owned(), padding);
        fs::write(self.path("model.toml"), model.to_string()).unwrap();
    }

    /// `learn` on the training captures, into a model of this name; `more` are further arguments. Without any, what was
    /// learned from the same files before is taken.
    pub fn learn(&self, model: &str, more: &[&str]) -> Output {
        static LEARNED: MadeOnce<(Output, Option<Vec<u8>>)> = MadeOnce::new();
        if !more.is_empty() {
            return self.learn_anew(model, more);
        }
        let mut files = Sha256::new();
        for name in ["learn.pcap", "learn.csv", "inventory.toml"] {
            files.update(Sha256::digest(fs::read(self.path(name)).unwrap()));
        }
        let made = LEARNED.of(files.finalize().to_vec(), || {
            let output = self.learn_anew(model, more);
            (output, fs::read(self.path(model)).ok())
        });
        let (output, learned) = made.wait();
        if let Some(learned) = learned {
            fs::write(self.path(model), learned).unwrap();
        }
        output.clone()
    }

    fn learn_anew(&self, model: &str, more: &[&str]) -> Output {
        let mut command = sizeleak("learn");
        command.arg(self.path("learn.pcap")).arg("--labels").arg(self.path("learn.csv"));
        command.args(["--gateway", GATEWAY]).arg("--inventory").arg(self.path("inventory.toml"));
        run(command.arg("-o").arg(self.path(model)).args(more))
    }

    /// `evaluate` of a model on the test captures.
    pub fn evaluate(&self, model: &str, more: &[&str]) -> Output {
        let mut command = sizeleak("evaluate");
        command.arg("--model").arg(self.path(model)).args(["--gateway", GATEWAY]);
        command.arg(self.path("test.pcap")).arg("--labels").arg(self.path("test.csv"));
        run(command.args(more))
    }

    /// The figures of `evaluate` for several pipelines with a model.
    pub fn compare(&self, model: &str, settings: &[String]) -> Value {
        let mut command = sizeleak("evaluate");
        command.args(settings).arg("--model").arg(self.path(model)).args(["--gateway", GATEWAY, "--quiet"]);
        command.arg(self.path("test.pcap")).arg("--labels").arg(self.path("test.csv"));
        let output = run(command.args(["--format", "json"]));
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The figures of [`Self::evaluate`].
    pub fn figures(&self, model: &str, more: &[&str]) -> Value {
        let output = self.evaluate(model, &[&["--format=json"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The share of first candidates of a score that are right, and its interval.
pub fn first_right(score: &Value) -> (f64, [f64; 2]) {
    let number = |value: &Value| value.as_f64().unwrap();
    let interval = &score["intervals"]["top_1"];
    let share = number(&score["top_1"]) / number(&score["commands"]);
    (share, [number(&interval["low"]), number(&interval["high"])])
}

/// Asserts that a share is in the interval of the first candidates that are right.
pub fn assert_within(what: &str, expected: f64, score: &Value) {
    let (share, [low, high]) = first_right(score);
    assert!((low..=high).contains(&expected), "{what}: {expected} is not in {low} to {high} around {share}");
}

/// A home with few commands, for tests that do not depend on accuracy.
pub fn small() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.learn.random = 60;
    scenario.test.commands = 40;
    scenario
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Asserts that a run failed with this exit code and one sentence that contains these words.
pub fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty(), "nothing goes to stdout");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}
