//! Prepares a parsed expression: replaces its paths by variables and adds the cost checks of [`super::budget`].
//!
//! A path is the longest constant chain of names, keys and indexes that starts at a name which no comprehension binds.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use indexmap::IndexMap;

use super::origin::{Origin, PartPath};
use super::program::{ReadMode, Slot};
use super::uses::{Step, Uses};
use super::{Access, Problem, budget, functions, hyphen, names};
use crate::load::intern::Interner;
use model::Segment;

/// Rewrites the expression and returns the paths that it reads. A path that is read twice has one slot.
pub fn prepare(expression: &mut IdedExpr, source: &str, interner: &mut Interner) -> Result<Vec<Slot>, Problem> {
    let mut pass = Pass { slots: IndexMap::new(), bound: Vec::new(), depth: 0, source, interner };
    pass.read(expression)?;
    Ok(pass.slots.into_iter().map(|((access, mode), uses)| Slot { access, mode, uses }).collect())
}

/// The maximum nesting of operations, so that the evaluation fits the stack of a small thread.
const MAX_DEPTH: usize = 64;

/// The problem of an expression that exceeds the maximum depth.
pub fn too_deep() -> Problem {
    Problem::new(format!("the expression nests more than {MAX_DEPTH} operations deep"))
        .hint("use `['a', 'b'].join()` to join many strings")
}

/// A path that is known before the evaluation.
struct ConstantPath {
    root: String,
    /// The instance selector right after the root.
    selector: Option<Access>,
    segments: Vec<Segment>,
    mode: ReadMode,
}

struct Pass<'a> {
    slots: IndexMap<(Access, ReadMode), Uses>,
    /// The variables of the enclosing comprehensions, innermost last.
    bound: Vec<(String, Origin)>,
    depth: usize,
    /// The expression as written.
    source: &'a str,
    interner: &'a mut Interner,
}

