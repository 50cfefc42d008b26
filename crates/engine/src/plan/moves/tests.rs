//! Tests of finding moves and of the records after them.

mod properties;

use super::records::objects;
use super::*;
use crate::load::source::read_strings;
use crate::plan::RunningStep;
use crate::plan::tests::fixture::object;
use model::{InstanceKey, Operation, RecordedObject, Step, Stored, Version};

fn recorded(all: &[(&str, &[&str])]) -> Recorded {
    all.iter()
        .map(|(address, uses)| {
            let address: Address = address.parse().unwrap();
            let mut record = Record::empty("ns".into(), address.clone(), "".into(), "thing".into());
            let dependencies = uses.iter().map(|name| name.parse().unwrap()).collect();
            record.current = Some(Arc::new(RecordedObject { dependencies, ..object("x", &[]) }));
            (address, Stored { record: Arc::new(record), version: Version(1) })
        })
        .collect()
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
    let mut lines = Vec::new();
    for (address, stored) in recorded {
        let used = objects(&stored.record).flat_map(|object| object.dependencies.iter().map(ToString::to_string));
        lines.push(format!("{address}: {}", used.collect::<Vec<_>>().join(" ")));
    }
    lines
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
    let found = |spec: &str, records: &[&str], index: &[&str]| {
        let records: Vec<(&str, &[&str])> = records.iter().map(|address| (*address, &[] as &[&str])).collect();
        let indexed = index.iter().map(|address| address.parse().unwrap()).collect();
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: a}\n";
        let config = read_strings(&[("f.yaml", &format!("{head}spec: {{type: thing, {spec}}}\n"))]).config;
        let found =
            find(&config, &recorded(&records), &PlanOptions { indexed, ..PlanOptions::default() }, &Takeovers::new());
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

/// The index and the Resource still name the record that is moved in this plan.
#[test]
fn what_is_moved_is_not_lost() {
    let manifests = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: w}\nspec: {type: thing}\n---\n\
                     apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
                     metadata: {name: v, annotations: {purlin.dev/moved-from: w}}\nspec: {type: thing, forEach: [a, c]}\n";
    let mut config = read_strings(&[("f.yaml", manifests)]).config;
    let w = Arc::make_mut(config.instances.get_mut(&Address::single("w")).unwrap());
    (w.deleting, w.uid, w.record_annotation) = (true, "u".into(), "u".into());
    let indexed = ["w", r#"w["a"]"#].map(|address| address.parse().unwrap()).into();
    let options = PlanOptions { indexed, ..PlanOptions::default() };
    let found = find(&config, &recorded(&[(r#"w["a"]"#, &[])]), &options, &Takeovers::new());
    assert_eq!(found.moves, [one(r#"w["a"]"#, r#"v["a"]"#)]);
    assert_eq!(held(&found), [] as [&str; 0]);
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
    let running = vec![RunningStep { step, planned: None, recorded: None, record_only: false, reported_drift: None }];
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
    let running = vec![RunningStep { step, planned: None, recorded: None, record_only: false, reported_drift: None }];
    let found = find(&config, &records, &PlanOptions { running, ..PlanOptions::default() }, &Takeovers::new());
    assert_eq!(held(&found), [r#"f["x"] OperationInProgress"#, "s OperationInProgress"]);
    assert!(found.moves.is_empty());
}

/// The moves, and what is kept, of manifests over records. Each manifest is `name spec` or `name<annotation spec`.
fn forms(records: &[&str], manifests: &[&str]) -> Vec<String> {
    let documents: String = manifests.iter().map(|text| manifest(text)).collect();
    let config = read_strings(&[("f.yaml", &documents)]).config;
    let records: Vec<String> = records.iter().map(|address| address.replace('`', "\"")).collect();
    let records: Vec<(&str, &[&str])> = records.iter().map(|address| (address.as_str(), &[] as &[&str])).collect();
    let found = find(&config, &recorded(&records), &PlanOptions::default(), &Takeovers::new());
    let moves = found.moves.iter().map(|one| format!("{} -> {}", one.from, one.to));
    let kept = found.blocked.keys().map(|address| format!("{address} kept"));
    let claimed = found.claimed.keys().map(|address| format!("{address} not replaced"));
    moves.chain(kept).chain(claimed).map(|line| line.replace('"', "`")).collect()
}

fn manifest(text: &str) -> String {
    let (head, spec) = text.split_once(' ').unwrap_or((text, ""));
    let (name, annotation) = head.split_once('<').unwrap_or((head, ""));
    let spec = spec.replace('`', "\"");
    format!(
        "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{name: {name}, annotations: \
         {{purlin.dev/moved-from: '{}'}}}}\nspec: {{type: thing, {spec}}}\n---\n",
        annotation.replace('`', "\"")
    )
}

#[test]
fn keys_change_and_count_becomes_for_each_and_back() {
    assert_eq!(
        forms(&["r[`a`]", "r[`b`]"], &["r forEach: [c, b], moved: [{from: 'r[`a`]', to: '[`c`]'}]"]),
        ["r[`a`] -> r[`c`]"]
    );
    let moved = "moved: [{from: 'w[0]', to: '[`x`]'}, {from: 'w[1]', to: '[`y`]'}]";
    assert_eq!(
        forms(&["w[0]", "w[1]"], &[&format!("w forEach: [x, y], {moved}")]),
        ["w[0] -> w[`x`]", "w[1] -> w[`y`]"]
    );
    let moved = "moved: [{from: 'w[`x`]', to: '[1]'}, {from: 'w[`y`]', to: '[0]'}]";
    assert_eq!(forms(&["w[`x`]", "w[`y`]"], &[&format!("w count: 2, {moved}")]), ["w[`x`] -> w[1]", "w[`y`] -> w[0]"]);
    assert_eq!(forms(&["db"], &["site forEach: [a, b], moved: [{from: db, to: '[`b`]'}]"]), ["db -> site[`b`]"]);
    assert_eq!(forms(&["s[`a`]", "s[`b`]"], &["db moved: [{from: 's[`b`]'}]", "s forEach: [a]"]), ["s[`b`] -> db"]);
    // A whole name and one changed key.
    let moved = "moved: [{from: w}, {from: 'w[`b`]', to: '[`c`]'}]";
    assert_eq!(
        forms(&["w[`a`]", "w[`b`]"], &[&format!("v forEach: [a, c], {moved}")]),
        ["w[`a`] -> v[`a`]", "w[`b`] -> v[`c`]"]
    );
}

#[test]
fn an_object_that_came_from_a_number_goes_back_to_it() {
    let manifest = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: f}\nspec: {type: thing, count: 2, \
                    moved: [{from: 'f[\"a\"]', to: '[\"nowhere\"]'}, {from: 'f[\"b\"]', to: '[1]'}]}\n";
    let config = read_strings(&[("f.yaml", manifest)]).config;
    let mut records = recorded(&[("f[\"a\"]", &[]), ("f[\"b\"]", &[])]);
    for (number, stored) in records.values_mut().enumerate() {
        let came = Address { key: InstanceKey::Index(number as u64), ..stored.record.address.clone() };
        Arc::make_mut(&mut stored.record).moved_from.push(came);
    }
    let found = find(&config, &records, &PlanOptions::default(), &Takeovers::new());
    let moves: Vec<String> = found.moves.iter().map(|one| format!("{} -> {}", one.from, one.to)).collect();
    assert_eq!(moves, ["f[\"b\"] -> f[1]"]);
    assert!(found.blocked.contains_key(&"f[\"a\"]".parse().unwrap()), "{:?}", found.blocked.keys());
}

#[test]
fn a_chain_leads_from_any_of_its_addresses() {
    let spec = "r forEach: [c], moved: [{from: 'r[`a`]', to: '[`b`]'}, {from: 'r[`b`]', to: '[`c`]'}]";
    assert_eq!(forms(&["r[`a`]"], &[spec]), ["r[`a`] -> r[`c`]"]);
    assert_eq!(forms(&["r[`b`]"], &[spec]), ["r[`b`] -> r[`c`]"]);
    assert_eq!(forms(&["r[`c`]"], &[spec]), [] as [&str; 0]);
    assert_eq!(forms(&[], &[spec]), [] as [&str; 0]);
}

#[test]
fn what_a_claim_names_is_kept_if_it_cannot_be_moved() {
    // An annotation that names an instance does not say which instance of a family gets the object.
    assert_eq!(forms(&["r[`a`]", "r[`b`]"], &["r<r[`a`] forEach: [c, b]"]), ["r[`a`] kept", "r[`c`] kept"]);
    assert_eq!(forms(&["w[0]"], &["v<w[0] forEach: [x, y]"]), ["v[`x`] kept", "v[`y`] kept", "w[0] kept"]);
    // A single object and a family.
    assert_eq!(forms(&["db"], &["site<db forEach: [a, b]"]), ["db kept", "site[`a`] kept", "site[`b`] kept"]);
    assert_eq!(forms(&["s[`a`]", "s[`b`]"], &["db<s config: {}"]), ["db kept", "s[`a`] kept", "s[`b`] kept"]);
    assert_eq!(forms(&["db"], &["site<db enabled: false"]), ["db kept"]);
    assert_eq!(forms(&["s[0]"], &["r forEach: [a], moved: [{from: s, to: '[`a`]'}]"]), ["r[`a`] kept", "s[0] kept"]);
    // Two names that both exist.
    assert_eq!(forms(&["a", "b"], &["c<b,a config: {}"]), ["a kept", "b kept", "c kept"]);
    // Misspelled keys.
    assert_eq!(
        forms(&["r[`a`]"], &["r forEach: [c], moved: [{from: 'r[`aa`]', to: '[`c`]'}]"]),
        ["r[`a`] kept", "r[`c`] kept"]
    );
    assert_eq!(
        forms(&["r[`a`]"], &["r forEach: [c, d], moved: [{from: 'r[`a`]', to: '[`cc`]'}]"]),
        ["r[`a`] kept", "r[`c`] kept", "r[`d`] kept"]
    );
    // A family that is renamed and whose keys change at the same time.
    assert_eq!(
        forms(&["w[`a`]", "w[`b`]"], &["v<w forEach: [a, c]"]),
        ["v[`a`] kept", "v[`c`] kept", "w[`a`] kept", "w[`b`] kept"]
    );
    // Removed keys of a renamed family.
    assert_eq!(forms(&["w[`a`]", "w[`b`]"], &["v<w forEach: [a]"]), ["w[`a`] -> v[`a`]"]);
}

/// The new Resource comes first, as the documentation says. No instance is created in the place of the claimed object.
#[test]
fn nothing_is_created_while_what_a_claim_names_is_still_configured() {
    let both = |old: &str, new: &str| forms(&["db", "s[0]", "s[1]"], &[old, "s count: 2", new]);
    let kept = ["site[`a`] kept", "site[`b`] kept", "db not replaced"];
    assert_eq!(both("db config: {}", "site<db forEach: [a, b]"), kept);
    assert_eq!(both("db config: {}", "site forEach: [a, b], moved: [{from: db}]"), kept);
    assert_eq!(both("db config: {}", "site forEach: [a, b], moved: [{from: db, to: '[`c`]'}]"), kept);
    assert_eq!(
        both("db config: {}", "site<s[1] forEach: [a, b]"),
        ["site[`a`] kept", "site[`b`] kept", "s[1] not replaced"]
    );
    // The others are new, and the old object has none yet.
    let moved = "site forEach: [a, b], moved: [{from: db, to: '[`b`]'}]";
    assert_eq!(both("db config: {}", moved), ["site[`b`] kept", "db not replaced"]);
    assert_eq!(forms(&[], &["db config: {}", "site<db forEach: [a, b]"]), ["site[`a`] kept", "site[`b`] kept"]);
    // Only objects without a counterpart leave it open which one is meant.
    assert_eq!(
        forms(&["s[0]", "s[1]"], &["s count: 2", "r<s count: 3"]),
        ["r[0] kept", "r[1] kept", "s[0] not replaced", "s[1] not replaced"]
    );
}

#[test]
fn a_swap_a_shift_and_a_name_in_use_are_refused() {
    assert_eq!(
        forms(&["a", "b"], &["a<b config: {}", "b<a config: {}"]),
        ["a kept", "b kept", "a not replaced", "b not replaced"]
    );
    let shift = "moved: [{from: 'r[`a`]', to: '[`b`]'}, {from: 'r[`b`]', to: '[`c`]'}]";
    assert_eq!(
        forms(&["r[`a`]", "r[`b`]"], &[&format!("r forEach: [b, c], {shift}")]),
        ["r[`a`] kept", "r[`c`] kept", "r[`b`] not replaced"]
    );
    assert_eq!(forms(&["a", "b"], &["b<a config: {}", "c<b config: {}"]), ["a kept", "c kept", "b not replaced"]);
    assert_eq!(forms(&["a"], &["a config: {}", "b<a config: {}"]), ["b kept", "a not replaced"]);
    let swap = "moved: [{from: 'r[`a`]', to: '[`b`]'}, {from: 'r[`b`]', to: '[`a`]'}]";
    assert_eq!(forms(&["r[`a`]", "r[`b`]", "r[`c`]"], &[&format!("r forEach: [a, b], {swap}")]), [] as [&str; 0]);
}

#[test]
fn a_hint_does_not_let_go_of_an_object_that_is_claimed_in_turn() {
    let manifests = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
                     metadata: {name: b, annotations: {purlin.dev/moved-from: a}}\nspec: {type: thing}\n---\n\
                     apiVersion: purlin.dev/v1alpha1\nkind: Resource\n\
                     metadata: {name: c, annotations: {purlin.dev/moved-from: b}}\nspec: {type: thing}\n";
    let config = read_strings(&[("f.yaml", manifests)]).config;
    let records = recorded(&[("a", &[]), ("b", &[])]);
    let found = find(&config, &records, &PlanOptions::default(), &Takeovers::new());
    let message = &found.blocked[&Address::single("a")].message;
    assert!(message.contains("`purlin state mv b c` first") && !message.contains("state rm"), "{message}");
}

/// The keys were changed, reverted, and changed to others: the first object is at a key that is not wanted any more, and
/// another one is at the index again.
#[test]
fn an_object_that_went_to_another_key_fulfils_no_entry() {
    let moves = |moved: &str| {
        let mut records = recorded(&[("a[0]", &[]), ("a[\"k1\"]", &[])]);
        let first = records.get_mut(&"a[\"k1\"]".parse().unwrap()).unwrap();
        Arc::make_mut(&mut first.record).moved_from = vec!["a[0]".parse().unwrap()];
        let head = "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {name: a}\n";
        let spec = format!("{head}spec: {{type: thing, forEach: [k2], moved: [{moved}]}}\n");
        let config = read_strings(&[("f.yaml", &spec)]).config;
        let found = find(&config, &records, &PlanOptions::default(), &Takeovers::new());
        let moves = found.moves.iter().map(|found| format!("{} to {}", found.from, found.to));
        moves.chain(found.blocked.iter().map(|(at, held)| format!("{at}: {}", held.message))).collect::<Vec<_>>()
    };
    for entry in ["{from: \"a[0]\", to: '[\"k2\"]'}", "{from: \"a[0]\"}"] {
        assert_eq!(moves(entry), ["a[0] to a[\"k2\"]"], "{entry}");
    }
    let chain = "{from: \"a[0]\", to: '[\"k1\"]'}, {from: 'a[\"k1\"]', to: '[\"k2\"]'}";
    let kept = moves(chain);
    assert_eq!(kept.iter().filter(|line| line.contains("so nothing is moved or destroyed")).count(), 3, "{kept:?}");
}
