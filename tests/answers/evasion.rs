//! Forged packets change no answer but those of the commands whose bytes they stand in: `docs/captures.md` as tests.
//!
//! Each attack adds packets to the bundled capture. The tests on tunnels, clocks, names and folders have files of their
//! own.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use support::attack::{Flags, Forged, Target, exchanged, middle, noise, record};
use support::injected::{Answers, COMMANDS, Traffic, answers, honest};

/// What an attack may cost.
struct Limit {
    /// Answers that may be missing or different.
    changed: usize,
    /// Notices that must say so, any of them; none if nothing was believed.
    notices: &'static [&'static str],
    /// The exit codes it may have: 4 where many forged bytes are not used.
    codes: &'static [i32],
}

const NOTHING: Limit = Limit { changed: 0, notices: &[], codes: &[0] };

/// The command that stands where forged bytes do.
const OVERLAPPED: Limit = Limit { changed: 1, notices: &["conflict", "resync"], codes: &[0] };

/// Many bytes that nothing confirms.
const FLOOD: Limit = Limit { changed: 0, notices: &["unconfirmed"], codes: &[0, 4] };

/// The bundled capture with these packets, a microsecond after the target and a microsecond apart.
fn with(forged: impl IntoIterator<Item = Forged>) -> Traffic {
    let mut traffic = Traffic::bundled();
    let at = middle(&traffic).at;
    traffic.insert_behind(at, forged.into_iter().map(|forged| forged.frame()));
    traffic
}

/// The bundled capture with a packet every ten seconds.
fn every_ten_seconds(mut forge: impl FnMut(usize) -> Vec<Vec<u8>>) -> Traffic {
    let mut traffic = Traffic::bundled();
    let (first, last) = (traffic.0[0].0, traffic.0.last().unwrap().0);
    let mut time = first;
    for number in 0.. {
        time += Duration::from_secs(10);
        if time > last {
            break;
        }
        traffic.0.extend(forge(number).into_iter().map(|frame| (time, frame)));
    }
    traffic.0.sort_by_key(|(time, _)| *time);
    traffic
}

/// The answers without the plaintext sizes, which are not known where the handshake was not seen.
fn essential(answers: &Answers) -> Vec<String> {
    answers.untunnelled_without("plaintext")
}

/// How many of the honest answers are missing or different.
fn changed(attacked: &Answers) -> usize {
    static HONEST: LazyLock<Vec<String>> = LazyLock::new(|| essential(honest()));
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for answer in essential(attacked) {
        *left.entry(answer).or_default() += 1;
    }
    let mut missing = 0;
    for answer in &*HONEST {
        match left.get_mut(answer) {
            Some(count) if *count > 0 => *count -= 1,
            _ => missing += 1,
        }
    }
    missing
}

