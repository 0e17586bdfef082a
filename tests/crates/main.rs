//! The crates and stages through their public interfaces.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod audit {
    mod brute_force;
    mod bundled_home;
    mod costs;
    mod countermeasure_oracles;
    mod guard;
    mod model_observer;
    mod padded_outputs;
    mod padding_bundled_home;
    mod refusals;
    mod table_oracles;
    mod table_source;
    mod tunnel_oracles;
    mod tunnels;
}
mod capture {
    mod captures;
    mod compressed;
    mod damaged;
    mod merged;
    mod progress;
    mod streams;
    mod written;
}
mod decomposer {
    mod bounds;
    mod caching;
    mod cut_lists;
    mod hard;
    mod kinds;
    mod lists;
    mod oracle;
    mod recurring;
}
mod flow_filter {
    mod filter;
    mod flood;
    mod fragments;
    mod layers;
    mod traffic;
    mod tunnels;
}
mod frame {
    mod batches;
    mod buffers;
    mod codec;
    mod document;
    mod kinds;
    mod python;
    mod samples;
    mod specification;
    mod values;
}
mod learning {
    mod few_commands;
    mod homes;
    mod hostile;
    mod measured_commands;
}
mod model {
    mod epsilon;
    mod files;
    mod fit;
    mod inventories;
    mod models;
    mod numbers;
    mod padded_sizes;
    mod padding_files;
    mod replies;
    mod samples;
    mod sections;
}
mod pipeline {
    mod pushed_down;
}
mod platform {
    mod confined;
    mod node;
}
mod pruner {
    mod replies;
    mod shared_replies;
    mod stage;
}
mod record_sizer {
    mod messages;
    mod missing_bytes;
    mod odd_packets;
    mod protocols;
    mod reused_ports;
    mod simulated;
    mod streams;
    mod wire;
}
mod simulator {
    mod capture_reader;
    mod home_life;
    mod scenarios;
    mod simulation;
    mod variations;
}
mod traffic {
    mod stripped_content;
}
