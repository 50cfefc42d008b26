//! The configuration of provisioners, which see the object as `self`.

use std::sync::{Arc, LazyLock};

use cty::Value;
use hcl::{Diagnostic, Range};
use serde_json::json;

use super::compiled::Place;
use super::demand::Computing;
use super::item::Item;
use super::scope::{Outcome, Scope};
use super::{Each, Evaluation, Stop};
use crate::address::{InstanceAddress, ResourceAddress, ResourceName};
use crate::diagnostics::Diagnostics;
use crate::layers::Layers;
use crate::module::{Provisioner, Resource};
use crate::schema::Block;

/// What a provisioner does with an object.
#[derive(Clone, Debug)]
pub struct ProvisionerConfig {
    /// The type, such as `local-exec`.
    pub kind: String,
    /// Whether it runs before the object is destroyed, and not after it is created.
    pub on_destroy: bool,
    /// Whether a failure is ignored.
    pub continue_on_failure: bool,
    /// The arguments; what is not written is null.
    pub config: Value,
    /// The arguments of the `connection` block.
    pub connection: Option<Value>,
    /// Whether an error took the arguments away.
    pub failed: bool,
    /// The place.
    pub range: Range,
}

impl ProvisionerConfig {
    /// The argument `command`, if there is one.
    fn command(&self) -> Option<&Value> {
        self.config.as_entries()?.get("command")
    }
}

fn schema(kind: &str) -> Option<&'static Block> {
    static ALL: LazyLock<[(&str, Block); 4]> = LazyLock::new(|| {
        let text = json!({ "type": "string", "optional": true });
        let list = json!({ "type": ["list", "string"], "optional": true });
        [
            (
                "local-exec",
                block(&json!({
                    "command": { "type": "string", "required": true },
                    "interpreter": list, "working_dir": text,
                    "environment": { "type": ["map", "string"], "optional": true },
                    "quiet": { "type": "bool", "optional": true },
                })),
            ),
            ("remote-exec", block(&json!({ "inline": list, "script": text, "scripts": list }))),
            (
                "file",
                block(&json!({
                    "source": text, "content": text,
                    "destination": { "type": "string", "required": true },
                })),
            ),
            ("connection", connection()),
        ]
    });
    ALL.iter().find(|(name, _)| *name == kind).map(|(_, block)| block)
}

fn block(attributes: &serde_json::Value) -> Block {
    Block::from_json(&json!({ "attributes": attributes })).unwrap_or_default()
}

fn connection() -> Block {
    const TEXTS: [&str; 27] = [
        "type",
        "user",
        "password",
        "host",
        "private_key",
        "certificate",
        "host_key",
        "bastion_user",
        "bastion_password",
        "bastion_host",
        "bastion_host_key",
        "bastion_private_key",
        "bastion_certificate",
        "proxy_scheme",
        "proxy_host",
        "proxy_user_name",
        "proxy_user_password",
        "timeout",
        "script_path",
        "target_platform",
        "cacert",
        "port",
        "bastion_port",
        "proxy_port",
        "https",
        "insecure",
        "use_ntlm",
    ];
    let attributes = TEXTS.map(|name| (name.to_owned(), json!({ "type": "string", "optional": true })));
    let mut attributes: serde_json::Map<String, serde_json::Value> = attributes.into_iter().collect();
    attributes.insert("agent".to_owned(), json!({ "type": "bool", "optional": true }));
    attributes.insert("agent_identity".to_owned(), json!({ "type": "string", "optional": true }));
    Block::from_json(&json!({ "attributes": attributes })).unwrap_or_default()
}

impl Evaluation {
    /// The provisioners of an object that run when it is created, or before it is destroyed, and their problems. `this` is the
    /// object as `self`. `Err` has the object whose value is needed first.
    pub fn provisioners(
        &self,
        address: &InstanceAddress,
        this: &Value,
        on_destroy: bool,
    ) -> Result<(Vec<ProvisionerConfig>, Diagnostics), InstanceAddress> {
        self.completed(|| {
            self.computing.replace(Some(Computing::default()));
            let all = self.provisioner_configs(address, this, on_destroy);
            let problems = self.computing.take().unwrap_or_default().problems;
            Ok((all?, problems))
        })
    }

    /// The provisioners of the `removed` block that is about an object.
    pub fn provisioners_of_removed(
        &self,
        address: &InstanceAddress,
        this: &Value,
    ) -> Result<(Vec<ProvisionerConfig>, Diagnostics), InstanceAddress> {
        self.completed(|| {
            self.computing.replace(Some(Computing::default()));
            let all = self.removed_configs(address, this);
            let problems = self.computing.take().unwrap_or_default().problems;
            Ok((all?, problems))
        })
    }

