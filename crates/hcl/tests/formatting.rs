//! What `tofu fmt` makes of a file with all the forms that it simplifies. The vectors have the formats of many bodies.

use hcl::{FileId, Source};

#[test]
fn forms_of_older_versions_are_simplified() {
    let before = Source::new(FileId(0), "before.tf", include_str!("formatting/before.tf"));
    let after = include_str!("formatting/after.tf");
    assert_eq!(hcl::format_configuration(before).as_deref(), Ok(after));
    let again = Source::new(FileId(0), "after.tf", after);
    assert_eq!(hcl::format_configuration(again).as_deref(), Ok(after));
}

#[test]
fn what_is_not_valid_is_not_formatted() {
    let diagnostics = hcl::format_configuration(Source::new(FileId(0), "main.tf", "a = [1 2]\n")).unwrap_err();
    assert_eq!(diagnostics[0].summary, "Missing item separator");
}
