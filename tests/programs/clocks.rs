//! Captures of the bundled home with odd times: of one packet, of one flow, of all from some packet on. One odd time
//! changes no other command, and each is reported.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use pcap_file::TsResolution;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use sizeleak_frame::{Frame, FrameReader, Identification, Notice, what};
use support::programs::{GATEWAY, example, root, sizeleak, stdout, write};

const HOUR: Duration = Duration::from_hours(1);

/// The service that sends the commands, and another one of the gateway.
const HUB: [u8; 4] = [203, 0, 113, 10];
const OTHER: [u8; 4] = [198, 51, 100, 20];

/// Commands of the capture.
const COMMANDS: usize = 307;

/// What was found in a capture.
struct Found {
    identifications: Vec<Identification>,
    notices: Vec<Notice>,
}

/// What a command was taken for: its size, replies and best candidate.
type Answer = (u64, u32, u64, String);

impl Found {
    fn in_packets(packets: &[PcapPacket<'_>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let header = PcapHeader { ts_resolution: TsResolution::NanoSecond, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for packet in packets {
            writer.write_packet(packet).unwrap();
        }
        let capture = write(folder.path(), "home.pcap", writer.into_writer());
        let mut command = sizeleak(&format!("run --gateway {GATEWAY} --model {} --quiet", example("model.toml")));
        // Each command is answered for itself: what differs is what packets say, not what earlier commands did.
        command.args(["--set", "epsilon-corrector.fixed=true", "--format", "frames"]);
        let stream = stdout(command.arg(capture));
        let mut found = Self { identifications: Vec::new(), notices: Vec::new() };
        let mut reader = FrameReader::new(&*stream);
        while let Some(frame) = reader.next_frame().unwrap() {
            match frame {
                Frame::Identification(identification) => found.identifications.push(*identification),
                Frame::Notice(notice) => found.notices.push(*notice),
                _ => {}
            }
        }
        found
    }

    /// The answers, each with the number of commands that had it.
    fn answers(&self) -> BTreeMap<Answer, usize> {
        let mut answers = BTreeMap::new();
        for Identification { command, candidates, .. } in &self.identifications {
            let best = format!("{:?}", candidates.first());
            *answers.entry((command.size, command.replies, command.reply_bytes, best)).or_default() += 1;
        }
        answers
    }

    /// How many answers of the undamaged capture are not found here.
    fn lost(&self) -> usize {
        static UNDAMAGED: LazyLock<BTreeMap<Answer, usize>> = LazyLock::new(|| Found::in_packets(&home()).answers());
        let (truth, found) = (&*UNDAMAGED, self.answers());
        assert_eq!(truth.values().sum::<usize>(), COMMANDS);
        truth.iter().map(|(answer, count)| count.saturating_sub(found.get(answer).copied().unwrap_or(0))).sum()
    }

    /// The details of the notices about clocks.
    fn clock_notices(&self) -> Vec<&str> {
        let clock = self.notices.iter().filter(|notice| notice.what == "clock");
        clock.filter_map(|notice| notice.detail.as_deref()).collect()
    }

    /// Asserts that at most so many answers differ, and that at least one notice about a clock has these words.
    fn assert_kept(&self, case: &str, at_most_lost: usize, words: &str) {
        let (lost, notices) = (self.lost(), self.clock_notices());
        println!("{case}: {} commands, {lost} answers lost, {notices:?}", self.identifications.len());
        assert!(lost <= at_most_lost, "{case}: {lost} of {COMMANDS} answers are lost");
        assert!(notices.iter().any(|notice| notice.contains(words)), "{case}: {notices:?}");
    }
}

/// The packets of the bundled home.
fn home() -> Vec<PcapPacket<'static>> {
    let pcap = fs::read(root().join(example("test.pcap"))).unwrap();
    let mut reader = PcapReader::new(&*pcap).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        packets.push(packet.unwrap().into_owned());
    }
    packets
}

/// Whether a packet is from or to an address, by IPv4 without options behind Ethernet.
fn is_of(packet: &PcapPacket<'_>, address: [u8; 4]) -> bool {
    packet.data.get(12..14) == Some(&[8, 0]) && [26, 30].iter().any(|at| packet.data[*at..*at + 4] == address)
}

/// Whether a packet is a TCP segment with payload.
fn has_data(packet: &PcapPacket<'_>) -> bool {
    let header = usize::from(packet.data[46] >> 4) * 4;
    packet.data[23] == 6 && usize::from(u16::from_be_bytes([packet.data[16], packet.data[17]])) > 20 + header
}

/// The index of the `number`th data segment of a service from some packet on.
fn nth_data(packets: &[PcapPacket<'_>], service: [u8; 4], from: usize, number: usize) -> usize {
    let indexes = (from..packets.len()).filter(|index| is_of(&packets[*index], service) && has_data(&packets[*index]));
    indexes.into_iter().nth(number).unwrap()
}

/// The home with one data segment of a service an hour late, in the middle or near the start.
fn with_late_packet(service: [u8; 4], from: usize, number: usize) -> Vec<PcapPacket<'static>> {
    let mut packets = home();
    let index = nth_data(&packets, service, from, number);
    packets[index].timestamp += HOUR;
    packets
}