/// Runs each attack, and holds it to its limit.
fn hold(attacks: Vec<(&str, Traffic, Limit)>) {
    let mut broken = Vec::new();
    for (name, traffic, limit) in attacks {
        let attacked = answers(&traffic, &[]);
        let cost = changed(&attacked);
        let is_said = limit.notices.is_empty() || limit.notices.iter().any(|what| !attacked.notices(what).is_empty());
        println!("{name}: {cost} of {COMMANDS} answers changed, exit code {:?}", attacked.code);
        if cost > limit.changed || !is_said || !attacked.code.is_some_and(|code| limit.codes.contains(&code)) {
            broken.push(format!("{name}: {cost} changed, said {is_said}, {:?}: {}", attacked.code, attacked.stderr));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn target() -> Target {
    middle(&Traffic::bundled())
}

#[test]
fn lone_segments_elsewhere_move_nothing() {
    let target = target();
    let unknowing = |offset| Forged { acknowledgement: 0, ..target.forged(offset, &noise(200, 1)) };
    let blind = (0..256u32).map(|number| Forged {
        sequence: (number << 24) ^ u32::from_be_bytes(noise(4, number.into()).try_into().unwrap()) >> 8,
        ..target.forged(0, &noise(100, number.into()))
    });
    let unconfirmed = || Limit { changed: 0, notices: &["unconfirmed"], codes: &[0] };
    hold(vec![
        ("65 kB ahead", with([target.forged(65_000, &noise(200, 1))]), unconfirmed()),
        ("65 kB ahead, unknown acknowledgement", with([unknowing(65_000)]), unconfirmed()),
        (
            "300 bytes ahead",
            with([target.forged(300, &noise(200, 1))]),
            Limit { changed: 0, notices: &["conflict"], codes: &[0] },
        ),
        ("256 blind segments", with(blind), FLOOD),
        ("100 MB ahead, out of any window", with([target.forged(100_000_000, &noise(200, 1))]), unconfirmed()),
    ]);
}

#[test]
fn several_segments_elsewhere_are_left_again_for_the_true_ones() {
    let target = target();
    let run = |offset: i32| (0..3).map(move |number| (offset + number * 100, number));
    let forged = |offset| run(offset).map(|(at, number)| target.forged(at, &noise(100, number as u64)));
    let said = || Limit { changed: 0, notices: &["gap"], codes: &[0] };
    hold(vec![
        ("three segments 65 kB ahead", with(forged(65_000).collect::<Vec<_>>()), said()),
        ("three segments 100 MB ahead", with(forged(100_000_000).collect::<Vec<_>>()), said()),
    ]);
}

/// Everything behind the target belongs to a connection whose SYNs were not captured, with other sequence numbers.
fn renumbered(to_gateway: i32, from_gateway: i32) -> Traffic {
    let mut traffic = Traffic::bundled();
    let at = middle(&traffic).at;
    for (_, frame) in traffic.0.iter_mut().skip(at + 1) {
        let Some(packet) = exchanged(frame) else { continue };
        let (own, other) = if packet.from_service { (to_gateway, from_gateway) } else { (from_gateway, to_gateway) };
        let sequence = packet.header.sequence_number.wrapping_add_signed(own);
        let acknowledgement = packet.header.acknowledgment_number.wrapping_add_signed(other);
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        frame[42..46].copy_from_slice(&acknowledgement.to_be_bytes());
    }
    traffic
}

#[test]
fn new_connection_without_its_syn_is_followed() {
    let numbers = [
        (-20_000, 0),
        (-20_000, -5_000),
        (-1_000_000, -1_000_000),
        (1_000_000, 1_000_000),
        (-10_000_000, 1_000_000_000),
        (-1_000_000_000, 500_000_000),
    ];
    for (to_gateway, from_gateway) in numbers {
        let name = format!("sequence numbers {to_gateway:+} and {from_gateway:+}");
        // Bytes that never were are missing where the numbers go up.
        let codes: &[i32] = if (0..16_000_000).contains(&to_gateway) { &[4] } else { &[0] };
        hold(vec![(&name, renumbered(to_gateway, from_gateway), Limit { codes, ..NOTHING })]);
    }
}

#[test]
fn blind_syns_end_no_connection() {
    let target = target();
    let at = |number: usize| u32::from_be_bytes(noise(4, number as u64).try_into().unwrap());
    let syn = |number, is_from_gateway| Forged {
        sequence: at(number),
        flags: Flags::Syn,
        is_from_gateway,
        ..target.forged(0, &[])
    };
    let data = |number, piece: u32| Forged {
        sequence: at(number).wrapping_add(1 + piece * 69),
        acknowledgement: 0,
        ..target.forged(0, &record(64, 64))
    };
    let with_data = |pieces| {
        every_ten_seconds(move |number| {
            let data = (0..pieces).map(|piece| data(number, piece).frame());
            std::iter::once(syn(number, false).frame()).chain(data).collect()
        })
    };
    let syn_ack = Forged { flags: Flags::SynAck, ..target.forged(7_777_777, &[]) };
    hold(vec![
        ("a SYN of the service every 10 s", every_ten_seconds(|number| vec![syn(number, false).frame()]), NOTHING),
        ("a SYN of the gateway every 10 s", every_ten_seconds(|number| vec![syn(number, true).frame()]), NOTHING),
        ("a SYN with a record every 10 s", with_data(1), FLOOD),
        ("a SYN with three records every 10 s", with_data(3), FLOOD),
        ("a SYN and its acknowledgement", with([syn_ack]), NOTHING),
    ]);
}

#[test]
fn the_beginning_of_a_huge_record_costs_the_command_in_whose_place_it_stands() {
    let target = target();
    let ends_early = |length: usize| target.forged(0, &record(16_384, 16_384)[..length]);
    let two = [target.forged(0, &record(16_384, 200)), target.forged(205, &noise(1000, 1))];
    hold(vec![
        ("the header of a huge record", with([ends_early(5)]), OVERLAPPED),
        ("a huge record's first 300 bytes", with([ends_early(300)]), OVERLAPPED),
        ("a huge record's first 1400 bytes", with([ends_early(1400)]), OVERLAPPED),
        ("as many bytes as the next command has", with([ends_early(target.following.len())]), OVERLAPPED),
        ("two segments of a huge record", with(two), OVERLAPPED),
    ]);
}

#[test]
fn bytes_in_sequence_cost_the_command_in_whose_place_they_stand() {
    let target = target();
    let tail = [&target.payload[target.payload.len() - 50..], &record(16_384, 100)].concat();
    hold(vec![
        ("a record of 100 bytes", with([target.forged(0, &record(100, 100))]), OVERLAPPED),
        ("a record of 900 bytes", with([target.forged(0, &record(900, 900))]), OVERLAPPED),
        ("100 bytes of noise", with([target.forged(0, &noise(100, 1))]), OVERLAPPED),
        ("a retransmission with a forged tail", with([target.forged(-50, &tail)]), OVERLAPPED),
    ]);
}

#[test]
fn hellos_in_the_middle_of_a_session_change_nothing() {
    let target = target();
    let body = |suite: [u8; 2]| [&[3, 3][..], &[7; 32], &[0], &suite, &[0]].concat();
    let server = |suite| {
        let body = body(suite);
        let message = [&[2, 0, 0, body.len() as u8][..], &body].concat();
        [&[22, 3, 3, 0, message.len() as u8][..], &message].concat()
    };
    let client = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2f, 1, 0]].concat();
    let client = [&[22, 3, 1, 0, client.len() as u8 + 4, 1, 0, 0, client.len() as u8][..], &client].concat();
    hold(vec![
        ("a server's hello with another AEAD", with([target.forged(0, &server([0xc0, 0x30]))]), OVERLAPPED),
        ("a server's hello with CBC", with([target.forged(0, &server([0x00, 0x2f]))]), OVERLAPPED),
        ("a client's hello", with([target.forged(0, &client)]), OVERLAPPED),
    ]);
}

#[test]
fn differing_retransmissions_change_nothing() {
    let target = target();
    let back = -i32::try_from(target.payload.len()).unwrap();
    let again = |payload: &[u8]| target.forged(back, payload);
    let keep_alives = (0..40).map(|number| target.forged(-1, &[number]));
    hold(vec![
        (
            "other bytes",
            with([again(&noise(target.payload.len(), 1))]),
            Limit { changed: 0, notices: &["conflict"], codes: &[0] },
        ),
        ("a longer record", with([again(&record(900, 900))]), NOTHING),
        ("a shorter record", with([again(&record(32, 32))]), NOTHING),
        ("the header of a huge record", with([again(&record(16_384, 900))]), NOTHING),
        ("keep-alives with data", with(keep_alives), NOTHING),
        ("old bytes with other content", with([target.forged(back - 100, &noise(100, 1))]), NOTHING),
    ]);
}

#[test]
fn resets_and_ends_outside_the_window_end_nothing() {
    let target = target();
    let reset = |offset| Forged { flags: Flags::Reset, ..target.forged(offset, &[]) };
    let end = |offset| Forged { flags: Flags::Fin, ..target.forged(offset, &[]) };
    hold(vec![
        ("RST far away", with([reset(1_000_000_000)]), NOTHING),
        ("RST in sequence", with([reset(0)]), NOTHING),
        ("FIN far away", with([end(1_000_000_000)]), NOTHING),
        ("FIN in sequence", with([end(0)]), NOTHING),
    ]);
}

#[test]
fn ip_options_and_a_short_time_to_live_make_no_difference() {
    let target = target();
    let odd = |payload: &[u8], ip_options: &[u8], time_to_live| Forged {
        ip_options: ip_options.to_vec(),
        time_to_live,
        ..target.forged(0, payload)
    };
    // Router alert (RFC 2113), and a loose source route that is not complete.
    hold(vec![
        ("router alert", with([odd(&record(16_384, 300), &[148, 4, 0, 0], 64)]), OVERLAPPED),
        ("source route", with([odd(&record(16_384, 300), &[131, 7, 4, 10, 0, 0, 1, 0], 64)]), OVERLAPPED),
        ("a packet that does not reach the gateway", with([odd(&record(16_384, 300), &[], 1)]), OVERLAPPED),
    ]);
}

#[test]
fn overlapping_fragments_cost_the_command_in_whose_place_they_stand() {
    let target = target();
    let forged = target.forged(0, &record(16_384, 400));
    let [first, second] = forged.fragments(200);
    let [other, _] = target.forged(0, &noise(400, 3)).fragments(240);
    let mut traffic = Traffic::bundled();
    traffic.insert_behind(target.at, [first.clone(), other, second]);
    let mut incomplete = Traffic::bundled();
    incomplete.insert_behind(target.at, (0..200).map(|_| first.clone()));
    hold(vec![("fragments that overlap", traffic, OVERLAPPED), ("fragments without an end", incomplete, NOTHING)]);
}

#[test]
fn chains_of_ipv6_headers_make_no_difference() {
    // Hop-by-hop options, routing and destination options, over and over, then nothing.
    let chain: Vec<u8> = (0..60).flat_map(|number| [[0, 43, 60][(number + 1) % 3], 0, 1, 4, 0, 0, 0, 0]).collect();
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((chain.len() as u16).to_be_bytes());
    header.extend([0, 64]);
    header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    header.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let frame = [&[2; 6][..], &[4; 6], &[0x86, 0xdd], &header, &chain].concat();
    let traffic = every_ten_seconds(|number| vec![frame[..frame.len() - number % 8].to_vec()]);
    hold(vec![("long chains", traffic, NOTHING)]);
}

#[test]
fn traffic_captured_twice_makes_no_difference() {
    for delay in [Duration::from_micros(300), Duration::from_millis(50)] {
        let mut traffic = Traffic::bundled();
        let again: Vec<_> = traffic.0.iter().map(|(time, frame)| (*time + delay, frame.clone())).collect();
        traffic.0.extend(again);
        traffic.0.sort_by_key(|(time, _)| *time);
        hold(vec![(&format!("again after {delay:?}"), traffic, NOTHING)]);
    }
}
