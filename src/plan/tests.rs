//! Tests of the planning rules. Each test has a situation in a few lines (see [`fixture`]) and the expected plan.

mod blocked;
mod data;
mod destroying;
mod holding;
mod identities;
mod json;
mod properties;
mod records;
mod refusals;
mod scale;
mod selecting;
mod table;
mod values;
pub(super) mod fixture;

use expect_test::Expect;
use fixture::Fixture;

/// Plans a situation, and compares the plan as text with the expected one.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that tests read `check(situation, expect![...])`")]
fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&Fixture::parse(situation).plan_as_text());
}
