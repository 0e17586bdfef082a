//! Packets out of capture files.
