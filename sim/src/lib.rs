//! Simulated worlds for kvmirror.
