//! The steps that are under way: what is told of one before it ends, and the places that it holds meanwhile.
//!
//! A step may last long after its request: the record of its result is refused, its call goes on past its limit, its
//! object is not ready yet. Whoever looks at the object is told why, and while nothing is asked of anybody the step
//! holds no place that others wait for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::places::Place;
use crate::model::{Address, Reason, Record, Step};
use crate::process::lock;

/// After so long whoever waits is told why, and again each time, since a new plan begins with a clean sheet.
const WORTH_TELLING: Duration = Duration::from_secs(10);

/// Why a step that goes on lasts so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The condition reason.
    pub reason: Reason,
    /// One line, without sensitive values.
    pub message: String,
}

/// What a run is told of a step.
#[derive(Debug)]
pub enum News {
    /// Why it lasts.
    Delayed(Delay),
    /// It has given back its places.
    Placeless,
}

/// Namespace and instance.
type Whose = (Arc<str>, Address);

/// The steps, by their objects: of each at most one runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(Arc<Mutex<BTreeMap<Whose, Entry>>>);

/// A step, as long as it lasts.
pub(crate) struct Attendance {
    all: UnderWay,
    whose: Whose,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.whose);
    }
}

#[derive(Debug)]
struct Entry {
    step: Step,
    run: UnboundedSender<(Step, News)>,
    place: Place,
}

impl UnderWay {
    /// A step begins, with the places that it has. They are free again when it ends.
    pub fn begin(
        &self,
        namespace: &Arc<str>,
        step: &Step,
        run: UnboundedSender<(Step, News)>,
        place: Place,
    ) -> Attendance {
        let whose = (Arc::clone(namespace), step.address.clone());
        lock(&self.0).insert(whose.clone(), Entry { step: step.clone(), run, place });
        Attendance { all: self.clone(), whose }
    }

    /// Whether a step of this record's object runs.
    pub fn contains(&self, record: &Record) -> bool {
        lock(&self.0).contains_key(&(Arc::clone(&record.namespace), record.address.clone()))
    }

    /// Says why the step of this record's object lasts.
    pub fn tell(&self, record: &Record, delay: Delay) {
        tracing::debug!(address = %record.address, reason = %delay.reason, "delayed: {}", delay.message);
        self.send(record, |_| News::Delayed(delay));
    }

    /// Gives back the places of that step: it only waits from now on.
    pub fn release(&self, record: &Record) {
        self.send(record, |place| {
            *place = Place::default();
            News::Placeless
        });
    }

    fn send(&self, record: &Record, news: impl FnOnce(&mut Place) -> News) {
        let mut all = lock(&self.0);
        // Recovery and other writers are no steps.
        let Some(entry) = all.get_mut(&(Arc::clone(&record.namespace), record.address.clone())) else { return };
        let news = news(&mut entry.place);
        // A run that was let go of is told nothing any more.
        let _ = entry.run.send((entry.step.clone(), news));
    }

    /// Waits for something that may last, telling again and again why as long as it does. Places are given back.
    pub async fn wait<T>(&self, record: &Record, work: impl Future<Output = T>, why: impl Fn() -> Delay) -> T {
        let mut work = std::pin::pin!(work);
        let mut is_first = true;
        loop {
            match tokio::time::timeout(WORTH_TELLING, &mut work).await {
                Ok(done) => return done,
                Err(_) if std::mem::take(&mut is_first) => self.release(record),
                Err(_) => {}
            }
            self.tell(record, why());
        }
    }
}
