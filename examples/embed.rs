//! Runs a pipeline with a segmenter of its own: each application-data record that the service sends is a command.
#![allow(missing_docs, unreachable_pub, clippy::print_stdout)]

use sizeleak::frame::{Command, ContentType, Direction, Frame, Record};
use sizeleak::runtime::{Emit, Stage, StageError};
use sizeleak::stages::flow_filter;
use sizeleak::{Interrupt, Pipeline};

struct EveryRecord;

impl Stage for EveryRecord {
    const NAME: &'static str = "every-record";
    type Input = Record;

    fn process(&mut self, record: Record, out: &mut dyn Emit) -> Result<(), StageError> {
        let Record { time_ns: end_ns, start_ns: time_ns, flow, plaintext, .. } = record;
        if record.direction == Direction::ToGateway && record.content_type == ContentType::ApplicationData {
            let size = record.length.into();
            let command = Command { time_ns, end_ns, flow, size, plaintext, records: 1, ..Command::default() };
            out.emit(command.into())?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut pipeline = Pipeline::standard().until("command-segmenter")?;
    pipeline.replace("command-segmenter", || EveryRecord)?;
    pipeline.read_captures(&["examples/home/test.pcap".into()])?;
    let gateway = vec!["192.168.1.20".to_owned()];
    pipeline.configure(&flow_filter::Options { gateway, ..Default::default() })?;
    let report = pipeline.prepare()?.run(&Interrupt::new(), &mut |_: Frame| Ok(()))?;
    for row in report.summary.into_iter().flat_map(|summary| summary.stages) {
        println!("{}: {} frames out", row.stage, row.frames_out);
    }
    Ok(())
}
