//! TLS records and their plaintext sizes, out of TCP segments.
