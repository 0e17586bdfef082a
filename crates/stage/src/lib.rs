//! What every stage of sizeleak is made of: traits, dispatch, latency, stdio, channels.
