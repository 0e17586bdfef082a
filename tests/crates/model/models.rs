//! Actions, the basis of sizes, scopes, and models whose messages grow.

use sizeleak_model::{
    Action, Basis, Model, Provenance, ReplyBytesModel, ReplyClass, Scope, ServiceName, SingleReplies, SizeError,
    WireSize,
};

use super::samples::model;

#[test]
fn shares_become_probabilities() {
    let action = Action::of_sizes("dim", &[(30, 1.0), (28, 3.0), (29, 0.0)]).unwrap();
    assert_eq!((action.size, action.size_range(), action.varies()), (28, [28, 30], true));
    assert_eq!(action.sizes().collect::<Vec<_>>(), [(28, 0.75), (30, 0.25)]);
    let single = Action::of_sizes("on", &[(30, 2.0)]).unwrap();
    assert_eq!((single.clone(), single.sizes().collect()), (Action::new("on", 30), vec![(30, 1.0)]));
}

#[test]
fn rare_sizes_keep_a_share() {
    let action = Action::of_sizes("dim", &[(28, 1e9), (29, 1.0)]).unwrap();
    assert_eq!(action.sizes().count(), 2);
    assert!((action.sizes().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn sizes_that_no_action_has_are_refused() {
    assert_eq!(Action::of_sizes("on", &[]), None);
    assert_eq!(Action::of_sizes("on", &[(0, 1.0), (1, 1.0)]), None);
    assert_eq!(Action::of_sizes("on", &[(1, 1.0), (2000, 1.0)]), None);
    let many: Vec<(i64, f64)> = (1..300).map(|size| (size, 1.0)).collect();
    assert_eq!(Action::of_sizes("on", &many), None);
}

#[test]
fn an_exact_reply_is_in_the_range_that_was_learned_under_a_block_cipher() {
    let blocks = Basis::Plaintext { cipher_suite: "cbc".into(), record_overhead: [37, 52] };
    let in_blocks = WireSize { wire: 100, records: 1, plaintext: Some([48, 63]) };
    let exact = WireSize { wire: 100, records: 1, plaintext: Some([75, 75]) };
    // 64 bytes in blocks are 12 to 27, of which 27 is learned; 50 bytes that add 25 are 25.
    assert_eq!((blocks.reply_sizes(64, in_blocks), blocks.reply_sizes(50, exact)), ([12, 27], [25, 40]));
    let aead = Basis::Plaintext { cipher_suite: "gcm".into(), record_overhead: [25, 25] };
    assert_eq!((aead.reply_sizes(64, in_blocks), aead.reply_sizes(50, exact)), ([12, 27], [25, 25]));
}

#[test]
fn sizes_are_converted_to_the_basis() {
    let basis = model().learned.basis;
    assert_eq!(basis.sizes(300, 2, None), Ok([264, 266]));
    assert_eq!(basis.sizes(10, 2, None), Ok([0, 0]));
    assert_eq!(basis.sizes(300, 2, Some([250, 270])), Ok([250, 270]));
    assert_eq!(basis.sizes(u64::MAX, 1, Some([0, u64::MAX])), Ok([0, i64::MAX]));
    assert_eq!(Basis::Wire.sizes(300, 2, None), Ok([300, 300]));
    assert_eq!(Basis::Wire.sizes(300, 2, Some([250, 270])), Err(SizeError));
    assert!(SizeError.to_string().contains("learn --cipher"));
}

fn service(text: &str) -> ServiceName {
    text.parse().unwrap()
}

#[test]
fn a_service_is_a_name_or_an_address_with_port() {
    assert_eq!(service("WS.MeetHue.com."), ServiceName::Server("ws.meethue.com".into()));
    assert_eq!(service("192.0.2.7:443").to_string(), "192.0.2.7:443");
    assert_eq!(service("[2001:db8::1]:8883"), ServiceName::Address("[2001:db8::1]:8883".parse().unwrap()));
    for wrong in ["", ".", "a b", "cloud:443", "[::1]", "x\ny", &"a".repeat(254)] {
        assert!(wrong.parse::<ServiceName>().is_err(), "{wrong:?}");
    }
}

#[test]
fn names_are_compared_without_case() {
    let scope = Scope { services: vec![service("ws.meethue.com"), service("192.0.2.7:443")], ..Scope::default() };
    assert!(scope.has_server("WS.meethue.COM.") && !scope.has_server("meethue.com"));
    assert!(scope.has_address("192.0.2.7:443".parse().unwrap()));
    assert_eq!(scope.to_string(), "any gateway, ws.meethue.com, 192.0.2.7:443");
    assert_eq!(Scope::default().to_string(), "any gateway, any service");
}

#[test]
fn how_probable_unfit_sizes_are_is_said_once() {
    let mut learned = model().learned;
    learned.certainty = 0.04;
    let said =
        |learned: &Provenance| learned.unfit_for_figures().unwrap().matches("right with a probability of").count();
    assert_eq!(said(&learned), 1);
    learned.warnings = vec!["few labels".to_owned()];
    assert_eq!(said(&learned), 1);
    learned.warnings.push("these sizes together are right with a probability of 4 %".to_owned());
    assert_eq!(said(&learned), 1);
}

#[test]
fn overhead_and_replies_grow_and_nothing_else_changes() {
    let mut old = model();
    let class = ReplyClass { missing: 0.01, unseen: 0.0, sizes: vec![(3, 2), (30, 5)] };
    old.single_replies = Some(SingleReplies {
        merged: 0.0,
        shared: 0,
        foreign: 0.1,
        foreign_sizes: vec![(40, 1)],
        per_command: vec![0],
        per_action: vec![vec![1]; old.actions.len()],
        classes: vec![class],
    });
    old.reply_bytes = Some(ReplyBytesModel {
        fixed: 1.0,
        per_reply: 20.0,
        per_action: vec![0.0; old.actions.len()],
        spread: 0.5,
        odd: 0.01,
        odd_spread: 9.0,
        odd_deviations: Vec::new(),
    });
    let new = old.clone().with_longer_messages(6, -4);
    let (replies, of_all) = (new.single_replies.clone().unwrap(), new.reply_bytes.clone().unwrap());
    assert_eq!(replies.classes[0].sizes, [(0, 2), (26, 5)]);
    assert_eq!(replies.foreign_sizes, [(36, 1)]);
    assert!((of_all.per_reply - 16.0).abs() < 1e-12);
    assert_eq!(new.overhead, old.overhead + 6);
    let restored = Model {
        overhead: old.overhead,
        single_replies: old.single_replies.clone(),
        reply_bytes: old.reply_bytes.clone(),
        ..new
    };
    assert_eq!(restored, old);
    assert_eq!(old.clone().with_longer_messages(0, 0), old);
    let name = old.actions[0].name.clone();
    let longer = old.clone().with_longer_action(&name, 3).unwrap();
    assert_eq!(longer.actions[0].size, old.actions[0].size + 3);
    assert_eq!(longer.with_longer_action(&name, -3).unwrap(), old);
    assert!(old.clone().with_longer_action(&name, -old.actions[0].size).is_none());
    let mut varying = old.clone();
    varying.actions[0] = Action::of_sizes(&name, &[(30, 0.75), (32, 0.25)]).unwrap();
    let longer = varying.clone().with_longer_action(&name, 3).unwrap();
    assert_eq!(longer.actions[0].sizes().collect::<Vec<_>>(), [(33, 0.75), (35, 0.25)], "each of its sizes");
    assert!(varying.with_longer_action(&name, -30).is_none());
    assert!(old.clone().with_longer_action("no such action", 1).is_none());
}
