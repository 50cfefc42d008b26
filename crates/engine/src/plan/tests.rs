//! Tests of the planning rules. Each test has a situation in a few lines (see [`fixture`]) and the expected plan.

mod blocked;
mod data;
mod destroying;
mod holding;
mod identities;
mod json;
mod properties;
mod readiness;
mod records;
mod refusals;
mod scale;
mod selecting;
mod table;
mod values;
pub mod fixture;

use expect_test::Expect;
use fixture::Fixture;

use model::Health;

/// The health that `health b terminating` means in a situation. Any other word is why the object is not ready.
fn health(word: Option<&str>) -> Health {
    match word {
        Some("terminating") => Health::Terminating(vec!["a/b".to_owned()]),
        why => Health::InProgress(why.unwrap_or_default().to_owned()),
    }
}

/// Plans a situation, and compares the plan as text with the expected one.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "so that tests read `check(situation, expect![...])`")]
fn check(situation: &str, expected: Expect) {
    expected.assert_eq(&Fixture::parse(situation).plan_as_text());
}
