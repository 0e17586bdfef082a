//! Rates of days that are learned and forgotten.

use super::*;

const NAMES: [&str; 4] = ["on", "off", "dim", "red"];

fn actions(name: &str) -> Actions {
    std::iter::once((Arc::from(name), 1)).collect()
}

/// Six commands, most of which may have been another one as well.
fn commands(rates: &mut Rates, day: i64) -> Vec<LearnedCommand> {
    let ids = NAMES.map(|name| rates.id(&actions(name)));
    let command = |at: usize| {
        let place = (day as usize * 5 + at * at) % ids.len();
        let (one, other) = (ids[place], ids[(place + at) % ids.len()]);
        let weights = if one == other { vec![(one, 1.0)] } else { vec![(one, 0.7), (other, 0.3)] };
        let mut class: Vec<CommandId> = weights.iter().map(|(id, _)| *id).collect();
        class.sort_unstable();
        let previous = [Some(ids[(place + 1) % ids.len()]), Some(ids[at % ids.len()])];
        LearnedCommand {
            at: LocalTime { day, second: 30_000.0 + 700.0 * at as f64 },
            context: Context { previous, pause: 150.0 * at as f64 },
            weights,
            classes: vec![class],
        }
    };
    (0..6).map(command).collect()
}

fn each(days: &[(i64, Vec<LearnedCommand>)]) -> impl Iterator<Item = (i64, &[LearnedCommand])> {
    days.iter().map(|(day, commands)| (*day, &commands[..]))
}

/// To the last bit, in all that is asked of them.
fn assert_alike(one: &Rates, other: &Rates) {
    let bits = |rates: &Rates| -> Vec<u64> {
        let context = Context { previous: [Some(1), Some(0)], pause: 200.0 };
        let at = [29_000.0, 30_700.0, 33_000.0].map(|second| LocalTime { day: 31, second });
        let of_command = |name: &&str| {
            let (own, rarest) = (actions(name), rates.rarest_action(&actions(name)));
            at.map(|at| rates.rate(&own, at, &context)).into_iter().chain([rarest]).collect::<Vec<f64>>()
        };
        let of_day = at.map(|at| [rates.any(31, at.bin()), rates.sessions(31, at.bin()), rates.total, rates.days()]);
        let all = NAMES.iter().flat_map(of_command).chain(of_day.into_iter().flatten());
        all.map(f64::to_bits).collect()
    };
    assert_eq!(bits(one), bits(other));
    for id in 0..NAMES.len() as CommandId {
        assert_eq!(one.class(id), other.class(id));
    }
}

#[test]
fn days_that_are_forgotten_leave_nothing() {
    let [mut all, mut rest, mut none] = [(); 3].map(|()| Rates::new(Components::ALL));
    let days: Vec<(i64, Vec<LearnedCommand>)> = (0..30).map(|day| (day, commands(&mut all, day))).collect();
    for rates in [&mut rest, &mut none] {
        commands(rates, 0);
    }
    let (old, new) = days.split_at(20);
    all.learn_days(each(&days));
    all.forget_days(each(old));
    rest.learn_days(each(new));
    assert_alike(&all, &rest);
    all.forget_days(each(new));
    assert!(all.is_mostly_forgotten());
    none.learn_days([]);
    assert_alike(&all, &none);
}
