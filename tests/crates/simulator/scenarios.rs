//! Scenario files: the bundled ones, and errors of others.

use sizeleak_simulator::scenario::Framing;
use sizeleak_simulator::{Scenario, ScenarioError, simulate};

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
fn syntax_errors_name_line_and_column() {
    let error = Scenario::from_toml("[network]\nport = 443\n  nme = \"x\"\n").unwrap_err();
    let ScenarioError::Syntax { line, column, ref reason } = error else { panic!("{error}") };
    assert_eq!((line, column), (3, 3));
    assert!(reason.contains("unknown field `nme`"), "{reason}");
    assert!(!error.to_string().contains('\n'), "{error}");
    assert!(matches!(Scenario::from_toml("epoch = \"yesterday\""), Err(ScenarioError::Syntax { line: 1, .. })));
    assert!(matches!(Scenario::from_toml("[tls]\nversion = \"1.1\""), Err(ScenarioError::Syntax { line: 2, .. })));
}

#[test]
fn errors_of_values_name_the_key() {
    let cases = [
        ("network.service", "network = { service = \"2001:db8::1\" }"),
        ("network.service", "network = { service = \"192.168.1.20\" }"),
        ("network.port", "network = { port = 0 }"),
        ("network.name", "network = { name = \"not a name\" }"),
        ("network.round-trip", "network = { round-trip = \"0s\" }"),
        ("network.segment-size", "network = { segment-size = 10 }"),
        ("network.retransmission", "network = { retransmission = 1.5 }"),
        ("tls.chunk", "tls = { chunk = 20000 }"),
        ("tls.suite", "tls = { version = \"1.3\", suite = \"aes-128-cbc-sha\" }"),
        ("session.keep-alive", "session = { keep-alive = \"-1s\" }"),
        ("session.reconnect-after", "session = { reconnect-after = \"1s\" }"),
        ("session.poll-timeout", "session = { poll-timeout = \"0s\" }"),
        ("replies.delay.max", "replies = { delay = { min = \"2s\", max = \"1s\" } }"),
        ("replies.loss", "replies = { loss = nan }"),
        ("command.interval.min", "command = { interval = { min = \"0s\", max = \"1s\" } }"),
        ("command.most-actions", "command = { most-actions = 17 }"),
        ("command.decay", "command = { decay = 0 }"),
        ("command.message-id.max-digits", "command = { message-id = { max-digits = 3 } }"),
        ("learn.random", "learn = { repeats = 0, random = 0 }"),
        ("test.commands", "test = { commands = 0 }"),
        ("labels.error", "labels = { error = \"25h\" }"),
        ("device", "device = []"),
        ("device.count of `a`", "device = [{ name = \"a\", count = 0, actions = [\"on\"] }]"),
        ("device.actions of `a`", "device = [{ name = \"a\", count = 1, actions = [] }]"),
        ("device.actions of `a`", "device = [{ name = \"a\", count = 20, actions = [\"time\"] }]"),
        ("action.name", "action = [{ name = \"fly\", set = 1 }]"),
        ("action.parameter of `on`", "action = [{ name = \"on\", set = 1, parameter = { name = [] } }]"),
        (
            "action.parameter of `on`, number.min",
            "action = [{ name = \"on\", set = 1, parameter = { number = { min = 3, max = 2 } } }]",
        ),
        (
            "action.replies of `on`, max",
            "action = [{ name = \"on\", set = 1, replies = [{ min = 0, max = 0 }, { min = 3, max = 2 }] }]",
        ),
        ("action.replies of `on`", "replies.mode = \"none\"\naction = [{ name = \"on\", set = 1, replies = [] }]"),
        ("command.second-app", "command = { second-app = 2 }"),
        ("command.overlap.share", "command = { overlap = { share = -1 } }"),
        ("command.overlap.share", "command = { overlap = { share = 0.1 } }\nsession = { framing = \"http\" }"),
        ("command.recurring.share", "command = { recurring = { share = 1.1, commands = 1 } }"),
        ("command.recurring.commands", "command = { recurring = { share = 0.1 } }"),
        ("command.overlap.interval.min", "command = { overlap = { interval = { min = \"0s\", max = \"1s\" } } }"),
        ("command.overlap.interval.max", "command = { overlap = { interval = { min = \"1s\", max = \"1ms\" } } }"),
        ("firmware-change.after", "firmware-change = { after = 1.5 }"),
        ("firmware-change.bytes", "firmware-change = { bytes = 5000 }"),
        ("noise.host-period", "noise = { host-period = \"1ms\" }"),
        ("telemetry.period", "telemetry = { period = \"100ms\" }\ntest = { commands = 100000 }"),
        ("capture.loss", "capture = { loss = -0.1 }"),
        ("epoch", "epoch = \"1960-01-01T00:00:00Z\""),
    ];
    for (wanted, text) in cases {
        match Scenario::from_toml(text) {
            Err(ScenarioError::Value { key, .. }) => assert_eq!(key, wanted, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn errors_show_durations_as_written_in_scenarios() {
    let error = Scenario::from_toml("session = { reconnect-after = \"1s\" }").unwrap_err().to_string();
    assert_eq!(
        error,
        "line 1: `session.reconnect-after` of the scenario is 1s: it must be at least 10s, or 0s for none"
    );
}

#[test]
fn numbers_that_would_need_much_memory_are_refused_with_line_and_limit() {
    let device = |name: &str, count: u32, actions: usize| {
        let actions: Vec<String> = (0..actions).map(|at| format!("\"{name}{at}\"")).collect();
        format!("[[device]]\nname = \"{name}\"\ncount = {count}\nactions = [{}]\n", actions.join(", "))
    };
    let several = |count: usize, one: u32, actions: usize| {
        (0..count).map(|at| device(&format!("d{at}-"), one, actions)).collect::<Vec<_>>().concat()
    };
    let home = several(2, 5000, 1);
    for (text, line, limit) in [
        ("[learn]\nrepeats = 4294967295".to_owned(), 2, "between 0 and 1000"),
        (format!("learn = {{ repeats = 1000 }}\n{}", several(2, 20, 26)), 1, "are at most 100000 commands"),
        (device("a", u32::MAX, 1), 3, "between 1 and 10000"),
        (device("a", 1, 1) + &device("b", 10_001, 1), 7, "between 1 and 10000"),
        (several(3, 5000, 1), 3, "at most 10000 for all devices together"),
        (several(2, 5000, 11), 3, "at most 100000 actions of all devices together"),
        (several(3, 1, 2000), 4, "at most 4096"),
        (format!("{home}[command]\nmost-actions = 200\n[test]\ncommands = 100000"), 10, "at most 40 for this"),
        (format!("{home}[command]\nmost-actions = 9000\nrecurring.commands = 10000"), 10, "at most 388 for this"),
    ] {
        let error = Scenario::from_toml(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: `")) && error.contains(limit), "{error}");
    }
    assert!(Scenario::from_toml(&format!("{home}[command]\nmost-actions = 10000")).is_ok());
}

#[test]
fn simulate_checks_the_scenario() {
    let mut scenario = Scenario::default();
    scenario.test.commands = 0;
    let error = simulate(&scenario, 1).unwrap_err().to_string();
    assert_eq!(error, "`test.commands` of the scenario is 0: it must be between 1 and 100000");
}
