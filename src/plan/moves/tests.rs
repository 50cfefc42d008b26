//! Tests of finding moves and of the records after them.

use super::*;
use crate::load::source::read_strings;
use crate::model::{Operation, Step, Stored, Version};
use crate::plan::RunningStep;
use crate::plan::tests::fixture::object;

fn recorded(all: &[(&str, &[&str])]) -> Recorded {
    let record = |(address, uses): &(&str, &[&str])| {
        let address: Address = address.parse().unwrap();
        let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
        let dependencies = uses.iter().map(|name| name.parse().unwrap()).collect();
        record.current = Some(Arc::new(RecordedObject { dependencies, ..object("x", &[]) }));
        (address, Stored { record: Arc::new(record), version: Version(1) })
    };
    all.iter().map(record).collect()
}

/// Lets the record of `a` be one whose move to `b` was interrupted.
fn interrupt(records: &mut Recorded) -> &mut Record {
    let cut = Arc::make_mut(&mut records.get_mut(&Address::single("a")).unwrap().record);
    cut.moving_to = Some(Box::new(Address::single("b")));
    cut
}

/// Every held address with its reason.
fn held(found: &Moves) -> Vec<String> {
    found.blocked.iter().map(|(address, held)| format!("{address} {}", held.reason)).collect()
}

fn one(from: &str, to: &str) -> Move {
    Move { from: from.parse().unwrap(), to: to.parse().unwrap(), uid: "".into(), reverted: false, conversion: None }
}

fn dependencies(recorded: &Recorded) -> Vec<String> {
    let uses = |record: &Record| {
        objects(record).flat_map(|o| o.dependencies.iter().map(ToString::to_string)).collect::<Vec<_>>().join(" ")
    };
    recorded.iter().map(|(address, stored)| format!("{address}: {}", uses(&stored.record))).collect()
}

#[test]
fn dependencies_follow_instance_by_instance_and_as_a_whole() {
    let before = recorded(&[("a[0]", &[]), ("b", &["a", "a[0]"]), ("s", &[]), ("u", &["s", "b"])]);
    let after = apply_moves(&before, &[one("a[0]", "z[0]"), one("s", "s[0]")]);
    assert_eq!(dependencies(&after), ["b: z z[0]", "s[0]: ", "u: b s[0]", "z[0]: "]);
}

#[test]
fn a_split_family_is_recorded_instance_by_instance() {
    let mut before = recorded(&[("a[0]", &[]), ("a[1]", &[]), ("b", &[])]);
    let user = before.get_mut(&Address::single("b")).unwrap();
    let object = Arc::make_mut(&mut user.record).current.as_mut().unwrap();
    Arc::make_mut(object).dependencies = [Address::family("a")].into();
    assert_eq!(dependencies(&apply_moves(&before, &[one("a[0]", "a")])), ["a: ", "a[1]: ", "b: a a[1]"]);
    assert_eq!(dependencies(&apply_moves(&before, &[one("a[0]", "z")])), ["a[1]: ", "b: a[1] z", "z: "]);
    assert_eq!(dependencies(&apply_moves(&before, &[one("b", "a[2]")])), ["a[0]: ", "a[1]: ", "a[2]: a[0] a[1]"]);
    let renamed = apply_moves(&before, &[one("a[0]", "z[0]"), one("a[1]", "z[1]")]);
    assert_eq!(dependencies(&renamed), ["b: z", "z[0]: ", "z[1]: "]);
    let user = renamed[&Address::single("b")].record.current.as_ref().unwrap();
    assert_eq!(*user.dependencies, [Address::family("z")]);
}

#[test]
fn nothing_is_created_at_an_address_with_a_lost_record() {
    let resource = |spec: &str| {
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: a}\n";
        read_strings(&[("f.yaml", &format!("{head}spec: {{type: thing, {spec}}}\n"))]).config
    };
    let found = |spec: &str, records: &[&str], index: &[&str]| {
        let records: Vec<(&str, &[&str])> = records.iter().map(|address| (*address, &[] as &[&str])).collect();
        let indexed = index.iter().map(|address| address.parse().unwrap()).collect();
        let found = find(
            &resource(spec),
            &recorded(&records),
            &PlanOptions { indexed, ..PlanOptions::default() },
            &Takeovers::new(),
        );
        held(&found)
            .into_iter()
            .chain(found.moves.iter().map(|one| format!("{} -> {}", one.from, one.to)))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("count: 2", &["a[1]"], &["a", "a[1]"]), ["a[0] RecordMissing"]);
    assert_eq!(found("forEach: [x]", &[], &["a"]), [r#"a["x"] RecordMissing"#]);
    assert_eq!(found("config: {}", &[], &["a[0]"]), ["a RecordMissing"]);
    assert_eq!(found("config: {}", &["a[1]"], &["a[0]", "a[1]"]), ["a RecordMissing"]);
    // An existing record is moved, regardless of a lost one.
    assert_eq!(found("config: {}", &["a[0]"], &["a[0]", "a[1]"]), ["a[0] -> a"]);
    assert_eq!(found("count: 2", &["a[0]"], &["a[0]", "a[1]"]), [] as [&str; 0]);
    // No other object is moved there.
    assert_eq!(found("config: {}", &["a[1]"], &["a", "a[1]"]), [] as [&str; 0]);
}

#[test]
fn nothing_is_created_while_the_record_of_the_claimed_object_is_lost() {
    let manifests = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: a}\nspec: {type: thing}\n---\n\
                     apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
                     metadata: {name: b, annotations: {purlin.dev/moved-from: a}}\nspec: {type: thing}\n";
    let mut config = read_strings(&[("f.yaml", manifests)]).config;
    let a = Arc::make_mut(config.instances.get_mut(&Address::single("a")).unwrap());
    (a.deleting, a.uid, a.record_annotation) = (true, "u".into(), "u".into());
    let found = find(&config, &Recorded::new(), &PlanOptions::default(), &Takeovers::new());
    let held = &found.blocked[&Address::single("b")];
    assert_eq!((held.reason, found.blocked.len()), (Reason::RecordMissing, 1), "{}", held.message);
}

