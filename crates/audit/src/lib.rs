//! What sizes give away about commands, over all commands of an inventory (`leakage`), and what padding and other
//! countermeasures cost and hide (`padding`).

pub mod leakage;
pub mod padding;
