//! How often an observer who knows the model guesses right.

use sizeleak_audit::leakage::{Audit, ModelObserver, NamedSecrets, with_inventory};
use sizeleak_inference::space::{CommandSpace, Premises, PriorName};
use sizeleak_model::{Inventory, Model};

const HOME: &str = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\", \"dim\"]\n";

fn bundled() -> Model {
    let model = Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap();
    with_inventory(model, Inventory::from_toml(HOME).unwrap()).unwrap().0
}

/// All commands of up to four actions.
fn commands(actions: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..actions {
        all = all.into_iter().flat_map(|counts| (0..=4).map(move |n| [&counts[..], &[n]].concat())).collect();
    }
    all.retain(|counts: &Vec<u32>| (1..=4).contains(&counts.iter().sum::<u32>()));
    all
}

#[test]
fn guesses_are_right_about_all_commands_as_often_as_v_says() {
    let model = bundled();
    for (prior, decay) in [(PriorName::Learned, None), (PriorName::Devices, Some(0.7)), (PriorName::Flat, None)] {
        let space = CommandSpace::new(&model, &Premises { prior, decay }).unwrap();
        let mut observer = ModelObserver::new(&space, &model).unwrap();
        let (mut all, mut named) = (0.0, NamedSecrets::default());
        for counts in commands(model.actions.len()) {
            let (prior, expected) = (space.probability(&counts), observer.expected(&counts));
            all += prior;
            named.command += prior * expected.command;
            named.number += prior * expected.number;
        }
        let wanted = observer.named();
        let pairs = [(all, 1.0), (named.command, wanted.command), (named.number, wanted.number)];
        assert!(pairs.iter().all(|(one, other)| (one - other).abs() < 1e-9), "{prior:?}: {pairs:?}");
        let audit = Audit::new(&model, &Premises { prior, decay }).unwrap();
        assert!((wanted.command - audit.by_size.command.named).abs() < 1e-12);
    }
}

#[test]
fn commands_and_sizes_that_the_model_does_not_know_are_never_named() {
    let model = bundled();
    let space = CommandSpace::new(&model, &Premises { prior: PriorName::Flat, decay: None }).unwrap();
    let mut observer = ModelObserver::new(&space, &model).unwrap();
    let dims = [0, 0, 3];
    assert!(!observer.knows_command(&dims) && observer.expected(&dims) == NamedSecrets::default());
    assert!(!observer.knows_command(&[0, 0, 0]) && !observer.knows_size(1));
    assert_eq!(observer.right(&[1, 0, 0], 1), NamedSecrets::default());
    assert_eq!(observer.right(&[u32::MAX, u32::MAX, 1, 1], 100), NamedSecrets::default());
    assert!(observer.expected(&[1, 0, 0]).number > 0.5);
}
