//! Shows what the sizes of encrypted messages give away about the people behind an `IoT` gateway.
//!
//! This library is the facade for programs that embed sizeleak. [`pipeline`] configures and runs the stages, in threads
//! or processes; [`frame`] defines what they exchange; [`runtime`] has the traits of a stage; [`model`] holds what was
//! learned about a gateway.
//!
//! ```
//! use sizeleak::Interrupt;
//! use sizeleak::frame::Frame;
//! use sizeleak::pipeline::Pipeline;
//!
//! let mut pipeline = Pipeline::standard().until("record-sizer")?;
//! pipeline.read_captures(&["examples/home/test.pcap".into()])?;
//! pipeline.set("flow-filter", "gateway", vec!["192.168.1.20"])?;
//! let mut bytes = 0;
//! pipeline.prepare()?.run(&Interrupt::new(), &mut |frame: Frame| {
//!     if let Frame::Record(record) = frame {
//!         bytes += u64::from(record.length);
//!     }
//!     Ok(())
//! })?;
//! assert!(bytes > 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Pipeline::replace`](pipeline::Pipeline::replace) puts a stage of the embedding program into a pipeline;
//! `examples/embed.rs` shows how.

pub use sizeleak_frame as frame;
pub use sizeleak_model as model;
pub use sizeleak_output as output;
pub use sizeleak_pipeline as pipeline;
pub use sizeleak_pipeline::{ConfigError, RunError, cache, recording, registry};
pub use sizeleak_platform::runtime;
pub use sizeleak_platform::runtime::Interrupt;
