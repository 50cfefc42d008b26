//! What the names in an expression stand for.

use std::sync::Arc;

use cty::{Type, Value, convert};
use hcl::{Diagnostic, Expr, Traversal};
use language::{Environment, Failure, evaluate};

use super::item::{Item, ModuleId};
use super::uses::{Dependency, Uses};
use super::{Computed, Each, Evaluation, ModuleInstance, Stop};
use crate::address::{Key, ResourceAddress, ResourceName};
use crate::module::Repetition;
use crate::reference::{PathName, Reference, Subject};

/// Where an expression stands.
pub struct Scope<'s> {
    pub evaluation: &'s Evaluation,
    pub id: ModuleId,
    pub module: Arc<ModuleInstance>,
    /// What `each` and `count` are, if there are any.
    pub each: Option<&'s Each>,
    /// What `self` is.
    pub this: Option<Value>,
    /// The variable whose validation this is.
    pub validated: Option<Arc<str>>,
    /// The iterators of the `dynamic` blocks around.
    pub iterators: Vec<(Arc<str>, Value)>,
}

/// What several expressions of a block have in common.
#[derive(Default)]
pub struct Outcome {
    pub uses: Uses,
    /// The objects that the expressions name themselves.
    pub direct: Uses,
    pub failed: bool,
}

impl Outcome {
    /// Adds what other expressions have come to.
    pub fn add(&mut self, other: &Outcome) {
        self.uses.add(&other.uses);
        self.direct.add(&other.direct);
        self.failed |= other.failed;
    }
}

/// What a reference stands for, and how many of its steps the value has in it.
struct Found {
    computed: Computed,
    steps: usize,
    direct: Option<Dependency>,
}

/// Why a reference gives no value.
enum Problem {
    Stop(Stop),
    Wrong(Diagnostic),
}

impl From<Stop> for Problem {
    fn from(stop: Stop) -> Self {
        Problem::Stop(stop)
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Problem::Wrong(diagnostic)
    }
}

impl<'s> Scope<'s> {
    pub fn new(evaluation: &'s Evaluation, id: ModuleId, each: Option<&'s Each>) -> Self {
        let module = evaluation.module(id);
        Self { evaluation, id, module, each, this: None, validated: None, iterators: Vec::new() }
    }

    /// Evaluates an expression, and adds what it uses to the outcome. References are checked first, also those inside
    /// `try` and `can`, which only catch what depends on values.
    pub fn eval(&self, expr: &Expr, outcome: &mut Outcome) -> Result<Value, Stop> {
        let Some(found) = self.references(expr, outcome)? else { return Ok(Value::DYNAMIC) };
        let settings = &self.evaluation.settings;
        let scope = language::Scope {
            files: &*settings.files,
            budget: &settings.budget,
            plan_time: settings.plan_time.as_deref(),
            effects: self.evaluation.effects(),
            template_depth: 0,
        };
        let evaluated = evaluate(expr, &Resolved { scope: self, found }, &scope);
        outcome.failed |= !evaluated.diagnostics.is_empty();
        evaluated.diagnostics.into_iter().for_each(|diagnostic| self.evaluation.report(diagnostic));
        Ok(evaluated.value)
    }

    /// Adds what an expression refers to by its syntax to the outcome.
    pub fn refer(&self, expr: &Expr, outcome: &mut Outcome) -> Result<(), Stop> {
        self.references(expr, outcome).map(|_| ())
    }

