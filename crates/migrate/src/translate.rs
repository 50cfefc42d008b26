//! Translates expressions of HCL to expressions of Purlin.
//!
//! Variables of the root module become inputs. Variables of other modules, locals and outputs are replaced by their
//! expressions, because Purlin has no modules. What has no counterpart is an error with its reason, and the caller
//! uses the value of the state.

mod cel;
mod functions;
mod loops;
mod templates;
mod traversals;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hcl_edit::expr::{BinaryOperator, Expression, ObjectKey, UnaryOperator};
use serde_json::Value as Json;

use super::address::{Key, ModuleStep, module_names};
use super::configuration::{Configuration, Module, Scalar, Source, Variable, number_value};
use model::InstanceKey;

pub use cel::Cel;

/// Why an expression cannot be translated.
pub type Untranslated = String;

/// Variables, locals and modules that refer to each other.
const MAX_DEPTH: usize = 64;

/// The migrated resources.
#[derive(Debug, Default)]
pub struct NamedResources {
    /// By their address with the keys of modules.
    pub by_address: BTreeMap<String, NamedResource>,
    /// The instances of modules that contain them.
    pub modules: BTreeSet<Vec<ModuleStep>>,
}

#[derive(Clone, Debug)]
pub struct NamedResource {
    pub name: Arc<str>,
    /// The keys of its instances. `None`: it has one instance without a key.
    pub keys: Option<Vec<InstanceKey>>,
}

pub struct Translator<'a> {
    pub configuration: &'a Configuration,
    /// `None`: expressions can read no objects, and variables are replaced by their values.
    pub resources: Option<&'a NamedResources>,
}

/// Where an expression is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The instance of its module.
    pub module: Vec<ModuleStep>,
    /// What `each` and `count` are.
    pub repetition: Repetition,
    /// `self` is available.
    pub allows_self: bool,
    /// The variables of loops and of `dynamic` blocks.
    variables: Vec<(String, Cel)>,
    depth: usize,
}

#[derive(Clone, Debug, Default)]
pub enum Repetition {
    #[default]
    None,
    /// A resource with `count` or `for_each`. `true`: the manifest has the values of `each.value`.
    Family(bool),
    /// A call of a module: the key, and the `for_each`.
    Call(Key, Option<Source>),
}

impl Place {
    pub fn new(module: &[ModuleStep], repetition: Repetition) -> Self {
        Self { module: module.to_vec(), repetition, ..Self::default() }
    }

    fn with(&self, name: &str, value: Cel) -> Self {
        let mut place = self.clone();
        place.variables.push((name.to_owned(), value));
        place
    }

    /// The same, in another module.
    fn inside(&self, module: &[ModuleStep], repetition: Repetition) -> Result<Self, Untranslated> {
        if self.depth >= MAX_DEPTH {
            return Err("it refers to itself".to_owned());
        }
        let (module, variables) = (module.to_vec(), Vec::new());
        Ok(Self { module, repetition, variables, allows_self: self.allows_self, depth: self.depth + 1 })
    }
}

impl<'a> Translator<'a> {
    pub fn source(&self, source: &Source, place: &Place) -> Result<Cel, Untranslated> {
        match source {
            Source::Constant(value) => Ok(Cel::Constant(value.clone())),
            Source::References(_) => Err("its expression is not known".to_owned()),
            Source::Expression(expression) => self.expression(expression, place),
            Source::Object(arguments) => {
                let entry = |(key, one): (&Arc<str>, &Source)| Ok((key.to_string(), self.source(one, place)?));
                Ok(Cel::Map(arguments.iter().map(entry).collect::<Result<_, Untranslated>>()?).simplified())
            }
            Source::List(items) if items.iter().any(|item| matches!(item, Source::Dynamic(_))) => {
                self.dynamic_blocks(items, place)
            }
            Source::List(items) => {
                let items = items.iter().map(|item| self.source(item, place));
                Ok(Cel::List(items.collect::<Result<_, _>>()?).simplified())
            }
            Source::Dynamic(block) => self.dynamic_block(block, place),
        }
    }

    /// Returns the value of an expression that reads no object.
    pub fn constant(&self, source: &Source, place: &Place) -> Option<Json> {
        self.source(source, place).ok()?.as_constant().cloned()
    }