    fn removed_configs(&self, address: &InstanceAddress, this: &Value) -> Result<Vec<ProvisionerConfig>, Stop> {
        let tree = Arc::clone(&self.tree);
        let Some((node, removed)) = tree.removed(address) else { return Ok(Vec::new()) };
        let module = self.modules.borrow().iter().position(|module| module.node == node);
        let Some(module) = module else { return Ok(Vec::new()) };
        let each = Each { key: address.key.clone(), value: None };
        let mut scope = Scope::new(self, module, Some(&each));
        scope.this = Some(this.clone());
        let configs = removed.provisioners.iter().enumerate().map(|(position, provisioner)| {
            let place = Place::Removed(node, address.resource.resource.clone(), position);
            self.provisioner_at(&scope, provisioner, &place, None, &mut Outcome::default())
        });
        configs.collect()
    }

    /// What the provisioners that run when an object is created refer to, with what is wrong in them whatever the object is.
    pub(crate) fn check_provisioners(
        &self,
        scope: &Scope<'_>,
        (name, resource): (&ResourceName, &Resource),
        this: Value,
        outcome: &mut Outcome,
    ) -> Result<(), Stop> {
        let mut scope = scope.with_iterators(Vec::new());
        scope.this = Some(this);
        for position in 0..resource.provisioners.len() {
            let config = self.provisioner(&scope, (name, resource), position, outcome)?;
            if let (false, "local-exec", Some(command)) = (config.failed, config.kind.as_str(), config.command())
                && (command.is_null() || command.as_str() == Some(""))
            {
                let detail = "The command is a text that is not empty.";
                self.report(Diagnostic::new("Invalid local-exec provisioner command", detail, config.range));
                outcome.failed = true;
            }
        }
        Ok(())
    }

    fn provisioner_configs(
        &self,
        address: &InstanceAddress,
        this: &Value,
        on_destroy: bool,
    ) -> Result<Vec<ProvisionerConfig>, Stop> {
        let InstanceAddress { resource: ResourceAddress { module, resource: name }, key } = address;
        let Some(module) = self.paths.borrow().get(module).copied() else { return Ok(Vec::new()) };
        let instance = self.module(module);
        let Some(resource) = instance.module.resources.get(name) else { return Ok(Vec::new()) };
        let each = match on_destroy {
            // The instance may not be one of the block any more.
            true => Some(Each { key: key.clone(), value: None }),
            false => {
                let instances = self.instances_of(Item::Resource(module, name.clone()))?;
                instances.known().iter().find(|each| each.key == *key).cloned()
            }
        };
        let mut scope = Scope::new(self, module, each.as_ref());
        scope.this = Some(this.clone());
        let own = (0..resource.provisioners.len()).filter(|at| resource.provisioners[*at].on_destroy == on_destroy);
        own.map(|position| self.provisioner(&scope, (name, resource), position, &mut Outcome::default())).collect()
    }

    /// The provisioner of a block at a position. What it uses is added to the outcome.
    fn provisioner(
        &self,
        scope: &Scope<'_>,
        (name, resource): (&ResourceName, &Resource),
        position: usize,
        all: &mut Outcome,
    ) -> Result<ProvisionerConfig, Stop> {
        let provisioner = &resource.provisioners[position];
        let node = scope.module.node;
        let place = Place::Provisioner(node, name.clone(), position);
        let connection = match &provisioner.connection {
            Some(own) => Some((Place::Connection(node, name.clone(), Some(position)), own)),
            None => resource.connection.as_ref().map(|own| (Place::Connection(node, name.clone(), None), own)),
        };
        self.provisioner_at(scope, provisioner, &place, connection, all)
    }

    fn provisioner_at(
        &self,
        scope: &Scope<'_>,
        provisioner: &Provisioner,
        place: &Place,
        connection: Option<(Place, &Layers)>,
        all: &mut Outcome,
    ) -> Result<ProvisionerConfig, Stop> {
        let Provisioner { kind, on_destroy, continue_on_failure, body, range, .. } = provisioner;
        let mut outcome = Outcome::default();
        let config = match schema(kind).filter(|_| kind != "connection") {
            Some(schema) => self.provisioner_body(scope, place, body, schema, &mut outcome)?,
            None => {
                let detail = format!("There is no provisioner \"{kind}\".");
                let hint = "there are local-exec, remote-exec and file";
                self.report(Diagnostic::new("Unknown provisioner type", detail, *range).hint(hint));
                outcome.failed = true;
                Value::DYNAMIC
            }
        };
        let connection = match (connection, schema("connection")) {
            (Some((place, body)), Some(schema)) => {
                Some(self.provisioner_body(scope, &place, body, schema, &mut outcome)?)
            }
            _ => None,
        };
        all.add(&outcome);
        Ok(ProvisionerConfig {
            kind: kind.clone(),
            on_destroy: *on_destroy,
            continue_on_failure: *continue_on_failure,
            config,
            connection,
            failed: outcome.failed,
            range: *range,
        })
    }

    fn provisioner_body(
        &self,
        scope: &Scope<'_>,
        place: &Place,
        body: &Layers,
        schema: &Block,
        outcome: &mut Outcome,
    ) -> Result<Value, Stop> {
        match self.compiled(place, body, schema) {
            Some(compiled) => scope.body(&compiled, schema, true, outcome),
            None => {
                outcome.failed = true;
                Ok(Value::DYNAMIC)
            }
        }
    }
}
