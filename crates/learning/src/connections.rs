//! Commands that travel on two connections at once, each with a part of the actions: the sizes of one say little of them.

use std::collections::BTreeSet;

use sizeleak_frame::Direction;
use sizeleak_labels::{LabelFile, Tolerance, by_chance};
use sizeleak_model::LabelledCommand;

use crate::observed_commands::{ObservedCommand, ObservedService, command_times};
use crate::size_basis;
use crate::size_doubts::{agrees, fit_of_separate};

/// Messages of one command are as close to each other, in nanoseconds.
const CLOSE_NS: u64 = 200_000_000;

/// Fewer pairs of messages say nothing.
const MIN_PAIRS: usize = 4;

/// Messages are taken for those of one command below this probability of chance.
const SIGNIFICANT: f64 = 1e-3;

/// A sentence if labelled commands are pairs of messages to two services, beyond chance, and together sums of actions.
pub(crate) fn on_two_connections(
    labels: &LabelFile,
    commands: &[ObservedCommand],
    services: &[ObservedService],
    tolerance: Tolerance,
) -> Option<String> {
    let sent = commands.iter().filter(|one| one.command.direction == Direction::ToGateway && one.service.is_some());
    let mut messages: Vec<ObservedCommand> = sent.cloned().collect();
    messages.sort_by_key(|one| one.command.time_ns);
    let matching = labels.matching(&command_times(&messages), tolerance).ok()?;
    let labelled: BTreeSet<usize> = matching.pairs.iter().map(|(_, at)| *at).collect();
    let partner = |at: usize| {
        let own = messages.get(at)?;
        let beside = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten().filter(|at| !labelled.contains(at));
        beside.filter_map(|at| messages.get(at)).find(|other| {
            other.service != own.service && other.command.time_ns.abs_diff(own.command.time_ns) <= CLOSE_NS
        })
    };
    let of_labels: Vec<(usize, &ObservedCommand, Option<&ObservedCommand>)> =
        matching.pairs.iter().filter_map(|(row, at)| Some((*row, messages.get(*at)?, partner(*at)))).collect();
    let pairs = of_labels.iter().filter_map(|(_, own, other)| Some([own.service?, (*other)?.service?]));
    let pairs: Vec<[usize; 2]> = pairs.collect();
    let [first, second] = pairs.first().map(|[one, other]| [*one.min(other), *one.max(other)])?;
    let of_service = |service| messages.iter().filter(|one| one.service == Some(service)).count();
    let most = (0..services.len()).map(of_service).max()?;
    let span = messages.last()?.command.time_ns.abs_diff(messages.first()?.command.time_ns);
    // As many messages of other services at any times would be as close with this probability.
    let others = messages.len().saturating_sub(most) as f64;
    let near = 1.0 - (-2.0 * others * CLOSE_NS as f64 / span.max(1) as f64).exp();
    if pairs.len() < MIN_PAIRS || by_chance(pairs.len(), of_labels.len(), near) > SIGNIFICANT {
        return None;
    }
    let basis = size_basis::choose_basis(&messages, None).basis;
    // What a command needs besides its actions depends on which of the two it takes; a fit has no size of 0 or less.
    let are_sums = [None, Some(first), Some(second)].into_iter().any(|longer| {
        let together = of_labels.iter().filter_map(|(row, own, other)| {
            let mut counts = labels.labels().rows.get(*row)?.counts.clone();
            counts.push(other.is_some().into());
            counts.extend(longer.map(|longer| u32::from(other.is_none() && own.service == Some(longer))));
            let command = size_basis::labelled(&basis, &own.command, &counts);
            let more = other.map_or([0; 2], |other| size_basis::sizes(&basis, &other.command));
            let sizes = [0, 1].map(|end| command.sizes[end].saturating_add(more[end]));
            Some(LabelledCommand { sizes, ..command })
        });
        let extra = ["both", "longer"].iter().take(1 + usize::from(longer.is_some())).map(ToString::to_string);
        let names: Vec<String> = labels.labels().actions.iter().cloned().chain(extra).collect();
        fit_of_separate(&names, &together.collect::<Vec<_>>()).is_some_and(|(fit, commands)| agrees(&fit, &commands))
    });
    if !are_sums {
        return None;
    }
    Some(format!(
        "{} of {} labelled commands travel on two connections at once ({}, {}), each with a part of the actions: record \
         the devices of each with an inventory and labels of their own",
        pairs.len(),
        of_labels.len(),
        services.get(first)?,
        services.get(second)?
    ))
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Flow, Transport};
    use sizeleak_labels::{Label, Labels};

    use super::*;
    use crate::observed_commands::ObservedFlows;

    const SECOND: i64 = 1_000_000_000;

    /// Forty commands, one each second, with a part for each of two services; the messages of each have the sizes that
    /// `size` gives for the part, its service and the number of the command.
    fn found(parts: impl Fn(u32) -> [[u32; 2]; 2], size: impl Fn([u32; 2], usize, u32) -> u64) -> Option<String> {
        let mut flows = ObservedFlows::default();
        for (flow, service) in [(1, "198.51.100.7:443"), (2, "198.51.100.8:443")] {
            flows.add_flow(&Flow::new(flow, "192.0.2.1".parse().unwrap(), service.parse().unwrap(), Transport::Tcp));
        }
        let (mut rows, mut commands) = (Vec::new(), Vec::new());
        for number in 0..40 {
            let parts = parts(number);
            let time_ns = i64::from(number) * SECOND;
            let counts = vec![parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]];
            rows.push(Label { time_ns, counts, line: u64::from(number) + 2 });
            for (service, part) in parts.into_iter().enumerate().filter(|(_, part)| part.iter().sum::<u32>() > 0) {
                let time_ns = time_ns + [5_000_000, 10_000_000][service];
                let size = size(part, service, number);
                let command = Command { time_ns, flow: 1 + service as u64, size, records: 1, ..Command::default() };
                let command = Command { direction: Direction::ToGateway, ..command };
                commands.push(ObservedCommand { command, cipher_suite: None, service: Some(service) });
            }
        }
        let actions = vec!["on".to_owned(), "off".to_owned()];
        let labels = Labels { actions, rows, is_to_the_minute: false, notes: Vec::new() };
        let labels = LabelFile::of_answers("labels", labels).unwrap();
        on_two_connections(&labels, &commands, &flows.services().0, Tolerance::USUAL)
    }

    /// Of what a command has, some is on each connection, or all on one.
    fn shared(number: u32) -> [[u32; 2]; 2] {
        [[1 + number % 3, number % 2], [number % 4, (number / 4) % 2]]
    }

    #[test]
    fn parts_on_two_connections_are_named_where_both_together_are_sums() {
        for longer in [0, 7] {
            let sums = |part: [u32; 2], service: usize, _: u32| {
                60 + longer * service as u64 + u64::from(30 * part[0] + 41 * part[1])
            };
            let said = found(shared, sums).unwrap();
            assert!(said.contains("35 of 40 labelled commands") && said.contains("198.51.100.7:443, 198.51"), "{said}");
        }
        // Without sums another cause is likelier; with a connection alone there is nothing to share.
        let texts = |part: [u32; 2], service: usize, number: u32| {
            60 + u64::from(30 * part[0] + 41 * part[1]) + u64::from(number * 17 % 53) + service as u64
        };
        assert_eq!(found(shared, texts), None);
        let sums = |part: [u32; 2], _: usize, _: u32| 60 + u64::from(30 * part[0] + 41 * part[1]);
        assert_eq!(found(|number| [shared(number)[0], [0, 0]], sums), None);
        // State that is told to another service with each command is no part of it.
        let state = |part: [u32; 2], service: usize, number: u32| {
            if service == 1 { 300 + u64::from(number * 29 % 97) } else { 60 + u64::from(30 * part[0] + 41 * part[1]) }
        };
        assert_eq!(found(|number| [shared(number)[0], [0, 1]], state), None);
    }
}
