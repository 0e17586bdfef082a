//! Commands to a gateway, out of the TLS records around them.
