//! CSV.

use super::call::Call;
use super::parameter::string;
use super::{Function, function};
use crate::Failure;
use crate::cty::{Type, Value};

pub const FUNCTIONS: &[Function] =
    &[function("csvdecode", csvdecode).takes(&[string("str")]).gives_type_of(csvdecode_type).says(
        "A list of objects with the rows of a CSV text, whose first line has the names of the attributes.",
        "csvdecode(\"a,b\\n1,2\\n\")",
        "[{a = \"1\", b = \"2\"}]",
    )];

fn csvdecode_type(call: &Call<'_>) -> Result<Type, Failure> {
    let Some(text) = call.arguments[0].as_str() else { return Ok(Type::Dynamic) };
    Ok(Type::list(row_type(&header(&mut Reader { rest: text, line: 1 })?)?))
}

fn header(reader: &mut Reader<'_>) -> Result<Vec<String>, Failure> {
    reader.row()?.ok_or_else(|| Failure::of(0, "the text has no header line"))
}

fn row_type(header: &[String]) -> Result<Type, Failure> {
    let ty = Type::object(header.iter().map(|name| (name.as_str(), Type::String)));
    match &ty {
        Type::Object(object) if object.attributes.len() < header.len() => {
            Err(Failure::of(0, "a column name occurs twice"))
        }
        _ => Ok(ty),
    }
}

fn csvdecode(call: &Call<'_>) -> Result<Value, Failure> {
    let mut reader = Reader { rest: call.text(0), line: 1 };
    let header = header(&mut reader)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.row()? {
        call.scope.budget.step(1)?;
        if row.len() != header.len() {
            return Err(Failure::of(0, format!("line {} of the text has a wrong number of fields", reader.line - 1)));
        }
        rows.push(Value::object(header.iter().zip(row).map(|(name, field)| (name.as_str(), Value::string(&field)))));
    }
    Ok(Value::list(row_type(&header)?, rows))
}

/// Reads RFC 4180, with any line ends, and without empty lines.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn row(&mut self) -> Result<Option<Vec<String>>, Failure> {
        while let Some(rest) = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')) {
            self.rest = rest;
            self.line += 1;
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        loop {
            fields.push(if self.rest.starts_with('"') { self.quoted()? } else { self.bare()? });
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            self.rest = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n')).unwrap_or(self.rest);
            self.line += 1;
            return Ok(Some(fields));
        }
    }

    fn bare(&mut self) -> Result<String, Failure> {
        let line = &self.rest[..self.rest.find('\n').unwrap_or(self.rest.len())];
        let field = &line[..line.find(',').unwrap_or(line.len())];
        let ends_line = field.len() == line.len();
        self.rest = &self.rest[field.len()..];
        let field = if ends_line { field.strip_suffix('\r').unwrap_or(field) } else { field };
        if field.contains('"') {
            return Err(self.problem("a quote in a field without quotes"));
        }
        Ok(field.to_owned())
    }

    fn quoted(&mut self) -> Result<String, Failure> {
        let mut field = String::new();
        self.rest = &self.rest[1..];
        loop {
            let Some((text, rest)) = self.rest.split_once('"') else {
                return Err(self.problem("a quote has no end"));
            };
            field.push_str(text);
            self.rest = rest;
            self.line += text.matches('\n').count();
            if let Some(rest) = self.rest.strip_prefix('"') {
                field.push('"');
                self.rest = rest;
            } else if self.rest.is_empty() || self.rest.starts_with([',', '\n']) || self.rest.starts_with("\r\n") {
                // Line ends inside quotes are normalized too.
                return Ok(field.replace("\r\n", "\n"));
            } else if self.rest == "\r" {
                self.rest = "";
                return Ok(field.replace("\r\n", "\n"));
            } else {
                return Err(self.problem("text after a quote"));
            }
        }
    }

    fn problem(&self, what: &str) -> Failure {
        Failure::of(0, format!("line {} of the text has {what}", self.line))
    }
}
