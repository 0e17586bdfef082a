//! `sizeleak record` over the gateways of `examples/lab`: software that the project did not write.

use std::fs;
use std::net::TcpListener;

use serde_json::Value;
use support::home::run;
use support::programs::{root, sizeleak, stderr};
use tempfile::TempDir;

/// Two ports in a row that are free, from `first` on.
fn ports(first: u16) -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.2", port)).is_ok();
    (first..first + 2_000).step_by(2).find(|port| free(*port) && free(port + 1)).expect("two free ports")
}

/// Records the gateway of a script until all sizes are certain, and asserts that they are the true ones.
fn assert_sizes_are_right(script: &str, options: &str, gateway: &str, port: u16) {
    let folder = TempDir::new().unwrap();
    let (lab, out) = (folder.path().join("lab"), folder.path().join("out"));
    let examples = root().join("examples/lab");
    let mut record = sizeleak("record --pause 100ms --silence 200ms --max-commands 80");
    record.args(["--gateway", gateway]).arg("--inventory").arg(examples.join("inventory.toml")).arg("-o").arg(&out);
    let home = format!("python3 {}/{script} {} --port {port} {options}", examples.display(), lab.display());
    let tcpdump = format!("tcpdump -i lo -U --immediate-mode -n -w - host 127.0.0.2 and port {port}");
    let output = run(record.args(["--do-lines", &home, "--capture-with", &tcpdump]));
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("all sizes are certain and explain the commands held back"), "{text}");

    let truth: Value = serde_json::from_slice(&fs::read(lab.join("sizes.json")).unwrap()).unwrap();
    let model: toml::Table = fs::read_to_string(out.join("model.toml")).unwrap().parse().unwrap();
    let actions = model["action"].as_array().unwrap();
    assert_eq!(actions.len(), 7, "{text}");
    for action in actions {
        let name = action["name"].as_str().unwrap();
        assert_eq!(action["size"].as_integer(), truth[name].as_i64(), "{name}: {text}");
    }
}

#[test]
#[ignore = "second tier: needs root, tcpdump, mosquitto, openssl and python3 with AWSIoTPythonSDK and paho-mqtt"]
fn sizes_of_an_aws_gateway_are_right_while_its_counter_gains_a_digit() {
    assert_sizes_are_right("aws.py", "--version 81", "127.0.0.1", ports(20_000));
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl and node-red"]
fn sizes_of_a_node_red_gateway_are_right_over_one_connection() {
    assert_sizes_are_right("nodered.py", "", "127.0.0.2", ports(28_000));
}
