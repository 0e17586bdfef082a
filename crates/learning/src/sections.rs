//! Which services the labels are about, and a section of the model for each group of services with the same sizes.
//!
//! The same action has other sizes on another connection: of a cloud service and of a local app, or of two apps. And
//! most services of a gateway have nothing to do with the labels. A service belongs to the labels if they match its
//! commands more often than by chance. Services whose labelled commands fit a section's sizes join it; others get a
//! section of their own. So do the gateway's reports, which have other sizes than the commands to it. Commands may also
//! travel on two connections at once, each with a part of the actions: the sizes of one say little of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use sizeleak_frame::Direction;
use sizeleak_model::{Action, LabelledCommand, Model};

use crate::error::Result;
use crate::labels::{LabelFile, Labels, Tolerance, by_chance, near_by_chance};
use crate::observed_commands::{ObservedCommand, ObservedService, command_times, scope_of};
use crate::size_basis;
use crate::size_doubts::{agrees, fit_of_separate};
use crate::training_set::{LearnedModel, TrainingSet};

/// Labels match the commands of a service, and messages are those of one command, if chance does as well with at most
/// this probability.
const SIGNIFICANT: f64 = 1e-3;

/// A section of its own needs at least this many labelled commands.
const MIN_COMMANDS: usize = 3;

/// A service joins a section if at least this share of its labelled commands fits.
const FITTING_SHARE: f64 = 0.8;

/// A size this far from what a model explains, in bytes, does not fit.
const FAR_BYTES: i64 = 8;

/// A service with its commands, and how they match the labels.
struct ServiceCommands {
    service: usize,
    /// Indices among all commands.
    commands: Vec<usize>,
    /// How many of them have a label.
    matched: usize,
    /// The probability that as many would by chance.
    p_value: f64,
}

/// Services with the same sizes, and what was learned of them.
struct Group {
    /// Indices among all commands.
    commands: Vec<usize>,
    services: Vec<usize>,
    section: LearnedModel,
}

/// A label with its command among those of all groups.
struct LabelOfGroup {
    row: usize,
    /// Its index among all commands.
    command: usize,
    /// The index of its group.
    group: usize,
    /// When label and command are, in nanoseconds.
    times: [i64; 2],
}

/// The share of labels that are as near to their commands as labels usually are.
const USUALLY_NEAR: f64 = 0.98;

/// The rows of labels of two groups that may as well have each other's command: both would be as near as labels usually are,
/// or as these are now; or `within` so many nanoseconds.
fn of_either(together: &[LabelOfGroup], within: u64) -> BTreeSet<usize> {
    let distance = |pair: &LabelOfGroup| pair.times[0].abs_diff(pair.times[1]);
    let mut distances: Vec<u64> = together.iter().map(distance).collect();
    distances.sort_unstable();
    let usual = distances.get((USUALLY_NEAR * distances.len() as f64) as usize).copied().unwrap_or(0).max(within);
    let farthest = distances.last().copied().unwrap_or(0).max(usual);
    let mut in_order: Vec<&LabelOfGroup> = together.iter().collect();
    in_order.sort_by_key(|pair| pair.times[1]);
    let mut found = BTreeSet::new();
    for (at, one) in in_order.iter().enumerate() {
        let later = in_order[at + 1..].iter().take_while(|other| other.times[1].abs_diff(one.times[1]) <= 2 * farthest);
        for other in later.filter(|other| other.group != one.group) {
            let crossed = [one.times[0].abs_diff(other.times[1]), other.times[0].abs_diff(one.times[1])];
            let near = usual.max(distance(one)).max(distance(other));
            if crossed.iter().all(|far| *far <= near) {
                found.extend([one.row, other.row]);
            }
        }
    }
    found
}

