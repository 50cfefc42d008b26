//! Measurement of whole processes, and the references between the objects that they manage.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A pseudo-random generator with the same numbers in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    /// `seed`: different ones have different numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, less than `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// The two earlier objects that each object references; fewer for the first ones.
pub(crate) fn references(count: usize) -> Vec<Vec<usize>> {
    let mut numbers = Numbers::new(7);
    (0..count)
        .map(|object| {
            let first = object.saturating_sub(50);
            (0..2).filter(|_| object > 0).map(|_| first + numbers.below(object - first)).collect()
        })
        .collect()
}

/// Runs a program until it exits. Returns the wall time and the peak resident memory in bytes.
pub(crate) fn measure(program: &str, arguments: &[&str], directory: &Path) -> (Duration, u64) {
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let code = loop {
        // The peak of an exited process cannot be read, so the last value before that is used.
        if let Ok(text) = fs::read_to_string(&status) {
            let kib = text
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
            peak = kib.map_or(peak, |kib: u64| kib * 1024);
        }
        if let Some(code) = child.try_wait().expect("a child") {
            break code;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(code.success(), "{program} {arguments:?}: {code}");
    (start.elapsed(), peak)
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

pub(crate) fn report(what: &str, count: usize, runs: &[(Duration, u64)]) {
    let time = median(runs.iter().map(|(time, _)| *time).collect());
    let slowest = runs.iter().map(|(time, _)| *time).max().unwrap_or_default();
    let peak = runs.iter().map(|(_, peak)| *peak).max().unwrap_or_default();
    println!(
        "{what:<28} {count:>7} objects  median {:>9.1} ms  slowest {:>9.1} ms  peak {:>7.1} MiB",
        time.as_secs_f64() * 1000.0,
        slowest.as_secs_f64() * 1000.0,
        peak as f64 / f64::from(1 << 20)
    );
}

pub(crate) fn exists(program: &str) -> bool {
    Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    fn file(self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0)).expect("a running controller")
    }

    fn size(self, label: &str) -> u64 {
        let text = self.file("status");
        let line = text.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().map_or(0, |kib| kib * 1024)
    }

    pub(crate) fn memory(self) -> u64 {
        self.size("VmRSS:")
    }

    pub(crate) fn peak(self) -> u64 {
        self.size("VmHWM:")
    }

    /// The CPU time in user and system mode.
    pub(crate) fn cpu(self) -> Duration {
        let text = self.file("stat");
        // The name of the program is in parentheses and may contain any character; the state is the first field after
        // it.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }
}

pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
