//! Estimates, assumptions and notices of the stage.

use sizeleak_frame::SharedList;

use super::*;

const MODEL: &str = "schema = 1\noverhead = 60\nk = 2\ntuples = [[100, 0, 1], [102, 1, 1], [200, 5, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 40\n[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
    [learned]\nmethod = \"robust\"\ncommands = 3\nversion = \"0.1.0\"\n";

fn corrector(basis: &str) -> EpsilonCorrector {
    let model = Model::from_toml(&format!("{MODEL}{basis}")).unwrap();
    let smoothing = model.smoothing;
    EpsilonCorrector::new(model, smoothing)
}

fn plaintext_basis() -> EpsilonCorrector {
    corrector("basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n")
}

/// A corrector without smoothing.
fn nearest() -> EpsilonCorrector {
    EpsilonCorrector::new(plaintext_basis().model, Smoothing::NEAREST)
}

fn command(size: u64, plaintext: Option<[u64; 2]>) -> Command {
    Command { time_ns: 1, end_ns: 2, flow: 3, size, plaintext, records: 1, ..Command::default() }
}

/// The values of ε, and the notices that came with them.
fn correct(corrector: &mut EpsilonCorrector, command: &Command) -> (Vec<(i64, f64)>, Vec<Frame>) {
    let mut out: Vec<Frame> = Vec::new();
    corrector.process(CorrectorInput::Command(command.clone().into()), &mut out).unwrap();
    let Some(Frame::Correction(correction)) = out.pop() else { panic!("{out:?}") };
    assert_eq!(correction.command, *command);
    (correction.epsilons.iter().map(|value| (value.epsilon, value.weight)).collect(), out)
}

/// The notice on a command without a plaintext size.
fn assumed(corrector: &mut EpsilonCorrector) -> Option<String> {
    let (_, notices) = correct(corrector, &command(124, None));
    let notice = notices.into_iter().next().map(Notice::try_from)?.unwrap();
    assert_eq!((&*notice.what, notice.flow), (what::ASSUMED, Some(3)));
    notice.detail
}

fn open_session(corrector: &mut EpsilonCorrector, cipher_suite: Option<&str>) {
    let cipher_suite = cipher_suite.map(str::to_owned);
    let session = Session { time_ns: 0, flow: 3, server_name: None, tls_version: None, cipher_suite, protocol: None };
    let mut out: Vec<Frame> = Vec::new();
    corrector.process(CorrectorInput::Session(session.clone().into()), &mut out).unwrap();
    assert_eq!(out, [session.into()]);
}

#[test]
fn neighbours_are_found_by_the_size_without_epsilon() {
    let mut corrector = plaintext_basis();
    // For |s| = 100, ε = 0 belongs to x = 100 and ε = 1 to x = 99, which have the same two nearest neighbours.
    let both = vec![(0, 0.5), (1, 0.5)];
    assert_eq!(correct(&mut corrector, &command(999, Some([100, 100]))).0, both);
    assert_eq!(correct(&mut corrector, &command(124, None)).0, both, "24 bytes of cipher");
    let mut corrector = nearest();
    assert_eq!(correct(&mut corrector, &command(0, Some([170, 170]))).0, [(5, 1.0)]);
}