#[test]
fn a_late_packet_of_another_flow_changes_nothing() {
    let middle = home().len() / 2;
    for (case, from, number) in [("its first", 0, 0), ("its last of a connection", 0, 8), ("in the middle", middle, 6)]
    {
        let found = Found::in_packets(&with_late_packet(OTHER, from, number));
        found.assert_kept(case, 0, "ahead of");
    }
}

#[test]
fn a_late_packet_of_the_same_flow_costs_at_most_its_own_command() {
    let middle = home().len() / 2;
    for from in [0, middle] {
        for number in 0..12 {
            let found = Found::in_packets(&with_late_packet(HUB, from, number));
            found.assert_kept(&format!("segment {number} after packet {from}"), 1, "ahead of");
        }
    }
}

#[test]
fn a_packet_an_hour_early_costs_at_most_its_own_command() {
    let mut packets = home();
    for service in [OTHER, HUB] {
        let index = nth_data(&packets, service, packets.len() / 2, 3);
        packets[index].timestamp -= HOUR;
    }
    Found::in_packets(&packets).assert_kept("two early packets", 1, "behind");
}

#[test]
fn late_packets_every_minute_cost_at_most_their_own_commands() {
    let mut packets = home();
    for packet in packets.iter_mut().filter(|packet| is_of(packet, OTHER)).step_by(7) {
        packet.timestamp += HOUR;
    }
    Found::in_packets(&packets).assert_kept("every seventh packet of another flow", 0, "ahead of");
}

#[test]
fn a_clock_that_is_set_costs_at_most_the_commands_in_progress() {
    for minutes in [5, 60, 60 * 24] {
        let (later, mut earlier) = (home(), home());
        let mut later = later;
        let (middle, step) = (later.len() / 2, Duration::from_mins(minutes));
        later[middle..].iter_mut().for_each(|packet| packet.timestamp += step);
        Found::in_packets(&later).assert_kept(&format!("forward by {minutes} min"), 1, "nothing was captured for");
        earlier[middle..].iter_mut().for_each(|packet| packet.timestamp -= step);
        Found::in_packets(&earlier).assert_kept(&format!("back by {minutes} min"), 1, "went back by");
    }
}

#[test]
fn a_hole_before_the_clock_is_set_back_silences_no_flow() {
    let mut packets = home();
    let middle = nth_data(&packets, HUB, packets.len() / 2, 0);
    packets[middle + 1..].iter_mut().for_each(|packet| packet.timestamp -= HOUR);
    packets.remove(middle);
    Found::in_packets(&packets).assert_kept("one segment is lost before a step back", 2, "went back by");
}

#[test]
fn a_clock_that_is_set_often_costs_at_most_the_commands_in_progress() {
    let mut packets = home();
    let count = packets.len();
    for (index, packet) in packets.iter_mut().enumerate() {
        // Back by an hour at each fifth of the capture.
        packet.timestamp -= HOUR * (index * 5 / count) as u32;
    }
    Found::in_packets(&packets).assert_kept("back four times", 4, "went back by");
}

#[test]
fn a_flow_with_a_clock_of_its_own_changes_no_other() {
    // The other service has four connections. A time up to two minutes ahead moves the clock at once, until other
    // traffic contradicts it, which costs the command in progress.
    for (service, seconds, at_most_lost) in
        [(OTHER, 3600, 0), (OTHER, -3600, 0), (OTHER, 30, 4), (HUB, 3600, 1), (HUB, 30, 1)]
    {
        let mut packets = home();
        for packet in packets.iter_mut().filter(|packet| is_of(packet, service)) {
            let step = Duration::from_secs(i64::unsigned_abs(seconds));
            packet.timestamp =
                if seconds < 0 { packet.timestamp.saturating_sub(step) } else { packet.timestamp + step };
        }
        let found = Found::in_packets(&packets);
        found.assert_kept(&format!("{service:?} is {seconds} s late"), at_most_lost, "of all other traffic");
    }
}

#[test]
fn the_first_packet_may_have_an_odd_time() {
    for hours in [1, 24 * 365] {
        let mut packets = home();
        packets[0].timestamp += HOUR * hours;
        let index = nth_data(&packets, HUB, 0, 0);
        packets[index].timestamp += HOUR * hours;
        Found::in_packets(&packets).assert_kept("the first packets", 1, "");
    }
}

#[test]
fn an_undamaged_capture_has_no_notice_about_clocks() {
    let found = Found::in_packets(&home());
    assert_eq!((found.lost(), found.clock_notices().len()), (0, 0));
    assert!(found.notices.iter().all(|notice| notice.what != what::GAP));
}