impl Pass<'_> {
    /// Visits an expression whose result is read as a whole.
    fn read(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        let origin = self.visit(expression)?;
        self.add_whole(&origin);
        Ok(())
    }

    /// Visits an expression. What is read of its result is for the caller to add.
    fn visit(&mut self, expression: &mut IdedExpr) -> Result<Origin, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let origin = self.visit_here(expression)?;
        self.depth -= 1;
        if origin.is_too_large() {
            self.add_whole(&origin);
            return Ok(Origin::default());
        }
        Ok(origin)
    }

    fn visit_here(&mut self, expression: &mut IdedExpr) -> Result<Origin, Problem> {
        if let Some(origin) = self.path(expression)? {
            return Ok(origin);
        }
        match &mut expression.expr {
            Expr::Call(_) => self.call(expression),
            Expr::Select(select) => {
                let step = Step::To(Segment::Name(self.interner.get(&select.field)));
                let part = self.visit(&mut select.operand)?.part(&step);
                if select.test {
                    self.add(&part, Uses::add_presence);
                    return Ok(Origin::default());
                }
                Ok(part)
            }
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|element| self.element(element))?;
                self.charge_inside_comprehensions(expression);
                Ok(Origin::default())
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.element(&mut entry.key)?;
                        self.element(&mut entry.value)?;
                    }
                }
                self.charge_inside_comprehensions(expression);
                Ok(Origin::default())
            }
            Expr::Comprehension(_) => self.comprehension(expression),
            Expr::Struct(message) => Err(Problem::new(format!("there is no type `{}`", message.type_name))
                .hint("write the keys of a map in quotes: `{\"key\": value}`")),
            Expr::Ident(name) => Ok(self.bound(name).cloned().unwrap_or_default()),
            Expr::Literal(_) | Expr::Unspecified => Ok(Origin::default()),
        }
    }

    /// Whether it is the namespace of functions, such as `math`.
    fn is_namespace(&self, expression: &IdedExpr) -> bool {
        matches!(&expression.expr, Expr::Ident(name) if names::is_namespace(name) && self.bound(name).is_none())
    }

    /// The origin of a variable of a comprehension.
    fn bound(&self, name: &str) -> Option<&Origin> {
        self.bound.iter().rev().find(|(known, _)| known == name).map(|(_, origin)| origin)
    }

    fn add(&mut self, origin: &Origin, add: impl Fn(&mut Uses, &[Step])) {
        for PartPath { slot, path } in &origin.paths {
            if let Some((_, uses)) = self.slots.get_index_mut(*slot) {
                add(uses, path);
            }
        }
    }

    fn add_whole(&mut self, origin: &Origin) {
        self.add(origin, Uses::add_whole);
        if let Some(items) = &origin.items {
            self.add_whole(items);
        }
    }

    /// Visits an element of a list or map, which is charged before it is copied into it.
    fn element(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        self.read(expression)?;
        budget::charge(expression);
        Ok(())
    }

    /// Replaces a constant path by a variable. `None`: the expression is no such path.
    fn path(&mut self, expression: &mut IdedExpr) -> Result<Option<Origin>, Problem> {
        let Some(ConstantPath { root, selector: chosen, segments, mode }) = self.constant_path(expression) else {
            return Ok(None);
        };
        let Some(access) = Access::named(&root, segments, self.interner)? else { return Ok(Some(Origin::default())) };
        let mode = match mode {
            // The first segment after `resources` or `data` is the object's name, which is always read.
            ReadMode::Optional(from) => ReadMode::Optional(from.saturating_sub(names::root_segments(&root))),
            mode => mode,
        };
        let (slot, _) = self.slots.insert_full((access.with_selector(chosen), mode), Uses::default());
        expression.expr = Expr::Ident(format!("@{slot}"));
        Ok(Some(if mode == ReadMode::Value { Origin::slot(slot) } else { Origin::default() }))
    }

    fn call(&mut self, expression: &mut IdedExpr) -> Result<Origin, Problem> {
        let Expr::Call(call) = &mut expression.expr else { return Ok(Origin::default()) };
        functions::check(call)?;
        let bound = &self.bound;
        hyphen::check(call, self.source, &|name| bound.iter().any(|(known, _)| known == name), self.interner)?;
        let origin = match (call.func_name.as_str(), call.target.as_deref_mut(), call.args.as_mut_slice()) {
            (operators::INDEX, None, [operand, key]) => self.index(operand, key)?,
            (operators::OPT_INDEX | operators::OPT_SELECT, None, [operand, key]) => {
                let part = self.index(operand, key)?;
                self.add_whole(&part);
                Origin::default()
            }
            (operators::CONDITIONAL, None, [condition, value, otherwise]) => {
                self.read(condition)?;
                self.visit(value)?.or(self.visit(otherwise)?)
            }
            (operators::IN, None, [searched, list]) => {
                self.read(searched)?;
                let list = self.visit(list)?;
                let items = self.items(&list);
                self.add_whole(&items);
                Origin::default()
            }
            ("size", Some(counted), []) | ("size", None, [counted]) => {
                let counted = self.visit(counted)?;
                self.add(&counted, Uses::add_keys);
                Origin::default()
            }
            (_, target, args) => {
                let target = target.filter(|target| !self.is_namespace(target));
                target.into_iter().chain(args).try_for_each(|operand| self.read(operand))?;
                Origin::default()
            }
        };
        functions::expand_variadic(call);
        budget::limit_call(expression);
        Ok(origin)
    }

    /// Visits `operand[key]`.
    fn index(&mut self, operand: &mut IdedExpr, key: &mut IdedExpr) -> Result<Origin, Problem> {
        let operand = self.visit(operand)?;
        let step = self.constant_key(key).map_or(Step::Any, Step::To);
        self.read(key)?;
        Ok(operand.part(&step))
    }

    /// What a loop visits: the items of a list, or the keys of a map.
    fn items(&mut self, visited: &Origin) -> Origin {
        self.add(visited, Uses::add_keys);
        visited.clone().part(&Step::Items)
    }

    fn comprehension(&mut self, expression: &mut IdedExpr) -> Result<Origin, Problem> {
        let Expr::Comprehension(loops) = &mut expression.expr else { return Ok(Origin::default()) };
        let range = self.visit(&mut loops.iter_range)?;
        let mut item = self.items(&range);
        if loops.iter_var2.is_some() {
            // A loop with two variables also reads the values of a map.
            self.add_whole(&range);
            item = Origin::default();
        }
        budget::limit_range(&mut loops.iter_range);
        self.read(&mut loops.accu_init)?;
        let depth = self.bound.len();
        self.bound.push((loops.iter_var.clone(), item));
        self.bound.extend(loops.iter_var2.clone().map(|name| (name, Origin::default())));
        self.bound.push((loops.accu_var.clone(), Origin::default()));
        self.read(&mut loops.loop_cond)?;
        let added = self.step(&mut loops.loop_step, &loops.accu_var)?;
        let is_accumulator = matches!(&loops.result.expr, Expr::Ident(name) if *name == loops.accu_var);
        if !is_accumulator {
            self.add_whole(&added);
        }
        self.read(&mut loops.result)?;
        self.bound.truncate(depth);
        Ok(if is_accumulator { Origin::list(added) } else { Origin::default() })
    }

    /// Visits the step of a loop, such as `@result + [element]`, and returns the added elements. Its shape stays
    /// unchanged, because the evaluator recognizes it and appends in place; the added elements are charged.
    fn step(&mut self, expression: &mut IdedExpr, accumulator: &str) -> Result<Origin, Problem> {
        let Expr::Call(call) = &mut expression.expr else { return self.read(expression).map(|()| Origin::default()) };
        match (call.func_name.as_str(), call.args.as_mut_slice()) {
            (operators::CONDITIONAL, [condition, value, otherwise]) => {
                self.read(condition)?;
                Ok(self.step(value, accumulator)?.or(self.step(otherwise, accumulator)?))
            }
            (operators::ADD, [before, IdedExpr { expr: Expr::List(ListExpr { elements, .. }), .. }])
                if is_variable(before, accumulator) && elements.len() == 1 =>
            {
                let added = self.visit(&mut elements[0])?;
                budget::charge(&mut elements[0]);
                Ok(added)
            }
            (_, args) if args.iter().any(|arg| is_variable(arg, accumulator)) => {
                args.iter_mut().try_for_each(|arg| self.read(arg)).map(|()| Origin::default())
            }
            _ => self.read(expression).map(|()| Origin::default()),
        }
    }

    fn charge_inside_comprehensions(&self, expression: &mut IdedExpr) {
        if !self.bound.is_empty() {
            budget::charge(expression);
        }
    }

    fn constant_path(&mut self, expression: &IdedExpr) -> Option<ConstantPath> {
        let mut segments = Vec::new();
        // With the number of segments after the selector.
        let mut chosen: Option<(Access, usize)> = None;
        // Counted from the end, because the walk starts there.
        let mut optional = None;
        let mut presence = false;
        let mut here = expression;
        let root = loop {
            match &here.expr {
                Expr::Ident(name) => break name,
                Expr::Select(select) => {
                    if select.test {
                        presence = true;
                    }
                    segments.push(Segment::Name(self.interner.get(&select.field)));
                    here = &select.operand;
                }
                Expr::Call(CallExpr { func_name, target: None, args }) if args.len() == 2 => {
                    match func_name.as_str() {
                        operators::OPT_INDEX | operators::OPT_SELECT => optional = Some(segments.len()),
                        operators::INDEX => {}
                        _ => return None,
                    }
                    match self.constant_key(&args[1]) {
                        Some(segment) => segments.push(segment),
                        None if chosen.is_none() && func_name == operators::INDEX => {
                            chosen = Some((self.selector_path(&args[1])?, segments.len()));
                        }
                        None => return None,
                    }
                    here = &args[0];
                }
                _ => return None,
            }
        };
        if root.starts_with('@') || self.bound(root).is_some() || (presence && optional.is_some()) {
            return None;
        }
        // A selector must follow the root, and the path must read a value.
        if let Some((_, after)) = &chosen
            && (!names::is_resource_root(root)
                || segments.len() - after != names::root_segments(root)
                || optional.is_some()
                || presence)
        {
            return None;
        }
        let how = match optional {
            Some(from_end) => ReadMode::Optional(segments.len() - 1 - from_end),
            None if presence => ReadMode::Presence,
            None => ReadMode::Value,
        };
        segments.reverse();
        Some(ConstantPath { root: root.clone(), selector: chosen.map(|(path, _)| path), segments, mode: how })
    }

    /// Returns the path of a selector, such as `each.key` or `count.index`.
    fn selector_path(&mut self, key: &IdedExpr) -> Option<Access> {
        let ConstantPath { root, selector: None, segments, mode: ReadMode::Value } = self.constant_path(key)? else {
            return None;
        };
        Access::named(&root, segments, self.interner).ok()?.filter(Access::is_instance_variable)
    }

    fn constant_key(&mut self, key: &IdedExpr) -> Option<Segment> {
        match &key.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(Segment::Name(self.interner.get(text.inner()))),
            Expr::Literal(LiteralValue::Int(index)) => Some(Segment::Index(usize::try_from(*index.inner()).ok()?)),
            _ => None,
        }
    }
}

fn is_variable(expression: &IdedExpr, variable: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == variable)
}
