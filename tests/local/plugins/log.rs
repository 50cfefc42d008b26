//! What the log shows of an object.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Mutex};

use purlin::controller::metrics::Metrics;
use purlin::controller::observed_journal::ObservedJournal;
use purlin::driver::Registry;
use purlin::execute::{Adoption, Engine, Limits, Run};
use purlin::model::Holder;
use purlin::plan::{PlanOptions, ResponseCache};
use purlin::process::telemetry::{self, LogFormat};
use purlin::process::{SystemClock, SystemRandom};
use purlin::store::MemoryJournal;
use serde_json::{Value, json};

use super::driver::Bench;
use crate::kit;

/// The lines of a log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

async fn create(bench: Bench, manifest: &str) {
    let (metrics, clock) = (Metrics::default(), Arc::new(SystemClock));
    let journal = ObservedJournal::new(Arc::new(MemoryJournal::default()), metrics.requests.clone());
    let drivers = Registry::default().with_providers(Arc::new(bench.providers));
    let (holder, random) = (Holder { pod: "".into(), process: "this".into() }, Arc::new(SystemRandom));
    let engine = Arc::new(Engine::new(drivers, Arc::new(journal), clock, random, Limits::default(), holder));
    let loaded = kit::load(manifest);
    let (config, options) = (Arc::new(loaded.config), PlanOptions { seed: 1, ..PlanOptions::default() });
    let mut run = Run::new(Arc::clone(&engine), "default".into(), BTreeMap::new());
    let planned = purlin::pipeline::plan(&engine, &config, &run.records, &options, &mut ResponseCache::default()).await;
    run.schedule
        .adopt(Adoption {
            scope: planned.config.instances.keys().cloned().collect(),
            config: planned.config,
            plan: planned.plan,
            graph: Arc::new(planned.graph),
            namespace: loaded.namespace,
            running: Vec::new(),
            desired_digests: Arc::default(),
            components: Arc::new([("web".into(), "database".into())].into()),
        })
        .unwrap();
    while run.next().await.is_some() {}
    engine.drivers.providers().unwrap().close().await;
}

#[tokio::test]
async fn the_lines_of_a_step_share_its_ids() {
    let log = Log::default();
    let (filter, writer) = (telemetry::filter("debug").unwrap(), log.clone());
    // While only one subscriber exists, `tracing` disables for good what another test, on a thread without a subscriber,
    // logs first.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = telemetry::subscriber(LogFormat::Json, filter, move || writer.clone());
    let subscribed = tracing::dispatcher::set_default(&subscriber);
    let bench = Bench::new();
    let directory = bench.directory.path().to_owned();
    let manifest = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Provider\nmetadata: {{ name: corner }}\nspec:\n  source: purlin/corner\n  \
         package: {{ path: '{program}' }}\n---\napiVersion: purlin.dev/v1alpha1\nkind: ProviderConfig\nmetadata: {{ name: \
         corner }}\nspec: {{ provider: {{ name: corner }}, config: {{ folder: '{world}' }} }}\n---\napiVersion: \
         purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: web }}\nspec:\n  type: corner_trouble\n  config: {{ text: \
         a value of a tenant, on_create: exit }}\n",
        program = directory.join("corner").display(),
        world = directory.display()
    );
    create(bench, &manifest).await;
    drop(subscribed);
    let lines = log.lines();
    let line = |message: &str, field: &str, value: &str| {
        let is_wanted = |line: &&Value| line["message"] == message && (field.is_empty() || line[field] == value);
        lines.iter().find(is_wanted).unwrap_or_else(|| panic!("{message} {value} is not in {lines:#?}"))
    };
    let of_step = [
        line("record write ended", "write", "intent"),
        line("provider call ended", "call", "ApplyResourceChange"),
        line("giving up as asked", "", ""),
        line("step ended", "outcome", "failed"),
    ];
    let ids: BTreeSet<&str> = of_step.map(|line| line["span"]["operation_id"].as_str().unwrap()).into();
    assert_eq!(ids.len(), 1, "{of_step:#?}");
    for line in of_step {
        let span = &line["span"];
        assert_eq!((&span["namespace"], &span["component"]), (&json!("default"), &json!("database")), "{line}");
        assert_eq!((&span["object"], &span["operation"]), (&json!("web"), &json!("create")), "{line}");
    }
    assert_eq!(of_step[1]["code"], "crashed");
    assert_eq!(of_step[3]["level"], "INFO");
    let planned = line("provider call ended", "call", "PlanResourceChange");
    assert_eq!((&planned["span"]["namespace"], &planned["span"]["object"]), (&json!("default"), &json!("web")));
    assert!(lines.iter().all(|line| !line.to_string().contains("a value of a tenant")));
}
