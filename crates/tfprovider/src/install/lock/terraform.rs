//! The form of `.terraform.lock.hcl`.

use std::collections::{BTreeMap, BTreeSet};

use hcl::{Block, FileId, Source};
use version::VersionConstraint;

use super::LockedProvider;
use crate::install::Hash;

/// The first lines of a new file. Other programs write their own names, which stay.
const HEADER: &str =
    "# This file is maintained automatically by \"purlin init\".\n# Manual edits may be lost in future updates.\n";

/// The namespace whose providers are the same in both default registries.
const PREDECESSOR: &str = "registry.terraform.io/hashicorp/";
const SUCCESSOR: &str = "registry.opentofu.org/hashicorp/";

/// What a file has besides the locks of providers.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// The comment at the beginning.
    header: Option<String>,
    /// Checksums in schemes that are not known here, by provider.
    hashes: BTreeMap<String, BTreeSet<String>>,
    /// Locks of the predecessor's registry, for the same providers in the other one. As upstream does, the version is kept, and
    /// the checksums are not: the packages are other ones.
    pub implied: BTreeMap<String, LockedProvider>,
}

/// Reads the text of a file.
pub fn read(text: String) -> Result<(BTreeMap<String, LockedProvider>, Others), String> {
    let header: String =
        text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let parsed = hcl::parse_body(Source::new(FileId(0), "", text));
    if let Some(problem) = parsed.diagnostics.first() {
        let line = parsed.source.position(problem.range.start).line;
        return Err(format!("line {line}: {}: {}", problem.summary, problem.detail));
    }
    let mut others = Others { header: (!header.is_empty()).then_some(header), ..Others::default() };
    let mut providers = BTreeMap::new();
    for block in parsed.value.blocks_of("provider") {
        let line = parsed.source.position(block.header_range().start).line;
        let (source, locked, unknown) = provider(block).map_err(|why| format!("line {line}: {why}"))?;
        if !unknown.is_empty() {
            others.hashes.insert(source.clone(), unknown);
        }
        if providers.insert(source.clone(), locked).is_some() {
            return Err(format!("line {line}: the provider {source} is locked twice"));
        }
    }
    for (source, locked) in &providers {
        if let Some(name) = source.strip_prefix(PREDECESSOR) {
            let implied = LockedProvider { hashes: BTreeSet::new(), ..locked.clone() };
            others.implied.insert(format!("{SUCCESSOR}{name}"), implied);
        }
    }
    Ok((providers, others))
}

/// The address, the lock and the checksums in unknown schemes of a block.
fn provider(block: &Block) -> Result<(String, LockedProvider, BTreeSet<String>), String> {
    let [source] = block.labels.as_slice() else { return Err("a provider has one label, its address".to_owned()) };
    let source = source.text.clone();
    let version = attribute_text(block, "version").ok_or_else(|| format!("the provider {source} has no version"))?;
    let version = version.parse().map_err(|error| format!("the version `{version}` of {source}: {error}"))?;
    let constraint = attribute_text(block, "constraints").unwrap_or_default().to_owned();
    let (mut hashes, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    let list = block.body.attribute("hashes").map(|attribute| attribute.value.as_list().ok_or(()));
    let list = list.transpose().map_err(|()| format!("the checksums of {source} are not a list"))?;
    for item in list.into_iter().flatten() {
        let text = item.as_text().ok_or_else(|| format!("a checksum of {source} is not a text"))?;
        match text.parse::<Hash>() {
            Ok(hash) => drop(hashes.insert(hash)),
            Err(error) if text.starts_with("zh:") || text.starts_with("h1:") => return Err(error),
            Err(_) => drop(unknown.insert(text.to_owned())),
        }
    }
    Ok((source, LockedProvider { version, constraint, hashes }, unknown))
}

fn attribute_text<'a>(block: &'a Block, name: &str) -> Option<&'a str> {
    block.body.attribute(name)?.value.as_text()
}

