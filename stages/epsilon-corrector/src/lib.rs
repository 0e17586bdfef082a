//! The variation of a command's size, from the labelled commands nearest in size.
