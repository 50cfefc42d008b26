//! Type constraints: what `type = object({ name = optional(string, "x") })` asks of a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use hcl::{Call, Diagnostic, Expr, Range, Traversal};

use crate::cty::{Entries, Error, Marks, Type, Value, convert, unify_unsafe};
use crate::evaluate::{Environment, evaluate};
use crate::{Budget, NoFiles, Scope};

/// A type with what takes the place of attributes that a value leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeConstraint {
    pub ty: Type,
    defaults: Defaults,
}

/// The defaults of a type, along its shape.
#[derive(Clone, Debug, Default, PartialEq)]
struct Defaults {
    values: BTreeMap<Arc<str>, Value>,
    attributes: BTreeMap<Arc<str>, Defaults>,
    positions: BTreeMap<usize, Defaults>,
    /// Of each element of a list, set or map.
    element: Option<Box<Defaults>>,
}

impl TypeConstraint {
    /// A type without defaults.
    pub fn of(ty: Type) -> Self {
        Self { ty, defaults: Defaults::default() }
    }

    /// Reads a constraint. Problems are found all at once.
    pub fn parse(expr: &Expr) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = Reader { diagnostics: Vec::new() };
        let expr = expr.native()?;
        let (ty, defaults) = reader.constraint(&expr);
        if reader.diagnostics.is_empty() { Ok(Self { ty, defaults }) } else { Err(reader.diagnostics) }
    }

    /// The value in the type, with defaults for what it leaves out.
    pub fn convert(&self, value: &Value) -> Result<Value, Error> {
        convert(&self.defaults.apply(value), &self.ty)
    }
}

struct Reader {
    diagnostics: Vec<Diagnostic>,
}

/// A default is a constant.
struct Constants;

impl Environment for Constants {
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic> {
        Err(Diagnostic::new("Variables not allowed", "A default must be a constant.", traversal.range))
    }
}

impl Reader {
    fn invalid(&mut self, detail: impl Into<String>, range: Range) -> (Type, Defaults) {
        self.diagnostics.push(Diagnostic::new("Invalid type specification", detail, range));
        (Type::Dynamic, Defaults::default())
    }

    fn constraint(&mut self, expr: &Expr) -> (Type, Defaults) {
        if let Some(word) = expr.keyword() {
            let ty = match word {
                "bool" => Type::Bool,
                "number" => Type::Number,
                "string" => Type::String,
                "any" => Type::Dynamic,
                "list" | "set" | "map" | "object" | "tuple" => {
                    return self.invalid(format!("\"{word}\" needs an argument, as in {word}(...)."), expr.range);
                }
                other => return self.invalid(format!("\"{other}\" is not a type."), expr.range),
            };
            return (ty, Defaults::default());
        }
        let Some(call) = expr.as_call() else {
            return self.invalid("A type is a keyword such as string, or a call such as list(string).", expr.range);
        };
        let [argument] = call.arguments.as_slice() else {
            return self.invalid(format!("\"{}\" takes one argument.", call.name.text), expr.range);
        };
        match call.name.text.as_str() {
            "list" => self.collection(argument, Type::list),
            "set" => self.collection(argument, Type::set),
            "map" => self.collection(argument, Type::map),
            "tuple" => self.tuple(argument),
            "object" => self.object(argument),
            "optional" => self.invalid("optional(...) is only for attributes of an object.", call.name.range),
            other => self.invalid(format!("\"{other}\" is not a type."), expr.range),
        }
    }

    fn collection(&mut self, element: &Expr, collection: fn(Type) -> Type) -> (Type, Defaults) {
        let (ty, defaults) = self.constraint(element);
        let element = (!defaults.is_empty()).then(|| Box::new(defaults));
        (collection(ty), Defaults { element, ..Defaults::default() })
    }

    fn tuple(&mut self, elements: &Expr) -> (Type, Defaults) {
        let Some(elements) = elements.as_list() else {
            return self.invalid("A tuple type needs a list of types, as in tuple([string, number]).", elements.range);
        };
        let (mut types, mut all) = (Vec::new(), Defaults::default());
        for (position, element) in elements.iter().enumerate() {
            let (ty, defaults) = self.constraint(element);
            types.push(ty);
            if !defaults.is_empty() {
                all.positions.insert(position, defaults);
            }
        }
        (Type::tuple(types), all)
    }

    fn object(&mut self, attributes: &Expr) -> (Type, Defaults) {
        let Some(items) = attributes.as_object() else {
            return self
                .invalid("An object type needs its attributes, as in object({ name = string }).", attributes.range);
        };
        let (mut types, mut optional, mut all) = (Vec::new(), Vec::new(), Defaults::default());
        for item in items {
            let Some(name) = item.key.word() else {
                self.invalid("The name of an attribute must be a word, without quotes.", item.key.expr.range);
                continue;
            };
            let name: Arc<str> = name.into();
            if types.iter().any(|(other, _)| *other == name) {
                self.invalid(format!("The attribute \"{name}\" occurs twice."), item.key.expr.range);
            }
            let modifier = item.value.as_call().filter(|call| call.name.text == "optional");
            let Some((ty, defaults)) = self.attribute(&item.value, modifier) else { continue };
            if let Some(call) = modifier {
                optional.push(name.clone());
                if let Some(default) = call.arguments.get(1) {
                    self.default(&name, default, &ty, &mut all);
                }
            }
            if !defaults.is_empty() {
                all.attributes.insert(name.clone(), defaults);
            }
            types.push((name, ty));
        }
        (Type::object_with_optional(types, optional), all)
    }