/// The text of a file.
pub fn write(providers: &BTreeMap<String, LockedProvider>, others: &Others) -> String {
    let mut text = others.header.clone().unwrap_or_else(|| HEADER.to_owned());
    for (source, LockedProvider { version, constraint, hashes }) in providers {
        text.push_str(&format!("\nprovider \"{source}\" {{\n"));
        if constraint.is_empty() {
            text.push_str(&format!("  version = \"{version}\"\n"));
        } else {
            text.push_str(&format!("  version     = \"{version}\"\n  constraints = \"{constraint}\"\n"));
        }
        let mut hashes: Vec<&str> = hashes.iter().map(Hash::as_str).collect();
        hashes.extend(others.hashes.get(source).into_iter().flatten().map(String::as_str));
        hashes.sort_unstable();
        if !hashes.is_empty() {
            let lines: String = hashes.iter().map(|hash| format!("    \"{hash}\",\n")).collect();
            text.push_str(&format!("  hashes = [\n{lines}  ]\n"));
        }
        text.push_str("}\n");
    }
    text
}

/// A constraint as upstream writes it.
pub fn canonical(constraint: &str) -> String {
    constraint
        .parse::<VersionConstraint>()
        .map_or_else(|_| constraint.to_owned(), |constraint| constraint.canonical().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{LockFile, TERRAFORM_LOCK_FILE};

    /// As OpenTofu writes it, with a checksum in a scheme of a later version.
    const TEXT: &str = r#"# This file is maintained automatically by "tofu init".
# Manual edits may be lost in future updates.

provider "registry.opentofu.org/acme/cloud" {
  version     = "1.2.0"
  constraints = ">= 1.0.0, ~> 1.1"
  hashes = [
    "h1:KXgGMUKo/6VCqEzeXvAmGo7Nmd490RhuXS0CDJIvmXg=",
    "h9:later",
    "zh:0707070707070707070707070707070707070707070707070707070707070707",
  ]
}

provider "registry.opentofu.org/acme/plain" {
  version = "2.0.0"
}
"#;

    #[test]
    fn a_file_is_written_as_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TERRAFORM_LOCK_FILE);
        std::fs::write(&path, TEXT).unwrap();
        let mut lock = LockFile::read(&path).unwrap();
        lock.write().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEXT);
        let locked = lock.get("registry.opentofu.org/acme/cloud").unwrap().clone();
        assert_eq!((locked.version.to_string().as_str(), locked.hashes.len()), ("1.2.0", 2));
        let same = LockedProvider { constraint: "~> 1.1, >= 1, >= 1.0".to_owned(), ..locked };
        assert!(!lock.merge("registry.opentofu.org/acme/cloud", same), "the constraint is the same");
    }

    #[test]
    fn a_new_file_has_the_form_of_upstream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TERRAFORM_LOCK_FILE);
        let mut lock = LockFile::read(&path).unwrap();
        let version = "1.0.0".parse().unwrap();
        let hashes = BTreeSet::from([Hash::of_zip([7; 32])]);
        assert!(
            lock.merge("example.com/acme/x", LockedProvider { version, constraint: ">=1,~>1.0".to_owned(), hashes })
        );
        lock.write().unwrap();
        let expected = "
provider \"example.com/acme/x\" {
  version     = \"1.0.0\"
  constraints = \">= 1.0.0, ~> 1.0\"
  hashes = [
    \"zh:0707070707070707070707070707070707070707070707070707070707070707\",
  ]
}
";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{HEADER}{expected}"));
    }

    #[test]
    fn locks_of_the_predecessor_choose_the_version() {
        let text = TEXT.replace("registry.opentofu.org/acme/plain", "registry.terraform.io/hashicorp/random");
        let (mut providers, others) = read(text).unwrap();
        let implied = &others.implied["registry.opentofu.org/hashicorp/random"];
        assert_eq!((implied.version.to_string().as_str(), implied.hashes.len()), ("2.0.0", 0));
        assert!(providers.remove("registry.terraform.io/hashicorp/random").is_some(), "it stays for its own program");
    }

    #[test]
    fn each_mistake_is_reported_with_its_line() {
        for (text, expected) in [
            ("provider \"a/b/c\" {\n  version = \n}\n", "line 2: "),
            ("provider \"a/b/c\" {}\n", "line 1: the provider a/b/c has no version"),
            ("\nprovider \"a/b/c\" {\n  version = \"x\"\n}\n", "line 2: the version `x` of a/b/c: "),
            (
                "provider \"a/b/c\" {\n  version = \"1.0.0\"\n  hashes = [\"zh:0\"]\n}\n",
                "line 1: `zh:0` is not a valid checksum",
            ),
            (
                "provider \"a\" {\n  version = \"1.0.0\"\n}\nprovider \"a\" {\n  version = \"1.0.0\"\n}\n",
                "line 4: the provider a is locked twice",
            ),
        ] {
            let error = read(text.to_owned()).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
