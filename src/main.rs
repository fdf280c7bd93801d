//! The command line. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    sidegate::cli::run()
}
