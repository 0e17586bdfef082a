//! Commands that recur, beside habit.

use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{Candidate, Correction, HabitFactors};
use sizeleak_model::Model;

use super::lists::{LEARNED, answered, correction, decompose};

/// `on` and `off` of one device are as probable, but `on` twice recurs.
fn model(recurring: &str) -> Model {
    let text = format!(
        "schema = 2\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 40\n\
         [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
         [prior]\nnumbers = [0.5, 0.3, 0.2]\ndecay = 0.5\nshares = [0.5, 0.5]\nconcentration = 1e9\n{recurring}\
         {LEARNED}"
    );
    Model::from_toml(&text).unwrap()
}

fn candidates(model: Model, size: u64, limit: usize) -> (Vec<(String, f64)>, u64, f64) {
    let mut decomposer = Decomposer::new(model, limit).unwrap();
    let (found, said) = decompose(&mut decomposer, [size; 2], &[(0, 0.75), (1, 0.25)]);
    assert!(said.is_empty(), "{said:?}");
    let text = |candidate: &Candidate| (format!("{:?}", candidate.actions), candidate.probability);
    (found.candidates.iter().map(text).collect(), found.candidate_count, found.size_probability.unwrap())
}

#[test]
fn recurring_command_has_its_share_beside_habit() {
    let (by_habit, count, of_size) = candidates(model(""), 140, 10);
    assert_eq!((by_habit.len(), count), (3, 3));
    assert!((of_size - 0.3 * 0.75).abs() < 1e-9);
    let (found, count, of_size) = candidates(model("recurring = [{ counts = [2, 0], share = 0.1 }]\n"), 140, 10);
    assert_eq!(count, 3);
    let all = (0.9 * 0.3 + 0.1) * 0.75;
    assert!((of_size - all).abs() < 1e-9);
    assert_eq!(found[0].0, r#"{"on": 2}"#);
    assert!((found[0].1 - (0.9 * 0.3 * 0.25 + 0.1) * 0.75 / all).abs() < 1e-9, "{found:?}");
    assert!((found.iter().map(|one| one.1).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn other_sizes_and_what_the_inventory_forbids_are_as_before() {
    let of_habit = candidates(model(""), 100, 10).0;
    let (found, _, of_size) = candidates(model("recurring = [{ counts = [2, 0], share = 0.1 }]\n"), 100, 10);
    assert_eq!(found, of_habit);
    assert!((of_size - 0.9 * 0.5 * 0.75).abs() < 1e-9);
    let beyond = "recurring = [{ counts = [4, 0], share = 0.1 }]\n";
    assert_eq!(candidates(model(beyond), 140, 10), candidates(model(""), 140, 10));
}

#[test]
fn recurring_command_is_listed_where_the_list_is_cut() {
    let recurring = "recurring = [{ counts = [0, 3], share = 0.2 }]\n";
    let (found, count, _) = candidates(model(recurring), 180, 1);
    assert_eq!((found.len(), count, found[0].0.as_str()), (1, 4, r#"{"off": 3}"#));
    assert!(found[0].1 > 0.5);
}

#[test]
fn recurring_commands_take_their_share_from_the_learned_habits_alone() {
    // A single device, so that commands have one action.
    let mut model = model("recurring = [{ counts = [1, 0], share = 0.8 }]\n");
    model.inventory.as_mut().unwrap().devices[0].count = 1;
    model.prior.as_mut().unwrap().numbers = vec![1.0];
    let mut decomposer = Decomposer::new(model, 10).unwrap();
    // Other habits are as probable, by which there is `off` alone.
    let habits = HabitFactors { weight: 0.5, actions: [0.0, 2.0].into(), numbers: [1.0].into() };
    let unshifted = correction([100; 2], &[(0, 1.0)]);
    let (found, _) = answered(&mut decomposer, Correction { habits: [habits].into_iter().collect(), ..unshifted });
    let probabilities: Vec<f64> = found.candidates.iter().map(|one| one.probability).collect();
    let (off, on) = (0.5 * 0.2 * 0.5 + 0.5, 0.5 * (0.2 * 0.5 + 0.8));
    assert!((probabilities[0] - off).abs() < 1e-9 && (probabilities[1] - on).abs() < 1e-9, "{probabilities:?}");
}
