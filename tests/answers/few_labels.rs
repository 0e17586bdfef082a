//! Models of 5 to 20 labels: those that are wrong come with a warning, those of enough labels without. Simulated homes
//! with real TLS.
//! `cargo test --test answers few_labels:: -- --nocapture` shows the figures.

use std::fs;

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::Framing;
use support::home::{Home, run};
use support::programs::{sizeleak, stderr};

/// How far the calibration error of a model without a warning may be above that of perfect answers.
const MAX_ABOVE_CHANCE: f64 = 0.05;

/// Uniform random numbers, always the same.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Learns from `draws` random sets of `fewest` to `most` labels. Returns how many models came without a warning, and the
/// greatest distance of their calibration error from that of perfect answers.
fn without_a_warning(framing: Framing, seed: u64, draws: usize, [fewest, most]: [usize; 2]) -> (usize, f64) {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    let home = Home::new(&scenario, seed);
    let [learned, tested] = ["learn.pcap", "test.pcap"].map(|capture| home.records(capture));
    let text = fs::read_to_string(home.path("learn.csv")).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let (mut random, mut silent, mut worst) = (Draw(seed), 0, 0.0_f64);
    for _ in 0..draws {
        let count = fewest + random.below(most - fewest + 1);
        let mut left = rows.clone();
        let mut chosen: Vec<&str> = (0..count).map(|_| left.swap_remove(random.below(left.len()))).collect();
        chosen.sort_unstable();
        fs::write(home.path("few.csv"), format!("{head}\n{}\n", chosen.join("\n"))).unwrap();
        let mut learn = sizeleak("learn");
        learn.arg(&learned).arg("--labels").arg(home.path("few.csv")).arg("-o").arg(home.path("few.toml"));
        let output = run(&mut learn);
        assert!(output.status.success(), "no set of true labels is refused: {}", stderr(&output));
        if stderr(&output).contains("warning:") {
            continue;
        }
        let mut evaluate = sizeleak("evaluate --format=json");
        evaluate.arg(&tested).arg("--labels").arg(home.path("test.csv")).arg("--model").arg(home.path("few.toml"));
        let figures: Value = serde_json::from_slice(&run(&mut evaluate).stdout).unwrap();
        let calibration = &figures["after_pruning"]["calibration"];
        let [error, by_chance] = ["expected_error", "by_chance"].map(|key| calibration[key].as_f64().unwrap());
        silent += 1;
        worst = worst.max(error - by_chance);
    }
    eprintln!("{framing:?}, {fewest} to {most} labels: {silent} of {draws} without a warning, {worst:.3} above chance");
    (silent, worst)
}

/// Models of few labels are doubted; those that are not are calibrated, and there are some of enough labels.
fn few_labels_are_doubted(framing: Framing, seed: u64, draws: usize) {
    let (_, worst) = without_a_warning(framing, seed, draws, [5, 20]);
    assert!(worst <= MAX_ABOVE_CHANCE, "{worst}");
    let (silent, worst) = without_a_warning(framing, seed, draws / 4, [80, 120]);
    assert!(silent > 0 && worst <= MAX_ABOVE_CHANCE, "{silent} without a warning, {worst}");
}

support::tests_of! { few_labels_are_doubted {
    #[ignore = "second tier: takes minutes"]
    no_wrong_model_of_a_websocket_is_accepted_without_a_warning(Framing::Websocket, 71_101, 80);
    #[ignore = "second tier: takes minutes"]
    no_wrong_model_of_mqtt_is_accepted_without_a_warning(Framing::Mqtt, 71_102, 60);
    #[ignore = "second tier: takes minutes"]
    no_wrong_model_of_http_is_accepted_without_a_warning(Framing::Http, 71_103, 60);
} }

/// A home whose messages vary, answered with models of 100 labels or fewer. Each needs both: sizes that may be a byte off,
/// and an ε that says so.
fn answers_are_as_wide_as_labels_leave_them(home: &str, repeats: u32, random: u32) {
    let (mut right, mut claimed, mut within, mut all) = (0.0, 0.0, 0.0, 0.0);
    for seed in 0..3 {
        let scenario = format!(
            "learn = {{ repeats = {repeats}, random = {random} }}\ntest = {{ commands = 500 }}\n[replies]\nmode = \
             \"none\"\n{home}"
        );
        let home = Home::learned(&Scenario::from_toml(&scenario).unwrap(), 71_200 + seed);
        let figures: Value = serde_json::from_slice(&home.evaluate("model.toml", &["--format=json"]).stdout).unwrap();
        let after = &figures["after_pruning"];
        let number = |value: &Value| value.as_f64().unwrap();
        right += number(&after["top_1"]);
        within += number(&after["credible_set"]["among"]);
        for bin in after["calibration"]["bins"].as_array().unwrap() {
            let answers = number(&bin["answers"]);
            all += answers;
            claimed += if answers > 0.0 { answers * number(&bin["probability"]) } else { 0.0 };
        }
    }
    let [right, claimed, within] = [right, claimed, within].map(|count| count / all);
    eprintln!("{home}{right:.3} right, {claimed:.3} claimed, {within:.3} within the 95 % sets");
    assert!(all > 1_400.0 && within > 0.93 && claimed < right + 0.06, "{home}: {right}, {claimed}, {within}");
}

const RANDOM_PADDING: &str = "[padding]\npolicy = \"random:8\"\n";

support::tests_of! { answers_are_as_wide_as_labels_leave_them {
    few_labels_of_padded_messages_widen_the_answers(RANDOM_PADDING, 1, 36);
    more_labels_of_padded_messages_widen_the_answers(RANDOM_PADDING, 2, 72);
    ids_of_devices_widen_the_answers("[command]\ndevice-ids = \"varying\"\n", 2, 72);
} }

#[test]
fn names_of_rooms_widen_the_answers() {
    let rooms = "parameter = { name = [\"Bad\", \"Kitchen\", \"Living room\", \"Hall\", \"Bedroom 2\"] }\n";
    let named = |action: &str| format!("[[action]]\nname = \"{action}\"\nset = \"{action}\"\n{rooms}");
    answers_are_as_wide_as_labels_leave_them(&[named("on"), named("off")].concat(), 2, 72);
}
