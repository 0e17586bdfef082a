//! Flows whose commands become longer, beside others.

use sizeleak_frame::SingleReply;

use super::*;

/// Commands of one or two actions of 40 or 47 bytes each, whose replies have 20 and 25 bytes.
const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9], [107, 0, 9], [140, 0, 9], [141, 1, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 47\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\"]\n\
    [prior]\nnumbers = [0.7, 0.3]\ndecay = 0.01\nshares = [0.5, 0.5]\nconcentration = 100.0\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
    [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n";

const SINGLE: &str = "[single_replies]\nmerged = 0.0\nshared = 0\nforeign = 0.01\nforeign_sizes = []\n\
    per_command = [0, 0]\nper_action = [[1, 0], [0, 1]]\n\
    [[single_replies.class]]\nmissing = 0.01\nunseen = 0.0\nsizes = [[20, 20]]\n\
    [[single_replies.class]]\nmissing = 0.01\nunseen = 0.0\nsizes = [[25, 20]]\n";

fn model(rest: &str) -> Model {
    Model::from_toml(&format!("{MODEL}{rest}")).unwrap()
}

/// `on` (0) or `off` (1), longer by some bytes, with a reply that is longer too.
fn command(second: i64, flow: u64, action: usize, bytes: u64, reply_bytes: u32) -> Command {
    let (size, reply) = if action == 0 { (100, 20) } else { (107, 25) };
    Command {
        time_ns: second * 1_000_000_000,
        end_ns: second * 1_000_000_000,
        flow,
        size: size + bytes,
        records: 1,
        replies: 1,
        reply_bytes: 20,
        single_replies: [SingleReply { after_ns: 0, length: reply + reply_bytes }].into(),
        ..Command::default()
    }
}

fn plain() -> SharedList<WeightedEpsilon> {
    [WeightedEpsilon { epsilon: 0, weight: 0.9 }, WeightedEpsilon { epsilon: 1, weight: 0.1 }].into()
}

fn follow(shifts: &mut FlowShifts, model: &Model, command: &Command) -> (Correction, Vec<(&'static str, String)>) {
    let size = command.size.cast_signed();
    shifts.follow(model, command.clone(), [size; 2], plain())
}

/// The shift of the last of these commands, and all news, of one flow.
fn followed(model: &Model, commands: &[Command]) -> (Vec<(i64, i64)>, Vec<String>) {
    let mut shifts = FlowShifts::new(model).unwrap();
    let mut news = Vec::new();
    let mut last = Vec::new();
    for command in commands {
        let (found, said) = follow(&mut shifts, model, command);
        last = found.shifts.iter().map(|shift| (shift.bytes, shift.reply_bytes)).collect();
        news.extend(said.into_iter().filter(|(what, _)| *what == what::SHIFTED).map(|(_, detail)| detail));
    }
    (last, news)
}

#[test]
fn a_change_is_reported_once_with_its_first_command() {
    let model = model(SINGLE);
    for (bytes, reply_bytes, words) in [
        (6, 6, "commands and replies are 6 bytes longer"),
        (3, 0, "commands are 3 bytes longer"),
        (0, 1, "replies are 1 byte longer"),
    ] {
        let commands: Vec<Command> = (0..40)
            .map(|number| {
                let longer = number >= 20;
                let (bytes, reply_bytes) = if longer { (bytes, reply_bytes) } else { (0, 0) };
                command(number, 1, number as usize % 2, bytes, reply_bytes)
            })
            .collect();
        let (shifts, news) = followed(&model, &commands);
        assert_eq!(shifts, [(bytes.cast_signed(), i64::from(reply_bytes))]);
        assert!(news.len() == 1 && news[0].contains(words), "{news:?}");
        assert!(news[0].starts_with("since 1970-01-01T00:00:20.000000Z "), "{news:?}");
    }
}

#[test]
fn sizes_that_return_are_reported_too() {
    let model = model(SINGLE);
    let bytes = |number: i64| if (10..30).contains(&number) { 6 } else { 0 };
    let commands: Vec<Command> =
        (0..50).map(|number| command(number, 1, number as usize % 2, bytes(number), bytes(number) as u32)).collect();
    let (shifts, news) = followed(&model, &commands);
    assert_eq!((shifts, news.len()), (vec![], 2));
    assert_eq!(
        news[1],
        "since 1970-01-01T00:00:30.000000Z commands and replies are again as long as those that the model was learned from"
    );
}

#[test]
fn epsilon_contains_the_shift_and_stays_a_distribution() {
    let model = model(SINGLE);
    let mut shifts = FlowShifts::new(&model).unwrap();
    for number in 0..20 {
        let longer = if number >= 10 { 6 } else { 0 };
        let (found, _) = follow(&mut shifts, &model, &command(number, 1, number as usize % 2, longer, longer as u32));
        let sum: f64 = found.epsilons.iter().map(|value| value.weight).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert!(found.epsilons.windows(2).all(|pair| pair[0].weight >= pair[1].weight));
        if number < 10 {
            assert!(found.shifts.is_empty() && *found.epsilons == *plain());
        } else if number > 13 {
            assert_eq!(found.epsilons.iter().map(|value| value.epsilon).collect::<Vec<_>>(), [6, 7]);
        }
    }
}

#[test]
fn flows_do_not_disturb_each_other() {
    let model = model(SINGLE);
    let own: Vec<Command> = (0..60).map(|number| command(number, 1, number as usize % 2, 0, 0)).collect();
    let mut alone = FlowShifts::new(&model).unwrap();
    let mut beside = FlowShifts::new(&model).unwrap();
    let mut is_other_shifted = false;
    for (number, command_of_own) in (0..).zip(&own) {
        let (other, _) = follow(&mut beside, &model, &command(number, 2, number as usize % 2, 6, 6));
        is_other_shifted |= !other.shifts.is_empty();
        let [one, two] = [&mut alone, &mut beside].map(|shifts| follow(shifts, &model, command_of_own).0);
        assert_eq!((&*one.epsilons, one.shifts.len()), (&*two.epsilons, two.shifts.len()));
    }
    assert!(is_other_shifted);
}

#[test]
fn sizes_alone_show_a_change_where_replies_say_nothing() {
    let model = model("");
    let commands: Vec<Command> =
        (0..60).map(|number| command(number, 1, number as usize % 2, if number < 30 { 0 } else { 3 }, 50)).collect();
    let (shifts, news) = followed(&model, &commands);
    assert_eq!((shifts, news.len()), (vec![(3, 0)], 1));
}

#[test]
fn models_that_do_not_say_how_probable_sizes_are_have_no_shifts() {
    let mut flat = model("");
    flat.prior = None;
    assert!(FlowShifts::new(&flat).is_none());
}
