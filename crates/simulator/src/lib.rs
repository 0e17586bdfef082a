//! Labelled captures of a simulated gateway, with real TLS inside.
//!
//! A [`Scenario`] describes the home, the service and the network. [`simulate`] turns it and a seed into a
//! [`Simulation`]: a capture to learn from and one to test on, each with labels and the exact [`Truth`]. The gateway's
//! messages are framed as WebSocket, MQTT or HTTP, encrypted by a real TLS client and server in memory, split into TCP
//! segments and mixed with background traffic. The same scenario and seed produce the same bytes. [`bayes_limit`]
//! computes how well any method can identify the commands of a scenario.
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
mod command_generator;
mod framing;
mod home_life;
mod live_home;
mod message_encoder;
mod network;
mod random_streams;
pub mod scenario;
mod schedule;
mod simulation;
mod tls;
mod tls_connection;

pub use bayes_limit::{BayesLimit, BayesLimitError, bayes_limit};
pub use home_life::AttackTime;
pub use live_home::{CommandedDevice, Flight, LiveHome, LiveSession};
pub use scenario::{Scenario, ScenarioError, SimulateError};
pub use simulation::{SimulatedCapture, Simulation, TestForm, Truth, simulate, simulate_as};
