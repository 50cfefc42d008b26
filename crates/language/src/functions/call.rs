//! The call of a function: what its row says about its arguments.

use super::{Function, Parameter, ResultType};
use crate::cty::{Marks, Number, Range, Type, Value, convert};
use crate::{Failure, Scope};

/// The arguments that an implementation sees.
pub struct Call<'a> {
    pub arguments: &'a [Value],
    /// The type of the result.
    pub ty: &'a Type,
    pub scope: &'a Scope<'a>,
}

impl Call<'_> {
    /// The text of a known string.
    pub fn text(&self, index: usize) -> &str {
        self.arguments[index].as_str().unwrap_or_default()
    }

    pub fn number(&self, index: usize) -> &Number {
        self.arguments[index].as_number().unwrap_or(&Number::ZERO)
    }

    /// A number that must be whole and fit 64 bits.
    pub fn whole(&self, index: usize) -> Result<i64, Failure> {
        let number = self.arguments[index].as_number();
        number.and_then(Number::to_i64).ok_or_else(|| Failure::of(index, "a whole number is required"))
    }

    /// The elements of a known list, set or tuple.
    pub fn items(&self, index: usize) -> &[Value] {
        self.arguments[index].as_items().unwrap_or_default()
    }

    /// The argument without its own marks, which are added to `marks`.
    pub fn plain(&self, index: usize, marks: &mut Marks) -> Value {
        self.arguments[index].unmarked(marks)
    }
}

/// The value for an error message, unless it must not be shown.
pub fn shown(text: &str, marks: &Marks) -> String {
    use crate::cty::Mark;
    if marks.contains(&Mark::Ephemeral) {
        "(ephemeral value)".to_owned()
    } else if marks.contains(&Mark::Sensitive) {
        "(sensitive value)".to_owned()
    } else {
        format!("\"{text}\"")
    }
}

pub fn call(function: &Function, arguments: &[Value], scope: &Scope<'_>) -> Result<Value, Failure> {
    scope.budget.step(1)?;
    scope.budget.walk(arguments)?;
    let arguments = converted(function, arguments)?;
    let mut marks = Marks::NONE;
    let plain: Vec<Value> = arguments
        .iter()
        .enumerate()
        .map(
            |(index, argument)| {
                if parameter(function, index).marked { argument.clone() } else { argument.unmarked_deep(&mut marks) }
            },
        )
        .collect();
    let Some(ty) = result_type(function, &plain, scope)? else {
        return Ok(Value::DYNAMIC.with_marks(&marks));
    };
    let is_open =
        plain.iter().enumerate().any(|(index, argument)| !argument.is_known() && !parameter(function, index).unknown);
    let result = if is_open {
        // Upstream drops the marks of arguments that the function itself would have handled. What is made from a secret
        // stays one here.
        plain.iter().for_each(|argument| marks.add(argument.marks()));
        Value::unknown(ty)
    } else {
        let result = (function.call)(&Call { arguments: &plain, ty: &ty, scope })?;
        scope.budget.hold(size(&result))?;
        result
    };
    if function.never_null && result.is_null() {
        return Err(Failure::new("the result is null"));
    }
    let result = if function.never_null { result.refined(not_null) } else { result };
    Ok(result.with_marks(&marks))
}

fn not_null(range: Range) -> Range {
    Range { not_null: true, ..range }
}

/// About what the value takes by itself, without what it shares with the arguments.
fn size(value: &Value) -> usize {
    let text = value.as_str().map_or(0, str::len);
    let items = value.as_items().map_or(0, <[Value]>::len) + value.as_entries().map_or(0, |entries| 2 * entries.len());
    text + items * size_of::<Value>()
}

fn parameter(function: &Function, index: usize) -> &Parameter {
    const NONE: &Parameter = &super::parameter::any("");
    function.parameters.get(index).or(function.rest.as_ref()).unwrap_or(NONE)
}

/// The arguments in the types of the parameters.
fn converted(function: &Function, arguments: &[Value]) -> Result<Vec<Value>, Failure> {
    let (wanted, given) = (function.parameters.len(), arguments.len());
    if given < wanted || (given > wanted && function.rest.is_none()) {
        let least = if function.rest.is_some() { "at least " } else { "" };
        return Err(Failure::new(format!("{} takes {least}{wanted} arguments, not {given}", function.name)));
    }
    let arguments = arguments.iter().enumerate().map(|(index, argument)| {
        convert(argument, &parameter(function, index).accepts.ty())
            .map_err(|error| Failure::of(index, error.to_string()))
    });
    arguments.collect()
}

/// `None` if an argument has no known type.
fn result_type(function: &Function, arguments: &[Value], scope: &Scope<'_>) -> Result<Option<Type>, Failure> {
    for (index, argument) in arguments.iter().enumerate() {
        let parameter = parameter(function, index);
        if argument.is_null() && !parameter.null {
            return Err(Failure::of(index, "the argument must not be null"));
        }
        if *argument.ty() == Type::Dynamic && !parameter.untyped {
            return Ok(None);
        }
    }
    match function.result {
        ResultType::Always(accepts) => Ok(Some(accepts.ty())),
        ResultType::OfResult => Ok(Some(Type::Dynamic)),
        ResultType::Of(result) => result(&Call { arguments, ty: &Type::Dynamic, scope }).map(Some),
    }
}
