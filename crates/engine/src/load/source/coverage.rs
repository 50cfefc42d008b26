//! Which recorded objects the given sources cover.
//!
//! A missing manifest removes an object only if the source of its record is covered. A source without any Resource
//! covers nothing, because it may be a directory that is not mounted, or the wrong one. Only `purlin destroy` says
//! explicitly that its objects are to be destroyed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::files::{STDIN, SourcePaths};
use crate::load::Config;
use model::{Address, Diagnostic, Diagnostics, Reason, Recorded, Severity, Stem};

/// A path that the user gave.
#[derive(Clone, Debug)]
pub struct GivenSource {
    /// As the user gave it.
    pub name: String,
    pub absolute: PathBuf,
    /// The error if the path does not exist.
    pub missing: Option<Diagnostic>,
    /// It could be read and contains no Resource.
    pub is_empty: bool,
    /// It contains files that are not empty, such as the settings of an environment.
    pub has_files: bool,
}

/// The given sources. The default covers everything.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    paths: SourcePaths,
    given: Vec<GivenSource>,
    /// The given sources are everything (`--prune`).
    prune: bool,
    /// The sources of the last apply to the same records.
    before: Vec<String>,
}

impl Coverage {
    pub fn new(paths: SourcePaths, given: Vec<GivenSource>) -> Self {
        Self { paths, given, prune: false, before: Vec::new() }
    }

    /// Treats the given sources as everything.
    #[must_use]
    pub fn pruning(self, prune: bool) -> Self {
        Self { prune, ..self }
    }

    /// Sets the sources of the last apply to the same records.
    #[must_use]
    pub fn after(self, before: Vec<String>) -> Self {
        Self { before, ..self }
    }

    /// Returns the given sources as a state file stores them.
    pub fn names(&self) -> Vec<String> {
        self.given.iter().map(|given| self.paths.source(&given.absolute).to_string()).collect()
    }

    pub fn paths(&self) -> &SourcePaths {
        &self.paths
    }

    /// Warns if another source takes the place of one that still exists beside a source that stays the same: these may be
    /// the overlays of two environments.
    fn other_environment(&self) -> Option<Diagnostic> {
        let now = self.names();
        let stays = self.before.iter().any(|name| now.contains(name));
        let left_out = self.before.iter().find(|name| {
            let is_covered = self.given.iter().any(|given| self.covers(given, name));
            !is_covered && self.paths.file(name).exists()
        })?;
        let added = now.iter().find(|name| !self.before.contains(name)).filter(|_| stays)?;
        let what =
            format!("the last apply to these records was given `{left_out}`, and this command `{added}` instead");
        let hint = "if these are two environments, use a state file for each, and select it with --state";
        let warning = Diagnostic::general(Reason::OtherEnvironment, what).hint(hint);
        Some(Diagnostic { severity: Severity::Warning, ..warning })
    }

    /// Returns the recorded objects of other sources, and those whose source is not recorded. `destroys`: the objects of
    /// the given sources are to be destroyed, with or without manifests.
    pub fn others(&self, recorded: &Recorded, destroys: bool) -> BTreeSet<Address> {
        let covering: Vec<&GivenSource> = self.given.iter().filter(|given| destroys || !given.is_empty).collect();
        if self.given.is_empty() || (self.prune && !covering.is_empty()) {
            return BTreeSet::new();
        }
        let sources: BTreeSet<&str> = recorded.values().filter_map(|stored| stored.record.source.as_deref()).collect();
        let covered: BTreeSet<&str> =
            sources.into_iter().filter(|source| covering.iter().any(|given| self.covers(given, source))).collect();
        recorded
            .values()
            .filter(|stored| stored.record.source.as_deref().is_none_or(|source| !covered.contains(source)))
            .map(|stored| stored.record.address.clone())
            .collect()
    }

    /// Returns the configuration with the recorded objects of other sources, which are left unchanged.
    pub fn complete(&self, config: &Config, recorded: &Recorded, others: &BTreeSet<Address>, destroys: bool) -> Config {
        let claimed = config.claimed_stems(recorded);
        let standing = self.standing(recorded, others, &claimed);
        config.with_other_sources(recorded, others, &standing, destroys)
    }

    /// Returns those of the names whose manifest is still in the file of their record.
    fn standing(&self, recorded: &Recorded, others: &BTreeSet<Address>, names: &BTreeSet<&Stem>) -> BTreeSet<Stem> {
        let records = others.iter().filter(|address| names.contains(&address.stem));
        let records = records.filter_map(|address| recorded.get(address)).map(|stored| &stored.record);
        let sources: BTreeSet<&str> = records.filter_map(|record| record.source.as_deref()).collect();
        let files = sources.into_iter().filter(|source| *source != STDIN).map(|source| self.paths.file(source));
        let existing: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
        let config = super::read(&existing, &self.paths).config;
        config.stems().filter(|name| names.contains(name)).cloned().collect()
    }

