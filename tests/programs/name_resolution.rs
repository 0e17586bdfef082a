//! A service selected by its name keeps its answers, whatever DNS answers others send.

use support::injected::{Answers, COMMANDS, HOME, RESOLVER, Traffic, answers, udp};

/// `hub.example` as in a message, and its type and class.
const QUESTION: &[u8] = b"\x03hub\x07example\0\0\x01\0\x01";

/// An answer with this number: 80 addresses of `hub.example` from `first` on.
fn forged_answer(id: u16, first: u32) -> Vec<u8> {
    let header = [id, 0x8180, 1, 80, 0, 0].map(u16::to_be_bytes);
    let record = |address: u32| [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4][..], &address.to_be_bytes()].concat();
    let records: Vec<u8> = (0..80).flat_map(|at| record(0x0a00_0000 + first + at)).collect();
    [header.as_flattened(), QUESTION, &records].concat()
}

fn answers_by_name(traffic: &Traffic, more: &[&str]) -> Answers {
    answers(traffic, &[&["--set", "flow-filter.service=[\"hub.example\"]"], more].concat())
}

/// The port and the number of the gateway's first query.
fn asked(traffic: &Traffic) -> (u16, u16) {
    let (_, frame) = &traffic.0[0];
    let field = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    assert_eq!((&frame[26..34], field(36)), (&[HOME, RESOLVER].concat()[..], 53));
    (field(34), field(42))
}

#[test]
fn forged_answers_do_not_hide_the_service() {
    let honest = answers_by_name(&Traffic::bundled(), &[]);
    assert_eq!((honest.untunnelled().len(), honest.notices("unasked")), (COMMANDS, Vec::new()));
    let (port, id) = asked(&Traffic::bundled());
    let stranger = [198, 51, 100, 9];
    let forgeries: [&dyn Fn(u16) -> (_, _, _, _); 4] = [
        &|at| (stranger, [192, 168, 1, 77], 4000 + at, at),
        &|at| (stranger, HOME, port, id.wrapping_add(at)),
        &|at| (RESOLVER, HOME, port, id.wrapping_add(at + 1)),
        &|at| (RESOLVER, HOME, port.wrapping_add(at + 1), id),
    ];
    for forge in forgeries {
        let mut traffic = Traffic::bundled();
        let frames = (0..130).map(|at| {
            let (from, to, port, id) = forge(at);
            udp(from, to, [53, port], &forged_answer(id, u32::from(at) * 80))
        });
        traffic.insert_behind(0, frames);
        let attacked = answers_by_name(&traffic, &[]);
        assert!(attacked.untunnelled() == honest.untunnelled(), "{} answers", attacked.untunnelled().len());
        assert_eq!(attacked.counter("flow-filter", "unasked_answers"), 130);
        assert_eq!(attacked.notices("unasked").len(), 1);
        assert_eq!(attacked.code, Some(0), "{}", attacked.stderr);
    }
}

/// The answers of a resolver that the user believes may fill the table: that is said.
#[test]
fn a_full_table_is_reported() {
    let mut traffic = Traffic::bundled();
    let frames = (0..130).map(|at: u16| udp(RESOLVER, HOME, [53, 4000], &forged_answer(at, u32::from(at) * 80)));
    traffic.insert_behind(0, frames);
    let full = answers_by_name(
        &traffic,
        &["--set", "flow-filter.resolver=[\"192.168.1.1\"]", "--set", "flow-filter.allow-absent=true"],
    );
    assert_eq!(full.counter("flow-filter", "unkept_answers"), 7);
    assert!(full.notices("evicted").iter().any(|detail| detail.contains("addresses")), "{:?}", full.notices("evicted"));
}

/// Without the gateway's queries, as in a capture of one direction, the user names the resolver.
#[test]
fn a_named_resolver_is_believed_without_a_query() {
    let mut traffic = Traffic::bundled();
    traffic.0.retain(|(_, frame)| frame.get(23) != Some(&17) || frame.get(26..30) != Some(&HOME[..]));
    let unasked = answers_by_name(&traffic, &[]);
    assert_eq!(unasked.untunnelled().len(), 0);
    assert!(unasked.notices("unasked")[0].contains("`--resolver 192.168.1.1`"));
    let named = answers_by_name(&traffic, &["--set", "flow-filter.resolver=[\"192.168.1.1\"]"]);
    assert_eq!(named.untunnelled().len(), COMMANDS);
}
