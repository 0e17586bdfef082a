//! The packets of tunnels, as long as their standards make them.

use std::net::IpAddr;

use sizeleak_audit::tunnel::{Burst, Tunnel, TunnelKind, UDP_HEADER};
use sizeleak_model::Model;

/// Without options (RFC 791).
const IPV4_HEADER: u64 = 20;

fn tunnel(name: &str) -> Tunnel {
    let model = Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap();
    Tunnel::new(name.parse().unwrap(), &model)
}

/// The bytes of one packet outside, for a packet inside.
fn outer(name: &str, packet: u64) -> u64 {
    let to = IpAddr::from([192, 0, 2, 1]);
    let Burst { packets, bytes } = tunnel(name).packets(packet - IPV4_HEADER - UDP_HEADER, to, UDP_HEADER);
    assert_eq!(packets, 1);
    bytes
}

#[test]
fn packets_are_as_long_as_the_standards_make_them() {
    // A ping of 84 bytes, and packets around the longest one.
    assert_eq!(
        [84, 96, 97, 1408, 1409, 1420].map(|packet| outer("wireguard", packet)),
        [128, 128, 144, 1440, 1452, 1452]
    );
    assert_eq!([84, 86, 87, 1446].map(|packet| outer("esp-gcm", packet)), [120, 120, 124, 1480]);
    assert_eq!([84, 94, 95, 1438].map(|packet| outer("esp-cbc", packet)), [136, 136, 152, 1480]);
    assert_eq!([84, 129, 1419].map(|packet| outer("multiple:128", packet)), [160, 288, 1452]);
    assert_eq!([84, 1300].map(|packet| outer("none", packet)), [116, 1332]);
}

#[test]
fn a_message_fills_packets() {
    // 24 bytes of cipher, 5 of TLS, 52 of IP and TCP; a packet carries 1368 bytes.
    let wireguard = tunnel("wireguard");
    assert_eq!(wireguard.message(123), Burst { packets: 1, bytes: 208 + 32 });
    assert_eq!(wireguard.message(1339), Burst { packets: 1, bytes: 1452 });
    assert_eq!(wireguard.message(1340), Burst { packets: 2, bytes: 1452 + 64 + 32 });
    // A message of more than 16384 bytes has a second record, with a header of its own.
    assert_eq!(wireguard.message(16_384), Burst { packets: 12, bytes: 12 * 1452 });
    assert_eq!(wireguard.message(16_385), Burst { packets: 13, bytes: 12 * 1452 + 80 + 32 });
    assert_eq!(wireguard.message(0).packets, 1);
}

#[test]
fn the_greatest_message_is_the_last_one_whose_packets_are_no_longer() {
    for name in ["wireguard", "esp-gcm", "esp-cbc", "none", "padme"] {
        let tunnel = tunnel(name);
        for bytes in (0..40_000).step_by(97) {
            let sent = tunnel.message(bytes).bytes;
            let greatest = tunnel.greatest_message(sent);
            assert!(greatest >= bytes && tunnel.message(greatest).bytes == sent, "{name} {bytes}");
            assert!(tunnel.message(greatest + 1).bytes > sent, "{name} {bytes}");
        }
    }
}

#[test]
fn tunnels_are_known_by_their_names() {
    for name in ["wireguard", "esp-gcm", "esp-cbc", "multiple:128", "padme"] {
        assert_eq!(name.parse::<TunnelKind>().unwrap().to_string(), name);
    }
    for name in ["", "vpn", "random:64", "multiple:0"] {
        assert!(name.parse::<TunnelKind>().is_err(), "{name}");
    }
}
