//! Commands as the blind fit takes them.

use std::collections::BTreeMap;

use sizeleak_fit::blind::Observation;
use sizeleak_frame::Direction;
use sizeleak_labels::{LabelFile, LabelFileError, Tolerance};
use sizeleak_model::Basis;

use crate::observed_commands::{ObservedCommand, ObservedCommands};
use crate::size_basis::{self, CipherSuite};

#[derive(Debug)]
pub(super) struct ServiceObservations {
    /// Its index among those observed; `None` for flows of which no service is known.
    pub(super) service: Option<usize>,
    pub(super) basis: Basis,
    pub(super) observations: Vec<Observation>,
    pub(super) labelled: usize,
    /// How many commands of other services there are.
    pub(super) elsewhere: usize,
    /// What had to be assumed, a sentence each.
    pub(super) remarks: Vec<String>,
}

impl ServiceObservations {
    /// The commands of the service with the most of them, or the most labels if there are any. `None` without commands.
    ///
    /// # Errors
    /// If there are labels and none is near a command.
    pub(super) fn of_busiest(
        observed: &ObservedCommands,
        labels: Option<(&LabelFile, Tolerance)>,
        assumed: Option<CipherSuite>,
    ) -> Result<Option<Self>, LabelFileError> {
        let commands: Vec<&ObservedCommand> =
            observed.commands.iter().filter(|one| one.command.direction == Direction::ToGateway).collect();
        if commands.is_empty() {
            return Ok(None);
        }
        let times: Vec<i64> = commands.iter().map(|one| one.command.time_ns).collect();
        let mut counts: Vec<Option<Vec<u32>>> = vec![None; commands.len()];
        if let Some((labels, tolerance)) = labels {
            for (row, at) in labels.matching(&times, tolerance)?.pairs {
                counts[at] = labels.labels().rows.get(row).map(|row| row.counts.clone());
            }
        }
        let mut by_service: BTreeMap<Option<usize>, (usize, usize)> = BTreeMap::new();
        for (one, counts) in commands.iter().zip(&counts) {
            let (labelled, all) = by_service.entry(one.service).or_default();
            *labelled += usize::from(counts.is_some());
            *all += 1;
        }
        // Among equals, the first.
        let busiest = by_service.into_iter().rev().max_by_key(|(_, numbers)| *numbers);
        let Some((service, (labelled, all))) = busiest else { return Ok(None) };
        let own: Vec<ObservedCommand> =
            commands.iter().filter(|one| one.service == service).map(|one| (*one).clone()).collect();
        let chosen = size_basis::choose_basis(&own, assumed);
        let of_service = commands.iter().zip(counts).filter(|(one, _)| one.service == service);
        let observations = of_service.map(|(one, counts)| Observation {
            // A block cipher leaves a range; its greatest size is that without padding.
            size: size_basis::sizes(&chosen.basis, &one.command)[1],
            replies: size_basis::single_replies(&chosen.basis, &one.command),
            counts,
        });
        Ok(Some(Self {
            service,
            observations: observations.collect(),
            labelled,
            elsewhere: commands.len() - all,
            basis: chosen.basis,
            remarks: chosen.remarks,
        }))
    }
}
