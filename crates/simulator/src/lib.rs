//! Labelled captures of a modelled gateway whose messages real TLS carries.
//!
//! A [`Scenario`] says what the home, the service and the network are like; [`simulate`] turns it and a seed into a
//! [`Simulation`]: a capture to learn from and one to test on, each with labels and the exact [`Truth`]. The gateway's
//! messages are framed as WebSocket, MQTT or HTTP, encrypted by a real TLS client and server in memory, cut into TCP
//! segments and mixed with other traffic. The same scenario and seed give the same bytes.
//!
//! ```
//! use sizeleak_simulator::{Scenario, simulate};
//!
//! let scenario = Scenario::from_toml("learn = { random = 5 }\ntest = { commands = 3 }")?;
//! let simulation = simulate(&scenario, 1)?;
//! assert_eq!(simulation.test.truths.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod application;
mod background_traffic;
mod bayes_limit;
mod error;
mod framing;
mod labels;
mod message;
mod network;
mod open_connection;
mod plan;
mod random;
pub mod scenario;
mod simulation;
mod tls;

pub use bayes_limit::{BayesLimit, BayesLimitError, bayes_limit};
pub use error::{ScenarioError, SimulateError};
pub use scenario::Scenario;
pub use simulation::{SimulatedCapture, Simulation, Truth, simulate};
