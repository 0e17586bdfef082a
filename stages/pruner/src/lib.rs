//! The decompositions that the traffic after a command does not contradict.
