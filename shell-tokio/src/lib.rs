//! The tokio shell of kvmirror.
