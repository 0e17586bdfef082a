//! The labels and the inventory of a simulation, as files.

use std::collections::BTreeMap;

use crate::home_life::AttackTime;
use crate::scenario::{DeviceKind, Resolution};
use crate::time::SECOND;
use crate::{Scenario, SimulateError};

/// Labels as CSV: `time` in seconds since the epoch with decimals, then a column for each action. A label has the time
/// that a person wrote down, in nanoseconds since the epoch, and how often each action occurs.
pub(crate) fn csv<'a>(
    scenario: &Scenario,
    labels: impl Iterator<Item = (i64, &'a [u32])>,
) -> Result<String, SimulateError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = std::iter::once("time").chain(scenario.action_names());
    writer.write_record(header).map_err(SimulateError::encoding("labels"))?;
    for (time_ns, counts) in labels {
        let time = seconds(time_ns, scenario.capture.resolution);
        let counts = counts.iter().map(u32::to_string);
        writer.write_record(std::iter::once(time).chain(counts)).map_err(SimulateError::encoding("labels"))?;
    }
    let bytes = writer.into_inner().map_err(SimulateError::encoding("labels"))?;
    String::from_utf8(bytes).map_err(SimulateError::encoding("labels"))
}

/// The times of attacks as CSV: `time` in seconds since the epoch with decimals, and what happened.
pub(crate) fn attacks(attacks: &[AttackTime]) -> String {
    let row = |AttackTime { kind, start_ns }: &AttackTime| {
        format!("{},{kind}\n", seconds(*start_ns, Resolution::Microsecond))
    };
    std::iter::once("time,attack\n".to_owned()).chain(attacks.iter().map(row)).collect()
}

/// The devices as an inventory file: `[[device]]` with name, count and actions.
pub(crate) fn inventory(devices: &[DeviceKind]) -> Result<String, SimulateError> {
    toml::to_string(&BTreeMap::from([("device", devices)])).map_err(SimulateError::encoding("the inventory"))
}

fn seconds(time_ns: i64, resolution: Resolution) -> String {
    let (seconds, rest) = (time_ns.div_euclid(SECOND), time_ns.rem_euclid(SECOND));
    match resolution {
        Resolution::Microsecond => format!("{seconds}.{:06}", rest / 1_000),
        Resolution::Nanosecond => format!("{seconds}.{rest:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_the_resolution_of_the_capture() {
        let label = (1_767_600_000_012_345_678, &[1, 0, 2, 0, 0, 0, 0][..]);
        let text = csv(&Scenario::default(), [label].into_iter()).unwrap();
        assert_eq!(text, "time,on,off,toggle,timer,dim,white,colour\n1767600000.012345,1,0,2,0,0,0,0\n");
        assert_eq!(seconds(1_000_000_001, Resolution::Nanosecond), "1.000000001");
    }

    #[test]
    fn the_inventory_reads_back_as_the_devices_of_a_scenario() {
        let scenario = Scenario::default();
        let text = inventory(&scenario.devices).unwrap();
        assert_eq!(Scenario::from_toml(&text).unwrap().devices, scenario.devices);
    }
}
