//! What is said of labels that do not determine sizes, and of sizes that do not add up.

use sizeleak_model::{FitMethod, LabelledCommand};

use super::*;
use crate::fit::testing::command;

fn names() -> Vec<String> {
    ["on", "off", "red"].map(str::to_owned).to_vec()
}

fn learn(commands: &[LabelledCommand]) -> LearnedSizes {
    learn_sizes(FitMethod::Robust, &names(), commands).unwrap()
}

/// Commands of up to four actions, with sizes that `size` gives.
fn mixed(n: u32, size: impl Fn([u32; 3], u32) -> i64) -> Vec<LabelledCommand> {
    let counts = |at: u32| [at % 3, at / 3 % 3, u32::from(at.is_multiple_of(9) || at.is_multiple_of(5))];
    (0..n).map(|at| command(size(counts(at), at), &counts(at))).collect()
}

fn additive([on, off, red]: [u32; 3]) -> i64 {
    60 + 28 * i64::from(on) + 31 * i64::from(off) + 40 * i64::from(red)
}

/// The warnings as one text.
fn warnings(commands: &[LabelledCommand]) -> String {
    learn(commands).warnings.join("\n")
}

#[test]
fn single_actions_are_learned_as_whole_commands() {
    let commands: Vec<LabelledCommand> =
        (0..20).flat_map(|_| [command(163, &[1, 0, 0]), command(201, &[0, 0, 1])]).collect();
    let learned = learn(&commands);
    let kinds = learned.kinds.unwrap();
    assert_eq!(kinds.list.iter().map(Kind::in_words).collect::<Vec<_>>(), ["on", "red"]);
    assert!(learned.fit.actions.is_empty() && learned.warnings.len() == 1, "{:?}", learned.warnings);
    assert!(learned.warnings[0].contains("no labelled command has `off`"), "{:?}", learned.warnings);
    assert!(learned.remarks[0].contains("what other combinations weigh is not known"), "{:?}", learned.remarks);
}

#[test]
fn sizes_that_compound_labels_separate_are_split_and_the_rest_stays_tied() {
    let mut commands: Vec<LabelledCommand> =
        (0..8).flat_map(|_| [command(88, &[1, 0, 0]), command(116, &[2, 0, 0]), command(131, &[0, 1, 1])]).collect();
    commands.push(command(60 + 56 + 71, &[2, 1, 1]));
    let learned = learn(&commands);
    assert_eq!((learned.fit.overhead, learned.fit.actions.len(), learned.fit.actions[0].size), (60, 1, 28));
    let kinds = learned.kinds.unwrap();
    assert_eq!(kinds.list.iter().map(Kind::in_words).collect::<Vec<_>>(), ["off + red", "2 on + off + red"]);
    assert!(learned.remarks[0].contains("`off`, `red` stay tied"), "{:?}", learned.remarks);
}

#[test]
fn actions_of_equal_size_are_named() {
    let commands: Vec<LabelledCommand> = (0..30)
        .map(|at| [at % 3, at / 3 % 3, at % 2])
        .filter(|counts| counts.iter().sum::<u32>() > 0)
        .map(|counts| command(60 + 28 * i64::from(counts[0] + counts[1]) + 40 * i64::from(counts[2]), &counts))
        .collect();
    let remarks = learn(&commands).remarks.join("\n");
    assert!(remarks.contains("`on`, `off` have the same size (28 bytes)"), "{remarks}");
}

#[test]
fn kinds_labelled_once_are_doubted() {
    let commands = [command(163, &[1, 0, 0]), command(164, &[0, 1, 0]), command(201, &[0, 0, 1])];
    assert!(warnings(&commands).contains("each kind of command was labelled only once"));
}

#[test]
fn messages_without_actions_are_a_kind_of_their_own() {
    let mut commands = mixed(40, |counts, _| additive(counts));
    commands.retain(|command| command.counts.iter().any(|count| *count > 0));
    commands.extend([command(30, &[0; 3]), command(30, &[0; 3])]);
    let learned = learn(&commands);
    assert_eq!((learned.fit.overhead, learned.fit.actions[0].size), (60, 28));
    assert_eq!(learned.kinds.unwrap().list[0].in_words(), "no action");
}

#[test]
fn sizes_that_few_labels_leave_open_are_said_with_their_intervals() {
    let commands =
        [command(88, &[1, 0, 0]), command(117, &[2, 0, 0]), command(91, &[0, 1, 0]), command(100, &[0, 0, 1])];
    let text = warnings(&commands);
    assert!(text.contains("leave sizes open: `on` ") && text.contains("are right with a probability of"), "{text}");
}

#[test]
fn additive_sizes_are_not_doubted() {
    let text = warnings(&mixed(60, |counts, at| additive(counts) - i64::from(at % 11 == 0)));
    assert_eq!(text, "");
}

#[test]
fn compressed_bodies_are_named() {
    let size = |counts: [u32; 3], at: u32| {
        let repeats: u32 = counts.iter().map(|n| n.saturating_sub(1)).sum();
        additive(counts) - 21 * i64::from(repeats) - i64::from(at % 8)
    };
    let text = warnings(&mixed(90, size));
    assert!(text.contains("do not add up") && text.contains("permessage-deflate"), "{text}");
}

#[test]
fn padded_messages_are_learned_from_ranges() {
    let learned = learn(&mixed(90, |counts, _| (additive(counts) + 5 + 15) / 16 * 16 + 9));
    assert_eq!(learned.padding, Some(LearnedPadding::Modulo(16)), "{:?}", learned.warnings);
    assert!(learned.remarks[0].contains("padded") && learned.remarks[0].contains("16 bytes"), "{:?}", learned.remarks);
    for (action, size) in learned.fit.actions.iter().zip([28, 31, 40]) {
        assert!((action.size - size).abs() <= 3, "{:?}", learned.fit.actions);
    }
}

