//! Addresses of the configuration and of the engine.

use configuration::{InstanceAddress, Key, ModulePath, ResourceAddress, Target};
use model::{Address, InstanceKey, Name, Stem};

/// What all instances of a block share. `name` is that of the configuration.
pub fn stem(name: &Name, resource: &ResourceAddress) -> Stem {
    Stem::in_configuration(name.clone(), resource.to_string())
}

/// A module call as a group of Resources.
pub fn call(name: &Name, module: &ModulePath, call: &str) -> Stem {
    Stem::in_configuration(name.clone(), module.join(format!("module.{call}")))
}

/// The address of an instance. `name` is that of the configuration.
pub fn address(name: &Name, instance: &InstanceAddress) -> Address {
    stem(name, &instance.resource).instance(instance.key.as_ref().map(key).unwrap_or_default())
}

pub fn key(key: &Key) -> InstanceKey {
    match key {
        Key::Int(index) => InstanceKey::Index(*index),
        Key::Text(text) => InstanceKey::Key(text.clone()),
    }
}

/// The instance of an address. `None` if it is that of a module call, or none of Terraform's.
pub fn instance(address: &Address) -> Option<InstanceAddress> {
    let parsed = hcl::parse_traversal(hcl::Source::new(hcl::FileId(u32::MAX), "", &**address.stem.part.as_ref()?));
    let Target { module, resource: Some((resource, None)) } = Target::parse(&parsed.value?)? else { return None };
    Some(InstanceAddress { resource: ResourceAddress { module, resource }, key: instance_key(&address.key) })
}

/// The key of an instance, as [`key`] has it for the engine.
pub fn instance_key(key: &InstanceKey) -> Option<Key> {
    match key {
        InstanceKey::None | InstanceKey::All => None,
        InstanceKey::Index(index) => Some(Key::Int(*index)),
        InstanceKey::Key(text) => Some(Key::Text(text.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back() {
        for text in ["t.n", "data.t.n[3]", r#"module.a["x.y\"z"].module.b[0].t.n["k"]"#, r#"net/module.a["$${x}"].t.n"#]
        {
            let parsed: Address = text.parse().unwrap();
            assert_eq!(address(parsed.name(), &instance(&parsed).unwrap()), parsed, "{text}");
        }
        assert_eq!(instance(&"module.a".parse().unwrap()), None);
        assert_eq!(instance(&Address::single("web")), None);
    }
}