    /// What an expression refers to by its syntax. `None` if not all of it has a value.
    fn references<'e>(&self, expr: &'e Expr, outcome: &mut Outcome) -> Result<Option<Vec<Resolution<'e>>>, Stop> {
        let (mut all, mut wrong) = (Vec::new(), false);
        for traversal in expr.references() {
            match self.find(traversal) {
                Ok(found) => {
                    outcome.uses.add(&found.computed.uses);
                    found.direct.into_iter().for_each(|direct| {
                        outcome.uses.insert(direct.clone());
                        outcome.direct.insert(direct);
                    });
                    wrong |= found.computed.failed;
                    all.push((traversal, found.computed.value, found.steps));
                }
                Err(Problem::Stop(stop)) => return Err(stop),
                Err(Problem::Wrong(diagnostic)) => {
                    self.evaluation.report(diagnostic);
                    wrong = true;
                }
            }
        }
        outcome.failed |= wrong;
        Ok((!wrong).then_some(all))
    }

    /// Evaluates an expression of several. `None` if an error took the value away.
    pub fn own(&self, expr: &Expr, outcome: &mut Outcome) -> Result<Option<Value>, Stop> {
        let mut own = Outcome::default();
        let value = self.eval(expr, &mut own)?;
        outcome.add(&own);
        Ok((!own.failed).then_some(value))
    }

    /// Evaluates an expression that stands alone.
    pub fn computed(&self, expr: &Expr) -> Result<Computed, Stop> {
        let mut outcome = Outcome::default();
        let value = self.eval(expr, &mut outcome)?;
        Ok(Computed { value, uses: outcome.uses, failed: outcome.failed })
    }

    /// Evaluates an expression to a value of a type.
    pub fn converted(&self, expr: &Expr, ty: &Type, what: &str, outcome: &mut Outcome) -> Result<Value, Stop> {
        let value = self.eval(expr, outcome)?;
        Ok(convert(&value, ty).unwrap_or_else(|error| {
            let detail = format!("The value of {what} does not fit: {error}.");
            self.problem("Incorrect value type", detail, expr, outcome)
        }))
    }

    /// The same place inside a `dynamic` block.
    pub fn with_iterator(&self, name: &Arc<str>, value: Value) -> Self {
        let mut iterators = self.iterators.clone();
        iterators.push((name.clone(), value));
        self.with_iterators(iterators)
    }

    /// The same place with other iterators.
    pub fn with_iterators(&self, iterators: Vec<(Arc<str>, Value)>) -> Self {
        Self {
            evaluation: self.evaluation,
            id: self.id,
            module: self.module.clone(),
            each: self.each,
            this: self.this.clone(),
            validated: self.validated.clone(),
            iterators,
        }
    }

    pub fn problem(&self, summary: &str, detail: impl Into<String>, expr: &Expr, outcome: &mut Outcome) -> Value {
        outcome.failed = true;
        self.evaluation.report(Diagnostic::new(summary, detail, expr.range));
        Value::DYNAMIC
    }

    fn find(&self, traversal: &Traversal) -> Result<Found, Problem> {
        let iterator = self.iterators.iter().rev().find(|(name, _)| **name == *traversal.root.text);
        if let Some((_, value)) = iterator {
            return Ok(known(value.clone(), 0));
        }
        let reference = Reference::parse(traversal)?;
        if let Some(problem) = self.module.module.undeclared(&reference) {
            return Err(problem.into());
        }
        let steps = reference.steps;
        let value = match &reference.subject {
            Subject::Variable(name) => {
                return Ok(Found { computed: self.variable(name)?, steps, direct: None });
            }
            Subject::Local(name) => {
                let computed = self.evaluation.value_of(Item::Local(self.id, name.clone()))?;
                return Ok(Found { computed, steps, direct: None });
            }
            Subject::Module { call, key, output } => {
                return self.module_call(call, key.as_ref(), output.as_ref(), &reference);
            }
            Subject::Resource(name, key) => return self.resource(name, key.as_ref(), traversal, &reference),
            Subject::CountIndex => match self.each.and_then(|each| each.key.as_ref()) {
                Some(Key::Int(index)) => Value::int(i64::try_from(*index).unwrap_or(i64::MAX)),
                _ => return Err(outside("count", "`count`", &reference).into()),
            },
            Subject::EachKey => match self.each.and_then(|each| each.key.as_ref()) {
                Some(Key::Text(key)) => Value::string(key),
                _ => return Err(outside("each", "`for_each`", &reference).into()),
            },
            Subject::EachValue => match self.each {
                Some(Each { key: Some(Key::Text(_)), value: Some(value) }) => value.clone(),
                _ => return Err(outside("each", "`for_each`", &reference).into()),
            },
            Subject::Own => match &self.this {
                Some(value) => value.clone(),
                None => {
                    let detail =
                        "`self` stands for an object only in its postconditions, provisioners and connections.";
                    return Err(Diagnostic::new("Invalid \"self\" reference", detail, reference.range).into());
                }
            },
            Subject::Path(PathName::Module) => Value::string(&self.module.module.directory),
            Subject::Path(PathName::Root) => Value::string(&self.evaluation.tree.root().directory),
            Subject::Path(PathName::Cwd) => Value::string(&self.evaluation.settings.cwd),
            Subject::Workspace => Value::string(&self.evaluation.settings.workspace),
        };
        Ok(known(value, steps))
    }

    fn variable(&self, name: &Arc<str>) -> Result<Computed, Problem> {
        let item = match self.validated.as_ref() == Some(name) {
            true => Item::Assigned(self.id, name.clone()),
            false => Item::Variable(self.id, name.clone()),
        };
        Ok(self.evaluation.value_of(item)?)
    }

    fn module_call(
        &self,
        call: &Arc<str>,
        key: Option<&Key>,
        output: Option<&Arc<str>>,
        reference: &Reference,
    ) -> Result<Found, Problem> {
        let declared = &self.module.module.calls[call];
        let child = self.evaluation.tree.nodes[self.module.node].children.get(call);
        let Some(child) = child else {
            // The module could not be loaded, which is reported.
            return Ok(Found { computed: Computed::failed(Uses::default()), steps: reference.steps, direct: None });
        };
        let Some(output) = output else {
            let computed = self.evaluation.value_of(Item::CallValue(self.id, call.clone()))?;
            return Ok(Found { computed, steps: 1, direct: None });
        };
        let is_single = matches!(declared.repetition, Repetition::Once | Repetition::Enabled(_));
        if is_single == key.is_some() {
            let computed = self.evaluation.value_of(Item::CallValue(self.id, call.clone()))?;
            return Ok(Found { computed, steps: 1, direct: None });
        }
        if !self.evaluation.tree.nodes[*child].module.outputs.contains_key(output) {
            let detail = format!("The module has no output \"{output}\".");
            let hint = format!("declare it in the module with a block `output \"{output}\"`");
            return Err(Diagnostic::new("Unsupported attribute", detail, reference.range).hint(hint).into());
        }
        self.evaluation.instances_of(Item::Call(self.id, call.clone()))?;
        let place = (self.id, call.clone(), key.cloned());
        let module = self.evaluation.children.borrow().get(&place).copied();
        let Some(module) = module else {
            let computed = self.evaluation.value_of(Item::CallValue(self.id, call.clone()))?;
            return Ok(Found { computed, steps: 1, direct: None });
        };
        let computed = self.evaluation.value_of(Item::Output(module, output.clone()))?;
        Ok(Found { computed, steps: reference.steps, direct: None })
    }

    fn resource(
        &self,
        name: &ResourceName,
        key: Option<&Key>,
        traversal: &Traversal,
        reference: &Reference,
    ) -> Result<Found, Problem> {
        let resource = &self.module.module.resources[name];
        let address = ResourceAddress { module: self.module.path.clone(), resource: name.clone() };
        let is_single = matches!(resource.repetition, Repetition::Once | Repetition::Enabled(_));
        let steps = &traversal.steps[reference.steps + usize::from(key.is_some() && !is_single)..];
        if is_single || key.is_some() {
            self.evaluation.check_steps(self.module.node, name, steps)?;
        }
        if key.is_some() == is_single {
            // Every instance of a block that is repeated, or an index into one that is not, which is an error.
            let computed = self.evaluation.value_of(Item::ResourceValue(self.id, name.clone()))?;
            return Ok(Found { computed, steps: reference.steps, direct: Some(Dependency::Resource(address, None)) });
        }
        let instances = self.evaluation.instances_of(Item::Resource(self.id, name.clone()))?;
        if !instances.has(key) {
            let computed = self.evaluation.value_of(Item::ResourceValue(self.id, name.clone()))?;
            return Ok(Found {
                computed,
                steps: reference.steps,
                direct: Some(Dependency::Resource(address, key.cloned())),
            });
        }
        let mut computed = self.evaluation.object_value(self.id, name, key)?;
        computed.uses.add(&instances.uses);
        let steps = reference.steps + usize::from(key.is_some());
        Ok(Found { computed, steps, direct: Some(Dependency::Resource(address, key.cloned())) })
    }
}

