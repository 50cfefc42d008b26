//! The writes of a controller, from the audit log of the API server.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::controlplane::ControlPlane;

/// The user of Purlin's controller. This includes the calls of `kubernetes_object`, which impersonate other users.
pub(crate) const CONTROLLER: &str = "system:serviceaccount:purlin-system:purlin";

/// A write of the controller.
pub(crate) struct Write {
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    pub(crate) received: Timestamp,
    /// The HTTP status of the response.
    pub(crate) code: u64,
}

/// The audit log of the API server, from a given time on.
pub(crate) struct Audit {
    log: BufReader<File>,
    user: &'static str,
}

impl Audit {
    /// `user`: the user of the controller.
    pub(crate) fn from_now(plane: &ControlPlane, user: &'static str) -> Self {
        let mut file = File::open(plane.audit_log()).expect("the audit log");
        file.seek(SeekFrom::End(0)).expect("its end");
        Self { log: BufReader::new(file), user }
    }

    /// Returns the writes of the controller since the last call, except for Leases, reviews and dry runs.
    pub(crate) fn writes(&mut self) -> Vec<Write> {
        let mut text = Vec::new();
        self.log.read_to_end(&mut text).expect("the audit log");
        // A line that is being written is read with the next ones.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.log.seek_relative(-((text.len() - whole) as i64)).expect("the last line");
        let lines = text[..whole].lines().map_while(Result::ok);
        lines.filter_map(|line| Write::of(&serde_json::from_str(&line).ok()?, self.user)).collect()
    }

    /// Waits until the controller has written nothing for `quiet`, because events are written at a limited rate, but no
    /// longer than `limit`. Returns the time until the last write.
    pub(crate) async fn until_quiet(&mut self, quiet: Duration, limit: Duration) -> Duration {
        let start = Instant::now();
        let mut last = Instant::now();
        while last.elapsed() < quiet && start.elapsed() < limit {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if !self.writes().is_empty() {
                last = Instant::now();
            }
        }
        last - start
    }
}

impl Write {
    fn of(entry: &Value, user: &str) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let write = Self {
            verb: text(&entry["verb"]),
            resource: text(&entry["objectRef"]["resource"]),
            subresource: text(&entry["objectRef"]["subresource"]),
            name: text(&entry["objectRef"]["name"]),
            received: entry["requestReceivedTimestamp"].as_str()?.parse().ok()?,
            code: entry["responseStatus"]["code"].as_u64().unwrap_or_default(),
        };
        let ours = entry["stage"] == "ResponseComplete" && entry["user"]["username"] == user;
        let writes = ["create", "update", "patch", "delete"].contains(&write.verb.as_str());
        let dry = text(&entry["requestURI"]).contains("dryRun");
        (ours && writes && !dry && write.resource != "leases" && !write.resource.ends_with("reviews")).then_some(write)
    }

    fn kind(&self) -> String {
        let resource = match self.resource.as_str() {
            "resources" => "Resource",
            "secrets" => "Secret",
            other => other,
        };
        let kind = format!("{} {resource} {}", self.verb, self.subresource);
        kind.trim_end().to_owned()
    }
}

pub(crate) fn counted(writes: &[Write]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    writes.iter().for_each(|write| *counted.entry(write.kind()).or_default() += 1);
    counted
}