impl TrainingSet<'_> {
    /// Learns a section for each group of services that the labels are about: the one with the most labels first.
    /// Labels whose command to the gateway was seen say nothing about reports: state that is reported at the same time
    /// as a command would be learned as its action.
    ///
    /// # Errors
    /// If no label is near a command, or sizes cannot be learned.
    pub(crate) fn sections(&self, services: &[ObservedService]) -> Result<Vec<LearnedModel>> {
        let has = |direction: Direction| self.commands.iter().any(|observed| observed.command.direction == direction);
        let all = |direction: Direction| self.sections_of(direction, services, false);
        if !has(Direction::FromGateway) {
            return all(Direction::ToGateway);
        }
        let of_commands = has(Direction::ToGateway).then(|| all(Direction::ToGateway));
        let Some(Ok(mut sections)) = of_commands else { return all(Direction::FromGateway) };
        let left = self.labels_without(&sections)?;
        if left.len() >= MIN_COMMANDS {
            let rest = TrainingSet { labels: &self.labels.subset(&left), ..*self };
            sections.extend(rest.sections_of(Direction::FromGateway, services, true)?);
        }
        Ok(sections)
    }

    /// The rows of labels without a command that a section was learned from.
    fn labels_without(&self, sections: &[LearnedModel]) -> Result<Vec<usize>> {
        let used = sections.iter().flat_map(|section| section.learned_from.iter().chain(&section.left_out));
        let mut used: Vec<usize> = used.copied().collect();
        used.sort_unstable();
        let matching = self.labels.matching(&self.times_of(&used), self.tolerance)?;
        let is_left = |row: &usize| matching.pairs.binary_search_by_key(row, |(row, _)| *row).is_err();
        Ok((0..self.labels.labels().rows.len()).filter(is_left).collect())
    }

    /// The same from commands or from reports alone. Each further section needs labels that match it beyond chance, and
    /// so does the first one where that is asked for.
    fn sections_of(
        &self,
        direction: Direction,
        services: &[ObservedService],
        all_beyond_chance: bool,
    ) -> Result<Vec<LearnedModel>> {
        let mut candidates = self.associated(direction);
        if candidates.is_empty() && !all_beyond_chance {
            // Nothing stands out: all together, as they come.
            let own = self.commands.iter().enumerate().filter(|(_, one)| one.command.direction == direction);
            let (all, of_each): (Vec<usize>, BTreeSet<Option<usize>>) = own.map(|(at, one)| (at, one.service)).unzip();
            let of_commands = of_each.into_iter().flatten().collect();
            return Ok(vec![self.section(&all, services, of_commands)?]);
        }
        let mut groups: Vec<Group> = Vec::new();
        while !candidates.is_empty() {
            let first = candidates.remove(0);
            let is_first = groups.is_empty() && !all_beyond_chance;
            if first.p_value > SIGNIFICANT && !is_first {
                break;
            }
            if !is_first && first.matched < MIN_COMMANDS {
                continue;
            }
            let mut used = first.commands;
            let alone = self.section(&used, services, vec![first.service])?;
            let joins = |other: &ServiceCommands| {
                let is_likely = other.p_value <= SIGNIFICANT || may_be_same(services, first.service, other.service);
                is_likely && self.fits(&alone.model, other)
            };
            let (joining, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(joins);
            candidates = others;
            let mut of_section = vec![first.service];
            for other in joining {
                used.extend(other.commands);
                of_section.push(other.service);
            }
            used.sort_unstable();
            let is_alone = of_section.len() == 1;
            let section = if is_alone { alone } else { self.section(&used, services, of_section.clone())? };
            groups.push(Group { commands: used, services: of_section, section });
        }
        if groups.len() < 2 {
            return Ok(groups.into_iter().map(|group| group.section).collect());
        }
        let together = self.together(&groups)?;
        let tolerance_ns = self.tolerance.nanoseconds().unsigned_abs();
        let [usually, at_all] = [0, tolerance_ns].map(|within| of_either(&together, within));
        let of_others = |at: usize| self.actions_of_others(&together, [&usually, &at_all], at);
        let of_others: Vec<BTreeSet<usize>> = (0..groups.len()).map(of_others).collect();
        let is_of_others = |one: &&LabelOfGroup| {
            let counts = self.labels.labels().rows.get(one.row).map_or(&[][..], |row| &row.counts);
            of_others[one.group].iter().any(|action| counts.get(*action).is_some_and(|count| *count > 0))
        };
        let crossed = together.iter().filter(is_of_others).map(|one| one.row);
        let of_either: BTreeSet<usize> = usually.iter().copied().chain(crossed).collect();
        let remark = (!of_either.is_empty()).then(|| {
            let (count, lines) = (of_either.len(), self.labels.lines(&of_either.iter().copied().collect::<Vec<_>>()));
            format!(
                "{count} labels may as well be of commands of another section, given at the same time, and are left out \
                 of both: {lines}"
            )
        });
        let learned = |(at, group): (usize, Group)| {
            let others = self.labels_of_others(&together, at, &group).into_iter().chain(of_either.iter().copied());
            let others: BTreeSet<usize> = others.collect();
            if others.is_empty() {
                return group.section;
            }
            let labels = self.labels.without(&others).without_actions(&of_others[at]);
            let own = TrainingSet { labels: &labels, ..*self };
            // Where what is left teaches nothing, all labels have to.
            let Ok(mut section) = own.section(&group.commands, services, group.services) else { return group.section };
            section.remarks.extend(remark.clone());
            section
        };
        Ok(groups.into_iter().enumerate().map(learned).collect())
    }

    /// The labels with the commands of all groups together.
    fn together(&self, groups: &[Group]) -> Result<Vec<LabelOfGroup>> {
        let own = |(at, group): (usize, &Group)| group.commands.iter().map(move |one| (*one, at)).collect::<Vec<_>>();
        let all: Vec<(usize, usize)> = groups.iter().enumerate().flat_map(own).collect();
        let times = self.times_of(&all.iter().map(|(command, _)| *command).collect::<Vec<_>>());
        let labels = self.labels.times();
        let pair = |(row, at): &(usize, usize)| {
            let (command, group) = *all.get(*at)?;
            Some(LabelOfGroup { row: *row, command, group, times: [*labels.get(*row)?, *times.get(*at)?] })
        };
        Ok(self.labels.matching(&times, self.tolerance)?.pairs.iter().filter_map(pair).collect())
    }

    /// The actions that no label of this group has but those that `at_all` may be of another, which has them so often that
    /// the other labels would have them, too, if they were of the same devices.
    fn actions_of_others(
        &self,
        together: &[LabelOfGroup],
        [usually, at_all]: [&BTreeSet<usize>; 2],
        at: usize,
    ) -> BTreeSet<usize> {
        let Labels { actions, rows, .. } = self.labels.labels();
        let groups: BTreeSet<usize> = together.iter().map(|one| one.group).collect();
        let is_of_others = |action: &usize| {
            let has =
                |row: usize| rows.get(row).and_then(|row| row.counts.get(*action)).is_some_and(|count| *count > 0);
            let of_group =
                |group: usize| together.iter().map(|one| (one.group, one.row)).filter(move |own| own.0 == group);
            let certain = |group| of_group(group).map(|(_, row)| row).filter(move |row| !usually.contains(row));
            // How likely a label of the other group is without it, by Laplace's rule.
            let without = |group: usize| {
                let with = certain(group).filter(|row| has(*row)).count();
                (certain(group).count() - with + 1) as f64 / (certain(group).count() + 2) as f64
            };
            let others = certain(at).filter(|row| !has(*row)).count() as f64;
            certain(at).filter(|row| has(*row)).all(|row| at_all.contains(&row))
                && groups.iter().filter(|group| **group != at).any(|group| without(*group).powf(others) <= SIGNIFICANT)
        };
        (0..actions.len()).filter(is_of_others).collect()
    }

    /// The rows of labels that are of other groups than this one. An event that has a command on each of two connections
    /// teaches both: its label is that of a command which has no other one, too.
    fn labels_of_others(&self, together: &[LabelOfGroup], at: usize, group: &Group) -> Vec<usize> {
        let (own, others): (Vec<&LabelOfGroup>, Vec<&LabelOfGroup>) = together.iter().partition(|one| one.group == at);
        let labelled: BTreeSet<usize> = own.iter().map(|one| one.command).collect();
        let free: Vec<usize> = group.commands.iter().copied().filter(|command| !labelled.contains(command)).collect();
        // In order of the labels, as they were matched.
        let others: Vec<usize> = others.iter().map(|one| one.row).collect();
        // Without a pair, none is of both.
        let again = self.labels.subset(&others).matching(&self.times_of(&free), self.tolerance).unwrap_or_default();
        let both: BTreeSet<usize> = again.pairs.iter().filter_map(|(at, _)| others.get(*at)).copied().collect();
        others.into_iter().filter(|row| !both.contains(row)).collect()
    }

    /// The services with commands, or with reports: those that the labels are about first, by how many labels they match.
    fn associated(&self, direction: Direction) -> Vec<ServiceCommands> {
        let mut of_service: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, one) in self.commands.iter().enumerate().filter(|(_, one)| one.command.direction == direction) {
            if let Some(service) = one.service {
                of_service.entry(service).or_default().push(at);
            }
        }
        let labels = self.labels.times();
        let matched = |(service, commands): (usize, Vec<usize>)| {
            let times = self.times_of(&commands);
            let matched = self.labels.matching(&times, self.tolerance).ok()?.pairs.len();
            let near = near_by_chance(&labels, &times, self.tolerance.nanoseconds());
            Some(ServiceCommands { service, commands, matched, p_value: by_chance(matched, labels.len(), near) })
        };
        let mut found: Vec<ServiceCommands> = of_service.into_iter().filter_map(matched).collect();
        // Those beyond chance by their labels, then the others.
        found.sort_by_key(|one| (one.p_value > SIGNIFICANT, Reverse(one.matched), one.service));
        found
    }

    /// Whether the labelled commands of a service have sizes that a model explains.
    fn fits(&self, model: &Model, service: &ServiceCommands) -> bool {
        let times = self.times_of(&service.commands);
        let Ok(matching) = self.labels.matching(&times, self.tolerance) else { return false };
        let Labels { actions: names, rows, .. } = self.labels.labels();
        let fitting = matching.pairs.iter().filter(|(row, at)| {
            let observed = service.commands.get(*at).and_then(|at| self.commands.get(*at));
            rows.get(*row).zip(observed).is_some_and(|(row, observed)| {
                let sizes = size_basis::sizes(&model.learned.basis, &observed.command);
                explains(model, names, &row.counts, sizes)
            })
        });
        !matching.pairs.is_empty() && fitting.count() as f64 >= FITTING_SHARE * matching.pairs.len() as f64
    }

    fn section(&self, indices: &[usize], services: &[ObservedService], of_section: Vec<usize>) -> Result<LearnedModel> {
        let chosen: Vec<ObservedCommand> = indices.iter().filter_map(|at| self.commands.get(*at)).cloned().collect();
        let mut learned = TrainingSet { commands: &chosen, ..*self }.learn()?;
        let named: Vec<&ObservedService> = of_section.iter().filter_map(|at| services.get(*at)).collect();
        learned.model.scope = scope_of(&named);
        learned.model.scope.reports =
            chosen.first().is_some_and(|observed| observed.command.direction == Direction::FromGateway);
        // Indices among all commands.
        for list in [&mut learned.learned_from, &mut learned.left_out] {
            *list = list.iter().filter_map(|at| indices.get(*at)).copied().collect();
        }
        learned.services = of_section;
        Ok(learned)
    }

    fn times_of(&self, indices: &[usize]) -> Vec<i64> {
        indices.iter().filter_map(|at| self.commands.get(*at)).map(|observed| observed.command.time_ns).collect()
    }
}

