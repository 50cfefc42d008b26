//! The tables, printed and written into docs/benchmarks.md after each measurement, so that a run that is interrupted
//! leaves what it has measured.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use purlin::process::{Clock as _, SystemClock};

use crate::files::Files;
use crate::measure::Row;
use crate::processes::mib;
use crate::rolling::Outcome;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/benchmarks.md");

/// What is between these lines of the page is replaced.
const BEGIN: &str = "<!-- scale: begin -->\n";
const END: &str = "<!-- scale: end -->";

const ROWS: &str = "\
| Program | Objects | Replicas | Ready a second | p50 | p99 | Writes per object | Memory of all replicas (largest) \
| Writes in 30 s, idle | CPU, idle | One change | Fail-over | Memory after it | Deleted a second |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

const FILES: &str = "\
| Program | Objects | Apply | Plan, nothing to do | Peak memory |
|---|---|---:|---:|---:|
";

#[derive(Default)]
pub(crate) struct Report {
    write: bool,
    /// When and how this was measured.
    conditions: String,
    rows: String,
    files: String,
    left_out: String,
    rolling: String,
}

impl Report {
    /// `write`: whether to write into the page too.
    pub(crate) fn start(write: bool) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        let command = ["cargo bench --bench scale --", &arguments.join(" ")].join(" ");
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let date = SystemClock.now().strftime("%Y-%m-%d").to_string();
        let (model, memory) = (field("/proc/cpuinfo", "model name"), field("/proc/meminfo", "MemTotal"));
        let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        let conditions = format!(
            "`{command}`\non {date}, {cores} cores ({model}), {:.0} GiB. Load of the machine before the first \
             measurement: {load}.\n",
            kib / f64::from(1 << 20)
        );
        println!("{conditions}");
        Self { write, conditions, ..Self::default() }
    }

    pub(crate) fn row(&mut self, row: Row) {
        let share = |share: f64| {
            let index = (row.times.len() as f64 * share) as usize;
            row.times.get(index.min(row.times.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        let line = format!(
            "| {} | {} {} | {} | {:.0} | {} | {} | {:.1} | {} | {} | {:.1} % | {} | {} | {} | {:.0} |\n",
            row.program,
            grouped(row.objects),
            row.kind,
            row.replicas,
            row.objects as f64 / row.total.as_secs_f64(),
            seconds(share(0.5)),
            seconds(share(0.99)),
            row.writes as f64 / row.objects as f64,
            memory(&row.memory),
            row.idle_writes,
            row.idle_cpu,
            seconds(row.change),
            row.fail_over.map_or_else(|| "not within the limit".to_owned(), seconds),
            memory(&row.memory_after),
            row.objects as f64 / row.deletion.as_secs_f64(),
        );
        print!("{line}");
        self.rows.push_str(&line);
        self.save();
    }

    pub(crate) fn files(&mut self, files: Files) {
        let line = format!(
            "| {} | {} `{}` | {} | {} | {:.0} MiB |\n",
            files.program,
            grouped(files.objects),
            files.kind,
            seconds(files.apply),
            seconds(files.plan),
            mib(files.memory)
        );
        print!("{line}");
        self.files.push_str(&line);
        self.save();
    }

    /// A program that is not measured, and why.
    pub(crate) fn left_out(&mut self, program: &str, why: &str) {
        let line = format!("{program} is not measured: {}\n", why.replace('\n', " "));
        // It is left out for every number of objects.
        if !self.left_out.contains(&line) {
            print!("{line}");
            self.left_out.push_str(&line);
            self.save();
        }
    }

    pub(crate) fn rolling(&mut self, outcome: &Outcome) {
        self.rolling = rolling(outcome);
        println!("\n{}", self.rolling);
        self.save();
    }

    fn save(&self) {
        if !self.write {
            return;
        }
        let page = fs::read_to_string(PAGE).expect("docs/benchmarks.md");
        let (before, rest) = page.split_once(BEGIN).expect("the first marker in docs/benchmarks.md");
        let (_, after) = rest.split_once(END).expect("the second marker in docs/benchmarks.md");
        let mut text = format!("\n{}\n", self.conditions);
        for (head, table) in [(ROWS, &self.rows), (FILES, &self.files)] {
            if !table.is_empty() {
                let _ = writeln!(text, "{head}{table}");
            }
        }
        for part in [&self.left_out, &self.rolling] {
            if !part.is_empty() {
                let _ = writeln!(text, "{part}");
            }
        }
        fs::write(Path::new(PAGE), [before, BEGIN, &text, END, after].concat()).expect("docs/benchmarks.md");
    }
}

fn rolling(outcome: &Outcome) -> String {
    let share = |share: f64| {
        let index = (outcome.times.len() as f64 * share) as usize;
        outcome.times.get(index.min(outcome.times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    let mut text = format!(
        "{} replicas, one killed with SIGKILL every {} and started again, for {} min: {} kills.\n",
        outcome.replicas,
        seconds(outcome.interval),
        outcome.time.as_secs() / 60,
        outcome.kills
    );
    let _ = writeln!(
        text,
        "Users in {} namespaces made {} changes, deleted {} Resources, and had {} at the end.",
        outcome.namespaces,
        grouped(outcome.changes),
        grouped(outcome.deleted),
        grouped(outcome.resources)
    );
    let _ = writeln!(
        text,
        "{} ConfigMaps were created. {} interrupted operations were recovered.",
        grouped(outcome.created),
        outcome.recoveries
    );
    let _ = writeln!(
        text,
        "A change was ready after {} (median), {} (99th percentile), {} (slowest).",
        seconds(share(0.5)),
        seconds(share(0.99)),
        seconds(share(1.0))
    );
    if outcome.gaps > 0 {
        let _ = writeln!(text, "The watch of the ConfigMaps was interrupted {} times.", outcome.gaps);
    }
    match outcome.problems.as_slice() {
        [] => text.push_str(
            "Exactly one ConfigMap existed for each Resource, with its last revision. None was lost, none doubled.\n",
        ),
        problems => {
            let _ = writeln!(text, "{} problems:", problems.len());
            problems.iter().take(20).for_each(|problem| text.push_str(&format!("- {problem}\n")));
        }
    }
    text
}

/// The value of a field in a file of /proc.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

/// The memory of all replicas, and of the largest one.
fn memory(of_replicas: &[u64]) -> String {
    let largest = of_replicas.iter().max().copied().unwrap_or_default();
    format!("{:.0} MiB ({:.0})", mib(of_replicas.iter().sum()), mib(largest))
}

fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.1} s"),
    }
}

/// A number with a comma between thousands.
fn grouped(number: usize) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}
