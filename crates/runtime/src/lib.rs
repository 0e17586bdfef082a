//! What every stage of sizeleak is made of: the traits it implements, the node that runs it, and the two ways to link
//! nodes (channels between threads, byte streams between processes).
//!
//! A stage turns frames into frames and knows nothing of threads, clocks or files. [`Node`] does for all stages what
//! they share: dispatch, passing on what is not theirs, counting, `hello` and `summary`, latency. [`program`] makes a
//! command-line program of a stage.

mod channel;
mod configure;
mod fused;
mod input;
mod interrupt;
mod node;
mod outcome;
mod output;
mod processors;
pub mod program;
mod source;
mod stage;
mod stream;
mod stream_end_check;
mod two_generation_cache;

pub use channel::{ChannelInput, ChannelOutput, channel};
pub use configure::{ConfigureError, StageOptions};
pub use fused::{FusedStage, run_fused};
pub use input::{Input, InputError, Received};
pub use interrupt::{Interrupt, Interruptible, becomes_ready, is_ready};
pub use node::{Node, Runnable};
pub use outcome::{Observer, Outcome, SilentObserver};
pub use output::{Emit, Output};
pub use processors::{has_several_processors, processors};
pub use sizeleak_telemetry::{FileProgress, Progress, ProgressReader};
pub use source::{Source, SourceEmit, SourceNode};
pub use stage::{Closed, Stage, StageError};
pub use stream::{StreamInput, StreamOutput, widen_pipe};
pub use two_generation_cache::TwoGenerationCache;
