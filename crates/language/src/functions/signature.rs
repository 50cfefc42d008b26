//! Functions that are not of the language, such as those of providers: what they take, and what they are called with.

use std::fmt::Display;

use crate::Failure;
use crate::cty::{Marks, Type, Value, convert};

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub parameters: Vec<TypedParameter>,
    /// The parameter of all further arguments.
    pub variadic: Option<TypedParameter>,
    pub result: Type,
}

/// A parameter, and the arguments that the function accepts for it beyond known values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedParameter {
    pub name: String,
    pub ty: Type,
    /// Null is an error otherwise.
    pub null: bool,
    /// The result is unknown otherwise, also if only a part of the argument is.
    pub unknown: bool,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// The function is called with these values, which have the types of the parameters. Its result gets the marks.
    Call { arguments: Vec<Value>, marks: Marks },
    /// The result is not known yet.
    Unknown(Value),
}

impl Signature {
    /// Checks the arguments of a call, and converts them. `name` is the function's, for messages.
    ///
    /// # Errors
    /// If an argument is not one of the parameter's type, or there are too few or too many.
    pub fn prepare(&self, name: &str, arguments: &[Value]) -> Result<Prepared, Failure> {
        let (wanted, given) = (self.parameters.len(), arguments.len());
        if given < wanted || (given > wanted && self.variadic.is_none()) {
            let least = if self.variadic.is_some() { "at least " } else { "" };
            let noun = if wanted == 1 { "argument" } else { "arguments" };
            return Err(Failure::new(format!("{name} takes {least}{wanted} {noun}, not {given}")));
        }
        let parameters = self.parameters.iter().chain(self.variadic.iter().cycle());
        let (mut marks, mut plain) = (Marks::NONE, Vec::with_capacity(given));
        let (mut is_typed, mut is_known) = (true, true);
        for (index, (argument, parameter)) in arguments.iter().zip(parameters).enumerate() {
            let refused = |why: &dyn Display| Failure::of(index, format!("{}: {why}", parameter.name));
            let argument = convert(argument, &parameter.ty).map_err(|error| refused(&error))?;
            let argument = argument.unmarked_deep(&mut marks);
            if argument.is_null() && !parameter.null {
                return Err(refused(&"the argument must not be null"));
            }
            is_typed &= *argument.ty() != Type::Dynamic;
            is_known &= parameter.unknown || argument.is_wholly_known();
            plain.push(argument);
        }
        Ok(match (is_typed, is_known) {
            (true, true) => Prepared::Call { arguments: plain, marks },
            (true, false) => Prepared::Unknown(Value::unknown(self.result.clone()).with_marks(&marks)),
            (false, _) => Prepared::Unknown(Value::DYNAMIC.with_marks(&marks)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cty::Mark;

    fn parameter(ty: Type, is_open: bool) -> TypedParameter {
        TypedParameter { name: "p".to_owned(), ty, null: is_open, unknown: is_open }
    }

    fn join() -> Signature {
        let variadic = Some(parameter(Type::list(Type::String), false));
        Signature { parameters: vec![parameter(Type::String, false)], variadic, result: Type::Number }
    }

    #[test]
    fn arguments_are_converted_and_their_marks_go_to_the_result() {
        let secret = Value::int(1).with_mark(Mark::Sensitive);
        let list = Value::tuple([Value::string("a"), secret]);
        let Ok(Prepared::Call { arguments, marks }) = join().prepare("join", &[Value::int(7), list]) else { panic!() };
        let items = Value::list(Type::String, [Value::string("a"), Value::string("1")]);
        assert_eq!(arguments, [Value::string("7"), items]);
        assert!(marks.contains(&Mark::Sensitive));
    }

    #[test]
    fn what_is_not_known_inside_an_argument_makes_the_result_unknown() {
        let open = Value::tuple([Value::unknown(Type::String).with_mark(Mark::Sensitive)]);
        let called = join().prepare("join", &[Value::string(","), open.clone()]);
        assert_eq!(called, Ok(Prepared::Unknown(Value::unknown(Type::Number).with_mark(Mark::Sensitive))));
        let untyped = join().prepare("join", &[Value::DYNAMIC]);
        assert_eq!(untyped, Ok(Prepared::Unknown(Value::unknown(Type::Number))), "it has the type of the parameter");
        let signature = Signature { parameters: vec![parameter(Type::Dynamic, true)], variadic: None, ..join() };
        assert_eq!(signature.prepare("kind", &[Value::DYNAMIC]), Ok(Prepared::Unknown(Value::DYNAMIC)));
        assert!(matches!(signature.prepare("kind", &[open]), Ok(Prepared::Call { .. })), "it accepts unknown values");
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let wrong = |arguments: &[Value]| join().prepare("join", arguments).unwrap_err();
        assert_eq!(wrong(&[]).message, "join takes at least 1 argument, not 0");
        let none = wrong(&[Value::NULL]);
        assert_eq!((none.argument, none.message.as_str()), (Some(0), "p: the argument must not be null"));
        assert_eq!(wrong(&[Value::string(","), Value::TRUE]).argument, Some(1));
        let two = Signature { variadic: None, ..join() }.prepare("one", &[Value::TRUE, Value::TRUE]);
        assert_eq!(two.unwrap_err().message, "one takes 1 argument, not 2");
    }
}
