//! Calls of functions.

use hcl::{Call, Diagnostic, Expr, Range};

use super::Evaluator;
use crate::cty::{Type, Value};
use crate::{Failure, functions};

impl Evaluator<'_> {
    pub fn call(&mut self, call: &Call, range: Range) -> Value {
        let name = call.name.text.as_str();
        match name.strip_prefix("core::").unwrap_or(name) {
            "try" if !call.expand_last => self.first_success(&call.arguments, range),
            "can" if call.arguments.len() == 1 && !call.expand_last => self.succeeds(&call.arguments[0]),
            _ => self.ordinary(call, range),
        }
    }

    fn ordinary(&mut self, call: &Call, range: Range) -> Value {
        let name = call.name.text.as_str();
        let function = functions::find(name);
        let (arguments, problems) = self.attempt(|evaluator| evaluator.arguments(call));
        let failed = !problems.is_empty();
        self.diagnostics.extend(problems);
        let Some(arguments) = arguments.filter(|_| !failed) else { return Value::DYNAMIC };
        let result = match function {
            Some(function) => function.call(&arguments, self.scope),
            None => match self.environment.call(name, &arguments) {
                Some(result) => result,
                None => {
                    let detail = format!("There is no function named \"{name}\".");
                    return self.problem("Call to unknown function", detail, call.name.range);
                }
            },
        };
        result.unwrap_or_else(|failure| self.failed(call, &failure, range))
    }

    /// The values of the arguments. `None` if an argument that is expanded is not known.
    fn arguments(&mut self, call: &Call) -> Option<Vec<Value>> {
        let (last, first) = match call.arguments.split_last() {
            Some((last, first)) if call.expand_last => (Some(last), first),
            _ => (None, call.arguments.as_slice()),
        };
        let expanded = match last {
            Some(last) => self.expanded(last)?,
            None => Vec::new(),
        };
        let mut arguments: Vec<Value> = first.iter().map(|argument| self.value(argument)).collect();
        arguments.extend(expanded);
        Some(arguments)
    }

    /// The elements of an argument with `...`, which is evaluated before the others: if it is not known, they do not matter.
    fn expanded(&mut self, argument: &Expr) -> Option<Vec<Value>> {
        let list = self.value(argument);
        let is_list = matches!(list.ty(), Type::Tuple(_) | Type::List(_) | Type::Set(_) | Type::Dynamic);
        if !is_list || list.is_null() {
            let detail = "An argument with `...` must be a list, tuple or set, and not null.";
            self.problem("Invalid expanding argument value", detail, argument.range);
            return None;
        }
        let items = list.as_items()?;
        Some(items.iter().map(|item| item.clone().with_marks(list.marks())).collect())
    }

    fn failed(&mut self, call: &Call, failure: &Failure, range: Range) -> Value {
        let argument = failure.argument.and_then(|index| call.arguments.get(index));
        let name = &call.name.text;
        let problem = match argument {
            Some(argument) => {
                let detail = format!("In a call of {name}: {}.", failure.message);
                Diagnostic::new("Invalid function argument", detail, argument.range)
            }
            None => {
                let detail = format!("Call to function \"{name}\" failed: {}.", failure.message);
                Diagnostic::new("Error in function call", detail, range)
            }
        };
        self.diagnostics.push(Diagnostic { hint: failure.hint.clone(), ..problem });
        Value::DYNAMIC
    }

    /// The value of the first expression without problems. If it is not wholly known, another one may be the first later.
    fn first_success(&mut self, expressions: &[Expr], range: Range) -> Value {
        let mut reasons = Vec::new();
        for expression in expressions {
            let (value, problems) = self.attempt(|evaluator| evaluator.value(expression));
            if problems.is_empty() {
                return if value.is_wholly_known() { value } else { Value::DYNAMIC };
            }
            reasons.extend(problems.into_iter().map(|problem| format!("{}: {}", problem.summary, problem.detail)));
        }
        let detail = if reasons.is_empty() {
            "At least one expression is required.".to_owned()
        } else {
            format!("No expression succeeded. {}", reasons.join(" "))
        };
        self.problem("Error in function call", detail, range)
    }

    fn succeeds(&mut self, expression: &Expr) -> Value {
        let (value, problems) = self.attempt(|evaluator| evaluator.value(expression));
        if !problems.is_empty() {
            Value::FALSE
        } else if value.is_wholly_known() {
            Value::TRUE
        } else {
            Value::unknown(Type::Bool)
        }
    }
}
