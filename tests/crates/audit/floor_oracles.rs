//! The floor of random policies against a solver of linear programmes.

use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use proptest::prelude::*;
use sizeleak_audit::padding::{Draw, FloorOf, Goal, PaddingFloor, PaddingPolicy};
use sizeleak_inference::space::CommandGroup;

/// A row of the programme: commands that are treated alike.
struct Row {
    bytes: u64,
    /// The greatest prior among them.
    greatest: f64,
    probability: f64,
}

/// The programme as it is written: rows of P sum to 1, and the expected bytes added are within the budget.
fn least_vulnerability(rows: &[Row], sizes: &[u64], budget: f64) -> f64 {
    let mut variables = ProblemVariables::new();
    let greatest: Vec<Variable> = sizes.iter().map(|_| variables.add(variable().min(0.0))).collect();
    let mut constraints = Vec::new();
    let mut bytes = Expression::from(0.0);
    for row in rows {
        let mut all = Expression::from(0.0);
        for (size, greatest) in sizes.iter().zip(&greatest).filter(|(size, _)| **size >= row.bytes) {
            let sent = variables.add(variable().min(0.0));
            all += sent;
            bytes += row.probability * (size - row.bytes) as f64 * sent;
            constraints.push(constraint!(row.greatest * sent <= *greatest));
        }
        constraints.push(constraint!(all == 1.0));
    }
    constraints.push(constraint!(bytes <= budget));
    let sum: Expression = greatest.iter().sum();
    let problem = constraints.into_iter().fold(variables.minimise(&sum).using(microlp), SolverModel::with);
    problem.solve().unwrap().eval(&sum)
}

fn sizes_of(groups: &[CommandGroup]) -> Vec<u64> {
    let mut sizes: Vec<u64> = groups.iter().map(|group| group.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Each command is a row; or all commands of a size.
fn rows(groups: &[CommandGroup], floor_of: FloorOf) -> Vec<Row> {
    let of_group = |group: &CommandGroup| Row {
        bytes: group.bytes,
        greatest: group.probability,
        probability: group.commands * group.probability,
    };
    match floor_of {
        FloorOf::AnyPolicy => {
            let each = |group: &CommandGroup| {
                let group = *group;
                (0..group.commands as usize).map(move |_| Row {
                    bytes: group.bytes,
                    greatest: group.probability,
                    probability: group.probability,
                })
            };
            groups.iter().flat_map(each).collect()
        }
        FloorOf::SizePolicies => {
            let of_size = |size: u64| {
                let of_size = || groups.iter().filter(move |group| group.bytes == size).map(of_group);
                Row {
                    bytes: size,
                    greatest: of_size().map(|row| row.greatest).fold(0.0, f64::max),
                    probability: of_size().map(|row| row.probability).sum(),
                }
            };
            sizes_of(groups).into_iter().map(of_size).collect()
        }
    }
}

fn groups() -> impl Strategy<Value = Vec<CommandGroup>> {
    prop::collection::vec((1_u64..12, 1_u32..4, 1_u32..60), 1..8).prop_map(|groups| {
        let all: u32 = groups.iter().map(|(_, commands, weight)| commands * weight).sum();
        let group = |(bytes, commands, weight): &(u64, u32, u32)| CommandGroup {
            bytes: *bytes,
            commands: f64::from(*commands),
            probability: f64::from(*weight) / f64::from(all),
        };
        groups.iter().map(group).collect()
    })
}

/// The vulnerability and the expected bytes added of a policy, summed command by command.
fn measured(groups: &[CommandGroup], policy: &PaddingPolicy) -> (f64, f64) {
    let (mut vulnerability, mut bytes) = (0.0, 0.0);
    for size in 0..40 {
        let at_size = |group: &CommandGroup| {
            let padded = policy.padded_sizes(group.bytes);
            padded.iter().filter(|padded| padded.bytes == size).map(|padded| padded.probability).sum::<f64>()
        };
        vulnerability += groups.iter().map(|group| group.probability * at_size(group)).fold(0.0, f64::max);
        let added = |group: &CommandGroup| size.saturating_sub(group.bytes) as f64;
        bytes +=
            groups.iter().map(|group| group.commands * group.probability * at_size(group) * added(group)).sum::<f64>();
    }
    (vulnerability, bytes)
}

fn floor_of() -> impl Strategy<Value = FloorOf> {
    prop_oneof![Just(FloorOf::AnyPolicy), Just(FloorOf::SizePolicies)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_floor_is_the_minimum_of_the_linear_programme(
        groups in groups(), floor_of in floor_of(), budget in 0.01_f64..6.0, is_everywhere: bool,
    ) {
        let mut floor = PaddingFloor::new(&groups, floor_of);
        if is_everywhere {
            floor.refine(1e-7);
        } else {
            floor.refine_at(Goal::Budget(budget), 1e-7);
        }
        let least = least_vulnerability(&rows(&groups, floor_of), &sizes_of(&groups), budget);
        let found = floor.vulnerability(budget);
        prop_assert!(found <= least + 1e-9 && found >= least - 1e-5, "{} {}", found, least);
        floor.refine_at(Goal::Target(least + 1e-5), 1e-7);
        let bytes = floor.added_bytes(least + 1e-5).unwrap();
        prop_assert!(bytes <= budget + 1e-9, "{} {}", bytes, budget);
        // A little more is enough.
        let enough = bytes + 2e-7 * floor.most_added_bytes() + 1e-6;
        let least_then = least_vulnerability(&rows(&groups, floor_of), &sizes_of(&groups), enough);
        prop_assert!(least_then <= least + 1e-5 + 1e-8, "{} {}", least_then, least);
    }

    /// Sizes between those of commands do not help.
    #[test]
    fn no_further_sizes_are_needed(groups in groups(), budget in 0.01_f64..6.0) {
        let rows = rows(&groups, FloorOf::AnyPolicy);
        let least = least_vulnerability(&rows, &sizes_of(&groups), budget);
        let with_further = least_vulnerability(&rows, &(1..16).collect::<Vec<u64>>(), budget);
        prop_assert!((least - with_further).abs() < 1e-9);
    }

    #[test]
    fn the_best_random_table_reaches_the_floor_of_its_kind(groups in groups(), budget in 0.01_f64..6.0) {
        let mut floor = PaddingFloor::new(&groups, FloorOf::SizePolicies);
        floor.refine(1e-7);
        let policy = floor.policy(budget, Draw::Keyed);
        policy.check().unwrap();
        let (vulnerability, bytes) = measured(&groups, &policy);
        prop_assert!(bytes <= budget + 1e-5, "{} {}", bytes, budget);
        prop_assert!((vulnerability - floor.vulnerability(budget)).abs() < 1e-5);
    }
}
