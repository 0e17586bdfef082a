//! A model learned under one cipher suite and used under others: plaintext sizes are the same, and so are the figures.

use std::fs;

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::{Framing, Suite, Version};
use support::home::Home;
use support::programs::stderr;

const SEED: u64 = 83_001;

const OTHERS: [(Version, Suite); 4] = [
    (Version::Tls12, Suite::Aes256Gcm),
    (Version::Tls12, Suite::ChaCha20Poly1305),
    (Version::Tls13, Suite::Aes128Gcm),
    (Version::Tls13, Suite::ChaCha20Poly1305),
];

fn scenario(framing: Framing, (version, suite): (Version, Suite)) -> Scenario {
    let mut scenario = Scenario::default();
    (scenario.session.framing, scenario.tls.version, scenario.tls.suite) = (framing, version, suite);
    scenario.test.commands = 150;
    scenario
}

/// The same home under other suites: same seed, same commands, other records.
fn transfers(framing: Framing) {
    let from = Home::learned(&scenario(framing, (Version::Tls12, Suite::Aes128Gcm)), SEED);
    let expected = from.figures("model.toml", &["--quiet"]);
    assert!(expected["after_pruning"]["precision"].as_f64().unwrap() >= 0.984, "{expected}");
    for suite in OTHERS {
        let to = Home::new(&scenario(framing, suite), SEED);
        assert_ne!(fs::read(from.path("test.pcap")).unwrap(), fs::read(to.path("test.pcap")).unwrap());
        fs::copy(from.path("model.toml"), to.path("model.toml")).unwrap();
        let figures = to.figures("model.toml", &["--quiet"]);
        assert_eq!(sizes(&figures), sizes(&expected), "{framing:?} over {suite:?}");
        for key in ["precision", "top_1"] {
            let share = |figures: &Value| figures["after_pruning"][key].as_f64().unwrap();
            let off = (share(&figures) - share(&expected)).abs();
            assert!(off <= 0.01 * share(&expected).max(1.0), "{key}, {framing:?} over {suite:?}: off by {off}");
        }
    }
}

/// The figures that follow from the commands' sizes alone. The count of replies depends on what TLS hides of them, so
/// the figures after pruning are only similar.
fn sizes(figures: &Value) -> [&Value; 4] {
    ["matched", "missed", "spurious", "before_pruning"].map(|key| &figures[key])
}

/// Transfers between a suite that shows sizes and one that shows ranges, either way: the truth stays among the
/// candidates. A model learned from sizes is as good on ranges as one learned from ranges, but a model learned from
/// ranges is not exact enough to rank candidates of exact sizes.
fn transfers_between_sizes_and_ranges(framing: Framing) {
    let homes = [(Version::Tls12, Suite::Aes128Gcm), (Version::Tls12, Suite::Aes128CbcSha)]
        .map(|suite| Home::new(&scenario(framing, suite), SEED + 1));
    let [exact, ranges] = homes.each_ref().map(|home| {
        let learned = home.learn("model.toml", &[]);
        assert!(learned.status.success(), "{}", stderr(&learned));
        home.figures("model.toml", &["--quiet"])
    });
    for (from, to, own) in [(0, 1, &ranges), (1, 0, &exact)] {
        fs::copy(homes[from].path("model.toml"), homes[to].path("other.toml")).unwrap();
        let figures = homes[to].figures("other.toml", &["--quiet"]);
        let share = |figures: &Value, key: &str| figures["after_pruning"][key].as_f64().unwrap() / 150.0;
        assert!(150.0 * share(&figures, "precision") >= 0.984, "{framing:?}: {figures}");
        let least = if to == 1 { 0.9 } else { 0.4 };
        assert!(share(&figures, "top_1") >= least * share(own, "top_1"), "{framing:?}: {figures}\n{own}");
        // A command that no action explains is missed, and ranges leave sizes uncertain by a byte or two.
        for key in ["matched", "spurious"] {
            let count = |figures: &Value| figures[key].as_u64().unwrap();
            assert!(count(&figures).abs_diff(count(own)) <= 2, "{key}, {framing:?}: {figures}");
        }
    }
}

support::tests_of! { transfers_between_sizes_and_ranges {
    websocket_between_sizes_and_ranges(Framing::Websocket);
    mqtt_between_sizes_and_ranges(Framing::Mqtt);
    http_between_sizes_and_ranges(Framing::Http);
} }

support::tests_of! { transfers {
    websocket(Framing::Websocket);
    mqtt(Framing::Mqtt);
    http(Framing::Http);
} }
