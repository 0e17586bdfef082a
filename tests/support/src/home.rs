//! A home on disk, and the program run on it as by a user.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use serde_json::Value;
use sha2::{Digest, Sha256};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_simulator::scenario::{Attack, AttackKind, HabitSettings, ReplyPadding};
use sizeleak_simulator::{Scenario, Simulation, TestForm, simulate, simulate_as};
use tempfile::TempDir;

use crate::programs::{GATEWAY, example, feed, root, sizeleak, stderr, stdout, with};

/// The captures, labels and inventory of a home, in a temporary folder.
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
    /// The bundled home with its model, and the pipeline of the project, which names them.
    pub fn bundled() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["learn.pcap", "learn.csv", "test.pcap", "test.csv", "inventory.toml", "model.toml"] {
            fs::copy(root().join(example(name)), folder.path().join(name)).unwrap();
        }
        let pipeline = fs::read_to_string(root().join("pipeline.toml")).unwrap();
        fs::write(folder.path().join("pipeline.toml"), pipeline.replace(&example(""), "")).unwrap();
        Self { folder }
    }

    /// The bundled home as its model answers some weeks of it, and when it is attacked, in nanoseconds: the first 25 days
    /// (`learned`) and 28 days with an attack on the last but two (`attacked`), as commands and as answers; a profile of the
    /// former, `p.toml`; and the answers with all deviations from no profile, `deviations.frames`.
    pub fn of_weeks() -> (Self, i64) {
        const FILES: [&str; 6] = [
            "learned.commands",
            "learned.frames",
            "attacked.commands",
            "attacked.frames",
            "p.toml",
            "deviations.frames",
        ];
        static MADE: LazyLock<(i64, [Vec<u8>; FILES.len()])> = LazyLock::new(|| {
            let home = Home::bundled();
            let attack_ns = home.live_for_weeks();
            (attack_ns, FILES.map(|name| fs::read(home.path(name)).unwrap()))
        });
        let (attack_ns, contents) = &*MADE;
        let home = Self::bundled();
        for (name, content) in FILES.into_iter().zip(contents) {
            fs::write(home.path(name), content).unwrap();
        }
        (home, *attack_ns)
    }

    fn live_for_weeks(&self) -> i64 {
        let mut scenario = living(25);
        let learned = simulate_as(&scenario, 3, TestForm::Frames).unwrap();
        scenario.habits.days = 28;
        scenario.habits.attacks = vec![Attack { kind: AttackKind::Burst, day: 26, at: None }];
        let attacked = simulate_as(&scenario, 3, TestForm::Frames).unwrap();
        for (name, simulation) in [("learned", &learned), ("attacked", &attacked)] {
            fs::write(self.path(&format!("{name}.commands")), &simulation.test.bytes).unwrap();
            self.text(&format!("run {name}.commands --model model.toml -q -o {name}.frames"));
        }
        self.text("profile learned.frames --time-zone Europe/Berlin -q -o p.toml");
        fs::write(self.path("empty.toml"), "schema = 1\ntime-zone = \"Europe/Berlin\"\n").unwrap();
        let detector = with("detector", &format!("--profile {}", self.path("empty.toml").display()));
        let found = feed(detector, fs::read(self.path("attacked.frames")).unwrap());
        assert!(found.status.success(), "{}", stderr(&found));
        fs::write(self.path("deviations.frames"), found.stdout).unwrap();
        attacked.attacks[0].start_ns
    }

    /// A simulated home with a learned model.
    pub fn learned(scenario: &Scenario, seed: u64) -> Self {
        let home = Self::new(scenario, seed);
        let output = home.learn("model.toml", &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        home
    }

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

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What a file of the home holds, as text.
    pub fn text_of(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program in the home's folder, with arguments, split at spaces.
    pub fn sizeleak(&self, arguments: &str) -> Command {
        let mut command = sizeleak(arguments);
        command.current_dir(self.folder());
        command
    }

    /// What the program prints in the home's folder. It must succeed.
    pub fn text(&self, arguments: &str) -> String {
        String::from_utf8(stdout(&mut self.sizeleak(arguments))).unwrap()
    }

    /// The same, as JSON.
    pub fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    /// A run of the program in the home's folder.
    pub fn run(&self, arguments: &str) -> Output {
        run(&mut self.sizeleak(arguments))
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

/// Gives each action of a home a reply that is longer than that to `on` by so many bytes: some have the same.
pub fn tell_actions_apart_by_replies(scenario: &mut Scenario) {
    const LONGER: [(&str, u32); 7] =
        [("on", 0), ("off", 1), ("toggle", 4), ("timer", 9), ("dim", 6), ("white", 6), ("colour", 12)];
    for action in &mut scenario.actions {
        let longer = LONGER.iter().find(|(name, _)| *name == action.name).map_or(0, |(_, bytes)| *bytes);
        action.replies = Some(vec![ReplyPadding { min: longer, max: longer }]);
    }
}

/// A home that lives for so many days, with hardly a command to learn from.
pub fn living(days: u32) -> Scenario {
    let mut scenario = Scenario::default();
    (scenario.learn.repeats, scenario.learn.random) = (0, 1);
    scenario.habits = HabitSettings { days, time_zone: "Europe/Berlin".into(), ..HabitSettings::default() };
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
