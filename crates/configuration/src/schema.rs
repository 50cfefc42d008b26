//! What a provider understands of a block.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Mark, Type, Value};

/// The arguments and blocks of a resource type or a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The arguments and computed attributes.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// The blocks in it.
    pub blocks: BTreeMap<Arc<str>, NestedBlock>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The type. That of an attribute with `nested` follows from it, with optional attributes where they can be left out.
    pub ty: Type,
    /// Has to be set.
    pub required: bool,
    /// Can be set.
    pub optional: bool,
    /// The provider gives a value.
    pub computed: bool,
    /// The value must not be shown.
    pub sensitive: bool,
    /// The value is given to the provider and kept nowhere.
    pub write_only: bool,
    /// A warning where it is set.
    pub deprecated: bool,
    /// The attributes in it, of which some may be sensitive.
    pub nested: BTreeMap<Arc<str>, Attribute>,
}

/// A type of block in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedBlock {
    /// How many there may be, and how they differ.
    pub nesting: Nesting,
    /// What is in one of them.
    pub block: Block,
    /// The smallest number of blocks.
    pub min: usize,
    /// The largest number of blocks, if there is one.
    pub max: Option<usize>,
    /// The type of the value of one of them.
    pub(crate) element: Type,
    /// The type of the value of all of them.
    pub(crate) ty: Type,
}

/// What blocks of a type or attributes with nested ones become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One or none.
    Single,
    /// One, of which everything is null if it is not written.
    Group,
    /// A list.
    List,
    /// A set.
    Set,
    /// A map, by the label.
    Map,
}

impl Nesting {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "single" => Self::Single,
            "group" => Self::Group,
            "list" => Self::List,
            "set" => Self::Set,
            "map" => Self::Map,
            _ => return None,
        })
    }

    fn of(self, element: Type) -> Type {
        match self {
            Self::Single | Self::Group => element,
            Self::List => Type::list(element),
            Self::Set => Type::set(element),
            Self::Map => Type::map(element),
        }
    }
}

impl Block {
    /// The type of the value of such a block.
    pub fn implied_type(&self) -> Type {
        let attributes = self.attributes.iter().map(|(name, own)| (name.clone(), own.ty.without_optional()));
        let blocks = self.blocks.iter().map(|(name, own)| (name.clone(), own.ty.clone()));
        Type::object(attributes.chain(blocks))
    }

    /// Whether a part of the value must not be shown.
    pub fn has_sensitive(&self) -> bool {
        self.attributes.values().any(Attribute::has_sensitive)
            || self.blocks.values().any(|nested| nested.block.has_sensitive())
    }

    /// A value of the block with marks on what must not be shown.
    pub fn mark(&self, value: &Value) -> Value {
        let Some(entries) = value.as_entries().filter(|_| self.has_sensitive()) else { return value.clone() };
        let marked = entries.iter().map(|(name, own)| {
            let own = match (self.attributes.get(name), self.blocks.get(name)) {
                (Some(attribute), _) => attribute.mark(own),
                (_, Some(nested)) if nested.block.has_sensitive() => {
                    each_part(own, nested.nesting, &|part| nested.block.mark(part))
                }
                _ => own.clone(),
            };
            (name.clone(), own)
        });
        Value::object(marked).with_marks(value.marks())
    }

    /// Reads a block in the form of `tofu providers schema -json`.
    ///
    /// ```
    /// let json = serde_json::json!({ "attributes": { "id": { "type": "string", "computed": true } } });
    /// let block = configuration::schema::Block::from_json(&json).unwrap();
    /// assert!(block.attributes["id"].computed);
    /// ```
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        let attributes = json.get("attributes").and_then(serde_json::Value::as_object).into_iter().flatten();
        let blocks = json.get("block_types").and_then(serde_json::Value::as_object).into_iter().flatten();
        Some(Self {
            attributes: attributes
                .map(|(name, attribute)| Some((Arc::from(name.as_str()), Attribute::from_json(attribute)?)))
                .collect::<Option<_>>()?,
            blocks: blocks
                .map(|(name, block)| Some((Arc::from(name.as_str()), NestedBlock::from_json(block)?)))
                .collect::<Option<_>>()?,
        })
    }
}

