use proptest::prelude::*;

use super::*;

fn class(missing: f64, sizes: &[(i64, u64)]) -> ReplyClass {
    ReplyClass { missing, unseen: 0.0, sizes: sizes.to_vec() }
}

/// Actions `on` and `off` have a reply of 90 bytes, `dim` one of 95 or 96 bytes, `white` two, `quiet` none.
fn home() -> SingleReplies {
    SingleReplies {
        merged: 0.02,
        shared: 0,
        foreign: 0.01,
        foreign_sizes: vec![(160, 3)],
        per_command: vec![0, 0],
        per_action: vec![vec![1, 0], vec![1, 0], vec![0, 1], vec![1, 1], vec![0, 0]],
        classes: vec![class(0.01, &[(90, 50)]), class(0.05, &[(95, 30), (96, 10)])],
    }
}

fn ln_likelihood(model: &SingleReplies, records: &[i64], counts: &[u32]) -> f64 {
    let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
    SeenReplies::new(model, &ranges).ln_likelihood(&model.class_counts(counts.iter().copied().enumerate()))
}

/// A command's replies as drawn from a model, by a small generator of its own.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.next() * f64::from(end)) as u32
    }

    fn size(&mut self, class: &ReplyClass) -> i64 {
        let all: u64 = class.sizes.iter().map(|(_, times)| times).sum();
        let mut at = self.next() * all as f64;
        for (size, times) in &class.sizes {
            at -= *times as f64;
            if at < 0.0 {
                return *size;
            }
        }
        class.sizes[0].0
    }

    fn replies(&mut self, model: &SingleReplies, counts: &[u32]) -> Vec<i64> {
        let mut sizes = Vec::new();
        for (class, number) in model.classes.iter().zip(model.class_counts(counts.iter().copied().enumerate())) {
            for _ in 0..number {
                if self.next() >= class.missing {
                    sizes.push(self.size(class));
                }
            }
        }
        for at in (1..sizes.len()).rev() {
            sizes.swap(at, self.below(at as u32 + 1) as usize);
        }
        let mut records: Vec<i64> = Vec::new();
        for size in sizes {
            match records.last_mut() {
                Some(last) if self.next() < model.merged => *last += size - model.shared,
                _ => records.push(size),
            }
        }
        if self.next() < model.foreign {
            records.insert(self.below(records.len() as u32 + 1) as usize, 160);
        }
        records
    }

    fn commands(&mut self, model: &SingleReplies, number: usize) -> Vec<LabelledCommand> {
        let actions = model.per_action.len();
        let mut command = || {
            let mut counts = vec![0; actions];
            for _ in 0..=self.below(5) {
                counts[self.below(actions as u32) as usize] += 1;
            }
            let replies = self.replies(model, &counts);
            LabelledCommand {
                sizes: [0; 2],
                counts,
                replies: replies.len() as u32,
                reply_bytes: replies.iter().sum(),
                single_replies: Some(replies),
                has_own_replies: true,
            }
        };
        (0..number).map(|_| command()).collect()
    }
}

#[test]
fn replies_of_each_action_are_learned() {
    let truth = home();
    let commands = Draws(1).commands(&truth, 400);
    let learned = learn_single_replies(&commands, 5).unwrap();
    assert_eq!(learned.per_action, truth.per_action, "{learned:?}");
    assert_eq!(learned.per_command, [0, 0]);
    let sizes = |model: &SingleReplies| -> Vec<Vec<i64>> {
        model.classes.iter().map(|class| class.sizes.iter().map(|(size, _)| *size).collect()).collect()
    };
    assert_eq!(sizes(&learned), sizes(&truth));
    assert!((learned.merged - 0.02).abs() < 0.015 && learned.classes.iter().all(|class| class.missing < 0.08));
    assert!(learned.foreign_sizes.iter().any(|(size, _)| *size == 160), "{learned:?}");
}

#[test]
fn replies_of_one_size_are_as_many_as_are_sent() {
    for (number, missing) in [(2, 0.0), (3, 0.0), (4, 0.0), (2, 0.04)] {
        let truth = SingleReplies {
            merged: 0.0,
            foreign: 0.0,
            foreign_sizes: vec![],
            per_command: vec![0],
            per_action: vec![vec![number], vec![0]],
            classes: vec![class(missing, &[(30, 50)])],
            ..home()
        };
        let learned = learn_single_replies(&Draws(7).commands(&truth, 100), 2).unwrap();
        assert_eq!(learned.per_action, truth.per_action, "{learned:?}");
        assert!(learned.classes[0].missing < missing + 0.02, "{learned:?}");
    }
}

