//! The binary `purlin`. The library contains all code.

use std::process::ExitCode;

fn main() -> ExitCode {
    purlin::cli::main()
}
