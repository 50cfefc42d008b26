//! Replies remembered while planning begins anew because instances of a family became known: the same question gets the
//! same reply, and no driver is asked twice.

use std::collections::BTreeMap;

use super::{Ask, Question, Reply};
use crate::model::Address;

/// Questions with their replies.
#[derive(Default)]
pub struct Memo {
    replies: BTreeMap<Address, Vec<(Question, Reply)>>,
}

impl Memo {
    /// Remembers a reply.
    pub fn keep(&mut self, address: Address, question: Question, reply: Reply) {
        self.replies.entry(address).or_default().push((question, reply));
    }

    /// The reply to a question that was asked before.
    pub fn recall(&self, ask: &Ask) -> Option<Reply> {
        let known = self.replies.get(&ask.address)?;
        known.iter().find(|(question, _)| *question == ask.question).map(|(_, reply)| reply.clone())
    }
}