/// Changes the objects of a value whose shape the nesting gives.
fn each_part(value: &Value, nesting: Nesting, change: &dyn Fn(&Value) -> Value) -> Value {
    if !value.is_known() || value.is_null() {
        return value.clone();
    }
    let element = value.ty().element().cloned().unwrap_or(Type::Dynamic);
    let items = value.as_items().unwrap_or_default().iter().map(change);
    let entries = value.as_entries().into_iter().flatten().map(|(name, entry)| (name.clone(), change(entry)));
    let changed = match (nesting, value.ty()) {
        (Nesting::Single | Nesting::Group, _) => return change(value),
        (_, Type::List(_)) => Value::list(element, items),
        (_, Type::Set(_)) => Value::set(element, items),
        (_, Type::Tuple(_)) => Value::tuple(items),
        (_, Type::Map(_)) => Value::map(element, entries),
        (_, Type::Object(_)) => Value::object(entries),
        _ => return value.clone(),
    };
    changed.with_marks(value.marks())
}

impl Attribute {
    fn has_sensitive(&self) -> bool {
        self.sensitive || self.nested.values().any(Self::has_sensitive)
    }

    fn mark(&self, value: &Value) -> Value {
        if self.sensitive {
            return value.clone().with_mark(Mark::Sensitive);
        }
        if !self.has_sensitive() {
            return value.clone();
        }
        let nesting = match self.ty {
            Type::List(_) => Nesting::List,
            Type::Set(_) => Nesting::Set,
            Type::Map(_) => Nesting::Map,
            _ => Nesting::Single,
        };
        each_part(value, nesting, &|part| {
            let Some(entries) = part.as_entries() else { return part.clone() };
            let marked = entries.iter().map(|(name, own)| {
                let own = self.nested.get(name).map_or_else(|| own.clone(), |attribute| attribute.mark(own));
                (name.clone(), own)
            });
            Value::object(marked).with_marks(part.marks())
        })
    }

    fn from_json(json: &serde_json::Value) -> Option<Self> {
        let mut nested: BTreeMap<Arc<str>, Self> = BTreeMap::new();
        let ty = match json.get("nested_type") {
            Some(inner) => {
                for (name, own) in inner.get("attributes")?.as_object()? {
                    nested.insert(Arc::from(name.as_str()), Self::from_json(own)?);
                }
                let optional: Vec<Arc<str>> =
                    nested.iter().filter(|(_, own)| !own.required).map(|(name, _)| name.clone()).collect();
                let types = nested.iter().map(|(name, own)| (name.clone(), own.ty.clone()));
                let object = Type::object_with_optional(types, optional);
                Nesting::parse(inner.get("nesting_mode")?.as_str()?)?.of(object)
            }
            None => Type::from_json(json.get("type")?.to_string().as_bytes()).ok()?,
        };
        Some(Self {
            ty,
            required: flag(json, "required"),
            optional: flag(json, "optional"),
            computed: flag(json, "computed"),
            sensitive: flag(json, "sensitive"),
            write_only: flag(json, "write_only"),
            deprecated: flag(json, "deprecated"),
            nested,
        })
    }

    /// The type of the objects, if the attribute can be written as blocks.
    ///
    /// Providers from before there were attributes of objects have lists and sets of objects that are meant as blocks.
    pub(crate) fn as_blocks(&self) -> Option<Block> {
        let (Type::List(element) | Type::Set(element)) = &self.ty else { return None };
        let Type::Object(object) = &**element else { return None };
        if !self.nested.is_empty() {
            return None;
        }
        let attributes = object.attributes.iter().map(|(name, ty)| {
            let attribute = Self {
                ty: ty.clone(),
                required: false,
                optional: true,
                computed: false,
                sensitive: false,
                write_only: false,
                deprecated: false,
                nested: BTreeMap::new(),
            };
            (name.clone(), attribute)
        });
        Some(Block { attributes: attributes.collect(), blocks: BTreeMap::new() })
    }
}

impl NestedBlock {
    fn from_json(json: &serde_json::Value) -> Option<Self> {
        let max = number(json, "max_items");
        let nesting = Nesting::parse(json.get("nesting_mode")?.as_str()?)?;
        let block = Block::from_json(json.get("block")?)?;
        let element = block.implied_type();
        let ty = match nesting {
            Nesting::List | Nesting::Map if element.has_dynamic() => Type::Dynamic,
            nesting => nesting.of(element.clone()),
        };
        let (min, max) = (number(json, "min_items"), (max > 0).then_some(max));
        Some(Self { nesting, block, min, max, element, ty })
    }
}

fn flag(json: &serde_json::Value, name: &str) -> bool {
    json.get(name).and_then(serde_json::Value::as_bool).unwrap_or(false)
}

fn number(json: &serde_json::Value, name: &str) -> usize {
    json.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0) as usize
}
