//! A program can embed a pipeline and put a stage of its own into it.

use std::process::Command;

use sizeleak::Interrupt;
use sizeleak::frame::{Direction, Frame, Record};
use sizeleak::pipeline::{Pipeline, RunEnding};
use sizeleak::runtime::{Emit, Stage, StageError};
use support::programs::{built, root, stderr};

/// Drops all records to the gateway.
struct FromGateway;

impl Stage for FromGateway {
    const NAME: &'static str = "from-gateway";
    type Input = Record;

    fn process(&mut self, record: Record, out: &mut dyn Emit) -> Result<(), StageError> {
        if record.direction == Direction::FromGateway {
            out.emit(record.into())?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }
}

/// The directions of all records that come out, and the names of the stages in the summary.
fn run(pipeline: &Pipeline) -> (Vec<Direction>, Vec<String>) {
    let mut directions = Vec::new();
    let mut sink = |frame: Frame| {
        if let Frame::Record(record) = frame {
            directions.push(record.direction);
        }
        Ok(())
    };
    let report = pipeline.prepare().unwrap().run(&Interrupt::new(), &mut sink).unwrap();
    assert_eq!(report.ending, RunEnding::Done);
    (directions, report.summary.unwrap().stages.into_iter().map(|row| row.stage).collect())
}

#[test]
fn example_runs() {
    let output = Command::new(built().join("examples/embed")).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("every-record: "), "{output:?}");
}

#[test]
fn replaced_stage_runs_in_process() {
    let mut pipeline = Pipeline::standard().until("command-segmenter").unwrap();
    pipeline.read_captures(&["examples/home/test.pcap".into()]).unwrap();
    pipeline.set("flow-filter", "gateway", vec!["192.168.1.20"]).unwrap();
    let (all, _) = run(&pipeline.before("command-segmenter"));
    let expected = all.iter().filter(|direction| **direction == Direction::FromGateway).count();
    assert!(expected > 0 && expected < all.len());
    pipeline.replace("command-segmenter", || FromGateway).unwrap();
    let (directions, stages) = run(&pipeline);
    assert_eq!(stages, ["capture", "flow-filter", "record-sizer", "from-gateway"]);
    assert_eq!(directions, vec![Direction::FromGateway; expected]);
    let error = pipeline.replace("pruner", || FromGateway).unwrap_err();
    assert_eq!((error.exit_code(), error.to_string().as_str()), (2, "the pipeline has no stage `pruner`"));
}
