//! Objects that get another type with their move, or where they are.

use std::sync::Arc;

use super::{Conversion, LET_GO, Move, Search, Takeover, is_broken, lives};
use crate::load::Instance;
use crate::model::{Address, Reason, Record};

impl Search<'_> {
    /// The record as the driver of the new type has taken it over. `None`: nobody has answered yet, or it refuses, and
    /// both addresses are held.
    pub(super) fn conversion(
        &mut self,
        address: &Address,
        from: &Address,
        record: &Arc<Record>,
    ) -> Option<Arc<Conversion>> {
        match self.answers.get(&(from.clone(), address.clone())) {
            None => {
                let asked = Takeover { from: from.clone(), to: address.clone(), record: Arc::clone(record) };
                self.found.questions.push(asked);
                None
            }
            Some(Ok(after)) => Some(Arc::new(Conversion { before: Arc::clone(record), after: Arc::clone(after) })),
            Some(Err(refusal)) => {
                let why = format!("`{address}` says that it was `{from}`, which is of type `{}`", record.type_name);
                if from != address && !lives(self.config, from) {
                    self.keep(from, &why);
                }
                let hint =
                    if refusal.reason == Reason::MoveBlocked { format!(" (hint: {LET_GO})") } else { String::new() };
                let message = format!("{why}, so nothing is moved: {}{hint}", refusal.message);
                self.hold(address, refusal.reason, message);
                None
            }
        }
    }

    /// A Resource of another type than its object, which says that the object is its own.
    pub(super) fn change_type(&mut self, address: &Address, instance: &Instance) {
        let Some(record) = self.record(address) else { return };
        // Whatever is the matter with it comes first, and is told by who knows of it.
        if self.options.held.contains_key(address) || record.moving_to.is_some() {
            return;
        }
        if is_broken(instance) {
            let message = "its type changes once the errors of its manifest are corrected".to_owned();
            return self.hold(address, Reason::MoveBlocked, message);
        }
        if let Some(open) = self.open_operation(address).cloned() {
            let message = format!("its type changes once the open operation of `{open}` is settled");
            return self.hold(address, Reason::OperationInProgress, message);
        }
        if let Some(conversion) = self.conversion(address, address, record) {
            let (from, to, uid) = (address.clone(), address.clone(), instance.uid.clone());
            self.found.moves.push(Move { from, to, uid, back: false, conversion: Some(conversion) });
        }
    }
}

impl Move {
    /// Why its object is not what its address makes expect.
    pub fn because(&self) -> String {
        let (from, to) = (&self.from, &self.to);
        match &self.conversion {
            None => format!("moved from `{from}`"),
            Some(conversion) if from == to => format!("was of type `{}`", conversion.before.type_name),
            Some(conversion) => format!("moved from `{from}`, of type `{}`", conversion.before.type_name),
        }
    }
}
