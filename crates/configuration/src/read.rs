//! Reading of a module: from the files of a directory to a [`Module`].
//!
//! Blocks are collected first, those of override files are laid over those that they name, and then each is read once.
//! Every problem of every file is reported.

mod blocks;
mod checks;
mod constants;
mod named_values;
mod requirements;
mod resources;
mod refactoring;

pub(crate) use constants::constant;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hcl::{Diagnostic, FileId, Range, Schema};

use crate::diagnostics::{Diagnostics, Sources};
use crate::directory::{File, configuration_files, is_override, is_tofu};
use crate::layers::Block;
use crate::module::Module;

/// Reads the files of a directory.
///
/// Files that are no configuration are left out by their names. `directory` is what `path.module` gives, and what
/// stands before the names of files in errors. The module has everything that could be read, also with errors.
///
/// ```
/// use configuration::{File, Sources, read_module};
/// let file = File { name: "main.tf".to_owned(), content: b"variable \"a\" {\n  tipe = string\n}\n".to_vec() };
/// let mut sources = Sources::default();
/// let (module, diagnostics) = read_module(".", vec![file], &mut sources);
/// assert!(module.variables.contains_key("a"));
/// let line = sources.line(&diagnostics.errors[0]);
/// assert_eq!(line, "main.tf:2:3: Unsupported argument: No argument named `tipe` is expected here. hint: did you mean `type`?");
/// ```
pub fn read_module(directory: &str, files: Vec<File>, sources: &mut Sources) -> (Module, Diagnostics) {
    let mut reader = Reader::default();
    let mut overrides = Vec::new();
    let mut blocks = Vec::new();
    for file in configuration_files(files) {
        let is_override = is_override(&file.name);
        let is_tofu = is_tofu(&file.name);
        let name = if directory == "." { file.name } else { format!("{directory}/{}", file.name) };
        let body = sources.parse(name, file.content, &mut reader.diagnostics);
        let (content, problems) = body.content(&top_level());
        reader.diagnostics.errors.extend(problems);
        let own_files = content.blocks.iter().map(|block| block.header_range().file);
        reader.tofu_files.extend(own_files.filter(|_| is_tofu));
        let target = if is_override { &mut overrides } else { &mut blocks };
        target.extend(content.blocks.into_iter().map(Block::from));
    }
    let blocks = reader.overridden(blocks, overrides);
    directory.clone_into(&mut reader.module.directory);
    blocks.into_iter().for_each(|block| reader.block(block));
    reader.check_references();
    if let Some(problem) = reader.unsupported_version {
        // What else is wrong may be right in that version.
        reader.diagnostics.errors = vec![problem];
    }
    reader.diagnostics.sort();
    (reader.module, reader.diagnostics)
}

fn top_level() -> Schema {
    const NAME: &[&str] = &["name"];
    const TYPE_AND_NAME: &[&str] = &["type", "name"];
    let blocks: [(&str, &[&str]); 15] = [
        ("terraform", &[]),
        ("language", &[]),
        ("required_providers", &[]),
        ("provider", NAME),
        ("variable", NAME),
        ("locals", &[]),
        ("output", NAME),
        ("module", NAME),
        ("resource", TYPE_AND_NAME),
        ("data", TYPE_AND_NAME),
        ("ephemeral", TYPE_AND_NAME),
        ("moved", &[]),
        ("import", &[]),
        ("removed", &[]),
        ("check", NAME),
    ];
    Schema::new(&[], &blocks)
}

#[derive(Default)]
struct Reader {
    module: Module,
    diagnostics: Diagnostics,
    /// The block that has the requirements.
    required_providers: Option<Range>,
    /// The files whose `required_version` is for OpenTofu.
    tofu_files: BTreeSet<FileId>,
    /// The module is for another version of the language.
    unsupported_version: Option<Diagnostic>,
}

impl Reader {
    fn block(&mut self, block: Block) {
        match block.kind.text.as_str() {
            "terraform" => self.terraform(block),
            "language" => self.language(block),
            "provider" => self.provider(block),
            "variable" => self.variable(block),
            "locals" => self.locals(block),
            "output" => self.output(block),
            "module" => self.module_call(block),
            "resource" | "data" | "ephemeral" => {
                self.resource(block, None);
            }
            "moved" => self.moved(block),
            "import" => self.import(block),
            "removed" => self.removed(block),
            "check" => self.check(block),
            "required_providers" => {
                let detail = "A `required_providers` block has to be in a `terraform` block.";
                self.diagnostics.hinted(
                    "Invalid required_providers block",
                    detail,
                    "write terraform { required_providers { ... } }",
                    block.range,
                );
            }
            _ => {}
        }
    }

