//! The functions of expressions: CEL's own functions, the extensions that Kubernetes also has, and some of Purlin's.
//! None reads a clock, draws randomness or does I/O. `docs/expressions.md` lists them.
#![expect(clippy::needless_pass_by_value, reason = "the evaluator passes arguments by value")]

use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, Expr, IdedExpr, ListExpr};
use cel::common::types::{CelBool, CelList, CelOptional, CelString, DYN_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, extensions};

use super::{Problem, budget, convert, names, pattern, terraform};
use model::Value;
use model::suggest::closest;

/// All functions that an expression can call, including macros.
const FUNCTIONS: &[&str] = &[
    "all",
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "contains",
    "distinct",
    "double",
    "dyn",
    "endsWith",
    "exists",
    "exists_one",
    "filter",
    "first",
    "flatten",
    "format",
    "has",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "json.marshal",
    "json.unmarshal",
    "last",
    "lastIndexOf",
    "lists.range",
    "lowerAscii",
    "map",
    "matches",
    "math.abs",
    "math.ceil",
    "math.floor",
    "math.greatest",
    "math.least",
    "math.round",
    "math.sign",
    "math.trunc",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "substring",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
];

/// The environment of all evaluations. It is created once, because it holds no values.
pub fn environment() -> &'static Arc<Env> {
    static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
        let mut env = Env::stdlib();
        // The names are constants, and a test evaluates one of each.
        declare(&mut env).expect("no function is declared twice");
        Arc::new(env)
    });
    &ENVIRONMENT
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::math)?;
    env.add_extension(extensions::encoders)?;
    env.add_overload("base64.encode", "base64.encode(string)", vec![STRING_TYPE], encode_text)?;
    env.add_overload("json.marshal", "json.marshal", vec![DYN_TYPE], marshal)?;
    env.add_overload("json.unmarshal", "json.unmarshal", vec![STRING_TYPE], unmarshal)?;
    env.add_overload("@matches", "@matches", vec![STRING_TYPE, STRING_TYPE], matches)?;
    env.add_member_overload("first", "list.first()", LIST_TYPE, vec![], first)?;
    env.add_member_overload("last", "list.last()", LIST_TYPE, vec![], last)?;
    env.add_extension(budget::extension)
}

/// Rejects a call of an unknown function.
pub fn check(call: &CallExpr) -> Result<(), Problem> {
    if !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(());
    }
    let name = match call.target.as_deref().map(|target| &target.expr) {
        Some(Expr::Ident(namespace)) if names::is_namespace(namespace) => format!("{namespace}.{}", call.func_name),
        _ => call.func_name.clone(),
    };
    let is_known = FUNCTIONS.contains(&name.as_str());
    let instead = terraform::function(&name).filter(|_| call.target.is_none());
    let problem = match instead {
        None if is_known => return Ok(()),
        Some(_) if is_known => Problem::new(format!("`{name}` is not called like this")),
        _ => Problem::new(format!("there is no function `{name}`")),
    };
    Err(match instead.map(str::to_owned).or_else(|| Some(format!("did you mean `{}`?", closest(&name, FUNCTIONS.iter().copied())?))) {
        Some(hint) => problem.hint(hint),
        None => problem.hint(
            "expressions are CEL: they have operators, macros such as `map`, and functions such as `size` and `string`",
        ),
    })
}

/// Replaces the variadic `math.greatest(…)` and `math.least(…)` by functions with one or two arguments.
pub fn expand_variadic(call: &mut CallExpr) {
    let math = matches!(call.target.as_deref().map(|t| &t.expr), Some(Expr::Ident(name)) if name == "math");
    let name = match call.func_name.as_str() {
        "greatest" if math => "math.@max",
        "least" if math => "math.@min",
        _ => return,
    };
    let mut elements = std::mem::take(&mut call.args);
    elements.iter_mut().for_each(budget::charge);
    call.args =
        if elements.len() > 2 { vec![IdedExpr { id: 0, expr: Expr::List(ListExpr::new(elements)) }] } else { elements };
    name.clone_into(&mut call.func_name);
    call.target = None;
}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn argument<'a, 'b, 'v>(args: &'a Args<'b, 'v>) -> Result<&'a CowVal<'b, 'v>, ExecutionError> {
    args.first().ok_or_else(ExecutionError::missing_argument_or_target)
}

fn text<'a>(args: &'a Args<'_, '_>) -> Result<&'a str, ExecutionError> {
    let text = argument(args)?.downcast_ref::<CelString<'_>>();
    text.map(CelString::inner).ok_or_else(ExecutionError::missing_argument_or_target)
}

fn encode_text<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(text(&args)?);
    Ok(CowVal::owned(CelString::from(encoded)))
}

fn marshal<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let value = cel::Value::try_from(argument(&args)?.as_ref())?;
    let value = convert::from_cel(value).map_err(|what| ExecutionError::function_error("json.marshal", what))?;
    Ok(CowVal::owned(CelString::from(value.to_json().to_string())))
}

fn unmarshal<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let json = serde_json::from_str(text(&args)?);
    let json = json.map_err(|_| ExecutionError::function_error("json.unmarshal", "the string is not valid JSON"))?;
    Ok(CowVal::Owned(Box::<dyn Val>::try_from(convert::to_cel(&Value::from_json(json)))?))
}

fn matches<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    let pattern = args.get(1).and_then(|pattern| pattern.downcast_ref::<CelString<'_>>());
    let pattern = pattern.ok_or_else(ExecutionError::missing_argument_or_target)?;
    Ok(CowVal::owned(CelBool::from(pattern::matches(text(&args)?, pattern.inner())?)))
}

fn first<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    Ok(item(argument(&args)?, <[_]>::first))
}

fn last<'b, 'v>(args: Args<'b, 'v>) -> CallResult<'b, 'v> {
    Ok(item(argument(&args)?, <[_]>::last))
}

fn item<'b, 'v>(
    list: &CowVal<'b, 'v>,
    pick: impl for<'a> Fn(&'a [Box<dyn Val + 'v>]) -> Option<&'a Box<dyn Val + 'v>>,
) -> CowVal<'b, 'v> {
    let items = list.downcast_ref::<CelList<'_>>().map(CelList::inner);
    match items.and_then(pick) {
        Some(item) => CowVal::owned(CelOptional::of(item.clone_as_boxed())),
        None => CowVal::owned(CelOptional::none()),
    }
}