#[test]
fn two_apps_with_other_sizes_are_named() {
    let two = |counts: [u32; 3], at: u32| {
        let [on, off, red] = counts.map(i64::from);
        if at % 10 < 3 { 95 + 55 * on + 49 * off + 77 * red } else { additive(counts) }
    };
    let text = warnings(&mixed(120, two));
    assert!(text.contains("do not add up") && text.contains("two apps"), "{text}");
}

#[test]
fn two_forms_of_message_are_named() {
    let text = warnings(&mixed(120, |counts, at| additive(counts) + if at % 10 < 3 { 47 } else { 0 }));
    assert!(text.is_empty() || text.contains("47 bytes longer"), "{text}");
}

#[test]
fn devices_grouped_by_their_action_are_named_with_both_sizes() {
    let grouped = |counts: [u32; 3], at: u32| {
        let bytes = [(115, 22), (116, 22), (140, 25)].iter().zip(counts);
        let bytes = bytes.map(|((first, further), count)| match i64::from(count) {
            0 => 0,
            count => first + further * (count - 1),
        });
        124 + bytes.sum::<i64>() + i64::from(at.is_multiple_of(7))
    };
    let with_wrong_label = |counts, at| grouped(counts, at) + if at == 3 { 900 } else { 0 };
    for commands in [mixed(110, grouped), mixed(110, with_wrong_label)] {
        let said = warnings(&commands);
        assert!(said.contains("devices are grouped by their action"), "{said}");
        assert!(said.contains("`on` 115 and 22 bytes, `off` 116 and 22 bytes"), "{said}");
    }
}

/// Labels may lie as close to a header that is always as long as to the message behind it.
#[test]
fn sizes_of_headers_follow_no_labels() {
    assert!(!learn(&mixed(60, |_, _| 209)).follow_labels);
    assert!(learn(&mixed(60, |counts, _| additive(counts))).follow_labels);
}

#[test]
fn messages_of_the_same_actions_that_differ_are_laid_to_texts_or_to_compression() {
    let total = |counts: [u32; 3]| i64::from(counts.iter().sum::<u32>());
    let varying = |size: &dyn Fn([u32; 3], u32) -> i64| varying(&mixed(90, size)).map(|fault| fault.words);
    let name = |at: u32| i64::from(at * 7 % 11);
    let texts = varying(&|counts, at| additive(counts) + total(counts) * name(at)).unwrap();
    assert!(texts.contains("texts of varying length") && !texts.contains("zlib"), "{texts}");
    let compressed = varying(&|counts, at| 14 + 4 * total(counts) + name(at)).unwrap();
    assert!(compressed.contains("zlib, gzip") && compressed.contains("takes 4 bytes"), "{compressed}");
    // Later messages find nearly all of their bytes in the window.
    let settled = varying(&|counts, at| 14 + 4 * total(counts) + if at % 4 == 0 { name(at) } else { 0 }).unwrap();
    assert!(settled.contains("zlib, gzip"), "{settled}");
    let learned = learn(&mixed(90, |counts, at| 14 + 4 * total(counts) + name(at)));
    assert!(learned.without_sums.is_some_and(|cause| cause.contains("zlib, gzip")) && !learned.hold);
    assert!(!learned.warnings.join(" ").contains("label"), "{:?}", learned.warnings);
    // A counter that gains a digit, and a wrong label in ten.
    assert_eq!(varying(&|counts, at| additive(counts) + i64::from(at > 40)), None);
    assert_eq!(varying(&|counts, at| additive(counts) + 90 * i64::from(at % 10 == 3)), None);
}

fn label(time_s: i64, counts: [u32; 2]) -> Label {
    Label { time_ns: time_s * 1_000_000_000, counts: counts.to_vec(), line: 1 }
}

/// Commands every ten seconds; those at the given places have a second label a second later and its bytes.
fn sentence(merged: &[i64]) -> Option<String> {
    let counts = |at: i64| [(at % 3) as u32, 1 + (at / 3 % 2) as u32];
    let size = |counts: [u32; 2]| 60 + 28 * i64::from(counts[0]) + 35 * i64::from(counts[1]);
    let names = ["on".to_owned(), "off".to_owned()];
    let (mut rows, mut matching, mut sizes_of, mut commands) =
        (Vec::new(), Matching::default(), Vec::new(), Vec::new());
    for at in 0..40 {
        let second = if merged.contains(&at) { size([1, 1]) } else { 0 };
        matching.pairs.push((rows.len(), commands.len()));
        sizes_of.push(size(counts(at)) + second);
        rows.push(label(10 * at, counts(at)));
        commands.push(LabelledCommand {
            sizes: [size(counts(at)) + second; 2],
            counts: counts(at).to_vec(),
            replies: 0,
            reply_bytes: 0,
            single_replies: None,
            has_own_replies: true,
        });
        if second > 0 {
            matching.missed.push(rows.len());
            rows.push(label(10 * at + 1, [1, 1]));
        }
    }
    let sizes = learn_sizes(FitMethod::Robust, &names, &commands).unwrap();
    assert_eq!(sizes.fit.outliers.len(), merged.len());
    let labels = Labels { actions: names.to_vec(), rows, ..Labels::default() };
    merged_messages(&labels, &matching, &sizes, &sizes_of, 2_000_000_000)
}

#[test]
fn records_of_two_messages_are_named() {
    assert!(sentence(&[3, 9, 21]).unwrap().starts_with("3 commands are as long as two"));
    assert_eq!(sentence(&[]), None);
    assert_eq!(sentence(&[7]), None, "one may be so by chance");
}