/// Whether a service may be another one under a new address: no name was seen, gateway and port are the same.
fn may_be_same(services: &[ObservedService], one: usize, other: usize) -> bool {
    let (Some(one), Some(other)) = (services.get(one), services.get(other)) else { return false };
    let port = |service: &ObservedService| service.addresses.first().map(SocketAddr::port);
    other.name.is_none() && one.gateway == other.gateway && port(one) == port(other)
}

/// Whether a labelled command of these sizes is what a model expects.
fn explains(model: &Model, names: &[String], counts: &[u32], [least, most]: [i64; 2]) -> bool {
    let counts: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(counts.iter().copied()).collect();
    if let Some(kinds) = &model.kinds
        && let Some(kind) = kinds.position(&counts).and_then(|at| kinds.list.get(at))
    {
        return kind.nearest_size(most).abs_diff(most) <= FAR_BYTES.unsigned_abs();
    }
    let sizes = |name: &str| model.actions.iter().find(|action| action.name == name).map(Action::size_range);
    let mut sums = [model.overhead; 2];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let Some(sizes) = sizes(name) else { return false };
        for (sum, size) in sums.iter_mut().zip(sizes) {
            *sum = sum.saturating_add(size.saturating_mul(count.into()));
        }
    }
    let epsilons = || model.neighbours.tuples().iter().map(|tuple| tuple.epsilon);
    let low = sums[0].saturating_add(epsilons().min().unwrap_or(0)).saturating_sub(FAR_BYTES);
    let high = sums[1].saturating_add(epsilons().max().unwrap_or(0)).saturating_add(FAR_BYTES);
    low <= most && least <= high
}

