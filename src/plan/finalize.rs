//! (skeleton)
use super::Prepared;
use crate::model::{Address, Diagnostic, Diagnostics, PlanResponse, Value};
/// x
pub fn narrow(_address: &Address, _prepared: &Prepared, _response: &PlanResponse) -> Result<(), Diagnostic> {
    Ok(())
}
/// x
pub fn check_result(_address: &Address, _planned: &Value, _result: &Value) -> Diagnostics {
    Vec::new()
}
