//! The `kvmirror` command.

fn main() {}
