//! What sizes give away about commands, over all commands of an inventory (`leakage`), and what padding and other
//! countermeasures cost and hide (`padding`), also from a home's own detector (`guard`); what is seen through a tunnel (`tunnel`).

#[cfg(feature = "simulator")]
pub mod guard;
pub mod leakage;
pub mod padding;
pub mod tunnel;