    /// Lays the blocks of override files over those that they name.
    fn overridden(&mut self, mut blocks: Vec<Block>, overrides: Vec<Block>) -> Vec<Block> {
        for block in overrides {
            let kind = block.kind.text.clone();
            match kind.as_str() {
                "moved" | "import" | "removed" | "check" => {
                    let detail = format!("A `{kind}` block cannot be in an override file.");
                    self.diagnostics.hinted(
                        &format!("Cannot override '{kind}' blocks"),
                        detail,
                        "move it to a file with another name",
                        block.range,
                    );
                }
                "terraform" | "language" => override_settings(&mut blocks, block),
                "locals" => self.override_locals(&mut blocks, block),
                _ => {
                    self.reject_depends_on(&block);
                    let alias = constants::alias(&block.body);
                    let base = blocks.iter_mut().find(|base| {
                        base.kind.text == kind
                            && base.labels_are(&block)
                            && (kind != "provider" || constants::alias(&base.body) == alias)
                    });
                    match base {
                        Some(base) => base.body.overrides.push(block.body.base),
                        None => self.missing_base(&block),
                    }
                }
            }
        }
        blocks
    }

    fn reject_depends_on(&mut self, block: &Block) {
        if let Some(attribute) = block.body.base.attribute("depends_on") {
            let detail = "The argument `depends_on` cannot be overridden.";
            self.diagnostics.error("Unsupported override", detail, attribute.range);
        }
    }

    fn missing_base(&mut self, block: &Block) {
        let labels: Vec<String> = block.labels.iter().map(|label| format!(" \"{}\"", label.text)).collect();
        let what = format!("{}{}", block.kind.text, labels.concat());
        let detail = format!("There is no block `{what}` that this one could override.");
        let hint = "remove the block, or move it to a file that is no override file";
        self.diagnostics.hinted(&format!("Missing {} to override", block.kind.text), detail, hint, block.range);
    }

    fn override_locals(&mut self, blocks: &mut [Block], block: Block) {
        for attribute in block.body.attributes(&mut self.diagnostics) {
            let name = attribute.name.clone();
            let base = blocks.iter_mut().filter(|base| base.kind.text == "locals").find(|base| {
                let (attributes, _) = base.body.base.clone().just_attributes();
                attributes.iter().any(|attribute| attribute.name.text == name.text)
            });
            match base {
                Some(base) => {
                    base.body.overrides.push(hcl::Body { attributes: vec![attribute], ..hcl::Body::default() });
                }
                None => {
                    let detail = format!("There is no local value \"{}\" that this one could override.", name.text);
                    self.diagnostics.error("Missing base local value definition to override", detail, name.range);
                }
            }
        }
    }

    /// Adds what a block declares, unless something has its name.
    fn declare<K: Ord, V>(
        diagnostics: &mut Diagnostics,
        map: &mut BTreeMap<K, V>,
        key: K,
        value: V,
        range: fn(&V) -> Range,
        what: &str,
    ) {
        match map.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(value);
            }
            Entry::Occupied(_) => {
                let detail = format!("{what} is declared already: a name must be unique within a module.");
                let hint = "rename or remove one of the two";
                diagnostics.hinted(&format!("Duplicate {}", first_word(what)), detail, hint, range(&value));
            }
        }
    }

    /// Checks that a label is an identifier.
    fn name(&mut self, name: &hcl::Name, what: &str) -> Arc<str> {
        if !hcl::is_identifier(&name.text) {
            let detail =
                "A name begins with a letter or underscore, and has only letters, digits, underscores and dashes.";
            self.diagnostics.error(&format!("Invalid {what} name"), detail, name.range);
        }
        name.text.as_str().into()
    }

    fn invalid(&mut self, problems: Vec<Diagnostic>) {
        self.diagnostics.errors.extend(problems);
    }
}

fn first_word(what: &str) -> &str {
    what.split(' ').next().unwrap_or(what)
}

/// The requirements of an override are merged with those of the block that has them.
fn override_settings(blocks: &mut Vec<Block>, block: Block) {
    let schema = Schema::new(&[], &[("required_providers", &[])]);
    let same = blocks
        .iter()
        .position(|base| base.kind.text == block.kind.text && has_blocks(base, &schema) && has_blocks(&block, &schema));
    let position = same.or_else(|| blocks.iter().position(|base| base.kind.text == block.kind.text));
    match position.and_then(|position| blocks.get_mut(position)) {
        Some(base) => base.body.overrides.push(block.body.base),
        None => blocks.push(block),
    }
}

fn has_blocks(block: &Block, schema: &Schema) -> bool {
    !block.body.base.clone().partial_content(schema).0.blocks.is_empty()
}

impl Block {
    fn labels_are(&self, other: &Block) -> bool {
        self.labels.iter().map(|label| &label.text).eq(other.labels.iter().map(|label| &label.text))
    }
}

#[cfg(test)]
mod tests;
