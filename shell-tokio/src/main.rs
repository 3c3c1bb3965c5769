//! The `kvmirror` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kvmirror_tokio::cli::main()
}
