//! Prepares a parsed expression: finds the paths it reads, and puts the budget into it.
//!
//! A path is the longest constant chain of names, keys and positions that begins at a name which no comprehension
//! binds. Calls that could grow without bound are led through functions of [`super::budget`].

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};

use super::slot::{How, Slot};
use super::{Access, Problem, budget, functions, names};
use crate::load::intern::Interner;
use crate::model::Segment;

/// Rewrites the expression, and gives the paths it reads. A path read twice has one slot.
pub(super) fn prepare(expression: &mut IdedExpr, interner: &mut Interner) -> Result<Vec<Slot>, Problem> {
    let mut pass = Pass { slots: Vec::new(), bound: Vec::new(), depth: 0, interner };
    pass.visit(expression)?;
    Ok(pass.slots)
}

/// How deeply operations may nest: more than a person writes, and few enough for the stack of a small thread.
const DEEPEST: usize = 64;

/// The problem of an expression that nests more deeply than that.
pub(super) fn too_deep() -> Problem {
    Problem::new(format!("it nests deeper than {DEEPEST} operations")).hint("`['a', 'b'].join()` joins many texts")
}

/// A path whose way is known before anything is evaluated.
struct ConstantPath {
    root: String,
    /// The instance right after the root, by a variable of the place.
    chosen: Option<Access>,
    segments: Vec<Segment>,
    /// What is asked of it.
    how: How,
}

struct Pass<'a> {
    slots: Vec<Slot>,
    /// Variables of the comprehensions around, innermost last.
    bound: Vec<String>,
    depth: usize,
    interner: &'a mut Interner,
}

impl Pass<'_> {
    fn visit(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep());
        }
        let result = self.visit_here(expression);
        self.depth -= 1;
        result
    }

    fn visit_here(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        if self.path(expression, How::Value)? {
            return Ok(());
        }
        match &mut expression.expr {
            Expr::Call(_) => self.call(expression),
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|element| self.visit(element))?;
                self.charge_inside_comprehensions(expression);
                Ok(())
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.visit(&mut entry.key)?;
                        self.visit(&mut entry.value)?;
                    }
                }
                self.charge_inside_comprehensions(expression);
                Ok(())
            }
            Expr::Comprehension(_) => self.comprehension(expression),
            Expr::Struct(message) => Err(Problem::new(format!("there is no type `{}`", message.type_name))
                .hint("for a map write its keys in quotes: `{\"key\": value}`")),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    /// Puts a variable in the place of a constant path, of which `asked` is read. Gives whether it is such a path.
    fn path(&mut self, expression: &mut IdedExpr, asked: How) -> Result<bool, Problem> {
        let Some(ConstantPath { root, chosen, segments, how }) = self.constant_path(expression) else {
            return Ok(false);
        };
        if let Some(access) = Access::named(&root, segments, self.interner)? {
            let access = access.choosing_by(chosen);
            let how = match how {
                // The first segment behind `resources` and `data` is the object's name, which is always read.
                How::Optional(from) => How::Optional(from.saturating_sub(names::length_of_root(&root))),
                How::Value => asked,
                how => how,
            };
            expression.expr = Expr::Ident(self.slot(access, how));
        }
        Ok(true)
    }

    /// Visits what an operation reads only this much of.
    fn visit_for(&mut self, expression: &mut IdedExpr, asked: How) -> Result<(), Problem> {
        if self.path(expression, asked)? { Ok(()) } else { self.visit(expression) }
    }

    /// The variable that stands for a path.
    fn slot(&mut self, access: Access, how: How) -> String {
        let slot = Slot { access, how };
        let position = self.slots.iter().position(|known| *known == slot).unwrap_or_else(|| {
            self.slots.push(slot);
            self.slots.len() - 1
        });
        format!("@{position}")
    }

    fn call(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        let Expr::Call(call) = &mut expression.expr else { return Ok(()) };
        functions::check(call)?;
        let counts = call.func_name == "size";
        let asked = if counts { How::Shape } else { How::Value };
        if let Some(target) = &mut call.target {
            let namespace =
                matches!(&target.expr, Expr::Ident(name) if names::is_namespace(name) && !self.bound.contains(name));
            if !namespace {
                self.visit_for(target, asked)?;
            }
        }
        let searched = call.func_name == operators::IN;
        for (position, arg) in call.args.iter_mut().enumerate() {
            self.visit_for(arg, if searched && position == 1 { How::Keys } else { asked })?;
        }
        functions::spell_out(call);
        budget::limit_call(expression);
        Ok(())
    }

    fn comprehension(&mut self, expression: &mut IdedExpr) -> Result<(), Problem> {
        let Expr::Comprehension(loops) = &mut expression.expr else { return Ok(()) };
        // With two variables a loop sees the items of a map as well.
        let asked = if loops.iter_var2.is_none() { How::Keys } else { How::Value };
        self.visit_for(&mut loops.iter_range, asked)?;
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

    /// A loop's step, `@result + [element]` and the like. Its shape is kept, since the evaluator recognises it and
    /// then appends in place; what it adds is charged.
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
            Expr::List(ListExpr { elements, .. }) if elements.len() == 1 => {
                self.visit(&mut elements[0])?;
                budget::charge(&mut elements[0]);
                Ok(())
            }
            _ => self.visit(expression),
        }
    }

    fn charge_inside_comprehensions(&self, expression: &mut IdedExpr) {
        if !self.bound.is_empty() {
            budget::charge(expression);
        }
    }

    /// The expression as a constant path.
    fn constant_path(&mut self, expression: &IdedExpr) -> Option<ConstantPath> {
        let mut segments = Vec::new();
        // With the number of segments that come after it.
        let mut chosen: Option<(Access, usize)> = None;
        // Counted from the end, since that is the direction of the walk.
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
                            chosen = Some((self.choosing_path(&args[1])?, segments.len()));
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
        // A chosen instance stands right after the root; what is asked of it is its value.
        if let Some((_, after)) = &chosen
            && (!names::begins_a_resource(root)
                || segments.len() - after != names::length_of_root(root)
                || optional.is_some()
                || presence)
        {
            return None;
        }
        let how = match optional {
            Some(from_end) => How::Optional(segments.len() - 1 - from_end),
            None if presence => How::Presence,
            None => How::Value,
        };
        segments.reverse();
        Some(ConstantPath { root: root.clone(), chosen: chosen.map(|(path, _)| path), segments, how })
    }

    /// The path `each.key`, `count.index` or the like.
    fn choosing_path(&mut self, key: &IdedExpr) -> Option<Access> {
        let ConstantPath { root, chosen: None, segments, how: How::Value } = self.constant_path(key)? else {
            return None;
        };
        Access::named(&root, segments, self.interner).ok()?.filter(Access::is_of_instance)
    }

    fn constant_key(&mut self, key: &IdedExpr) -> Option<Segment> {
        match &key.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(Segment::Name(self.interner.get(text.inner()))),
            Expr::Literal(LiteralValue::Int(index)) => Some(Segment::Index(usize::try_from(*index.inner()).ok()?)),
            _ => None,
        }
    }
}
