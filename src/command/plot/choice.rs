//! Which commands are drawn: by time, gateway and flow.

use std::net::IpAddr;

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::DateTime;
use sizeleak_frame::Command;

use crate::command::Failure;
use sizeleak_output::TimeFormat;

/// Which commands to draw; all of them unless something is said.
#[derive(Debug, Args)]
pub(super) struct Choice {
    /// Only commands of this time or later: RFC 3339, or a date (with a time) by the clock of `--time`
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,

    /// Only commands before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,

    /// Only commands to these gateways; several may be given
    #[arg(long, value_name = "IP", num_args = 1.., value_delimiter = ',')]
    gateway: Vec<IpAddr>,

    /// Only commands of these flows, by the numbers that frames have; several may be given
    #[arg(long, value_name = "NUMBER", num_args = 1.., value_delimiter = ',')]
    flow: Vec<u64>,
}

/// A time as a user gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// With its offset from UTC.
    Exact(Timestamp),
    /// By a clock on the wall.
    Wall(DateTime),
}

impl std::str::FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let exact = text.parse().map(Self::Exact);
        let moment = exact.or_else(|_| text.parse().map(Self::Wall));
        moment.map_err(|_| "write it like 2026-01-06, 2026-01-06T08:30 or 2026-01-06T08:30:00Z")
    }
}

impl Moment {
    fn nanoseconds(self, times: &TimeFormat) -> Option<i64> {
        let time = match self {
            Self::Exact(time) => time,
            Self::Wall(time) => times.timestamp(time).ok()?,
        };
        i64::try_from(time.as_nanosecond()).ok()
    }
}

/// Decides which commands are drawn.
#[derive(Debug, Default)]
pub(super) struct AddressPrefilter {
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    gateways: Vec<IpAddr>,
    flows: Vec<u64>,
}

impl Choice {
    /// The same with times of the wall by a clock.
    pub(super) fn sieve(&self, times: &TimeFormat) -> Result<AddressPrefilter, Failure> {
        let ends = [self.from, self.until].map(|end| {
            let resolve = |moment: Moment| {
                let far = || Failure::usage(anyhow!("a time of a capture is between the years 1678 and 2262"));
                moment.nanoseconds(times).ok_or_else(far)
            };
            end.map(resolve).transpose()
        });
        let [from_ns, until_ns] = ends;
        let (from_ns, until_ns) = (from_ns?, until_ns?);
        if let (Some(from), Some(until)) = (from_ns, until_ns)
            && from >= until
        {
            return Err(Failure::usage(anyhow!("`--from` is not before `--until`: nothing would be drawn")));
        }
        Ok(AddressPrefilter { from_ns, until_ns, gateways: self.gateway.clone(), flows: self.flow.clone() })
    }
}

impl AddressPrefilter {
    /// Whether a command is drawn; that of a gateway nobody told of is not, where gateways are named.
    pub(super) fn takes(&self, command: &Command, gateway: Option<IpAddr>) -> bool {
        self.from_ns.is_none_or(|from| command.time_ns >= from)
            && self.until_ns.is_none_or(|until| command.time_ns < until)
            && (self.gateways.is_empty() || gateway.is_some_and(|gateway| self.gateways.contains(&gateway)))
            && (self.flows.is_empty() || self.flows.contains(&command.flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_or_by_the_clock() {
        let nanoseconds = |text: &str| text.parse::<Moment>().map(|moment| moment.nanoseconds(&TimeFormat::default()));
        assert_eq!(nanoseconds("1970-01-02"), Ok(Some(86_400_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T00:01"), Ok(Some(60_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T02:00:00.5+02:00"), Ok(Some(500_000_000)));
        assert_eq!(nanoseconds("9999-01-01"), Ok(None));
        assert!(nanoseconds("tomorrow").is_err() && nanoseconds("").is_err());
    }
}
