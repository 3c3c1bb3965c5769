//! Scenarios, captures and end-to-end tests of kvmirror.