#[test]
fn smoothing_gives_a_share_to_values_without_neighbours() {
    let mut smooth = EpsilonCorrector::new(plaintext_basis().model, Smoothing { k: 2, strength: 3.0 });
    let smoothed = correct(&mut smooth, &command(999, Some([100, 100]))).0;
    assert!(smoothed.iter().any(|(epsilon, _)| *epsilon == -1), "{smoothed:?}");
    assert!((smoothed.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn sizes_far_from_all_labels_are_reported_once() {
    let mut corrector = plaintext_basis();
    let far = |size: u64| command(0, Some([size; 2]));
    assert_eq!(correct(&mut corrector, &far(140)).1, [], "one action from the nearest");
    let (_, notices) = correct(&mut corrector, &far(150));
    let [Frame::Notice(notice)] = &notices[..] else { panic!("{notices:?}") };
    let detail = notice.detail.as_deref().unwrap();
    assert!(notice.what == what::ASSUMED && detail.contains("between 102 and 200 bytes"), "{detail}");
    assert_eq!(correct(&mut corrector, &far(155)).1, [], "reported once");
    let detail = |notices: &[Frame]| format!("{notices:?}");
    assert!(detail(&correct(&mut corrector, &far(900)).1).contains("more than 200 bytes"));
    assert!(detail(&correct(&mut corrector, &far(9)).1).contains("less than 100 bytes"));
    assert_eq!(corrector.counters()[1], ("without_near_neighbours", 4));
}

#[test]
fn an_assumption_is_reported_once_a_session() {
    let mut corrector = plaintext_basis();
    assert_eq!(correct(&mut corrector, &command(999, Some([100, 100]))).1, []);
    assert!(assumed(&mut corrector).unwrap().contains("handshake was not seen"));
    assert_eq!(assumed(&mut corrector), None);
    open_session(&mut corrector, Some("Y"));
    assert!(assumed(&mut corrector).unwrap().contains("cipher suite Y"));
    assert_eq!(assumed(&mut corrector), None);
    open_session(&mut corrector, Some("X"));
    assert_eq!(assumed(&mut corrector), None, "the model's own suite");
    assert_eq!(corrector.counters()[0], ("assumed_cipher", 4));
}

#[test]
fn a_model_of_wire_sizes_refuses_sessions_of_another_basis_alone() {
    let mut corrector = corrector("basis = \"wire\"\n");
    assert_eq!(assumed(&mut corrector), None);
    open_session(&mut corrector, Some("0x1a2b"));
    assert!(assumed(&mut corrector).unwrap().contains("0x1a2b"));
    open_session(&mut corrector, Some("Y"));
    let known = command(100, Some([76, 76]));
    let (epsilons, notices) = correct(&mut corrector, &known);
    let [Frame::Notice(notice)] = &notices[..] else { panic!("{notices:?}") };
    assert!(epsilons.is_empty() && notice.what == what::UNCOVERED, "{epsilons:?} {notice:?}");
    assert!(notice.detail.as_deref().unwrap().contains("learn again"), "{notice:?}");
    assert_eq!(correct(&mut corrector, &known), (vec![], vec![]), "reported once");
    assert!(corrector.counters().contains(&("other_cipher", 2)));
}

#[test]
fn a_model_of_wire_sizes_answers_known_sessions_of_its_own_service() {
    let mut corrector = corrector("basis = \"wire\"\n");
    corrector.model.scope.services.push("ws.example".parse().unwrap());
    open_session(&mut corrector, Some("X"));
    let (epsilons, notices) = correct(&mut corrector, &command(100, Some([76, 76])));
    assert!(!epsilons.is_empty() && format!("{notices:?}").contains("taken to be of the same suite"), "{notices:?}");
}

#[test]
fn frames_of_other_kinds_are_handed_back() {
    let other = Frame::from(Correction::unshifted(command(1, None), SharedList::default()));
    assert_eq!(CorrectorInput::try_from(other.clone()), Err(other));
}

/// What is believed of habits grows with the square of the actions, and with every flow.
#[test]
fn nothing_is_followed_with_more_actions_than_beliefs_can_hold() {
    let follows = |actions: usize| {
        let names: Vec<String> = (0..actions).map(|at| format!("a{at}")).collect();
        let action = |name: &String| format!("[[action]]\nname = \"{name}\"\nsize = 40\n");
        let text = format!(
            "schema = 1\noverhead = 60\nk = 1\nstrength = 9.0\ntuples = [[100, 0, 9]]\n{}\
             [[device]]\nname = \"lamp\"\ncount = 1\nactions = {names:?}\n\
             [prior]\nnumbers = [1.0]\ndecay = 0.01\nshares = {:?}\nconcentration = 20.0\n\
             [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
             [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n",
            names.iter().map(action).collect::<String>(),
            vec![1.0 / actions as f64; actions]
        );
        let model = Model::from_toml(&text).unwrap();
        let (smoothing, reason) = (model.smoothing, EpsilonCorrector::not_followed(&model));
        (EpsilonCorrector::new(model, smoothing).shifts.is_some(), reason)
    };
    assert_eq!(follows(128), (true, None));
    assert_eq!([129, 256].map(follows), [(false, Some("it has more than 128 actions")); 2]);
}
