//! Objects that get another type, with or without a new address.

use std::sync::Arc;

use super::{Conversion, Move, Search, Takeover, is_desired};
use crate::load::Instance;
use model::{Address, ChangeCause, Reason, Record};

impl Search<'_> {
    /// The converted record. `None` if the driver has not been called yet or has rejected the conversion, in which case
    /// both addresses are blocked.
    pub fn conversion(&mut self, address: &Address, from: &Address, record: &Arc<Record>) -> Option<Arc<Conversion>> {
        match self.answers.get(&(from.clone(), address.clone())) {
            None => {
                let asked = Takeover { from: from.clone(), to: address.clone(), record: Arc::clone(record) };
                self.found.takeovers.push(asked);
                None
            }
            Some(Ok(after)) => Some(Arc::new(Conversion { before: Arc::clone(record), after: Arc::clone(after) })),
            Some(Err(refusal)) => {
                let why = format!("`{address}` claims `{from}`, which has the type `{}`", record.type_name);
                let fix = self.said.get(&address.stem).map(|entries| entries.fix(from)).unwrap_or_default();
                if from != address && !is_desired(self.config, from) {
                    let kept = format!("{why}; the object is kept until this is resolved (hint: {fix})");
                    self.block(from, Reason::MoveBlocked, kept);
                }
                let hint =
                    if refusal.reason == Reason::MoveBlocked { format!(" (hint: {fix})") } else { String::new() };
                let message = format!("{why}, so nothing is moved: {}{hint}", refusal.message);
                self.block(address, refusal.reason, message);
                None
            }
        }
    }

    /// Converts the recorded object of a Resource that names its own address.
    pub fn change_type(&mut self, address: &Address, instance: &Instance) {
        let Some(record) = self.record(address) else { return };
        // Other problems of the object take precedence and are reported separately.
        if self.options.blocked.contains_key(address) || self.unfinished.contains_key(address) {
            return;
        }
        if instance.has_errors() {
            let message = "its type changes once the errors of its manifest are corrected".to_owned();
            return self.block(address, Reason::MoveBlocked, message);
        }
        if let Some(open) = self.open_operation(address, address) {
            let message = format!("its type changes once the open operation of `{open}` is resolved");
            return self.block(address, Reason::OperationInProgress, message);
        }
        if let Some(conversion) = self.conversion(address, address, record) {
            let (from, to, uid) = (address.clone(), address.clone(), instance.uid.clone());
            self.found.moves.push(Move { from, to, uid, reverted: false, conversion: Some(conversion) });
        }
    }
}

impl Move {
    /// The `because` of the change of the moved object.
    pub fn because(&self) -> ChangeCause {
        let former_type = self.conversion.as_ref().map(|conversion| conversion.before.type_name.clone());
        let from = Some(self.from.clone()).filter(|from| *from != self.to || former_type.is_none());
        ChangeCause::Moved { from, former_type }
    }
}
