//! Tests of `tls13`.

use super::*;
use Endpoint::{Client, Server};

const HELLO: ServerHello = ServerHello {
    version: 0x0304,
    cipher_suite: 0x1301,
    compressed: false,
    encrypt_then_mac: false,
    retry: false,
    connection_id: None,
};
const FINISHED: u16 = 36 + 17;
const MILLISECOND: i64 = 1_000_000;

/// Which of the records, a millisecond apart, belong to the handshake.
fn taken(handshake: &mut Tls13Handshake, records: &[(Endpoint, u16)]) -> Vec<bool> {
    (1i64..).zip(records).map(|(at, (end, length))| handshake.record(*end, *length, at * MILLISECOND)).collect()
}

fn handshake() -> Tls13Handshake {
    Tls13Handshake::new(HELLO, 17, false, 0)
}

#[test]
fn tickets_are_of_one_length_before_and_after_the_client_sends_data() {
    let before = [
        (Server, 900),
        (Server, 53),
        (Client, FINISHED),
        (Server, 250),
        (Server, 250),
        (Client, 90),
        (Server, 300),
        (Server, 250),
    ];
    assert_eq!(taken(&mut handshake(), &before), [true, true, true, true, true, false, false, false]);
    let after =
        [(Server, 900), (Client, FINISHED), (Client, 90), (Server, 120), (Server, 120), (Server, 300), (Server, 120)];
    assert_eq!(taken(&mut handshake(), &after), [true, true, false, true, true, false, false]);
}

#[test]
fn messages_of_a_service_to_a_silent_client_are_not_tickets() {
    let pushes =
        [(Server, 900), (Client, FINISHED), (Server, 250), (Server, 250), (Server, 90), (Server, 250), (Server, 95)];
    assert_eq!(taken(&mut handshake(), &pushes), [true, true, true, true, false, false, false]);
}

#[test]
fn messages_as_long_as_tickets_come_later_than_their_flight() {
    let mut handshake = handshake();
    assert_eq!(
        taken(&mut handshake, &[(Server, 900), (Client, FINISHED), (Server, 250), (Server, 250)]),
        [true, true, true, true]
    );
    // The last ticket came 4 ms after the server's hello.
    assert!(!handshake.record(Server, 250, 509 * MILLISECOND));
    assert!(!handshake.record(Server, 250, 510 * MILLISECOND));
}

#[test]
fn a_ticket_may_wait_for_the_acknowledgement_of_the_last() {
    let mut handshake = handshake();
    assert_eq!(taken(&mut handshake, &[(Server, 900), (Client, FINISHED), (Server, 250)]), [true, true, true]);
    assert!(handshake.record(Server, 250, 43 * MILLISECOND));
}

#[test]
fn late_records_are_not_tickets() {
    let mut handshake = handshake();
    taken(&mut handshake, &[(Server, 900), (Client, FINISHED)]);
    assert!(!handshake.is_open());
    assert!(!handshake.record(Server, 120, 2_000 * MILLISECOND));
}

#[test]
fn client_certificates_are_handshake() {
    let separate = [(Server, 900), (Client, 700), (Client, 150), (Client, FINISHED), (Client, 90)];
    assert_eq!(taken(&mut handshake(), &separate), [true, true, true, true, false]);
    let together = [(Server, 900), (Client, 850), (Server, 120), (Server, 120), (Client, 90), (Server, 90)];
    assert_eq!(taken(&mut handshake(), &together), [true, true, true, true, false, false]);
}

#[test]
fn early_data_are_not_handshake() {
    let mut handshake = Tls13Handshake::new(HELLO, 17, true, 0);
    let records = [(Client, 200), (Server, 120), (Client, 200), (Client, 21), (Client, FINISHED), (Client, 200)];
    assert_eq!(taken(&mut handshake, &records), [false, true, false, true, true, false]);
}

#[test]
fn one_direction_alone_ends_by_the_time_limit() {
    let mut handshake = handshake();
    assert!(handshake.record(Server, 900, MILLISECOND));
    assert!(!handshake.record(Server, 900, 11_000 * MILLISECOND));
}

#[test]
fn length_of_finished_follows_the_hash() {
    assert_eq!((finished(0x1301), finished(0x1302), finished(0x1306)), (36, 52, 68));
}
