//! Reports: messages that the gateway sends unprompted. They are found as commands are by `adaptive`, with the two
//! directions exchanged, so that periodic requests and answers of the gateway are none.

use sizeleak_frame::{Direction, Flow, Record};

use crate::adaptive::ProfiledFlows;
use crate::flow_history::{SizeClass, SizedRecord};
use crate::open_commands::OpenCommands;
use crate::options::TimeLimits;
use crate::record_class::{Decision, RecordClass, ReportRole};

#[derive(Debug, Default)]
pub(crate) struct ReportFinder {
    flows: ProfiledFlows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandRole {
    InCommand,
    None,
}

impl ReportFinder {
    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.add_flow(flow);
    }

    pub(crate) fn add_handshake(&mut self, flow: u64) {
        self.flows.add_handshake(flow);
    }

    pub(crate) fn restart_time(&mut self) {
        self.flows.restart_time();
    }

    pub(crate) fn learn(&mut self, record: &Record, min_size: u64, limits: &TimeLimits) {
        let reversed = reversed(record);
        self.flows.learn(SizedRecord::new(&reversed, SizeClass::of(record, min_size)), limits);
    }

    /// Adds a record to the open commands if it is a report or the reply to one.
    pub(crate) fn classify(
        &mut self,
        sized: SizedRecord<'_>,
        role: CommandRole,
        commands: &mut OpenCommands,
        limits: &TimeLimits,
    ) -> ReportRole {
        let record = sized.record;
        let as_command = reversed(record);
        let Decision { class, condition, .. } =
            self.flows.classify(SizedRecord { record: &as_command, ..sized }, limits);
        if role == CommandRole::InCommand {
            return ReportRole::None;
        }
        match (record.direction, class) {
            (Direction::FromGateway, RecordClass::CommandPart) if commands.extend(record, condition) => {
                ReportRole::Part
            }
            (Direction::FromGateway, RecordClass::CommandStart | RecordClass::CommandPart) => {
                commands.start(record, condition, limits);
                ReportRole::Start
            }
            (Direction::ToGateway, RecordClass::Reply) if commands.add_reply(record) => ReportRole::Reply,
            (Direction::FromGateway, RecordClass::KeepAlive) => ReportRole::Periodic,
            (Direction::FromGateway, RecordClass::Answer) => ReportRole::Answer,
            _ => ReportRole::None,
        }
    }
}

/// A record as if the other side had sent it.
pub(crate) fn reversed(record: &Record) -> Record {
    Record { direction: record.direction.reversed(), ..record.clone() }
}
