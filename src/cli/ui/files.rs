//! The live view of manifests and a state file: planned again, without reading objects, whenever one of them changes. It
//! takes no lock, so that `purlin dev` or `purlin apply` can run at the same time.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::watch;

use super::planned::Planned;
use crate::cli::dev::Watch;
use crate::cli::local::{self, Observation};
use crate::cli::options::{Files, Planning};
use crate::cli::view;
use controller::ui::snapshot::Snapshot;
use controller::ui::{About, Current, Detail, LONGEST_WAIT, PlanDetail, Refusal, Session, decision};
use runtime::execute::Engine;

/// How often the state file is looked at. A step that takes less may not be seen running.
const INTERVAL: Duration = Duration::from_millis(100);

/// What is known at one moment.
#[derive(Default)]
struct Observed {
    version: u64,
    snapshot: Arc<Snapshot>,
    /// `None` if the files or the records cannot be read.
    planned: Option<Planned>,
}

/// A session on files. It shows what a [`Follower`] has read.
pub struct FilesSession {
    files: Files,
    latest: watch::Sender<Arc<Observed>>,
}

/// What reads and plans for a session.
pub struct Follower {
    session: Arc<FilesSession>,
    watch: Watch,
    /// That of the last plan, with the owner name that it marks objects with. Providers stay running between plans.
    engine: Option<(String, Engine)>,
}

impl FilesSession {
    pub fn new(files: Files) -> Self {
        Self { files, latest: watch::Sender::default() }
    }

    /// The namespace of the manifests and records, as far as they can be read.
    pub fn namespace(&self) -> String {
        self.latest.borrow().snapshot.namespace.clone()
    }

    fn planned<T>(&self, show: impl FnOnce(&Planned) -> Option<T>) -> Result<T, Refusal> {
        let observed = Arc::clone(&self.latest.borrow());
        let shown = observed.planned.as_ref().and_then(show);
        shown.ok_or_else(|| Refusal::new(404, "there is no such object"))
    }
}

impl Follower {
    /// Reads the files and records once.
    pub async fn new(session: Arc<FilesSession>) -> Self {
        let watch = Watch::new(&session.files, Instant::now());
        let mut follower = Self { session, watch, engine: None };
        follower.observe().await;
        follower
    }

    /// Reads the files and records whenever they change. Never ends.
    pub async fn follow(mut self) {
        loop {
            let seen = state_fingerprint(&self.session.files);
            self.observe().await;
            let files = &self.session.files;
            while state_fingerprint(files) == seen && !(Instant::now() >= self.watch.next_poll() && self.watch.poll()) {
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }

    /// Reads and plans.
    async fn observe(&mut self) {
        let planned = self.plan().await;
        let latest = &self.session.latest;
        let version = latest.borrow().version + 1;
        let observed = match planned {
            Ok(planned) => Observed { version, snapshot: Arc::new(planned.snapshot()), planned: Some(planned) },
            Err(error) => {
                let before = latest.borrow().snapshot.clone();
                let notes = vec![format!("The files or the records cannot be read: {error:#}")];
                let snapshot = Arc::new(Snapshot { notes, ..(*before).clone() });
                Observed { version, snapshot, planned: None }
            }
        };
        latest.send_replace(Arc::new(observed));
    }

    async fn plan(&mut self) -> anyhow::Result<Planned> {
        let (files, planning) = (&self.session.files, Planning::without_refresh());
        let observation = Observation::of(files)?;
        self.watch.follow(observation.desired());
        let engine = match self.engine.take() {
            Some((owner, engine)) if owner == observation.owner() => engine,
            _ => view::planning_engine(local::drivers(files, observation.owner()).await?, planning.limits),
        };
        let (_, engine) = self.engine.insert((observation.owner().to_owned(), engine));
        let (inputs, running) = observation.inputs(files, &engine.drivers).await?;
        let parameters = crate::cli::inputs::PlanParameters { running, ..Default::default() };
        let planned = inputs.plan(engine, &planning, parameters).await?;
        Ok(Planned { inputs, planned })
    }
}

/// The size and time of the state file, and the header of the index of its write-ahead log. SQLite writes the header when
/// readers see a commit; the log itself changes before that.
fn state_fingerprint(files: &Files) -> u64 {
    /// Two copies of the header. What follows changes with every reader.
    const HEADER: usize = 96;
    let mut index = files.state.clone().into_os_string();
    index.push("-shm");
    let mut header = [0_u8; HEADER];
    let read = File::open(PathBuf::from(index)).and_then(|mut file| file.read_exact(&mut header)).is_ok();
    let metadata = std::fs::metadata(&files.state).ok();
    let mut hasher = DefaultHasher::new();
    (read, header, metadata.map(|file| (file.len(), file.modified().ok()))).hash(&mut hasher);
    hasher.finish()
}

impl Session for FilesSession {
    fn about(&self) -> BoxFuture<'_, Result<About, Refusal>> {
        let sources: Vec<String> = self.files.sources.iter().map(|path| path.display().to_string()).collect();
        let namespace = self.namespace();
        let about = About {
            version: crate::cli::VERSION,
            target: format!("files in {}, records in {}", sources.join(", "), self.files.state.display()),
            namespaces: vec![namespace.clone()],
            default_namespace: namespace,
            ..About::default()
        };
        async move { Ok(about) }.boxed()
    }

    fn graph<'a>(&'a self, _: &'a str, seen: Option<&'a str>) -> BoxFuture<'a, Result<Current, Refusal>> {
        let mut latest = self.latest.subscribe();
        async move {
            let is_new = |observed: &Arc<Observed>| {
                observed.version > 0 && seen.is_none_or(|seen| seen != observed.version.to_string())
            };
            let changed = async { latest.wait_for(is_new).await.map(|observed| Arc::clone(&observed)) };
            match tokio::time::timeout(LONGEST_WAIT, changed).await {
                Ok(Ok(observed)) => {
                    let (version, snapshot) = (observed.version.to_string(), Arc::clone(&observed.snapshot));
                    Ok(Current::Changed { version, snapshot })
                }
                _ => Ok(Current::Unchanged),
            }
        }
        .boxed()
    }

    fn object<'a>(&'a self, _: &'a str, name: &'a str) -> BoxFuture<'a, Result<Detail, Refusal>> {
        let detail = self.planned(|planned| planned.detail(name));
        async move { detail }.boxed()
    }

    fn plan<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<PlanDetail, Refusal>> {
        async { Err(Refusal::new(404, "Plans exist only in a cluster")) }.boxed()
    }

    fn decide<'a>(&'a self, _: &'a decision::Request) -> BoxFuture<'a, Result<String, Refusal>> {
        async { Err(Refusal::new(404, "on files, `purlin apply` asks for confirmation")) }.boxed()
    }
}
