//! The labels and the inventory of a simulation, as files.

use serde::Serialize;

use crate::scenario::{DeviceKind, Resolution};
use crate::{Scenario, SimulateError, Truth};

/// Labels as CSV: `time` in seconds since the epoch, exact in decimals, then a column an action; one row a command.
pub(crate) fn csv(scenario: &Scenario, rows: &[(i64, &Truth)]) -> Result<String, SimulateError> {
    let failed = |error: &dyn std::fmt::Display| SimulateError::Format { what: "labels", reason: error.to_string() };
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = std::iter::once("time").chain(scenario.action_names());
    writer.write_record(header).map_err(|error| failed(&error))?;
    for (time_ns, truth) in rows {
        let time = seconds(*time_ns, scenario.capture.resolution);
        let counts = truth.counts.iter().map(u32::to_string);
        writer.write_record(std::iter::once(time).chain(counts)).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

/// The devices as an inventory file: `[[device]]` with name, count and actions.
pub(crate) fn inventory(devices: &[DeviceKind]) -> Result<String, SimulateError> {
    #[derive(Serialize)]
    struct Inventory<'a> {
        device: &'a [DeviceKind],
    }
    toml::to_string(&Inventory { device: devices })
        .map_err(|error| SimulateError::Format { what: "the inventory", reason: error.to_string() })
}

fn seconds(time_ns: i64, resolution: Resolution) -> String {
    let (seconds, rest) = (time_ns.div_euclid(1_000_000_000), time_ns.rem_euclid(1_000_000_000));
    match resolution {
        Resolution::Microsecond => format!("{seconds}.{:06}", rest / 1_000),
        Resolution::Nanosecond => format!("{seconds}.{rest:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_times() {
        let truth = Truth {
            time_ns: 0,
            end_ns: 0,
            counts: vec![1, 0, 2, 0, 0, 0, 0],
            plaintext_size: 0,
            wire_size: 0,
            records: 1,
            replies: 0,
            message_id_width: 1,
        };
        let text = csv(&Scenario::default(), &[(1_767_600_000_012_345_678, &truth)]).unwrap();
        assert_eq!(text, "time,on,off,toggle,timer,dim,white,colour\n1767600000.012345,1,0,2,0,0,0,0\n");
        assert_eq!(seconds(1_000_000_001, Resolution::Nanosecond), "1.000000001");
    }

    #[test]
    fn inventory_reads_back() {
        let scenario = Scenario::default();
        let text = inventory(&scenario.devices).unwrap();
        assert_eq!(Scenario::from_toml(&text).unwrap().devices, scenario.devices);
    }
}
