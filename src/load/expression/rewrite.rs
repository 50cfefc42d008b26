//! Prepares a parsed expression: replaces its paths by variables and adds the cost checks of [`super::budget`].
//!
//! A path is the longest constant chain of names, keys and indexes that starts at a name which no comprehension binds.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use indexmap::IndexSet;

use super::slot::{ReadMode, Slot};
use super::{Access, Problem, budget, functions, hyphen, names};
use crate::load::intern::Interner;
use crate::model::Segment;

/// Rewrites the expression and returns the paths that it reads. A path that is read twice has one slot.
pub(super) fn prepare(expression: &mut IdedExpr, source: &str, interner: &mut Interner) -> Result<Vec<Slot>, Problem> {
    let mut pass = Pass { slots: IndexSet::new(), bound: Vec::new(), depth: 0, source, interner };
    pass.visit(expression)?;
    Ok(pass.slots.into_iter().collect())
}

/// The maximum nesting of operations, so that the evaluation fits the stack of a small thread.
const MAX_DEPTH: usize = 64;

/// The problem of an expression that exceeds the maximum depth.
pub(super) fn too_deep() -> Problem {
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
    slots: IndexSet<Slot>,
    /// The variables of the enclosing comprehensions, innermost last.
    bound: Vec<String>,
    depth: usize,
    /// The expression as written.
    source: &'a str,
    interner: &'a mut Interner,
}

impl Pass<'_> {
    fn visit(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let result = self.visit_here(expression);
        self.depth -= 1;
        result
    }

    fn visit_here(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        if self.path(expression, ReadMode::Value)? {
            return Ok(());
        }
        match &mut expression.expr {
            Expr::Call(_) => self.call(expression),
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|element| self.element(element))?;
                self.charge_inside_comprehensions(expression);
                Ok(())
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.element(&mut entry.key)?;
                        self.element(&mut entry.value)?;
                    }
                }
                self.charge_inside_comprehensions(expression);
                Ok(())
            }
            Expr::Comprehension(_) => self.comprehension(expression),
            Expr::Struct(message) => Err(Problem::new(format!("there is no type `{}`", message.type_name))
                .hint("write the keys of a map in quotes: `{\"key\": value}`")),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    /// Visits an element of a list or map, which is charged before it is copied into it.
    fn element(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        self.visit(expression)?;
        budget::charge(expression);
        Ok(())
    }

    /// Replaces a constant path by a variable that is read in this mode. Returns whether the expression is such a path.
    fn path(&mut self, expression: &mut IdedExpr, mode: ReadMode) -> Result<bool, Problem> {
        let Some(ConstantPath { root, selector: chosen, segments, mode: how }) = self.constant_path(expression) else {
            return Ok(false);
        };
        if let Some(access) = Access::named(&root, segments, self.interner)? {
            let access = access.with_selector(chosen);
            let how = match how {
                // The first segment after `resources` or `data` is the object's name, which is always read.
                ReadMode::Optional(from) => ReadMode::Optional(from.saturating_sub(names::root_segments(&root))),
                ReadMode::Value => mode,
                how => how,
            };
            expression.expr = Expr::Ident(self.slot(access, how));
        }
        Ok(true)
    }

    /// Visits an operand that is read in this mode.
    fn visit_for(&mut self, expression: &mut IdedExpr, mode: ReadMode) -> Result<(), Problem> {
        if self.path(expression, mode)? { Ok(()) } else { self.visit(expression) }
    }

    /// Returns the variable that replaces a path.
    fn slot(&mut self, access: Access, how: ReadMode) -> String {
        let (position, _) = self.slots.insert_full(Slot { access, mode: how });
        format!("@{position}")
    }

    fn call(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        let Expr::Call(call) = &mut expression.expr else { return Ok(()) };
        functions::check(call)?;
        let bound = &self.bound;
        hyphen::check(call, self.source, &|name| bound.iter().any(|known| known == name), self.interner)?;
        let counts = call.func_name == "size";
        let mode = if counts { ReadMode::Shape } else { ReadMode::Value };
        if let Some(target) = &mut call.target {
            let namespace =
                matches!(&target.expr, Expr::Ident(name) if names::is_namespace(name) && !self.bound.contains(name));
            if !namespace {
                self.visit_for(target, mode)?;
            }
        }
        let searched = call.func_name == operators::IN;
        for (position, arg) in call.args.iter_mut().enumerate() {
            self.visit_for(arg, if searched && position == 1 { ReadMode::Keys } else { mode })?;
        }
        functions::expand_variadic(call);
        budget::limit_call(expression);
        Ok(())
    }

    fn comprehension(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        let Expr::Comprehension(loops) = &mut expression.expr else { return Ok(()) };
        // A loop with two variables also reads the values of a map.
        let mode = if loops.iter_var2.is_none() { ReadMode::Keys } else { ReadMode::Value };
        self.visit_for(&mut loops.iter_range, mode)?;
        budget::limit_range(&mut loops.iter_range);
        self.visit(&mut loops.accu_init)?;
        let depth = self.bound.len();
        self.bound.push(loops.iter_var.clone());
        self.bound.extend(loops.iter_var2.clone());
        self.bound.push(loops.accu_var.clone());
        self.visit(&mut loops.loop_cond)?;
        self.step(&mut loops.loop_step, &loops.accu_var)?;
        self.visit(&mut loops.result)?;
        self.bound.truncate(depth);
        Ok(())
    }

    /// Visits the step of a loop, such as `@result + [element]`. Its shape stays unchanged, because the evaluator
    /// recognizes it and appends in place; the added elements are charged.
    fn step(&mut self, expression: &mut IdedExpr, accumulator: &str) -> Result<(), Problem> {
        let accumulates =
            |call: &CallExpr| call.args.iter().any(|arg| matches!(&arg.expr, Expr::Ident(name) if name == accumulator));
        match &mut expression.expr {
            Expr::Call(call) if call.target.is_none() && accumulates(call) => {
                call.args.iter_mut().try_for_each(|arg| self.step(arg, accumulator))
            }
            Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
                call.args.iter_mut().try_for_each(|arg| self.step(arg, accumulator))
            }
            Expr::List(ListExpr { elements, .. }) if elements.len() == 1 => self.element(&mut elements[0]),
            _ => self.visit(expression),
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
        if root.starts_with('@') || self.bound.contains(root) || (presence && optional.is_some()) {
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
