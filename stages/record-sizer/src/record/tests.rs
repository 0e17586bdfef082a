//! Tests of `record`.

use super::*;

fn chunk(payload: &[u8], hidden: u32, time_ns: i64) -> Chunk<'_> {
    Chunk { hidden, ..Chunk::fragment(time_ns, payload) }
}

/// Length, start and end of the records of a walk along a chunk; the walk must stay in step.
fn walk(walker: &mut RecordWalker, mut chunk: Chunk<'_>) -> Vec<(u16, i64, i64)> {
    let mut records = Vec::new();
    loop {
        match walker.step(&mut chunk) {
            Step::More => return records,
            Step::Record(record) => records.push((record.header.length, record.start_ns, record.time_ns)),
            Step::Header(_) | Step::Body { .. } => {}
            lost => panic!("{lost:?}"),
        }
    }
}

#[test]
fn only_plausible_headers_are_parsed() {
    let length = |bytes| Header::parse(bytes).map(|header| header.length);
    assert_eq!(length([23, 3, 3, 0, 40]), Some(40));
    assert_eq!(length([24, 3, 4, 0x48, 0]), Some(MAX_BODY));
    assert_eq!(length([23, 3, 3, 0, 0]), Some(0));
    for invalid in [[19, 3, 3, 0, 1], [25, 3, 3, 0, 1], [23, 2, 3, 0, 1], [23, 3, 5, 0, 1]] {
        assert_eq!(length(invalid), None);
    }
    assert_eq!(length([23, 3, 3, 0x48, 1]), None);
}

#[test]
fn records_do_not_depend_on_chunk_boundaries() {
    let bytes = [23, 3, 3, 0, 2, 9, 9, 21, 3, 3, 0, 1, 9, 23, 3, 3, 0, 0];
    let expected = [(2, 5, 5), (1, 5, 5), (0, 5, 5)];
    assert_eq!(walk(&mut RecordWalker::default(), chunk(&bytes, 0, 5)), expected);
    let mut walker = RecordWalker::default();
    let each: Vec<_> = (0i64..).zip(&bytes).flat_map(|(at, byte)| walk(&mut walker, chunk(&[*byte], 0, at))).collect();
    assert_eq!(each, [(2, 0, 6), (1, 7, 12), (0, 13, 17)]);
    assert!(!walker.is_inside_record());
    assert_eq!(walker.version(), Some(3));
}

#[test]
fn hidden_bodies_are_skipped_and_hidden_headers_end_the_walk() {
    let mut walker = RecordWalker::default();
    assert_eq!(walk(&mut walker, chunk(&[23, 3, 3, 1, 0, 7], 255, 1)), [(256, 1, 1)]);
    assert_eq!(walker.step(&mut chunk(&[23, 3], 10, 2)), Step::Hidden);
}

#[test]
fn gaps_within_and_past_a_body_are_distinguished() {
    let mut walker = RecordWalker::default();
    assert_eq!(walker.gap(1, 0), GapEffect::HeaderLost);
    walk(&mut walker, chunk(&[23, 3, 3, 0, 9, 1], 0, 4));
    assert!(walker.is_inside_record());
    assert_eq!(walker.gap(7, 0), GapEffect::WithinBody);
    let mut past = walker;
    assert!(matches!(past.gap(2, 0), GapEffect::PastRecord(SizedRecord { start_ns: 4, time_ns: 4, .. })));
    assert_eq!(walk(&mut walker, chunk(&[1], 0, 6)), [(9, 4, 6)]);
}
