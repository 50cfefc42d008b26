//! OpenTofu or Terraform with the provider program of the tests, from a mirror in the directory of the configuration.

use std::fs;
use std::path::{Path, PathBuf};

use crate::processes::measure;
use crate::programs::{Program, built};

/// The version of the provider in the configuration and the mirror, which require one.
pub(crate) const VERSION: &str = "3.9.0";

const TOFU: Program = Program { module: "peers/tofu", package: "github.com/opentofu/opentofu/cmd/tofu", name: "tofu" };

/// The program of OpenTofu, or why it could not be built.
#[allow(dead_code, reason = "a benchmark can measure what is installed instead")]
pub(crate) fn program() -> Result<PathBuf, String> {
    built(&TOFU)
}

/// Writes a configuration into a directory, and initializes it with the provider `random` of the tests.
pub(crate) fn initialize(program: &str, random: &Path, directory: &Path, configuration: &str) {
    let required = format!("random = {{ source = \"hashicorp/random\", version = \"{VERSION}\" }}");
    let settings = format!("terraform {{\n  required_providers {{\n    {required}\n  }}\n}}\n");
    fs::write(directory.join("main.tf"), settings + configuration).expect("a file");
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let machine = if machine == "x86_64" { "amd64" } else { "arm64" };
    for host in ["registry.terraform.io", "registry.opentofu.org"] {
        let package = format!("mirror/{host}/hashicorp/random/{VERSION}/{system}_{machine}");
        let package = directory.join(package);
        fs::create_dir_all(&package).expect("a directory");
        fs::copy(random, package.join(format!("terraform-provider-random_v{VERSION}"))).expect("a copy");
    }
    measure(program, &["init", "-no-color", "-plugin-dir=mirror"], directory);
}
