//! What the types of frames promise beside their encoding: lists, names of flows, actions and the size of all.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{Actions, Candidate, FlowId, Frame, NoFlowId, Packets, Protocol, Segments, SharedList, Unknown};

/// About what an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 32;

#[test]
fn only_clones_are_the_same_list() {
    let list = SharedList::from([1, 2, 3]);
    let equal: SharedList<i32> = list.iter().copied().collect();
    assert!(list.clone().is_clone_of(&list) && !equal.is_clone_of(&list));
    assert_eq!((&equal, &list[1..]), (&list, &[2, 3][..]));
    assert_eq!((&list).into_iter().sum::<i32>(), 6);
    assert!(SharedList::<i32>::default().is_empty());
}

#[test]
fn text_form_has_a_fixed_length_and_is_no_number() {
    assert_eq!(FlowId(7).to_string(), "F0000000000000007");
    assert_eq!(FlowId(u64::MAX).to_string(), "Fffffffffffffffff");
    assert_eq!(format!("{:<20}|", FlowId(1)), "F0000000000000001   |");
}

#[test]
fn number_of_the_frames_names_a_flow_too() {
    assert_eq!("7".parse(), Ok(FlowId(7)));
    assert_eq!("18446744073709551615".parse(), Ok(FlowId(u64::MAX)));
}

#[test]
fn other_texts_name_no_flow() {
    let wrong = ["", "F", "F7", "f0000000000000007", "F000000000000000g", "F+00000000000007", "-1", "+7", "1e3"];
    for text in wrong.into_iter().chain(["18446744073709551616", "F00000000000000007", "Fé0000000000000"]) {
        assert_eq!(text.parse::<FlowId>(), Err(NoFlowId), "{text}");
    }
}

proptest! {
    #[test]
    fn text_form_reads_back(number: u64) {
        prop_assert_eq!(FlowId(number).to_string().parse(), Ok(FlowId(number)));
    }
}

#[test]
fn kinds_are_the_same_if_their_names_are() {
    let unknown = |kind: &str| Frame::Unknown(Unknown { kind: kind.to_owned(), value: vec![0x80] });
    let kinds = [unknown("a"), unknown("b"), Packets::new().into(), Segments::new().into()];
    for (one, other) in kinds.iter().flat_map(|one| kinds.iter().map(move |other| (one, other))) {
        assert_eq!(one.is_same_kind(other), one.kind() == other.kind(), "{} and {}", one.kind(), other.kind());
    }
}

#[test]
fn frame_fits_a_cache_line() {
    assert!(size_of::<Frame>() <= 64, "{} bytes", size_of::<Frame>());
}

fn names(names: &[&str]) -> SharedList<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn single(counts: &[(&str, u32)]) -> Actions {
    counts.iter().map(|(name, count)| (Arc::from(*name), *count)).collect()
}

fn candidates(actions: impl Iterator<Item = Actions>) -> SharedList<Candidate> {
    actions.map(|actions| Candidate { actions, epsilon: 0, probability: 0.5, likelihood: None }).collect()
}

#[test]
fn of_many_splits_the_counts_by_candidate() {
    let counts = vec![(0, 2), (1, 1), (1, 3)];
    let many: Vec<Actions> = Actions::of_many(names(&["on", "off"]), counts, [2, 2, 3, 3]).collect();
    assert_eq!(many, [single(&[("on", 2), ("off", 1)]), single(&[]), single(&[("off", 3)]), single(&[])]);
    assert_eq!(many.iter().map(|one| (one.len(), one.total())).collect::<Vec<_>>(), [(2, 3), (0, 0), (1, 3), (0, 0)]);
    assert!(many[1].is_empty() && many[2].count("off") == 3 && many[2].count("on") == 0);
    assert_ne!(many[0], single(&[("off", 1), ("on", 2)]), "order counts");
    assert_eq!(format!("{:?}", many[0]), r#"{"on": 2, "off": 1}"#);
}

#[test]
fn memory_of_shared_counts_is_counted_once() {
    let many = |number: u32| {
        let counts = (0..number).map(|_| (0, 1)).collect();
        candidates(Actions::of_many(names(&["on"]), counts, 1..=number)).memory_bytes()
    };
    let each = size_of::<Candidate>() + size_of::<(u32, u32)>();
    assert_eq!((many(1000) - many(10)) / 990, each);
    let memory = |number| candidates((0..number).map(|_| single(&[("on", 1)]))).memory_bytes();
    assert!((memory(1000) - memory(10)) / 990 > each + 3 * ALLOCATION_BYTES, "each with its own lists");
}

#[test]
fn names_are_those_in_frames() {
    use Protocol::{Dtls, Dtls13, Esp, Framing, Matter, Quic, Tcp, Tls, WireGuard};
    for protocol in [Tls, Dtls, Dtls13, Quic, Matter, WireGuard, Esp, Tcp, Framing] {
        let written = rmp_serde::to_vec(&protocol).unwrap();
        assert_eq!(rmp_serde::from_slice::<String>(&written).unwrap(), protocol.name());
    }
}
