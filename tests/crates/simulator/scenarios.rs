//! Scenario files: the bundled ones, and errors of others.

use sizeleak_simulator::scenario::Framing;
use sizeleak_simulator::{Scenario, simulate};

const DEFAULT: &str = include_str!("../../../examples/scenarios/default.toml");

#[test]
fn the_default_file_equals_the_default() {
    assert_eq!(Scenario::from_toml(DEFAULT).unwrap(), Scenario::default());
    assert_eq!(Scenario::from_toml("").unwrap(), Scenario::default());
}

#[test]
fn the_default_file_lists_every_key() {
    fn keys(prefix: &str, value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    keys(&format!("{prefix}.{key}"), value, found);
                }
            }
            toml::Value::Array(values) => values.iter().for_each(|value| keys(prefix, value, found)),
            _ => found.push(prefix.to_owned()),
        }
    }
    let all = |value: &toml::Value| {
        let mut found = Vec::new();
        keys("", value, &mut found);
        found.sort();
        found
    };
    let listed = all(&toml::from_str(DEFAULT).unwrap());
    assert_eq!(listed, all(&toml::Value::try_from(Scenario::default()).unwrap()));
}

#[test]
fn the_bundled_scenarios_can_be_simulated() {
    let files = [
        (include_str!("../../../examples/scenarios/websocket-tls12-aes.toml"), Framing::Websocket),
        (include_str!("../../../examples/scenarios/mqtt-tls13.toml"), Framing::Mqtt),
        (include_str!("../../../examples/scenarios/http-tls12-chacha.toml"), Framing::Http),
        (include_str!("../../../examples/scenarios/changing-gateway.toml"), Framing::Websocket),
    ];
    for (text, framing) in files {
        let scenario = Scenario::from_toml(text).unwrap();
        assert_eq!(scenario.session.framing, framing);
        assert_eq!(simulate(&scenario, 1).unwrap().test.truths.len(), 307);
    }
}

#[test]
fn simulate_checks_the_scenario() {
    let mut scenario = Scenario::default();
    scenario.test.commands = 0;
    let error = simulate(&scenario, 1).unwrap_err().to_string();
    assert_eq!(error, "`test.commands` of the scenario is 0: it must be between 1 and 100000");
}

#[test]
fn a_command_may_have_an_action_of_each_of_many_devices() {
    let device = |name: &str| format!("[[device]]\nname = \"{name}\"\ncount = 5000\nactions = [\"{name}\"]\n");
    let scenario = format!("{}{}[command]\nmost-actions = 10000", device("a"), device("b"));
    assert!(Scenario::from_toml(&scenario).is_ok());
}
