//! Archives for a cluster: gateways whose flows cross rotated files, and one with damaged captures.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use sizeleak_simulator::Scenario;

use support::home::Home;
use support::programs::{GATEWAY, example, root, write};
use support::rotation::packets;

/// The second gateway of the hall.
pub(crate) const SECOND_GATEWAY: &str = "192.168.1.21";

/// The gateway of the attic.
pub(crate) const OTHER_GATEWAY: &str = "fd00::20";

const OTHER_SCENARIO: &str = r#"
epoch = "2026-01-05T23:50:00Z"
[network]
gateway = "fd00::20"
service = "2001:db8::10"
[test]
commands = 60
"#;

/// The packets of a capture, with their headers.
struct Packets {
    header: Vec<u8>,
    packets: Vec<Vec<u8>>,
}

impl Packets {
    fn read(capture: &Path) -> Self {
        let (header, packets) = packets(&fs::read(capture).unwrap());
        Self { header, packets }
    }

    /// Adds the same packets of another gateway, between the others.
    fn add_gateway(&mut self, from: [u8; 4], to: [u8; 4]) {
        let others = self.packets.clone().into_iter().map(|mut packet| {
            for at in 16..packet.len() - 4 {
                if packet[at..at + 4] == from {
                    packet[at..at + 4].copy_from_slice(&to);
                }
            }
            packet
        });
        self.packets.extend(others);
        self.packets.sort_by_key(|packet| Self::time(packet));
    }

    /// The seconds and the rest of a packet's time.
    fn time(packet: &[u8]) -> (u32, u32) {
        let part = |at: usize| u32::from_le_bytes(packet[at..at + 4].try_into().unwrap());
        (part(0), part(4))
    }

    /// A capture with some of the packets.
    fn capture<'a>(&self, packets: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
        let packets: Vec<u8> = packets.into_iter().flatten().copied().collect();
        [&self.header[..], &packets].concat()
    }
}

fn folder(path: &Path) -> &Path {
    fs::create_dir_all(path).unwrap();
    path
}

/// Two capture points. The hall has two gateways in six files: two overlap, one is compressed, and their names say
/// nothing of their order. The attic has IPv6 around midnight.
pub(crate) fn write_homes(homes: &Path) {
    let mut hall = Packets::read(&root().join(example("test.pcap")));
    hall.add_gateway([192, 168, 1, 20], [192, 168, 1, 21]);
    let parts: Vec<&[Vec<u8>]> = hall.packets.chunks(hall.packets.len() / 5 + 1).collect();
    let place = homes.join("hall");
    for (name, part) in [("home.pcap", 4), ("home.pcap.1", 3), ("z", 0)] {
        write(folder(&place), name, hall.capture(parts[part]));
    }
    for (name, first) in [("b", 0), ("a", 1)] {
        write(&place, name, hall.capture(parts[2].iter().skip(first).step_by(2)));
    }
    let mut zipped = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&hall.capture(parts[1])).unwrap();
    write(&place, "old.gz", zipped.finish().unwrap());
    write(&place, "README.txt", "captures of the hall");
    let home = Home::new(&Scenario::from_toml(OTHER_SCENARIO).unwrap(), 7);
    let attic = Packets::read(&home.path("test.pcap"));
    for (name, part) in ["1.cap", "2.cap"].into_iter().zip(attic.packets.chunks(attic.packets.len() / 2 + 1)) {
        write(folder(&homes.join("attic")), name, attic.capture(part));
    }
}

/// Captures that are cut inside the header of a packet, have foreign bytes inside, or are none, beside whole ones.
pub(crate) fn write_damaged(damaged: &Path) {
    let home = Packets::read(&root().join(example("test.pcap")));
    let (first, second) = home.packets.split_at(home.packets.len() / 2);
    let cut = damaged.join("cut");
    write(folder(&cut), "1.pcap", [home.capture(first), second[0][..10].to_vec()].concat());
    write(&cut, "2.pcap", home.capture(second));
    let mixed = damaged.join("mixed");
    let (before, behind) = first.split_at(first.len() / 2);
    let foreign = [&home.capture(before)[..], &[0xa5; 200], &behind.concat()].concat();
    write(folder(&mixed), "foreign.pcap", foreign);
    write(&mixed, "text.pcap", "moved to another disk");
}

/// The model of the bundled home, and the same for other gateways.
pub(crate) fn write_models(models: &Path) -> Vec<String> {
    let model = fs::read_to_string(root().join(example("model.toml"))).unwrap();
    let gateway = |name: &str| format!("gateway = \"{name}\"");
    assert!(model.contains(&gateway(GATEWAY)));
    let of = |(at, name): (usize, &&str)| {
        let model = model.replace(&gateway(GATEWAY), &gateway(name));
        write(folder(models), &format!("{at}.toml"), model).to_string_lossy().into_owned()
    };
    [GATEWAY, SECOND_GATEWAY, OTHER_GATEWAY].iter().enumerate().map(of).collect()
}