    fn module(&self, path: &[ModuleStep]) -> Result<&'a Module, Untranslated> {
        self.configuration.module(&module_names(path)).ok_or_else(|| "its module does not exist".to_owned())
    }

    pub fn expression(&self, expression: &Expression, place: &Place) -> Result<Cel, Untranslated> {
        let inner = |one: &Expression| self.expression(one, place);
        match expression {
            Expression::Null(_) => Ok(Cel::Constant(Json::Null)),
            Expression::Bool(value) => Ok(Cel::Constant(Json::from(*value.value()))),
            Expression::Number(number) => {
                let value = number_value(&number.value().to_string());
                value.map(Cel::Constant).ok_or_else(|| "its number has no counterpart".to_owned())
            }
            Expression::String(text) => Ok(Cel::string(text.as_str())),
            Expression::Array(items) => Ok(Cel::List(items.iter().map(inner).collect::<Result<_, _>>()?).simplified()),
            Expression::Object(object) => {
                let entry = |(key, value): (&ObjectKey, &hcl_edit::expr::ObjectValue)| {
                    Ok((self.key(key, place)?, inner(value.expr())?))
                };
                Ok(Cel::Map(object.iter().map(entry).collect::<Result<_, Untranslated>>()?).simplified())
            }
            Expression::StringTemplate(template) => self.template(template.iter(), place),
            Expression::HeredocTemplate(heredoc) => {
                let mut heredoc = heredoc.clone();
                heredoc.dedent();
                self.template(heredoc.template.iter(), place)
            }
            Expression::Parenthesis(expression) => inner(expression.inner()),
            Expression::Variable(name) => self.variable(name.as_str(), place),
            Expression::Conditional(conditional) => {
                let branches = || Ok((inner(&conditional.true_expr)?, inner(&conditional.false_expr)?));
                conditional_value(
                    &inner(&conditional.cond_expr)?,
                    branches,
                    (&conditional.true_expr, &conditional.false_expr),
                    &inner,
                )
            }
            Expression::FuncCall(call) => self.call(call, place),
            Expression::Traversal(traversal) => self.traversal(traversal, place),
            Expression::UnaryOp(operation) => {
                let operator = if *operation.operator.value() == UnaryOperator::Neg { "-" } else { "!" };
                let operand = inner(&operation.expr)?;
                folded(&[&operand], format!("{operator}{}", operand.to_operand()?))
            }
            Expression::BinaryOp(operation) => {
                let (left, right) = (inner(&operation.lhs_expr)?, inner(&operation.rhs_expr)?);
                binary(*operation.operator.value(), &left, &right)
            }
            Expression::ForExpr(expression) => self.for_expression(expression, place),
        }
    }

    fn key(&self, key: &ObjectKey, place: &Place) -> Result<String, Untranslated> {
        let expression = match key {
            ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => {
                return Ok(name.as_str().to_owned());
            }
            ObjectKey::Expression(expression) => expression,
        };
        match self.expression(expression, place)?.as_constant() {
            Some(Json::String(text)) => Ok(text.clone()),
            Some(other @ (Json::Number(_) | Json::Bool(_))) => Ok(other.to_string()),
            _ => Err("a key is not a constant".to_owned()),
        }
    }

    /// A variable of the module.
    fn module_variable(&self, name: &str, place: &Place) -> Result<Cel, Untranslated> {
        let module = self.module(&place.module)?;
        let unknown = || format!("the variable `{name}` has no value");
        let variable = module.variables.get(name).ok_or_else(unknown)?;
        let Some(((call, key), parent)) = place.module.split_last() else {
            let value = self.configuration.values.get(name).or(variable.default.as_ref()).ok_or_else(unknown)?;
            return Ok(self.root_variable(name, variable, value));
        };
        let call = self.module(parent)?.calls.get(call).ok_or_else(unknown)?;
        let Some(given) = call.arguments.get(name) else {
            return variable.default.clone().map(Cel::Constant).ok_or_else(unknown);
        };
        let repetition = match key {
            None => Repetition::None,
            Some(key) => Repetition::Call(key.clone(), call.for_each.clone()),
        };
        self.source(given, &place.inside(parent, repetition)?)
    }

    fn root_variable(&self, name: &str, variable: &Variable, value: &Json) -> Cel {
        let scalar = scalar(variable, value).filter(|_| self.resources.is_some());
        let text = || format!("inputs.{name}");
        match (scalar, value) {
            (Some(Scalar::String), _) => Cel::code(text()),
            (Some(Scalar::Number), _) => Cel::code(format!("json.unmarshal({})", text())),
            (Some(Scalar::Bool), _) => Cel::Code(format!("{} == \"true\"", text()), false),
            (None, value) if variable.sensitive && self.resources.is_some() && !value.is_null() => {
                Cel::code(format!("json.unmarshal({})", text()))
            }
            (None, value) => Cel::Constant(value.clone()),
        }
    }
}

/// The kind of a value that is an input. Others are constants.
pub fn scalar(variable: &Variable, value: &Json) -> Option<Scalar> {
    match value {
        Json::String(_) | Json::Number(_) | Json::Bool(_) => variable.kind.or(match value {
            Json::String(_) => Some(Scalar::String),
            Json::Number(_) => Some(Scalar::Number),
            _ => Some(Scalar::Bool),
        }),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// Evaluates an expression whose operands are constants.
fn folded(operands: &[&Cel], code: String) -> Result<Cel, Untranslated> {
    if operands.iter().all(|operand| operand.as_constant().is_some()) {
        return Cel::evaluated(&code).ok_or_else(|| format!("`{code}` has no value"));
    }
    Ok(Cel::operation(code))
}

/// Only the branch of a constant condition is translated.
fn conditional_value(
    condition: &Cel,
    branches: impl Fn() -> Result<(Cel, Cel), Untranslated>,
    (positive, negative): (&Expression, &Expression),
    inner: &dyn Fn(&Expression) -> Result<Cel, Untranslated>,
) -> Result<Cel, Untranslated> {
    match condition.as_constant() {
        Some(Json::Bool(true)) => inner(positive),
        Some(Json::Bool(false)) => inner(negative),
        _ => {
            let (positive, negative) = branches()?;
            if positive == negative {
                return Ok(positive);
            }
            let (condition, positive) = (condition.to_operand()?, positive.to_operand()?);
            Ok(Cel::operation(format!("{condition} ? {positive} : {}", negative.to_operand()?)))
        }
    }
}

fn binary(operator: BinaryOperator, left: &Cel, right: &Cel) -> Result<Cel, Untranslated> {
    let symbol = operator.as_str();
    // CEL divides whole numbers without a remainder.
    let operand = |one: &Cel| match (operator, one.as_constant()) {
        (BinaryOperator::Div, Some(Json::Number(number))) => Ok(format!("double({number})")),
        (BinaryOperator::Div, _) => Ok(format!("double({})", one.to_code()?)),
        _ => one.to_operand(),
    };
    folded(&[left, right], format!("{} {symbol} {}", operand(left)?, operand(right)?))
}