/// Messages of one command are as close to each other, in nanoseconds.
const CLOSE_NS: u64 = 200_000_000;

/// Fewer pairs of messages say nothing.
const MIN_PAIRS: usize = 4;

/// A sentence if labelled commands are pairs of messages to two services, beyond chance, whose sizes together are sums of
/// the actions.
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
    use crate::labels::{Label, Labels};
    use sizeleak_frame::{Command, Flow, Transport};

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

    #[test]
    fn labels_that_may_have_each_others_command_are_of_either() {
        let pair = |row: usize, group: usize, times: [i64; 2]| LabelOfGroup { row, command: row, group, times };
        let usual = |(row, second): (usize, i64)| pair(row, row % 2, [second * 1000, second * 1000 + 30]);
        let rows = |more: Vec<LabelOfGroup>| -> Vec<usize> {
            let together: Vec<LabelOfGroup> = (0..100).zip(0..).map(usual).chain(more).collect();
            of_either(&together, 0).into_iter().collect()
        };
        assert_eq!(rows(vec![]), [0; 0]);
        let near = |group: usize| vec![pair(100, 0, [500_000, 500_020]), pair(101, group, [500_010, 500_030])];
        assert_eq!(rows(near(1)), [100, 101]);
        assert_eq!(rows(near(0)), [0; 0], "of one group, their order tells them apart");
        assert_eq!(rows(vec![pair(100, 0, [500_000, 500_020]), pair(101, 1, [500_015, 500_040])]), [0; 0]);
        let far = vec![pair(100, 0, [500_000, 500_090]), pair(101, 1, [500_010, 500_090])];
        assert_eq!(rows(far), [100, 101], "each is as far as from its own");
    }

    /// The devices of two services are commanded at the same time; a label is sometimes nearer to the other's command.
    #[test]
    fn labels_of_another_service_take_no_command_from_its_own() {
        let mut flows = ObservedFlows::default();
        for (flow, service) in [(1, "198.51.100.7:443"), (2, "198.51.100.8:443")] {
            flows.add_flow(&Flow::new(flow, "192.0.2.1".parse().unwrap(), service.parse().unwrap(), Transport::Tcp));
        }
        // Whether the second service has the commands of all labels, too.
        for has_both in [false, true] {
            let (mut rows, mut commands) = (Vec::new(), Vec::new());
            let mut send = |service: usize, time_ns: i64, size: u64| {
                let command = Command { time_ns, flow: 1 + service as u64, size, records: 1, ..Command::default() };
                let command = Command { direction: Direction::ToGateway, ..command };
                commands.push(ObservedCommand { command, cipher_suite: None, service: Some(service) });
            };
            for number in 0..60_u32 {
                let time_ns = i64::from(number) * 20 * SECOND;
                let [ons, offs] = [1 + number % 3, number % 2];
                rows.push(Label { time_ns, counts: vec![ons, offs, 0], line: u64::from(number) * 2 + 2 });
                send(0, time_ns + 300_000_000, 60 + u64::from(30 * ons + 41 * offs));
                if has_both {
                    send(1, time_ns + 350_000_000, 90 + u64::from(30 * ons + 41 * offs));
                    continue;
                }
                // Each second time just behind the first service's command, or long after.
                let own_ns = time_ns + [290_000_000, 9 * SECOND][number as usize % 2];
                let opens = 1 + number % 4;
                rows.push(Label { time_ns: own_ns, counts: vec![0, 0, opens], line: u64::from(number) * 2 + 3 });
                send(1, own_ns + 300_000_000, 90 + u64::from(52 * opens));
            }
            let actions = ["on", "off", "open"].map(str::to_owned).to_vec();
            let labels = Labels { actions, rows, is_to_the_minute: false, notes: Vec::new() };
            let labels = LabelFile::of_answers("labels", labels).unwrap();
            let (tolerance, settings) = (Tolerance::USUAL, &crate::training_set::LearningSettings::default());
            let set = TrainingSet { labels: &labels, commands: &commands, tolerance, settings };
            let sections = set.sections(&flows.services().0).unwrap();
            let learned: Vec<Vec<usize>> = sections.iter().map(|section| section.occurrences.clone()).collect();
            let expected = if has_both { [vec![60, 30], vec![60, 30]] } else { [vec![60, 30], vec![60]] };
            assert_eq!(learned, expected, "{:?}", sections.iter().map(|one| &one.model.actions).collect::<Vec<_>>());
            // That an action is the other's is no doubt about either.
            let is_absent =
                |section: &LearnedModel| format!("{:?}", section.model.learned.warnings).contains("no labelled");
            assert_eq!(sections.iter().map(is_absent).collect::<Vec<_>>(), [has_both; 2]);
        }
    }
}