fn known(value: Value, steps: usize) -> Found {
    Found { computed: Computed { value, uses: Uses::default(), failed: false }, steps, direct: None }
}

fn outside(root: &str, argument: &str, reference: &Reference) -> Diagnostic {
    let detail = format!("`{root}` has a value only in blocks with {argument}.");
    let summary = format!("Reference to \"{root}\" in context without {}", argument.trim_matches('`'));
    Diagnostic::new(summary, detail, reference.range).hint(format!("set {argument} in this block"))
}

/// A reference, its value, and how many of its steps the value has in it.
type Resolution<'e> = (&'e Traversal, Value, usize);

/// The references of an expression, each of which was found once.
struct Resolved<'s> {
    scope: &'s Scope<'s>,
    found: Vec<Resolution<'s>>,
}

impl Environment for Resolved<'_> {
    fn resolve(&self, traversal: &Traversal) -> Result<(Value, usize), Diagnostic> {
        // What is evaluated is the expression in which the references were found, so it has every one.
        let found = self.found.iter().find(|(own, ..)| std::ptr::eq(*own, traversal));
        Ok(found.map_or_else(|| (Value::DYNAMIC, traversal.steps.len()), |(_, value, steps)| (value.clone(), *steps)))
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, Failure>> {
        // A function depends on its arguments alone, so the alias of a configuration in `provider::NAME::ALIAS::FUNCTION`
        // makes no difference.
        let (provider, function) = name.strip_prefix("provider::")?.split_once("::")?;
        let function = function.rsplit("::").next()?;
        let Some(required) = self.scope.module.module.required_providers.get(provider) else {
            let failure = Failure::new(format!("the module does not require a provider \"{provider}\""));
            return Some(Err(failure.hint(format!("add `{provider}` to `required_providers` of this module"))));
        };
        self.scope.evaluation.world.call(&required.source, function, arguments)
    }
}