#[test]
fn a_move_to_an_address_with_another_new_object_is_reverted_and_both_stay() {
    let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])]);
    interrupt(&mut records).current = Some(Arc::new(object("another", &[])));
    let found = find(&Config::default(), &records, &PlanOptions::default(), &Takeovers::new());
    assert_eq!(found.moves, [Move { reverted: true, ..one("a", "b") }]);
    assert_eq!(dependencies(&apply_moves(&records, &found.moves)), ["a: ", "b: ", "c: a b"]);
}

#[test]
fn an_interrupted_move_is_finished_without_a_duplicate() {
    let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a"])]);
    interrupt(&mut records);
    let options = PlanOptions { mode: Mode::Destroy, ..PlanOptions::default() };
    let found = find(&Config::default(), &records, &options, &Takeovers::new());
    assert_eq!(found.moves, [one("a", "b")]);
    assert_eq!(dependencies(&apply_moves(&records, &found.moves)), ["b: ", "c: b"]);
}

/// What is held, and the moves, while the interrupted move of `a` to `b` cannot be finished, and `resource` claims `from`.
fn found_beside_an_unfinished_move(
    resource: &str,
    from: &str,
    records: &[(&str, &[&str])],
) -> (Vec<String>, Vec<Move>) {
    let manifest = format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
         metadata: {{name: {resource}, annotations: {{purlin.dev/moved-from: {from}}}}}\nspec: {{type: thing}}\n"
    );
    let config = read_strings(&[("f.yaml", &manifest)]).config;
    let mut records = recorded(records);
    interrupt(&mut records);
    let failed = ObjectBlock { reason: Reason::OperationFailed, message: String::new() };
    let blocked = [(Address::single("a"), failed)].into();
    let found = find(&config, &records, &PlanOptions { blocked, ..PlanOptions::default() }, &Takeovers::new());
    (held(&found), found.moves)
}

#[test]
fn an_object_is_not_moved_on_before_its_interrupted_move_is_finished() {
    let (held, moves) = found_beside_an_unfinished_move("c", "b", &[("a", &[]), ("b", &[])]);
    assert_eq!(held, ["a OperationFailed", "b OperationFailed", "c MoveBlocked"]);
    assert!(moves.is_empty());
}

#[test]
fn an_object_that_the_address_of_an_interrupted_move_claims_is_neither_moved_nor_destroyed() {
    let (held, moves) = found_beside_an_unfinished_move("b", "z", &[("a", &[]), ("z", &[])]);
    assert_eq!(held, ["a OperationFailed", "b OperationFailed", "z OperationFailed"]);
    assert!(moves.is_empty());
}

#[test]
fn an_interrupted_move_waits_for_the_running_step_of_a_dependent() {
    let mut records = recorded(&[("a", &[]), ("b", &[]), ("c", &["a"])]);
    interrupt(&mut records);
    let step = Step { address: Address::single("c"), deposed: None, operation: Operation::Update, replaces: false };
    let running = vec![RunningStep { step, planned: None, recorded: None, record_only: false }];
    let options = PlanOptions { mode: Mode::Destroy, running, ..PlanOptions::default() };
    let found = find(&Config::default(), &records, &options, &Takeovers::new());
    assert_eq!(held(&found), ["a OperationInProgress", "b OperationInProgress"]);
    assert!(found.moves.is_empty());
}

#[test]
fn a_move_waits_for_the_running_step_of_a_dependent_of_the_family() {
    let manifests = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: f}\nspec: {type: thing, forEach: [y]}\n\
                     ---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
                     metadata: {name: s, annotations: {purlin.dev/moved-from: 'f[\"x\"]'}}\nspec: {type: thing}\n";
    let config = read_strings(&[("f.yaml", manifests)]).config;
    let records = recorded(&[(r#"f["x"]"#, &[]), (r#"f["y"]"#, &[]), ("c", &[r#"f["y"]"#])]);
    let step = Step { address: Address::single("c"), deposed: None, operation: Operation::Update, replaces: false };
    let running = vec![RunningStep { step, planned: None, recorded: None, record_only: false }];
    let found = find(&config, &records, &PlanOptions { running, ..PlanOptions::default() }, &Takeovers::new());
    assert_eq!(held(&found), [r#"f["x"] OperationInProgress"#, "s OperationInProgress"]);
    assert!(found.moves.is_empty());
}
