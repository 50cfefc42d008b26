//! The program `purlin`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    purlin::cli::main()
}
