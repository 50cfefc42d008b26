//! `purlin state push`: moves the records of a state file to the records of a controller.
//!
//! All records are written to the cluster before the first one is removed from the file. A crash in between leaves both
//! copies, and the repeated command finds that they are equal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{confirm, edit};
use crate::cli::args::{FileArgs, StatePushArgs};
use crate::cli::cluster::{self, ClusterEditor};
use crate::cli::failure::Failure;
use crate::cli::local;
use crate::cli::options::{Cluster, Files};
use crate::cli::output::Console;
use drivers::kubernetes_object;
use model::{Address, InstanceKey, Name, Record, Recorded, Uid};

pub async fn run(args: StatePushArgs, console: Console) -> anyhow::Result<()> {
    let files = Files::new(FileArgs { state: args.state, ..FileArgs::default() }, None);
    let (loaded, state) = local::open_records(&files, console)?;
    if let Some(unreadable) = loaded.unreadable.first() {
        return Err(Failure::hinted(unreadable.to_string(), "nothing was moved"));
    }
    let target = Cluster {
        kubeconfig: args.kubeconfig,
        context: args.context,
        namespace: Some(args.namespace.clone()),
        controller_namespace: args.controller_namespace,
    };
    let (there, editor) = cluster::open_records(&target, console).await?;
    let moved = movable(loaded.records, console)?;
    if moved.is_empty() {
        console.notice("No records were moved.");
        return Ok(());
    }
    let namespace = args.namespace.as_str();
    let records: Vec<Record> = moved.values().map(|stored| of_cluster(&stored.record, namespace)).collect();
    check(&records, &there.records, &editor).await?;
    confirm(&question(&records, &files.state, namespace), args.yes, console)?;
    for record in records.iter().filter(|record| !there.records.contains_key(&record.address)) {
        editor.create(record).await?;
    }
    for (name, instances) in families(&records) {
        editor.create_index(name, instances).await?;
    }
    for stored in moved.values() {
        state.delete(&stored.record.address, stored.version).await?;
    }
    let count = records.len();
    console.notice(&format!("Moved {count} {}.", if count == 1 { "record" } else { "records" }));
    console.notice(&format!("Next: apply the manifests with `kubectl apply -n {namespace} -f DIR`."));
    Ok(())
}

/// The records that can move. Those of `kubernetes_object` cannot: their objects carry the mark of their owner, which
/// contains the namespace.
fn movable(mut recorded: Recorded, console: Console) -> anyhow::Result<Recorded> {
    recorded.values().try_for_each(|stored| edit::require_no_intent(&stored.record))?;
    recorded.retain(|address, stored| {
        let stays = *stored.record.type_name == *kubernetes_object::TYPE_NAME;
        if stays {
            let hint = "to let the controller adopt the object, remove its owner annotation and set `spec.import.id`";
            console.notice(&format!("note: the record of `{address}` stays in the file (hint: {hint})"));
        }
        !stays
    });
    Ok(recorded)
}

/// Returns an error if the records cannot be written, or if the controller may be creating one of the objects.
async fn check(records: &[Record], there: &Recorded, editor: &ClusterEditor) -> anyhow::Result<()> {
    editor.require_namespace().await?;
    for record in records {
        let address = &record.address;
        if address.is_qualified() {
            let what =
                format!("`{address}` is an object of a Terraform configuration, of which clusters have none yet");
            return Err(Failure::hinted(what, "keep the records in the file, and use `purlin apply` there"));
        }
        if there.get(address).is_some_and(|stored| *stored.record != *record) {
            return Err(Failure::hinted(
                format!("`{address}` already has a record in the namespace `{}`", record.namespace),
                format!("to forget one of the two objects without destroying it: `purlin state rm {address}`"),
            ));
        }
    }
    let names: BTreeSet<&Name> = records.iter().map(|record| record.address.name()).collect();
    for name in names {
        editor.require_inactive(name).await?;
    }
    Ok(())
}

/// The record as a controller stores it. The controller publishes again: its targets are objects of the cluster. It
/// writes the UID when it adopts the record.
fn of_cluster(record: &Record, namespace: &str) -> Record {
    let (namespace, uid) = (namespace.into(), Uid::default());
    Record { namespace, uid, published: Vec::new(), source: None, ..record.clone() }
}

/// The addresses of each name that needs an index of its instances.
fn families(records: &[Record]) -> BTreeMap<Name, BTreeSet<Address>> {
    let mut families: BTreeMap<Name, BTreeSet<Address>> = BTreeMap::new();
    for Record { address, .. } in records {
        families.entry(address.name().clone()).or_default().insert(address.clone());
    }
    families.retain(|_, of_name| of_name.iter().any(|address| address.key != InstanceKey::None));
    families
}

fn question(records: &[Record], path: &Path, namespace: &str) -> String {
    let objects: usize =
        records.iter().map(|record| usize::from(record.current.is_some()) + record.deposed.len()).sum();
    format!(
        "The records of {objects} {} move from {} to the namespace `{namespace}`. No object is changed. From then on, only \
         the controller manages them.",
        if objects == 1 { "object" } else { "objects" },
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::state::fixtures::record;

    #[test]
    fn only_names_with_keys_need_an_index() {
        let records = ["a", "b[0]", "b[1]", "c", "c[0]"].map(record);
        let found: Vec<String> = families(&records)
            .iter()
            .map(|(name, addresses)| {
                format!("{name}: {}", addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(found, ["b: b[0] b[1]", "c: c c[0]"]);
    }

    #[test]
    fn a_record_of_a_cluster_has_no_source_and_the_namespace_of_the_cluster() {
        let local = Record { source: Some("infra/web.yaml".into()), ..record("web") };
        let moved = of_cluster(&local, "shop");
        assert_eq!((&*moved.namespace, &*moved.uid, moved.source), ("shop", "", None));
        assert_eq!(moved.current, local.current);
    }
}
