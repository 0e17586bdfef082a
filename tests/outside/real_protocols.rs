//! Other protocols than TLS, as others implement them: their records are the messages that the sender's log has.
//!
//! The labs of `examples/lab` run, with fewer messages than those that docs/captures.md is about.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, Value};
use sizeleak_frame::{ContentType, Direction, Protocol, Record};
use support::chain::Sized;
use support::programs::root;
use tempfile::TempDir;

/// A message as its sender knows it.
#[derive(Debug, Deserialize)]
struct Sent {
    direction: Direction,
    plaintext: u64,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl Sent {
    fn number(&self, name: &str) -> u64 {
        self.more[name].as_u64().unwrap()
    }

    /// The port of the connection's client; 0 if the lab has one connection.
    fn client_port(&self) -> u64 {
        self.more.get("client_port").and_then(Value::as_u64).unwrap_or_default()
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.more[name] == value
    }
}

/// A lab that ran: its capture and its log.
struct Lab {
    folder: TempDir,
    sent: Vec<Sent>,
}

/// What the records of a gateway are.
struct Expected<'a> {
    gateway: &'a str,
    protocol: Protocol,
    /// The median of the widths of ranges of plaintext.
    width: u64,
}

impl Lab {
    fn run(script: &str, options: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let mut python = Command::new("python3");
        python.current_dir(root()).arg(format!("examples/lab/{script}")).arg(folder.path());
        let output = python.args(options.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        let log = fs::read_to_string(folder.path().join("sent.ndjson")).unwrap();
        let sent = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { folder, sent }
    }

    /// What is found of a gateway.
    fn sized(&self, gateway: &str) -> Sized {
        let sized = Sized::of(&self.folder.path().join("capture.pcap"), Some(gateway.parse().unwrap()));
        assert_eq!(sized.damage, None);
        sized
    }

    /// Asserts that those records that are `compared` have, in order in each direction of each connection, the sizes of the
    /// messages for which `size` gives one.
    fn assert_sizes(
        &self,
        expected: &Expected<'_>,
        size: impl Fn(&Sent) -> Option<u64>,
        compared: impl Fn(&Record) -> bool,
    ) {
        let capture = self.sized(expected.gateway);
        let clients: BTreeSet<u64> = self.sent.iter().map(Sent::client_port).collect();
        // Several connections may send in another order than they encrypt.
        let connection = |record: &&Record| {
            let flow = &capture.flows[&record.flow];
            let ports = [flow.gateway_port.map_or(0, u64::from), flow.service.port().into()];
            ports.into_iter().find(|port| clients.contains(port))
        };
        let mut widths = Vec::new();
        for direction in Direction::BOTH {
            let mut sent: Vec<&Sent> = self.sent.iter().filter(|sent| sent.direction == direction).collect();
            sent.sort_by_key(|sent| sent.client_port());
            let sizes: Vec<u64> = sent.into_iter().filter_map(&size).collect();
            let of_direction = capture.records.iter().filter(|record| record.direction == direction);
            let mut found: Vec<&Record> = of_direction.filter(|record| compared(record)).collect();
            found.sort_by_key(connection);
            assert!(sizes.len() >= 50, "{direction:?}: only {} messages", sizes.len());
            assert_eq!(found.len(), sizes.len(), "{direction:?}");
            for (number, (record, size)) in found.iter().zip(&sizes).enumerate() {
                let [least, most] = record.plaintext.unwrap();
                assert!((least..=most).contains(size), "{direction:?} {number}: {size} in {record:?}");
                assert_eq!(record.protocol, expected.protocol);
                widths.push(most - least);
            }
        }
        widths.sort_unstable();
        assert_eq!(widths[widths.len() / 2], expected.width);
        println!("{:?}: {} messages, all in ranges {} wide", expected.protocol, widths.len(), expected.width);
    }
}

fn is_data(record: &Record) -> bool {
    !record.handshake && record.content_type == ContentType::ApplicationData
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl and python3 with aioquic"]
fn packets_of_quic_are_those_that_were_encrypted() {
    let lab = Lab::run("quic.py", "--messages 700");
    let expected = Expected { gateway: "127.0.0.1", protocol: Protocol::Quic, width: 3 };
    // A Retry is not encrypted.
    lab.assert_sizes(&expected, |sent| Some(sent.plaintext), |record| record.plaintext.is_some());
}

const MATTER: &str = "--packages .cache/lab --commands 50 --between 0 0.05 --reads";

/// Those of each device: what it sent and got after its session began, but for what was sent again.
fn assert_matter(lab: &Lab) {
    for (device, gateway) in [("lamp", "fe80::ff:fe00:2"), ("lock", "fe80::ff:fe00:3")] {
        let peer = format!("{gateway}%lab");
        let size = |sent: &Sent| {
            let is_of_device = sent.is("node", device) || sent.is("peer", &peer);
            let is_compared = is_of_device && sent.is("kind", "secure") && sent.more["again"] == false;
            is_compared.then_some(sent.plaintext)
        };
        let expected = Expected { gateway, protocol: Protocol::Matter, width: 0 };
        lab.assert_sizes(&expected, size, |record| !record.handshake);
        let acknowledgements = |sent: &&Sent| size(sent).is_some() && sent.more["ack"] == true;
        let records = lab.sized(gateway).records;
        let found = records.iter().filter(|record| record.content_type == ContentType::Acknowledgement);
        assert_eq!(found.count(), lab.sent.iter().filter(acknowledgements).count());
    }
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, ip, nft, node and @matter/main in .cache/lab"]
fn messages_of_matter_are_those_that_were_encrypted() {
    assert_matter(&Lab::run("matter.py", &format!("{MATTER} --lost 2")));
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, ip, node and @matter/main in .cache/lab"]
fn messages_of_matter_over_tcp_are_those_that_were_encrypted() {
    assert_matter(&Lab::run("matter.py", &format!("{MATTER} --tcp")));
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, ip, node, hap-nodejs and hap-controller in .cache/lab"]
fn frames_of_homekit_are_those_that_were_encrypted() {
    let lab = Lab::run("homekit.py", "--packages .cache/lab --commands 100 --between 0 0.02 --reads");
    let expected = Expected { gateway: "10.9.0.2", protocol: Protocol::Framing, width: 0 };
    lab.assert_sizes(&expected, |sent| Some(sent.plaintext), |_| true);
}

const WOLFSSL: &str = "--wolfssl .cache/wolfssl/source --built .cache/wolfssl/built --messages 500";

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, cc and wolfSSL's source in .cache/wolfssl/source"]
fn records_of_dtls_with_connection_ids_are_those_that_were_encrypted() {
    let lab = Lab::run("dtls.py", &format!("{WOLFSSL} --version 1.2"));
    let expected = Expected { gateway: "127.0.0.1", protocol: Protocol::Dtls, width: 0 };
    // Behind a connection id, an alert looks like data.
    let size = |sent: &Sent| {
        let looks_like_data =
            sent.number("kind") == 23 || sent.number("kind") == 21 && sent.number("connection_id") > 0;
        looks_like_data.then_some(sent.plaintext)
    };
    lab.assert_sizes(&expected, size, is_data);
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, cc and wolfSSL's source in .cache/wolfssl/source"]
fn records_of_dtls_1_3_are_those_that_were_encrypted() {
    let lab = Lab::run("dtls.py", &format!("{WOLFSSL} --version 1.3"));
    let expected = Expected { gateway: "127.0.0.1", protocol: Protocol::Dtls13, width: 0 };
    // Padding counts as plaintext.
    let size = |sent: &Sent| (sent.number("epoch") >= 3).then_some(sent.plaintext + sent.number("padding"));
    lab.assert_sizes(&expected, size, |record| !record.handshake);
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, ip, wireguard-go and wg"]
fn packets_of_wireguard_are_those_in_its_tunnel() {
    let lab = Lab::run("wireguard.py", "--messages 200");
    let expected = Expected { gateway: "10.9.0.2", protocol: Protocol::WireGuard, width: 15 };
    lab.assert_sizes(&expected, |sent| Some(sent.plaintext), is_data);
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl, ip, strongSwan with libipsec and swanctl, and python3 with scapy"]
fn packets_of_esp_are_those_in_its_tunnel() {
    let kinds = [
        ("--suite aes128gcm16", "10.9.0.2"),
        ("--suite aes128-sha256", "10.9.0.2"),
        // What is inside and outside of the tunnel has the same addresses.
        ("--suite aes128-sha1 --raw transport", "10.10.0.2"),
    ];
    for (options, gateway) in kinds {
        let lab = Lab::run("esp.py", &format!("--messages 100 {options}"));
        let expected = Expected { gateway, protocol: Protocol::Esp, width: 47 };
        lab.assert_sizes(&expected, |sent| Some(sent.plaintext), |_| true);
    }
}

#[test]
#[ignore = "second tier: needs root, tcpdump, openssl and python3 with tinytuya"]
fn messages_of_tuya_have_the_lengths_that_were_sent() {
    let lab = Lab::run("tuya.py", "--messages 400");
    let records = lab.sized("127.0.0.2").records;
    for direction in Direction::BOTH {
        // What comes before and behind the bytes that the length in a message counts.
        let around = |sent: &Sent| if sent.more["version"] == 3.5 { 18 } else { 16 };
        let of_direction = lab.sent.iter().filter(|sent| sent.direction == direction);
        let sent: Vec<u64> = of_direction.map(|sent| sent.number("packet") - around(sent)).collect();
        let of_direction = records.iter().filter(|record| record.direction == direction);
        let found: Vec<u64> = of_direction.map(|record| record.length.into()).collect();
        assert_eq!(found, sent, "{direction:?}");
    }
    assert!(records.iter().all(|record| record.protocol == Protocol::Framing && record.plaintext.is_none()));
}
