//! Functions of templates, and those that take expressions instead of values.

use super::call::Call;
use super::files::read;
use super::parameter::{any, string};
use super::{Accepts, Function, function};
use crate::Failure;
use crate::cty::{Marks, Value};
use crate::evaluate::render;

pub const FUNCTIONS: &[Function] = &[
    function("can", only_in_expressions).takes(&[any("expression")]).gives(Accepts::Bool).says(
        "Whether an expression has a value, and no error.",
        "can(tonumber(\"x\"))",
        "false",
    ),
    function("templatefile", templatefile)
        .takes(&[string("path").marked(), any("vars")])
        .gives_anything()
        .or_null()
        .says(
            "The text of a template in a file, with values for its variables.",
            "templatefile(\"hello.tftpl\", {name = \"Jodie\"})",
            "\"Hello, Jodie!\"",
        ),
    function("templatestring", templatestring)
        .takes(&[string("data").marked(), any("vars").marked()])
        .gives_anything()
        .or_null()
        .says(
            "The text of a template in a string, with values for its variables.",
            "templatestring(\"Hello, $${name}!\", {name = \"Jodie\"})",
            "\"Hello, Jodie!\"",
        ),
    function("try", only_in_expressions).and_any(any("expressions")).says(
        "The value of the first expression that has no error.",
        "try(tonumber(\"x\"), 5)",
        "5",
    ),
];

/// The evaluation of expressions does these itself, because their arguments may have errors.
fn only_in_expressions(_: &Call<'_>) -> Result<Value, Failure> {
    Err(Failure::new("this function cannot be used with an expanded argument"))
}

fn templatefile(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let path = call.plain(0, &mut marks);
    let path = path.as_str().unwrap_or_default();
    let text = String::from_utf8(read(call, path, &marks)?).map_err(|_| Failure::of(0, "the file is not UTF-8"))?;
    Ok(render(path, &text, &call.arguments[1], call.scope)?.with_marks(&marks))
}

fn templatestring(call: &Call<'_>) -> Result<Value, Failure> {
    let mut marks = Marks::NONE;
    let text = call.plain(0, &mut marks);
    let variables = call.plain(1, &mut marks);
    Ok(render("template", text.as_str().unwrap_or_default(), &variables, call.scope)?.with_marks(&marks))
}
