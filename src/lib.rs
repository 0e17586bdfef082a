//! Shows what the sizes of encrypted messages give away about the people behind an `IoT` gateway.