#[test]
fn bytes_that_replies_share_are_learned() {
    let truth = SingleReplies { merged: 0.1, shared: 40, ..home() };
    let learned = learn_single_replies(&Draws(5).commands(&truth, 400), 5).unwrap();
    assert_eq!((learned.shared, &learned.per_action), (40, &truth.per_action), "{learned:?}");
    assert!((learned.merged - 0.1).abs() < 0.03);
}

#[test]
fn a_foreign_size_is_not_two_replies_that_share_bytes() {
    // Telemetry of 91 bytes, as two replies of 90 would have if they shared 89.
    let mut draws = Draws(9);
    let mut commands = draws.commands(&SingleReplies { merged: 0.0, foreign: 0.0, ..home() }, 200);
    for command in commands.iter_mut().step_by(12) {
        command.single_replies.iter_mut().for_each(|replies| replies.push(91));
    }
    let learned = learn_single_replies(&commands, 5).unwrap();
    assert_eq!((learned.shared, &learned.per_action), (0, &home().per_action), "{learned:?}");
    assert!(learned.foreign_sizes.iter().any(|(size, _)| *size == 91), "{learned:?}");
}

#[test]
fn few_commands_leave_possible_what_they_did_not_show() {
    let commands = Draws(6).commands(&SingleReplies { merged: 0.0, foreign: 0.0, ..home() }, 60);
    let learned = learn_single_replies(&commands, 5).unwrap();
    assert!((0.0005..0.03).contains(&learned.merged), "{learned:?}");
    let better = |records: &[i64], true_counts: &[u32], other: &[u32]| {
        ln_likelihood(&learned, records, true_counts) - ln_likelihood(&learned, records, other)
    };
    assert!(better(&[180], &[2, 0, 0, 0, 0], &[0, 0, 1, 0, 0]) > 3.0, "two replies in one record");
    assert!(better(&[90, 90], &[0, 1, 0, 0, 0], &[0, 0, 0, 0, 1]) > 3.0, "another device's report");
    // A size between those of `dim`, or beside them, may come too.
    assert!(ln_likelihood(&learned, &[97], &[0, 0, 1, 0, 0]) > ln_likelihood(&learned, &[97], &[1, 0, 0, 0, 0]) + 2.0);
}

#[test]
fn few_commands_that_leave_open_who_replied_teach_nothing() {
    // `quiet` occurs once, beside others.
    let mut commands = Draws(7).commands(&home(), 30);
    for command in &mut commands {
        command.counts[4] = 0;
    }
    commands[0].counts = vec![2, 0, 0, 0, 1];
    assert_eq!(learn_single_replies(&commands, 5), None);
}

#[test]
fn a_reply_to_the_command_itself_is_learned() {
    let truth = SingleReplies {
        per_command: vec![0, 0, 1],
        per_action: home().per_action.into_iter().map(|sent| [sent, vec![0]].concat()).collect(),
        classes: [home().classes, vec![class(0.01, &[(33, 9)])]].concat(),
        ..home()
    };
    let learned = learn_single_replies(&Draws(2).commands(&truth, 400), 5).unwrap();
    assert_eq!(learned.per_command.iter().sum::<u32>(), 1, "{learned:?}");
    let command = learned.per_command.iter().position(|number| *number == 1).unwrap();
    assert_eq!(learned.classes[command].sizes.iter().max_by_key(|size| size.1).unwrap().0, 33);
}

#[test]
fn replies_that_do_not_depend_on_actions_tell_nothing() {
    let alike = SingleReplies { per_command: vec![1, 0], per_action: vec![vec![0, 0]; 5], ..home() };
    assert_eq!(learn_single_replies(&Draws(3).commands(&alike, 300), 5), None);
    let foreign = SingleReplies { per_command: vec![0, 0], foreign: 0.8, ..alike };
    assert_eq!(learn_single_replies(&Draws(4).commands(&foreign, 300), 5), None);
    let unknown: Vec<LabelledCommand> = Draws(1)
        .commands(&home(), 100)
        .into_iter()
        .map(|command| LabelledCommand { single_replies: None, ..command })
        .collect();
    assert_eq!(learn_single_replies(&unknown, 5), None);
    assert_eq!(learn_single_replies(&[], 5), None);
}

proptest! {
    #[test]
    fn learned_models_are_valid(
        rows in prop::collection::vec(
            (prop::collection::vec(0u32..3, 3), prop::collection::vec(0i64..1 << 20, 0..6)), 0..40)
    ) {
        let command = |(counts, replies): (Vec<u32>, Vec<i64>)| LabelledCommand {
            sizes: [0; 2], counts, replies: replies.len() as u32, reply_bytes: 0, single_replies: Some(replies), has_own_replies: true,
        };
        let commands: Vec<LabelledCommand> = rows.into_iter().map(command).collect();
        if let Some(learned) = learn_single_replies(&commands, 3) {
            prop_assert_eq!(learned.fault(3), None);
        }
    }
}
