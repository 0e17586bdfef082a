//! What padding and other countermeasures cost.

use sizeleak_audit::leakage::share_in_words;
use sizeleak_audit::padding::{
    CountermeasureCost, Countermeasures, HomeTraffic, PaddingCost, PaddingPolicy, ReplyForm, Sending,
};
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_inference::space::{CommandSpace, Premises, PriorName, SizeRow};
use sizeleak_model::{Model, ReplyCountModel};

#[test]
fn shares_are_never_rounded_to_nothing_or_everything() {
    let shown = [1.0, 0.9996, 0.98, 0.056, 0.0023, 0.0002].map(share_in_words);
    assert_eq!(shown, ["100 %", "99.9 %", "98 %", "6 %", "0.2 %", "less than 0.1 %"]);
}

#[test]
fn costs_are_expected_over_commands() {
    let row = |bytes, probability| SizeRow { bytes, commands: 1.0, probability, greatest: probability, plogp: 0.0 };
    let rows = [row(10, 0.75), row(30, 0.25)];
    let cost = PaddingCost::of(&rows, &PaddingPolicy::Multiple { bytes: 16 });
    assert_eq!(cost, PaddingCost { command_bytes: 15.0, added_bytes: 5.0 });
    assert!((cost.share() - 1.0 / 3.0).abs() < 1e-12 && (cost.megabytes_a_day(1000.0) - 0.005).abs() < 1e-12);
    let random = PaddingCost::of(&rows, &"random:6".parse().unwrap());
    assert!((random.added_bytes - 3.0).abs() < 1e-12);
    assert!(PaddingCost::of(&[], &PaddingPolicy::Padme).share().abs() < 1e-12);
}

#[test]
fn names_say_all_that_is_done() {
    let all = Countermeasures {
        policy: PaddingPolicy::Padme,
        sending: Sending::Every(0.5),
        dummies: 0.125,
        replies: ReplyForm::OneSize,
    };
    assert_eq!(all.to_string(), "padme, delay of 0.5 s, 12.5 % dummies, replies of one size");
    assert_eq!(Countermeasures::NONE.to_string(), "none");
}

const A_DAY: f64 = 864.0;

fn bundled() -> Model {
    Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap()
}

fn traffic(model: &Model) -> HomeTraffic {
    let space = CommandSpace::new(model, &Premises { prior: PriorName::Devices, decay: Some(0.6) }).unwrap();
    HomeTraffic::new(&space, model, EpsilonKnowledge::Distribution, A_DAY).unwrap()
}

fn cost(traffic: &HomeTraffic, change: impl Fn(&mut Countermeasures)) -> CountermeasureCost {
    let mut countermeasures = Countermeasures::NONE;
    change(&mut countermeasures);
    traffic.effect(&countermeasures).unwrap().cost
}

fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{found} is not {wanted}");
}

#[test]
fn dummies_cost_commands_and_their_replies() {
    let traffic = traffic(&bundled());
    let (bytes, replies) = (traffic.command_bytes(), traffic.replies());
    let cost = cost(&traffic, |countermeasures| countermeasures.dummies = 0.5);
    assert_near(cost.added_bytes, bytes);
    assert_near(cost.added_reply_bytes.unwrap(), replies.bytes.unwrap());
    assert_near(cost.added_messages_a_day, A_DAY);
    assert_near(cost.added_replies_a_day.unwrap(), replies.replies.unwrap() * A_DAY);
    assert_near(cost.megabytes_a_day.unwrap(), (bytes + replies.bytes.unwrap()) * A_DAY / 1e6);
}

#[test]
fn batches_wait_for_commands_and_save_messages() {
    let traffic = traffic(&bundled());
    let pairs = cost(&traffic, |countermeasures| countermeasures.sending = Sending::Batches(2));
    assert_eq!((pairs.mean_delay_seconds, pairs.most_delay_seconds), (50.0, None));
    assert_near(pairs.added_bytes, 0.0);
    assert_near(pairs.added_messages_a_day, -432.0);
    let filled = cost(&traffic, |countermeasures| {
        (countermeasures.sending, countermeasures.dummies) = (Sending::Batches(2), 0.5);
    });
    assert!((filled.mean_delay_seconds - 25.0).abs() < 1e-12, "dummies fill batches, too");
}

#[test]
fn replies_that_are_not_sent_save_all_of_theirs() {
    let traffic = traffic(&bundled());
    let unanswered = cost(&traffic, |countermeasures| countermeasures.replies = ReplyForm::NoReply);
    assert_near(unanswered.added_reply_bytes.unwrap(), -traffic.replies().bytes.unwrap());
    assert_near(unanswered.added_replies_a_day.unwrap(), -traffic.replies().replies.unwrap() * A_DAY);
}

#[test]
fn replies_a_model_does_not_know_have_no_cost() {
    let (replies, single_replies) = (ReplyCountModel::uninformative(), None);
    let traffic = traffic(&Model { replies, single_replies, ..bundled() });
    let padding = cost(&traffic, |countermeasures| countermeasures.policy = PaddingPolicy::Multiple { bytes: 64 });
    assert_eq!(padding.added_reply_bytes, Some(0.0));
    assert_near(padding.megabytes_a_day.unwrap(), padding.added_bytes * A_DAY / 1e6);
    let dummies = cost(&traffic, |countermeasures| countermeasures.dummies = 0.1);
    assert_eq!((dummies.added_reply_bytes, dummies.megabytes_a_day), (None, None));
    let unanswered = cost(&traffic, |countermeasures| countermeasures.replies = ReplyForm::NoReply);
    assert_eq!((unanswered.added_reply_bytes, unanswered.added_replies_a_day), (None, None));
}