    /// Returns the problems of reading the sources, and why a source without Resources destroys nothing. A source that
    /// no longer exists can still be destroyed.
    pub fn problems(&self, read: &Diagnostics, recorded: &Recorded, destroys: bool) -> Diagnostics {
        let mut problems = read.clone();
        problems.extend(self.other_environment().filter(|_| !destroys));
        // Counting the objects of a source takes a while, and only such a source needs it.
        for given in self.given.iter().filter(|given| given.missing.is_some() || given.is_empty) {
            let name = &given.name;
            let sources = recorded.values().filter_map(|stored| stored.record.source.as_deref());
            let objects = sources.filter(|source| self.covers(given, source)).count();
            let hint = format!("`purlin destroy -f {name}` destroys the objects that were created from it");
            if let Some(missing) = given.missing.as_ref().filter(|_| objects > 0) {
                if destroys {
                    problems.retain(|problem| problem != missing);
                }
                for problem in problems.iter_mut().filter(|problem| *problem == missing) {
                    problem.hint = Some(hint.clone());
                }
            }
            if given.is_empty && !destroys && (objects > 0 || !given.has_files) {
                let what = format!("`{name}` contains no Resource");
                let warning = Diagnostic::general(Reason::SourceIncomplete, what);
                let kept = match objects {
                    1 => "the recorded object from it is left unchanged".to_owned(),
                    _ => format!("the {objects} recorded objects from it are left unchanged"),
                };
                let warning = if objects == 0 { warning } else { warning.because(kept).hint(hint) };
                problems.push(Diagnostic { severity: Severity::Warning, ..warning });
            }
        }
        problems
    }

    fn covers(&self, given: &GivenSource, source: &str) -> bool {
        self.paths.covers(&given.absolute, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Record, Stored, Version};
    use std::path::Path;

    fn recorded(sources: &[(&str, Option<&str>)]) -> Recorded {
        sources
            .iter()
            .map(|(name, source)| {
                let address = Address::single(*name);
                let mut record = Record::empty("default".into(), address.clone(), "".into(), "t".into());
                record.source = source.map(Into::into);
                (address, Stored { record: record.into(), version: Version(1) })
            })
            .collect()
    }

    fn coverage(given: &[(&str, bool)]) -> Coverage {
        let paths = SourcePaths::new(Path::new("/nowhere/purlin.db"), Path::new("/nowhere/published"));
        let given = given.iter().map(|(name, is_empty)| GivenSource {
            name: (*name).to_owned(),
            absolute: paths.absolute(&Path::new("/nowhere").join(name)),
            missing: None,
            is_empty: *is_empty,
            has_files: false,
        });
        let given = given.collect();
        Coverage::new(paths, given)
    }

    fn others(coverage: &Coverage, destroys: bool) -> String {
        let records = [("a", Some("app/a.yaml")), ("n", Some("net/n.yaml")), ("o", None)];
        let others = coverage.others(&recorded(&records), destroys);
        others.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn objects_of_other_sources_and_without_a_source_are_not_covered() {
        assert_eq!(others(&Coverage::default(), false), "");
        assert_eq!(others(&coverage(&[("app", false)]), false), "n o");
        assert_eq!(others(&coverage(&[("app", false), ("net/n.yaml", false)]), false), "o");
        assert_eq!(others(&coverage(&[("app", false)]).pruning(true), false), "");
    }

    #[test]
    fn a_source_without_resources_covers_its_objects_only_for_a_destroy() {
        assert_eq!(others(&coverage(&[("app", true), ("net", false)]), false), "a o");
        assert_eq!(others(&coverage(&[("app", true)]).pruning(true), false), "a n o");
        assert_eq!(others(&coverage(&[("app", true)]), true), "n o");
    }

    #[test]
    fn an_empty_source_is_a_warning_that_says_how_to_destroy_its_objects() {
        let records = recorded(&[("a", Some("app/a.yaml"))]);
        let problems = |name, destroys| {
            let found = coverage(&[(name, true)]).problems(&Vec::new(), &records, destroys);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let warning = "`app` contains no Resource: the recorded object from it is left unchanged (hint: `purlin \
                       destroy -f app` destroys the objects that were created from it)";
        assert_eq!(problems("app", false), [warning]);
        assert_eq!(problems("net", false), ["`net` contains no Resource"]);
        assert!(problems("app", true).is_empty());
    }
}
