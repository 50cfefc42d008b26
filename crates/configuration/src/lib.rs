//! A compiler of Terraform configurations: from the files of modules to what each object should be.
//!
//! The crate knows nothing of Kubernetes, records, plans or file systems. Files come in through [`Directories`], schemas and
//! functions of providers through [`World`], and values of objects through [`Evaluation::give`].
//!
//! 1. [`read_module`] reads the files of a directory to a [`Module`](module::Module).
//! 2. [`load`] follows the module calls from a root module to a [`Tree`].
//! 3. [`Evaluation`] evaluates the tree for one plan. It gives [`Object`]s: the address, the provider configuration, the
//!    configuration by the provider's schema with unknown values and marks, and the objects that it depends on.
//!
//! # What a planner gives and gets
//!
//! - A tree that has errors is not evaluated. [`Tree::missing`] has the modules that have to be installed first.
//! - An [`Object`] with `failed` must not be changed; its error is among the diagnostics. What uses it fails as well,
//!   without an error of its own, and everything else goes on.
//! - [`Evaluation::give`] takes the planned value of an object that is created or changed, the recorded one of an object
//!   without changes, what was read of a data source, and [`cty::Value::unknown`] for what waits.
//! - A [`Waiting`] block has no objects in this plan: the number or the keys of them come from objects that have to be changed
//!   first, or have an error.
//! - [`Evaluation::presence`] says of a recorded object whether the configuration has it. Only one that is
//!   [`Presence::Absent`] may be destroyed for it: that an object was not given means nothing by itself.
//! - `uses` orders an object after others and is recorded with it. A data source is read after changes of what `reads_after`
//!   names, also if the values that it uses are known.
//! - Values that were given do not change. A planner that has to take a decision back begins a new evaluation, and gives the
//!   same values again: that calls no provider.
//! - An evaluation belongs to one thread. It waits for nothing but functions of providers ([`World::call`]).
//!
//! An object's configuration may need values of other objects, which are known when those were planned. So evaluation and
//! planning take turns:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use configuration::{
//!     Directories, Evaluation, File, Manifest, Mode, ProviderSource, Settings, World, load, schema::Block,
//! };
//! use cty::Value;
//!
//! struct Memory;
//! impl Directories for Memory {
//!     fn files(&self, _: &str) -> Result<Vec<File>, String> {
//!         let text = "resource \"null_resource\" \"a\" {}\nresource \"null_resource\" \"b\" {\n  count = 2\n  triggers = { a = null_resource.a.id }\n}\n";
//!         Ok(vec![File { name: "main.tf".to_owned(), content: text.into() }])
//!     }
//! }
//! impl World for Memory {
//!     fn resource_schema(&self, _: &ProviderSource, _: Mode, _: &str) -> Result<Arc<Block>, String> {
//!         let json = serde_json::json!({ "attributes": {
//!             "id": { "type": "string", "computed": true },
//!             "triggers": { "type": ["map", "string"], "optional": true },
//!         } });
//!         Block::from_json(&json).map(Arc::new).ok_or_else(|| "no schema".to_owned())
//!     }
//!     fn provider_schema(&self, _: &ProviderSource) -> Result<Arc<Block>, String> {
//!         Ok(Arc::default())
//!     }
//!     fn call(&self, _: &ProviderSource, _: &str, _: &[Value]) -> Option<Result<Value, language::Failure>> {
//!         None
//!     }
//! }
//!
//! let (tree, diagnostics) = load(".", &Memory, &Manifest::default(), &BTreeMap::new());
//! assert!(diagnostics.errors.is_empty());
//! let evaluation = Evaluation::new(Arc::new(tree), Arc::new(Memory), Settings::new(Arc::new(language::NoFiles)));
//! let mut planned = Vec::new();
//! loop {
//!     let advance = evaluation.advance();
//!     if advance.objects.is_empty() {
//!         break;
//!     }
//!     for object in advance.objects {
//!         // A driver plans the object here. Its planned value is what others see of it.
//!         let mut attributes = object.config.as_entries().unwrap().to_tree();
//!         attributes.insert("id".into(), Value::string("1"));
//!         evaluation.give(&object.address, &Value::object(attributes));
//!         planned.push(object.address.to_string());
//!     }
//! }
//! assert_eq!(planned, ["null_resource.a", "null_resource.b[0]", "null_resource.b[1]"]);
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod diagnostics;
mod directory;
mod evaluation;
mod layers;
pub mod module;
mod providers;
mod read;
mod reference;
pub mod schema;
mod source;
mod tree;

pub use address::{InstanceAddress, Key, Mode, ModulePath, ModuleStep, ResourceAddress, ResourceName, Target};
pub use diagnostics::{Diagnostics, Sources};
pub use directory::{File, is_configuration};
pub use evaluation::{
    Advance, Answer, BlockKeys, Dependency, EphemeralRequest, EvaluatedImport, EvaluatedLifecycle, Evaluation,
    ImportRequest, Input, KeyKind, KnownBlock, Object, Presence, ProviderConfig, ProvisionerConfig, ReadsAfter,
    Settings, Trigger, Waiting, World, values_of_file,
};
pub use providers::{LocalProvider, ProviderAddress, ProviderSource, RequiredProvider};
pub use read::read_module;
pub use source::{DEFAULT_REGISTRY, InvalidSource, ModuleSource, RegistryModule, RemoteModule};
/// The version of OpenTofu whose language this is, with which `required_version` is compared.
pub const LANGUAGE_VERSION: version::Version = version::Version::new(1, 12, 6);

pub use tree::{Directories, Installed, Manifest, Missing, Node, NodeId, ProviderRequirement, Tree, load};
