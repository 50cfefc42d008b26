//! Collects the manifests of files for a preview. What a preview does not use is left out: in particular Secrets, since
//! everyone who may read a Plan could read them.

use std::path::PathBuf;

use super::proposal::Proposal;
use super::{Chunk, ClusterOrigin, Manifest, SourcePaths, SourceText, decode_chunks, split_chunks};
use super::{read_texts, unreadable};
use crate::load::ServiceAccounts;
use model::{DataKind, Diagnostic, Diagnostics, Reason, Source};

/// The manifests of files, as one text.
#[derive(Clone, Debug, Default)]
pub struct ProposedFiles {
    pub text: String,
    /// What the text contains.
    pub proposal: Proposal,
    /// Files that cannot be read, documents that cannot be decoded, and warnings about documents that were left out.
    pub problems: Diagnostics,
    /// The first line of each document in the text, with its place in the files.
    starts: Vec<(usize, Source)>,
    /// The number of lines of the text.
    lines: usize,
}

impl ProposedFiles {
    /// Reads the manifests of the given paths.
    pub fn read(given: &[PathBuf], paths: &SourcePaths, namespace: &str, accounts: &ServiceAccounts) -> Self {
        let (files, errors) = paths.files(given);
        let (texts, problems) = read_texts(files, paths);
        let errors = errors.iter().map(|(path, error)| unreadable(path, error));
        let mut proposed = Self::of(&texts, ClusterOrigin { namespace, accounts });
        proposed.problems.extend(errors.chain(problems));
        proposed
    }

    /// The place of a line of the text.
    pub fn place(&self, line: usize) -> Option<Source> {
        let (start, source) = self.starts.iter().rfind(|(start, _)| *start <= line)?;
        Some(Source { file: source.file.clone(), line: source.line + line - start })
    }

    fn of(texts: &[SourceText], cluster: ClusterOrigin<'_>) -> Self {
        let mut proposed = Self::default();
        texts.iter().flat_map(split_chunks).for_each(|chunk| proposed.add(&chunk, cluster));
        proposed
    }

    /// Adds a document if a preview uses it.
    fn add(&mut self, chunk: &Chunk<'_>, cluster: ClusterOrigin<'_>) {
        let manifests = decode_chunks(std::slice::from_ref(chunk), Some(cluster));
        let (mut is_used, mut is_private) = (false, false);
        for manifest in &manifests {
            match manifest {
                Manifest::Resource(..) => is_used = true,
                Manifest::ProviderConfig(..) => is_private = true,
                Manifest::Data { object, .. } => match object.kind {
                    DataKind::ConfigMap => is_used = true,
                    DataKind::Secret => is_private = true,
                },
                _ => {}
            }
        }
        if !is_used {
            let mut left_out = Proposal::default();
            manifests.into_iter().for_each(|manifest| left_out.add(manifest, cluster.namespace));
            self.problems.extend(left_out.diagnostics);
            return;
        }
        if is_private {
            let what =
                "a List with a Secret or a ProviderConfig cannot be previewed, because a Plan would contain them";
            let source = Source { file: chunk.file.clone(), line: chunk.first_line };
            let problem = Diagnostic::general(Reason::InvalidManifest, what).from_source(Some(source));
            self.problems.push(problem.hint("write the objects as separate documents"));
            return;
        }
        manifests.into_iter().for_each(|manifest| self.proposal.add(manifest, cluster.namespace));
        self.append(chunk);
    }

    fn append(&mut self, chunk: &Chunk<'_>) {
        if !chunk.text.starts_with("---") {
            self.text.push_str("---\n");
            self.lines += 1;
        }
        let source = Source { file: chunk.file.clone(), line: chunk.first_line };
        self.starts.push((self.lines + 1, source));
        self.text.push_str(chunk.text);
        if !chunk.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.lines += chunk.text.lines().count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[(&str, &str)]) -> ProposedFiles {
        let text =
            |(name, text): &(&str, &str)| SourceText { name: (*name).into(), source: None, text: (*text).to_owned() };
        let accounts = "default".into();
        let cluster = ClusterOrigin { namespace: "shop", accounts: &accounts };
        ProposedFiles::of(&texts.iter().map(text).collect::<Vec<_>>(), cluster)
    }

    const A: &str = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: a }\nspec: { type: t }";
    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: { name: s }\nstringData: { a: hidden }\n";

    #[test]
    fn documents_that_a_preview_does_not_use_are_left_out() {
        let config = "kind: ProviderConfig\napiVersion: purlin.dev/v1alpha1\nmetadata: { name: cloud }\n";
        let both = format!("{SECRET}---\n{A}\n---\n{config}");
        let files = read(&[("a.yaml", &both), ("b.yaml", "kind: Deployment\napiVersion: apps/v1\n")]);
        assert_eq!(files.text, format!("---\n{A}\n"));
        assert_eq!(files.proposal.instances.len(), 1);
        let problems: Vec<String> = files.problems.iter().map(ToString::to_string).collect();
        assert!(problems.len() == 1 && problems[0].contains("ProviderConfig `cloud`"), "{problems:?}");
    }

    #[test]
    fn a_list_with_a_secret_is_an_error() {
        let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "purlin.dev/v1alpha1", "kind": "Resource", "metadata": {"name": "c"}, "spec": {"type": "t"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]}"#;
        let files = read(&[("list.json", list)]);
        assert!(files.text.is_empty());
        assert!(files.problems[0].to_string().starts_with("list.json:1: a List with a Secret"));
    }

    #[test]
    fn a_document_that_cannot_be_decoded_is_an_error() {
        let files = read(&[("a.yaml", A), ("b.yaml", "kind: [\n")]);
        assert!(files.problems[0].to_string().starts_with("b.yaml:"), "{:?}", files.problems);
    }

    #[test]
    fn lines_of_the_text_have_a_place_in_the_files() {
        let first = format!("# comment\n---\n{SECRET}---\n{A}\n");
        let files = read(&[("a.yaml", &first), ("b.yaml", A)]);
        let lines: Vec<&str> = files.text.lines().collect();
        let places: Vec<String> = (1..=lines.len())
            .filter(|line| lines[line - 1].contains("type: t"))
            .map(|line| files.place(line).unwrap().to_string())
            .collect();
        assert_eq!(places, ["a.yaml:11", "b.yaml:4"]);
    }
}
