//! How often the truth is among the candidates, for homes and seeds that nothing was tuned on: captures with real TLS,
//! the real program, 307 test commands per home. `cargo test --test answers accuracy:: -- --nocapture` shows the figures.

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::{Framing, Suite, Version};
use support::home::Home;
use support::programs;

/// The least share of commands with the truth among their candidates: the paper's before pruning.
const LEAST: f64 = 0.984;

const AES_GCM: (Version, Suite) = (Version::Tls12, Suite::Aes128Gcm);
const CHACHA20: (Version, Suite) = (Version::Tls12, Suite::ChaCha20Poly1305);
const CBC: (Version, Suite) = (Version::Tls12, Suite::Aes128CbcSha);
const CBC_SHA256: (Version, Suite) = (Version::Tls12, Suite::Aes128CbcSha256);
const CBC_256: (Version, Suite) = (Version::Tls12, Suite::Aes256CbcSha);
const TLS_1_3: (Version, Suite) = (Version::Tls13, Suite::Aes128Gcm);

fn share(figures: &Value, when: &str, what: &str) -> f64 {
    figures[when][what].as_f64().unwrap() / if what == "precision" { 1.0 } else { 307.0 }
}

/// The figures of a learning method and a pruning mode.
fn figures(home: &Home, method: &str, mode: &str) -> Value {
    let learned = home.learn("model.toml", &["--method", method]);
    assert!(learned.status.success(), "{}", programs::stderr(&learned));
    home.figures("model.toml", &["--set", &format!("pruner.mode={mode}")])
}

fn line(name: &str, figures: &Value) -> String {
    let percent = |when, what| format!("{:5.1} %", 100.0 * share(figures, when, what));
    let candidates = &figures["after_pruning"]["candidates"];
    format!(
        "{name}: among {} before, {} after pruning; first {}; candidates {:.1} mean, {} median; {} missed, {} spurious",
        percent("before_pruning", "precision"),
        percent("after_pruning", "precision"),
        percent("after_pruning", "top_1"),
        candidates["mean"].as_f64().unwrap(),
        candidates["median"],
        figures["missed"],
        figures["spurious"],
    )
}

/// The truth is among the candidates of nearly every command, for two seeds used nowhere else. The figures of the
/// paper's procedure are printed for comparison.
fn holds(framing: Framing, (version, suite): (Version, Suite), seeds: [u64; 2]) {
    let mut scenario = Scenario::default();
    (scenario.session.framing, scenario.tls.version, scenario.tls.suite) = (framing, version, suite);
    for seed in seeds {
        let home = Home::new(&scenario, seed);
        let name = format!("{framing:?}, {version:?} {suite:?}, seed {seed}");
        let robust = figures(&home, "robust", "learned");
        eprintln!("{}", line(&name, &robust));
        eprintln!("{}", line(&format!("{name}, the paper's procedure"), &figures(&home, "paper", "paper")));
        assert_eq!(&robust["commands"], 307);
        for when in ["before_pruning", "after_pruning"] {
            assert!(share(&robust, when, "precision") >= LEAST, "{}", line(&name, &robust));
        }
    }
}

support::tests_of! { holds {
    websocket_over_tls_1_2_with_aes_gcm(Framing::Websocket, AES_GCM, [81_001, 82_001]);
    websocket_over_tls_1_2_with_chacha20(Framing::Websocket, CHACHA20, [81_002, 82_002]);
    websocket_over_tls_1_3(Framing::Websocket, TLS_1_3, [81_003, 82_003]);
    websocket_over_tls_1_2_with_aes_cbc(Framing::Websocket, CBC, [81_010, 82_010]);
    mqtt_over_tls_1_2_with_aes_cbc(Framing::Mqtt, CBC_SHA256, [81_011, 82_011]);
    http_over_tls_1_2_with_aes_cbc(Framing::Http, CBC_256, [81_012, 82_012]);
    mqtt_over_tls_1_2_with_aes_gcm(Framing::Mqtt, AES_GCM, [81_004, 82_004]);
    mqtt_over_tls_1_2_with_chacha20(Framing::Mqtt, CHACHA20, [81_005, 82_005]);
    mqtt_over_tls_1_3(Framing::Mqtt, TLS_1_3, [81_006, 82_006]);
    http_over_tls_1_2_with_aes_gcm(Framing::Http, AES_GCM, [81_007, 82_007]);
    http_over_tls_1_2_with_chacha20(Framing::Http, CHACHA20, [81_008, 82_008]);
    http_over_tls_1_3(Framing::Http, TLS_1_3, [81_009, 82_009]);
} }

/// Without the inventory there are more candidates, and the truth is still among them.
#[test]
fn cbc_without_the_inventory() {
    let mut scenario = Scenario::default();
    scenario.tls.suite = Suite::Aes128CbcSha;
    let home = Home::new(&scenario, 81_013);
    let bounded = figures(&home, "robust", "learned");
    let free = home.figures("model.toml", &["--set", "decomposer.free=true"]);
    let mean = |figures: &Value| figures["before_pruning"]["candidates"]["mean"].as_f64().unwrap();
    assert!(mean(&free) > mean(&bounded), "{} {}", mean(&free), mean(&bounded));
    assert!(share(&free, "before_pruning", "precision") >= LEAST, "{}", line("free", &free));
}
