//! Planning, rule by rule. Each test is a situation in a few lines (see `world`) and the plan expected for it.

mod blocked;
mod data;
mod destroying;
mod holding;
mod identities;
mod json;
mod properties;
mod records;
mod scale;
mod selecting;
mod table;
mod values;
pub(super) mod world;

use expect_test::Expect;
use world::World;

/// Plans a situation and compares the plan, as text, with what is expected.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that tests read `check(situation, expect![...])`")]
fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&World::parse(situation).plan_as_text());
}
