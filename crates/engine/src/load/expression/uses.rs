//! What an expression reads of the value of a path, so that marks follow paths: in `db.map(d, d.id)` only the ids of the
//! items are read. The evaluator gets only these parts, so that no other part can have an effect on the result.

use model::{Segment, Value};

/// The parts of a value that an expression reads. Without any: whether the value exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// All of it.
    whole: bool,
    /// The keys of a map. The number of the items of a list always counts as read.
    keys: bool,
    parts: Vec<(Step, Self)>,
}

/// From a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    To(Segment),
    /// Each item of a list, as a loop visits them. A loop visits the keys of a map.
    Items,
    /// An item or attribute whose key is known only at the evaluation: every one.
    Any,
}

impl Step {
    fn is_to_item(&self, position: usize) -> bool {
        match self {
            Self::To(Segment::Index(index)) => *index == position,
            Self::To(Segment::Name(_)) => false,
            Self::Items | Self::Any => true,
        }
    }

    fn is_to_attribute(&self, name: &str) -> bool {
        match self {
            Self::To(Segment::Name(known)) => known.as_ref() == name,
            Self::To(Segment::Index(_)) | Self::Items => false,
            Self::Any => true,
        }
    }
}

/// The marks of the parts that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    pub unknown: bool,
    pub sensitive: bool,
}

impl Marks {
    /// The marks of a value that is read as a whole.
    pub fn of(value: &Value) -> Self {
        Self { unknown: value.has_unknown(), sensitive: value.has_sensitive() }
    }

    pub fn or(self, other: Self) -> Self {
        Self { unknown: self.unknown || other.unknown, sensitive: self.sensitive || other.sensitive }
    }
}

impl Uses {
    pub fn add_whole(&mut self, path: &[Step]) {
        self.at(path).whole = true;
    }

    pub fn add_keys(&mut self, path: &[Step]) {
        self.at(path).keys = true;
    }

    /// The existence of this part.
    pub fn add_presence(&mut self, path: &[Step]) {
        self.at(path);
    }

    fn at(&mut self, path: &[Step]) -> &mut Self {
        let [step, rest @ ..] = path else { return self };
        let known = self.parts.iter().position(|(known, _)| known == step);
        let position = known.unwrap_or_else(|| {
            self.parts.push((step.clone(), Self::default()));
            self.parts.len() - 1
        });
        self.parts[position].1.at(rest)
    }

    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns the parts that are read, without marks, and the marks of these parts. Other items are null, and other
    /// attributes are absent, or null if the keys are read.
    pub fn read(&self, value: &Value) -> (Value, Marks) {
        let mut marks = Marks::default();
        (read(&[self], value, &mut marks), marks)
    }
}

/// The parts that any of `uses` reads.
fn read(uses: &[&Uses], value: &Value, marks: &mut Marks) -> Value {
    match value {
        Value::Unknown => {
            marks.unknown = true;
            Value::Null
        }
        Value::Sensitive(inner) => {
            marks.sensitive = true;
            read(uses, inner, marks)
        }
        _ if uses.iter().any(|uses| uses.whole) => {
            *marks = marks.or(Marks::of(value));
            value.clone()
        }
        Value::List(items) => {
            let items = items
                .iter()
                .enumerate()
                .map(|(position, item)| part(uses, |step| step.is_to_item(position), item, marks).unwrap_or_default());
            Value::list(items.collect::<Vec<_>>())
        }
        Value::Map(map) => {
            let has_keys = uses.iter().any(|uses| uses.keys);
            let entries = map.iter().filter_map(|(name, item)| {
                let part = part(uses, |step| step.is_to_attribute(name), item, marks);
                part.or(has_keys.then_some(Value::Null)).map(|part| (name.clone(), part))
            });
            Value::map(entries.collect::<Vec<_>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The part at the steps that are chosen. `None`: it is not read.
fn part(uses: &[&Uses], is_chosen: impl Fn(&Step) -> bool, item: &Value, marks: &mut Marks) -> Option<Value> {
    let parts = uses.iter().flat_map(|uses| &uses.parts);
    let chosen: Vec<&Uses> = parts.filter(|(step, _)| is_chosen(step)).map(|(_, uses)| uses).collect();
    (!chosen.is_empty()).then(|| read(&chosen, item, marks))
}
