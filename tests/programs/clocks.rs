//! Captures of the bundled home with odd times: of one packet, of one flow, of all from some packet on. One odd time
//! changes no other command, and each is reported.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use sizeleak_frame::{Identification, Notice, what};
use support::injected::{COMMANDS, SERVICE as HUB, Traffic};
use support::programs::{GATEWAY, example, sizeleak, stdout, write};
use support::streams::{answers_of, notices_of};

const HOUR: Duration = Duration::from_hours(1);

/// Another service of the gateway than that which sends the commands.
const OTHER: [u8; 4] = [198, 51, 100, 20];

/// What was found in a capture.
struct Found {
    identifications: Vec<Identification>,
    notices: Vec<Notice>,
}

/// What a command was taken for: its size, replies and best candidate.
type Answer = (u64, u32, u64, String);

impl Found {
    fn in_traffic(traffic: &Traffic) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let capture = write(folder.path(), "home.pcap", traffic.to_pcap());
        let mut command = sizeleak(&format!("run --gateway {GATEWAY} --model {} --quiet", example("model.toml")));
        // Each command is answered for itself: what differs is what packets say, not what earlier commands did.
        command.args(["--set", "epsilon-corrector.fixed=true", "--format", "frames"]);
        let stream = stdout(command.arg(capture));
        Self { identifications: answers_of(&stream), notices: notices_of(&stream) }
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
        static UNDAMAGED: LazyLock<BTreeMap<Answer, usize>> =
            LazyLock::new(|| Found::in_traffic(&Traffic::bundled()).answers());
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

/// Whether a packet is from or to an address, by IPv4 without options behind Ethernet.
fn is_of(frame: &[u8], address: [u8; 4]) -> bool {
    frame.get(12..14) == Some(&[8, 0]) && [26, 30].iter().any(|at| frame[*at..*at + 4] == address)
}

/// Whether a packet is a TCP segment with payload.
fn has_data(frame: &[u8]) -> bool {
    let header = usize::from(frame[46] >> 4) * 4;
    frame[23] == 6 && usize::from(u16::from_be_bytes([frame[16], frame[17]])) > 20 + header
}

/// The index of the `number`th data segment of a service from some packet on.
fn nth_data(Traffic(packets): &Traffic, service: [u8; 4], from: usize, number: usize) -> usize {
    let mut data = (from..packets.len()).filter(|at| is_of(&packets[*at].1, service) && has_data(&packets[*at].1));
    data.nth(number).unwrap()
}

/// The home with one data segment of a service an hour late, in the middle or near the start.
fn with_late_packet(service: [u8; 4], from: usize, number: usize) -> Traffic {
    let mut traffic = Traffic::bundled();
    let late = nth_data(&traffic, service, from, number);
    traffic.0[late].0 += HOUR;
    traffic
}

#[test]
fn a_late_packet_of_another_flow_changes_nothing() {
    let middle = Traffic::bundled().0.len() / 2;
    for (case, from, number) in [("its first", 0, 0), ("its last of a connection", 0, 8), ("in the middle", middle, 6)]
    {
        let found = Found::in_traffic(&with_late_packet(OTHER, from, number));
        found.assert_kept(case, 0, "ahead of");
    }
}

#[test]
fn a_late_packet_of_the_same_flow_costs_at_most_its_own_command() {
    let middle = Traffic::bundled().0.len() / 2;
    for from in [0, middle] {
        for number in 0..12 {
            let found = Found::in_traffic(&with_late_packet(HUB, from, number));
            found.assert_kept(&format!("segment {number} after packet {from}"), 1, "ahead of");
        }
    }
}

#[test]
fn a_packet_an_hour_early_costs_at_most_its_own_command() {
    let mut traffic = Traffic::bundled();
    for service in [OTHER, HUB] {
        let early = nth_data(&traffic, service, traffic.0.len() / 2, 3);
        traffic.0[early].0 -= HOUR;
    }
    Found::in_traffic(&traffic).assert_kept("two early packets", 1, "behind");
}

#[test]
fn late_packets_every_minute_cost_at_most_their_own_commands() {
    let mut traffic = Traffic::bundled();
    for (time, _) in traffic.0.iter_mut().filter(|(_, frame)| is_of(frame, OTHER)).step_by(7) {
        *time += HOUR;
    }
    Found::in_traffic(&traffic).assert_kept("every seventh packet of another flow", 0, "ahead of");
}

#[test]
fn a_clock_that_is_set_costs_at_most_the_commands_in_progress() {
    for minutes in [5, 60, 60 * 24] {
        let (mut later, mut earlier) = (Traffic::bundled(), Traffic::bundled());
        let (middle, step) = (later.0.len() / 2, Duration::from_mins(minutes));
        later.0[middle..].iter_mut().for_each(|(time, _)| *time += step);
        Found::in_traffic(&later).assert_kept(&format!("forward by {minutes} min"), 1, "nothing was captured for");
        earlier.0[middle..].iter_mut().for_each(|(time, _)| *time -= step);
        Found::in_traffic(&earlier).assert_kept(&format!("back by {minutes} min"), 1, "went back by");
    }
}

#[test]
fn a_hole_before_the_clock_is_set_back_silences_no_flow() {
    let mut traffic = Traffic::bundled();
    let middle = nth_data(&traffic, HUB, traffic.0.len() / 2, 0);
    traffic.0[middle + 1..].iter_mut().for_each(|(time, _)| *time -= HOUR);
    traffic.0.remove(middle);
    Found::in_traffic(&traffic).assert_kept("one segment is lost before a step back", 2, "went back by");
}

#[test]
fn a_clock_that_is_set_often_costs_at_most_the_commands_in_progress() {
    let mut traffic = Traffic::bundled();
    let count = traffic.0.len();
    for (at, (time, _)) in traffic.0.iter_mut().enumerate() {
        // Back by an hour at each fifth of the capture.
        *time -= HOUR * (at * 5 / count) as u32;
    }
    Found::in_traffic(&traffic).assert_kept("back four times", 4, "went back by");
}

#[test]
fn a_flow_with_a_clock_of_its_own_changes_no_other() {
    // The other service has four connections. A time up to two minutes ahead moves the clock at once, until other
    // traffic contradicts it, which costs the command in progress.
    for (service, seconds, at_most_lost) in
        [(OTHER, 3600, 0), (OTHER, -3600, 0), (OTHER, 30, 4), (HUB, 3600, 1), (HUB, 30, 1)]
    {
        let mut traffic = Traffic::bundled();
        for (time, _) in traffic.0.iter_mut().filter(|(_, frame)| is_of(frame, service)) {
            let step = Duration::from_secs(i64::unsigned_abs(seconds));
            *time = if seconds < 0 { time.saturating_sub(step) } else { *time + step };
        }
        let found = Found::in_traffic(&traffic);
        found.assert_kept(&format!("{service:?} is {seconds} s late"), at_most_lost, "of all other traffic");
    }
}

#[test]
fn the_first_packet_may_have_an_odd_time() {
    for hours in [1, 24 * 365] {
        let mut traffic = Traffic::bundled();
        let first = nth_data(&traffic, HUB, 0, 0);
        traffic.0[0].0 += HOUR * hours;
        traffic.0[first].0 += HOUR * hours;
        Found::in_traffic(&traffic).assert_kept("the first packets", 1, "");
    }
}

#[test]
fn an_undamaged_capture_has_no_notice_about_clocks() {
    let found = Found::in_traffic(&Traffic::bundled());
    assert_eq!((found.lost(), found.clock_notices().len()), (0, 0));
    assert!(found.notices.iter().all(|notice| notice.what != what::GAP));
}
