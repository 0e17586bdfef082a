use sizeleak_command_segmenter::ClassifiedRecord;
use sizeleak_frame::{Command, ContentType, Direction, Flow, Record, Transport};

use super::*;
use crate::survey::connection::Connection;
use crate::survey::services::services;

#[derive(Clone, Copy)]
struct Made {
    service: [u8; 4],
    minutes: i64,
    /// Messages in each direction, and their size.
    messages: u32,
    size: u32,
    commands: u64,
    pings: u64,
}

const HUB: Made = Made { service: [203, 0, 113, 10], minutes: 120, messages: 60, size: 300, commands: 30, pings: 20 };

fn connection(made: Made) -> Connection {
    let gateway = "192.168.1.20".parse().unwrap();
    let service = (made.service, 443).into();
    let mut connection = Connection::new(&Flow::new(1, gateway, service, Transport::Tcp));
    for direction in Direction::BOTH {
        for number in 0..made.messages {
            let time_ns = made.minutes * 60 * SECOND_NS * i64::from(number) / i64::from(made.messages.max(2) - 1);
            connection.add_record(&Record {
                time_ns,
                start_ns: time_ns,
                flow: 1,
                direction,
                content_type: ContentType::ApplicationData,
                length: made.size,
                plaintext: None,
                handshake: false,
                protocol: sizeleak_frame::Protocol::Tls,
            });
        }
    }
    for _ in 0..made.commands {
        connection.add_command(&Command {
            time_ns: 0,
            end_ns: 0,
            flow: 1,
            size: made.size.into(),
            records: 1,
            replies: 1,
            reply_bytes: 80,
            ..Command::default()
        });
    }
    for _ in 0..made.pings {
        let ping =
            ClassifiedRecord { flow: 1, direction: Direction::FromGateway, length: 30, role: RecordRole::Periodic };
        connection.add_role(&ping);
    }
    connection
}

/// What is said of an address with these connections in a capture of two hours.
fn judged(address: &str, made: &[Made]) -> Judgement {
    let connections: Vec<Connection> = made.iter().map(|made| connection(*made)).collect();
    let mut tally = AddressTally::default();
    for (made, connection) in made.iter().zip(&connections) {
        for _ in 0..2 * made.messages {
            tally.add_opened(connection.service, made.size);
        }
    }
    let services = services((0..).zip(&connections));
    judge(address.parse().unwrap(), &tally, &services, 7200 * SECOND_NS)
}

#[test]
fn a_home_gateway_has_all_points() {
    let judgement = judged("192.168.1.20", &[HUB]);
    assert_eq!((judgement.score, judgement.verdict), (100, Verdict::Likely), "{judgement:?}");
    assert!(judgement.reasons.iter().any(|reason| reason.text.contains("203.0.113.10:443 outside was open for 2 h")));
}

#[test]
fn a_public_address_may_be_one_too() {
    let judgement = judged("198.51.100.7", &[HUB]);
    assert_eq!((judgement.score, judgement.verdict), (85, Verdict::Likely));
}

#[test]
fn a_computer_with_a_kept_connection_among_many_others_is_no_likely_gateway() {
    let page =
        |last| Made { service: [198, 51, 100, last], minutes: 1, messages: 40, size: 16_400, commands: 0, pings: 0 };
    let push = Made { commands: 0, ..HUB };
    let all: Vec<Made> = (1..=40).map(page).chain([push]).collect();
    let judgement = judged("192.168.1.30", &all);
    assert_eq!(judgement.verdict, Verdict::Unlikely, "{judgement:?}");
    let against: i32 = judgement.reasons.iter().map(|reason| reason.points).filter(|points| *points < 0).sum();
    assert_eq!(against, -45);
}

#[test]
fn little_traffic_tells_nothing_however_many_points_it_has() {
    let few = judged("192.168.1.20", &[Made { messages: 9, commands: 9, ..HUB }]);
    assert!(few.score >= POSSIBLE && few.verdict == Verdict::Unclear, "{few:?}");
    let short = judged("192.168.1.20", &[Made { minutes: 0, ..HUB }]);
    assert_eq!(short.verdict, Verdict::Unclear, "{short:?}");
}

#[test]
fn service_inside_the_home_is_no_connection_to_the_outside() {
    let inside = judged("192.168.1.20", &[Made { service: [192, 168, 1, 5], ..HUB }]);
    assert_eq!(inside.score, 75);
    assert!(!inside.reasons.iter().any(|reason| reason.text.contains("outside")), "{inside:?}");
}

#[test]
fn connection_without_tls_counts_less() {
    let mut plain = connection(HUB);
    plain.add_notice(&sizeleak_frame::Notice {
        time_ns: None,
        stage: "record-sizer".into(),
        flow: Some(1),
        what: sizeleak_frame::what::NOT_TLS.into(),
        bytes: None,
        detail: None,
    });
    let services = services([(1, &plain)].into_iter());
    let judgement = judge("192.168.1.20".parse().unwrap(), &AddressTally::default(), &services, 0);
    assert!(judgement.reasons.iter().any(|reason| reason.points == -15 && reason.text.contains("ithout TLS")));
    assert_eq!(judgement.score, 80, "{judgement:?}");
}

#[test]
fn a_server_is_no_gateway() {
    let mut tally = AddressTally::default();
    (0..50).for_each(|client| tally.add_served(IpAddr::from([198, 51, 100, client])));
    let judgement = judge("192.168.1.80".parse().unwrap(), &tally, &[], 0);
    assert_eq!((judgement.score, judgement.verdict), (0, Verdict::Unclear));
    assert!(judgement.reasons.iter().any(|reason| reason.points == -40));
}

#[test]
fn names_in_reasons_hold_no_control_characters() {
    let mut hostile = connection(HUB);
    hostile.add_session(sizeleak_frame::Session {
        time_ns: 0,
        flow: 1,
        server_name: Some("a\nb\u{1b}[2J".to_owned()),
        tls_version: None,
        cipher_suite: None,
        protocol: None,
    });
    let services = services([(1, &hostile)].into_iter());
    let judgement = judge("192.168.1.20".parse().unwrap(), &AddressTally::default(), &services, 0);
    assert!(judgement.reasons.iter().all(|reason| !reason.text.contains(char::is_control)), "{judgement:?}");
}

#[test]
fn the_two_greatest_units_are_named() {
    let words = [0, 59, 60, 3599, 3600, 9060, 90_061].map(|seconds| in_words(seconds * 1_000_000_000));
    assert_eq!(words, ["under 1 s", "59 s", "1 min", "59 min 59 s", "1 h", "2 h 31 min", "1 d 1 h"]);
    assert_eq!(in_words(i64::MIN), "under 1 s");
}
