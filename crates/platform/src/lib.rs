//! What every stage runs on: nodes and the links between them (`runtime`), what watches a run (`telemetry`), output files
//! that are whole or absent (`storage`), and what a process gives up before it reads data from outside (`sandbox`).

pub mod runtime;
pub mod sandbox;
pub mod storage;
pub mod telemetry;
