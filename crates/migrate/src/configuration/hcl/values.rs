//! Converts expressions of HCL to sources, and reads the values of variables.

use std::collections::BTreeMap;

use hcl_edit::expr::{Expression, Object, ObjectKey};
use hcl_edit::template::{Element, Template};
use serde_json::{Map, Value as Json};

use super::{Folder, parse};
use crate::Problem;
use crate::configuration::{Arguments, Source};

/// Returns the values of the variables of the root module. Later files take precedence, as in Terraform.
pub fn values(files: &Folder, given: &[(String, String)]) -> Result<BTreeMap<String, Json>, Problem> {
    let is_automatic =
        |path: &&String| path.strip_suffix(".json").unwrap_or(path).strip_suffix(".auto.tfvars").is_some();
    let in_root = files.keys().filter(|path| !path.contains('/'));
    let automatic = in_root.filter(is_automatic).map(String::as_str);
    let named = ["terraform.tfvars", "terraform.tfvars.json"].into_iter().chain(automatic);
    let named = named.filter_map(|path| Some((path, files.get(path)?.as_str())));
    let given = given.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let mut found = BTreeMap::new();
    for (path, text) in named.chain(given) {
        if path.strip_suffix(".json").is_some() {
            let values: BTreeMap<String, Json> =
                serde_json::from_str(text).map_err(|error| Problem::plain(format!("{path}: {error}")))?;
            found.extend(values);
            continue;
        }
        for attribute in parse(path, text)?.attributes() {
            let (name, value) = (attribute.key.as_str(), source(&attribute.value).constant());
            let value = value.ok_or_else(|| Problem::plain(format!("{path}: `{name}` is not a constant")))?;
            found.insert(name.to_owned(), value);
        }
    }
    Ok(found)
}

/// Converts an expression. Constants, and the parts of lists and objects, become separate sources.
pub fn source(expression: &Expression) -> Source {
    let kept = || Source::Expression(Box::new(expression.clone()));
    match expression {
        Expression::Null(_) => Source::Constant(Json::Null),
        Expression::Bool(value) => Source::Constant(Json::from(*value.value())),
        Expression::Number(number) => number_value(&number.value().to_string()).map_or_else(kept, Source::Constant),
        Expression::String(text) => Source::Constant(Json::from(text.as_str())),
        Expression::Array(items) => Source::List(items.iter().map(source).collect()).simplified(),
        Expression::Object(object) => entries(object).map_or_else(kept, |all| Source::Object(all).simplified()),
        Expression::StringTemplate(template) => literals(template.iter()).map_or_else(kept, Source::Constant),
        Expression::HeredocTemplate(heredoc) => {
            let mut heredoc = heredoc.clone();
            heredoc.dedent();
            literals(heredoc.template.iter()).map_or_else(
                || Source::Expression(Box::new(Expression::HeredocTemplate(heredoc.clone()))),
                Source::Constant,
            )
        }
        Expression::Parenthesis(inner) => source(inner.inner()),
        _ => kept(),
    }
}

/// Parses a number without loss.
pub fn number_value(text: &str) -> Option<Json> {
    serde_json::from_str::<Json>(text).ok().filter(Json::is_number)
}

/// The text of a template without interpolations.
fn literals(mut elements: Box<dyn Iterator<Item = &Element> + '_>) -> Option<Json> {
    let text = elements.try_fold(String::new(), |text, one| Some(text + one.as_literal()?.as_str()));
    text.map(Json::from)
}

/// Parses a template file.
pub fn template(path: &str, text: &str) -> Result<Template, String> {
    text.parse::<Template>().map_err(|error| format!("`{path}` is not a template: {}", error.message()))
}

/// `None`: a key is not a constant.
fn entries(object: &Object) -> Option<Arguments> {
    let entry = |(key, value): (&ObjectKey, &hcl_edit::expr::ObjectValue)| {
        let key = match key {
            ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => name.as_str().to_owned(),
            ObjectKey::Expression(expression) => match source(expression).constant()? {
                Json::String(text) => text,
                other => other.to_string(),
            },
        };
        Some((key.into(), source(value.expr())))
    };
    object.iter().map(entry).collect()
}

impl Source {
    /// The value, if it is a constant.
    pub fn constant(&self) -> Option<Json> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::List(items) => items.iter().map(Self::constant).collect(),
            Self::Object(arguments) => {
                let entry = |(key, one): (&std::sync::Arc<str>, &Self)| Some((key.to_string(), one.constant()?));
                arguments.iter().map(entry).collect::<Option<Map<_, _>>>().map(Json::Object)
            }
            Self::References(_) | Self::Expression(_) | Self::Dynamic(_) => None,
        }
    }

    fn simplified(self) -> Self {
        self.constant().map_or(self, Self::Constant)
    }
}
