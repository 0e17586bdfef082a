//! What every stage is built on: the traits it implements, the node that runs it, and the links between nodes (channels
//! between threads, byte streams between processes).
//!
//! A [`Stage`] turns frames into frames and knows nothing of threads, clocks or files. A [`Node`] does what all stages
//! share: dispatch, passing on other kinds, counting, `hello` and `summary`, latencies. [`program`] turns a stage into
//! a command-line program.
//!
//! ```
//! use sizeleak_frame::Record;
//! use sizeleak_platform::runtime::{Emit, Stage, StageError};
//!
//! /// Drops handshake records.
//! struct DataOnly;
//!
//! impl Stage for DataOnly {
//!     const NAME: &'static str = "data-only";
//!     type Input = Record;
//!
//!     fn process(&mut self, record: Record, out: &mut dyn Emit) -> Result<(), StageError> {
//!         if !record.handshake {
//!             out.emit(record.into())?;
//!         }
//!         Ok(())
//!     }
//!
//!     fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
//!         Ok(())
//!     }
//! }
//! ```

mod interrupt;
mod link;
mod node;
pub mod program;
mod source;
mod stage;
mod traffic_clock;
mod two_generation_cache;

pub use crate::sandbox::{Access, Sandbox};
pub use crate::telemetry::{FileProgress, Progress, ProgressReader};
pub use interrupt::{Interrupt, Interruptible, becomes_ready, becomes_ready_for, is_ready, open_stream, stdin};
pub use link::{
    ChannelInput, ChannelOutput, Closed, Emit, Input, InputError, Output, Received, StreamInput, StreamOutput, channel,
    widen_pipe,
};
pub use node::{Node, run_fused};
pub use source::{Source, SourceCounts, SourceEmit, SourceNode};
pub use stage::{
    ConfigureError, FailureSlot, FusedStage, Observer, Outcome, Runnable, Slot, Stage, StageError, StageOptions,
    StateError, StateSlot, decode_state, encode_state, sorted_table,
};
pub use traffic_clock::{ClockEvent, STEP_NS, TrafficClock, describe_odd_time};
pub use two_generation_cache::TwoGenerationCache;

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

/// How many processors this process may use; 1 if that is unknown. Asked once: a confined process gets another answer.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
