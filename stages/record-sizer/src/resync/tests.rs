//! Tests of `resync`.

use super::*;

fn chunk(payload: &[u8]) -> Chunk<'_> {
    Chunk { starts_segment: true, ends_segment: true, ..Chunk::fragment(1, payload) }
}

fn record(length: u8) -> Vec<u8> {
    [&[23, 3, 3, 0, length][..], &vec![0x5a; length.into()]].concat()
}

/// The bytes skipped before the boundary that a search finds in these chunks, if it does.
fn search(version: Option<u8>, chunks: &[&[u8]]) -> Option<u64> {
    let mut search = BoundarySearch::new(version);
    chunks.iter().find_map(|bytes| match search.chunk(chunk(bytes)) {
        SearchOutcome::Boundary { skipped, .. } => Some(skipped),
        SearchOutcome::Nothing { .. } => None,
    })
}

#[test]
fn two_headers_in_a_chain_are_a_boundary_wherever_they_are_cut() {
    let bytes = [&[0x5a; 30][..], &record(40), &record(41), &[23, 3]].concat();
    for cut in 1..80 {
        let (one, two) = bytes.split_at(cut);
        assert_eq!(search(None, &[one, two]), Some(30), "{cut}");
    }
    assert_eq!(search(None, &[&bytes[..70]]), None, "one header is not enough");
}

#[test]
fn record_that_ends_with_its_segment_is_a_boundary() {
    let tail = [&[0x5a; 30][..], &record(40)].concat();
    assert_eq!(search(None, &[&tail]), Some(30));
    let whole = record(40);
    let (begins, ends) = whole.split_at(20);
    assert_eq!(search(None, &[begins, ends]), Some(0), "it starts a segment and ends a later one");
    let (begins, ends) = tail.split_at(50);
    assert_eq!(search(None, &[begins, ends]), None, "it does neither in one segment");
}

#[test]
fn unlikely_versions_and_lengths_are_rejected() {
    let header = |content_type, minor, length| {
        let [high, low] = u16::to_be_bytes(length);
        Header::parse([content_type, 3, minor, high, low]).is_some_and(|header| is_likely(header, Some(3)))
    };
    assert!(header(23, 3, 18_432) && header(22, 1, 300) && header(20, 3, 1) && header(21, 3, 26));
    assert!(!header(23, 2, 300) && !header(20, 3, 2) && !header(21, 3, 600) && !header(23, 4, 9) && !header(23, 3, 0));
}

#[test]
fn record_with_hidden_proof_counts_only_after_records_of_its_version() {
    for (version, expected) in [(None, 0), (Some(2), 0), (Some(3), 1)] {
        let mut search = BoundarySearch::new(version);
        let hidden = Chunk { hidden: 500, ..chunk(&[23, 3, 3, 1, 0, 7]) };
        let SearchOutcome::Nothing { unproven, .. } = search.chunk(hidden) else { panic!() };
        assert_eq!(unproven.len(), expected);
        search.chunk(chunk(&[23, 3, 3, 1, 0, 7]));
        assert_eq!(search.gap(10_000, 0).len(), expected);
    }
}

#[test]
fn after_a_long_search_only_starts_of_segments_are_candidates() {
    let noise = vec![0x5a; THOROUGH as usize];
    let both = [record(40), record(41), record(42)].concat();
    let inside = [&[0x5a][..], &both].concat();
    assert_eq!(search(None, &[&noise, &inside]), None);
    assert_eq!(search(None, &[&noise, &inside, &both]), Some(THOROUGH + 1 + both.len() as u64));
}

#[test]
fn hellos_are_distinguished_from_other_handshake_records() {
    let client = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    assert!(is_hello(&client));
    assert!(is_hello(&[22, 3, 3, 0x10, 0, 2, 0, 0, 70, 3, 3]), "a certificate follows in the record");
    assert!(!is_hello(&[22, 3, 3, 0x10, 0, 1, 0, 0, 70, 3, 3]), "nothing follows a client's hello");
    assert!(!is_hello(&[22, 3, 1, 2, 0, 11, 0, 1, 0xfc, 3, 3]), "a certificate");
    assert!(!is_hello(&client[..10]));
}

#[test]
fn ssl2_hellos_need_a_plausible_length_and_version() {
    assert_eq!(ssl2_hello_length([0x80, 46, 1, 3, 1]), Some(48));
    assert_eq!(ssl2_hello_length([0x80, 10, 1, 3, 1]), None);
    assert_eq!(ssl2_hello_length([0x00, 46, 1, 3, 1]), None);
    assert_eq!(ssl2_hello_length([0x80, 46, 4, 3, 1]), None);
}

#[test]
fn a_scan_for_a_hello_keeps_no_room_for_the_segments_that_it_has_seen() {
    let mut scan = HelloScan::new([0x5a; HEADER], 1);
    for bytes in [&[0x5a; 9_000][..], &[0x5a; 3], &[0x5a; 9_000]] {
        assert!(matches!(scan.chunk(chunk(bytes)), ScanOutcome::Nothing { is_exhausted: false }));
        assert!(scan.tail.capacity() < 2 * HELLO, "{}", scan.tail.capacity());
    }
}
