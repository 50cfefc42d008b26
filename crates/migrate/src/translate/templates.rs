//! Templates: strings with interpolations and directives.

use hcl_edit::template::{Directive, Element, ForDirective, IfDirective, Strip, Template};

use super::{Cel, Place, Translator, Untranslated};

type Elements<'e> = Box<dyn Iterator<Item = &'e Element> + 'e>;

impl Translator<'_> {
    /// A template of one interpolation is its value.
    pub(super) fn template(&self, elements: Elements<'_>, place: &Place) -> Result<Cel, Untranslated> {
        let elements: Vec<&Element> = elements.collect();
        if let [Element::Interpolation(one)] = elements[..] {
            return self.expression(&one.expr, place);
        }
        self.text(Box::new(elements.into_iter()), place, Strip::None)
    }

    /// A part of a template, as a string. `strip` are the ends at which spaces are removed.
    fn text(&self, elements: Elements<'_>, place: &Place, strip: Strip) -> Result<Cel, Untranslated> {
        let mut parts: Vec<Cel> = Vec::new();
        let mut strips = strip.strip_start();
        for element in elements {
            let strip = match element {
                Element::Literal(text) => {
                    let text = if strips { without_start(text) } else { text.as_str() };
                    strips = false;
                    parts.push(Cel::string(text));
                    continue;
                }
                Element::Interpolation(one) => one.strip,
                Element::Directive(directive) => ends(directive),
            };
            if strip.strip_start() {
                trim_end(&mut parts);
            }
            strips = strip.strip_end();
            parts.push(match element {
                Element::Interpolation(one) => self.expression(&one.expr, place)?,
                Element::Directive(directive) => self.directive(directive, place)?,
                Element::Literal(_) => continue,
            });
        }
        if strip.strip_end() {
            trim_end(&mut parts);
        }
        parts.retain(|part| part.as_text() != Some(""));
        Ok(Cel::Text(parts).simplified())
    }

    fn directive(&self, directive: &Directive, place: &Place) -> Result<Cel, Untranslated> {
        match directive {
            Directive::If(one) => self.if_directive(one, place),
            Directive::For(one) => self.for_directive(one, place),
        }
    }

    fn if_directive(&self, one: &IfDirective, place: &Place) -> Result<Cel, Untranslated> {
        let last = one.endif_expr.strip;
        let part =
            |template: &Template, first: Strip, last: Strip| self.text(template.iter(), place, inner(first, last));
        let middle = one.else_expr.as_ref().map_or(last, |other| other.strip);
        let positive = part(&one.if_expr.template, one.if_expr.strip, middle)?;
        let negative = match &one.else_expr {
            Some(other) => part(&other.template, other.strip, last)?,
            None => Cel::string(""),
        };
        let condition = self.expression(&one.if_expr.cond_expr, place)?;
        match condition.as_constant().and_then(serde_json::Value::as_bool) {
            Some(true) => Ok(positive),
            Some(false) => Ok(negative),
            None => {
                let (condition, positive) = (condition.to_operand()?, positive.to_operand()?);
                Ok(Cel::operation(format!("{condition} ? {positive} : {}", negative.to_operand()?)))
            }
        }
    }

    fn for_directive(&self, one: &ForDirective, place: &Place) -> Result<Cel, Untranslated> {
        let intro = &one.for_expr;
        let strip = inner(intro.strip, one.endfor_expr.strip);
        let names = (intro.key_var.as_ref().map(|name| name.as_str()), intro.value_var.as_str());
        let collection = self.expression(&intro.collection_expr, place)?;
        let parts = self.each(&collection, names, place, &|place| self.text(intro.template.iter(), place, strip))?;
        match parts.items() {
            Some(parts) => Ok(Cel::Text(parts).simplified()),
            None => Ok(Cel::code(format!("{}.join(\"\")", parts.to_operand()?))),
        }
    }
}

/// Removes the spaces at the start of a literal, up to the first line.
fn without_start(text: &str) -> &str {
    let (line, _) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
    &text[line.len() - line.trim_start().len()..]
}

/// Removes the spaces at the end of a literal, only of its last line.
fn trim_end(parts: &mut Vec<Cel>) {
    if let Some(text) = parts.last().and_then(Cel::as_text) {
        let without_end = text.strip_suffix('\n').unwrap_or(text);
        let start = without_end.rfind('\n').map_or(0, |end| end + 1);
        let kept = format!("{}{}", &text[..start], text[start..].trim_end());
        parts.pop();
        parts.push(Cel::string(kept));
    }
}

/// At which ends of the directive the spaces outside of it are removed.
fn ends(directive: &Directive) -> Strip {
    match directive {
        Directive::If(one) => Strip::from((one.if_expr.strip.strip_start(), one.endif_expr.strip.strip_end())),
        Directive::For(one) => Strip::from((one.for_expr.strip.strip_start(), one.endfor_expr.strip.strip_end())),
    }
}

/// At which ends the spaces inside of two markers are removed.
fn inner(first: Strip, last: Strip) -> Strip {
    Strip::from((first.strip_end(), last.strip_start()))
}