    fn attribute(&mut self, value: &Expr, modifier: Option<&Call>) -> Option<(Type, Defaults)> {
        let Some(call) = modifier else { return Some(self.constraint(value)) };
        match call.arguments.as_slice() {
            [ty] | [ty, _] => Some(self.constraint(ty)),
            _ => {
                self.invalid("optional(...) takes the type of the attribute, and a default.", value.range);
                None
            }
        }
    }

    fn default(&mut self, name: &Arc<str>, default: &Expr, ty: &Type, all: &mut Defaults) {
        let budget = Budget::default();
        let scope = Scope { files: &NoFiles, budget: &budget, plan_time: None, effects: None, template_depth: 0 };
        let mut calls = false;
        find_calls(default, &mut calls);
        if calls {
            let detail = "Functions cannot be called here.";
            self.diagnostics.push(Diagnostic::new("Function calls not allowed", detail, default.range));
            return;
        }
        let evaluated = evaluate(default, &Constants, &scope);
        let failed = !evaluated.diagnostics.is_empty();
        self.diagnostics.extend(evaluated.diagnostics);
        if failed {
            return;
        }
        match convert(&evaluated.value, ty) {
            Ok(value) => {
                all.values.insert(name.clone(), value);
            }
            Err(error) => {
                let detail = format!("The default does not have the type of the attribute: {error}.");
                let summary = "Invalid default value for optional attribute";
                self.diagnostics.push(Diagnostic::new(summary, detail, default.range));
            }
        }
    }
}

fn find_calls(expr: &Expr, found: &mut bool) {
    *found |= matches!(expr.kind, hcl::ExprKind::Call(_));
    expr.for_each_child(&mut |child| find_calls(child, found));
}

impl Defaults {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.attributes.is_empty() && self.positions.is_empty() && self.element.is_none()
    }

    /// The value with its missing and null attributes filled. Null and unknown values have no attributes to fill.
    fn apply(&self, value: &Value) -> Value {
        if value.is_null() || !value.is_known() || self.is_empty() {
            return value.clone();
        }
        let mut marks = Marks::NONE;
        let plain = value.unmarked(&mut marks);
        let filled = if let Some(items) = plain.as_items() {
            self.items(&plain, items)
        } else if let Some(entries) = plain.as_entries() {
            self.entries(&plain, entries)
        } else {
            plain
        };
        filled.with_marks(&marks)
    }

    fn items(&self, value: &Value, items: &[Value]) -> Value {
        let filled: Vec<Value> = items
            .iter()
            .enumerate()
            .map(|(position, item)| match self.positions.get(&position).or(self.element.as_deref()) {
                Some(defaults) => defaults.apply(item),
                None => item.clone(),
            })
            .collect();
        if items.is_empty() {
            return value.clone();
        }
        match (value.ty(), unified(&filled)) {
            (Type::Set(_), Some((element, filled))) => Value::set(element, filled),
            (Type::List(_), Some((element, filled))) => Value::list(element, filled),
            _ => Value::tuple(filled),
        }
    }

    fn entries(&self, value: &Value, entries: &Entries<Value>) -> Value {
        let mut filled: BTreeMap<Arc<str>, Value> = entries
            .iter()
            .map(|(name, item)| match self.attributes.get(name).or(self.element.as_deref()) {
                Some(defaults) => (name.clone(), defaults.apply(item)),
                None => (name.clone(), item.clone()),
            })
            .collect();
        for (name, default) in &self.values {
            match filled.get_mut(name) {
                // What may turn out to be null gets the default then, so it is never null.
                Some(own) if !own.is_null() => {
                    if default.is_definitely_not_null() {
                        *own = own.clone().refined_not_null();
                    }
                }
                _ => {
                    let inner = self.attributes.get(name).map_or_else(|| default.clone(), |inner| inner.apply(default));
                    filled.insert(name.clone(), inner);
                }
            }
        }
        if let Type::Map(_) = value.ty() {
            if filled.is_empty() {
                return value.clone();
            }
            let values: Vec<Value> = filled.values().cloned().collect();
            if let Some((element, values)) = unified(&values) {
                return Value::map(element, filled.into_keys().zip(values));
            }
        }
        Value::object(filled)
    }
}

/// The values in their common type, if they have one.
fn unified(values: &[Value]) -> Option<(Type, Vec<Value>)> {
    let types: Vec<Type> = values.iter().map(|value| value.ty().clone()).collect();
    let common = unify_unsafe(&types)?;
    let values: Vec<Value> = values.iter().map(|value| common.convert(value).ok()).collect::<Option<_>>()?;
    let element = values.iter().map(Value::ty).find(|ty| **ty != Type::Dynamic);
    Some((element.unwrap_or(&common.ty).clone(), values))
}
