use std::sync::Arc;

use super::*;
use crate::model::{DeposedKey, Operation, Record, RecordedObject, Step};
use crate::reconcile::summarize::Steps;

/// What one instance is like.
#[derive(Clone)]
enum As {
    Ready,
    Creating,
    Failed(&'static str, bool),
    Blocked(Reason, &'static str),
    Leaving,
}

/// An instance, whether it is wanted, what is planned for it, and how far that is.
type Known = (Address, bool, Change, Steps<StepState>, Option<Record>);

struct Case {
    resource: Instance,
    extent: Extent,
    gate: Option<Change>,
    members: Vec<Known>,
    previous: Published,
}

fn change(address: &Address, action: Action) -> Change {
    Change::plain(address.clone(), "terraform_data", action)
}

fn member(address: Address, like: &As) -> Known {
    let step = |operation| Step { address: address.clone(), deposed: None, operation, replaces: false };
    let (wanted, change, steps) = match like {
        As::Ready => (true, change(&address, Action::NoOp), Steps::default()),
        As::Creating => {
            let steps = [(step(Operation::Create), StepState::Running)].into_iter().collect();
            (true, change(&address, Action::Create), steps)
        }
        As::Failed(message, retryable) => {
            let failed = StepState::Failed {
                reason: Reason::OperationFailed,
                message: (*message).to_owned(),
                retryable: *retryable,
            };
            (true, change(&address, Action::Create), [(step(Operation::Create), failed)].into_iter().collect())
        }
        As::Blocked(reason, message) => {
            let blocked = change(&address, Action::Blocked);
            (true, Change { blocked: Some(*reason), message: (*message).to_owned(), ..blocked }, Steps::default())
        }
        As::Leaving => {
            let steps = [(step(Operation::Destroy), StepState::Running)].into_iter().collect();
            (false, change(&address, Action::Destroy), steps)
        }
    };
    (address, wanted, change, steps, None)
}

fn case(members: &[As]) -> Case {
    let at = |index| Address { name: "web".into(), key: crate::model::InstanceKey::Index(index) };
    let members: Vec<_> = (0..).zip(members).map(|(index, like)| member(at(index), like)).collect();
    let wanted = members.iter().filter(|(_, wanted, ..)| *wanted).count();
    Case {
        resource: Instance { generation: 3, ..Instance::plain(Address::single("web"), "terraform_data") },
        extent: Extent::Known(wanted as u64),
        gate: None,
        members,
        previous: Published::nothing(),
    }
}

impl Case {
    fn sum(&self) -> Summary {
        let members: Vec<Member<'_>> = self
            .members
            .iter()
            .map(|(address, wanted, change, steps, record)| Member {
                address,
                wanted: *wanted,
                situation: Situation {
                    instance: &self.resource,
                    record: record.as_ref(),
                    reading: None,
                    change: Some(change),
                    leftovers: &[],
                    lifecycle: None,
                    wants: &[],
                    steps,
                    awaits_plan: false,
                    waiting_for: &[],
                    previous: &self.previous,
                    now: Timestamp::UNIX_EPOCH,
                },
            })
            .collect();
        summarize_family(&FamilySituation {
            resource: &self.resource,
            extent: self.extent,
            gate: self.gate.as_ref(),
            members: &members,
            previous: &self.previous,
            now: Timestamp::UNIX_EPOCH,
        })
    }

    fn told(&self) -> Vec<String> {
        let told = |c: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={} {}: {}", c.type_, c.status, c.reason, c.message)
        };
        self.sum().status.conditions.iter().map(told).collect()
    }
}

#[test]
fn one_in_trouble_is_told_before_the_others_and_all_are_counted() {
    let mut all = vec![As::Ready; 997];
    all.insert(3, As::Failed("no quota", true));
    all.extend([As::Creating, As::Failed("no quota either", true)]);
    let case = case(&all);
    assert_eq!(
        case.told(),
        [
            "Ready=False OperationFailed: 997 of 1000 ready; web[3]: no quota (and 2 more)",
            "Synced=False OperationFailed: 997 of 1000 ready; web[3]: no quota (and 2 more)",
            "Reconciling=True OperationFailed: 997 of 1000 ready; web[3]: no quota (and 2 more)",
        ]
    );
    let instances = case.sum().status.instances.unwrap();
    let troubled: Vec<&str> = instances.troubled.iter().map(|one| one.address.as_str()).collect();
    assert_eq!((instances.desired, instances.ready, troubled), (Some(1000), 997, vec!["web[3]", "web[999]"]));
    assert_eq!(case.sum().notes[0].note, "web[3]: no quota", "an event has no numbers that change all the time");
}

#[test]
fn a_family_is_stalled_only_when_nothing_of_it_goes_on() {
    let stalled = As::Failed("refused", false);
    let kinds = |case: &Case| case.sum().status.conditions.into_iter().map(|c| c.type_).collect::<Vec<_>>();
    assert_eq!(kinds(&case(&[stalled.clone(), As::Creating])), ["Ready", "Synced", "Reconciling"]);
    assert_eq!(kinds(&case(&[stalled.clone(), As::Ready])), ["Ready", "Synced", "Stalled"]);
    assert_eq!(kinds(&case(&[As::Failed("later", true), stalled])), ["Ready", "Synced", "Stalled"]);
    let waits = As::Blocked(Reason::DependencyNotReady, "waits for `a`");
    assert_eq!(
        case(&[waits, As::Ready]).told()[0],
        "Ready=False DependencyNotReady: 1 of 2 ready; web[0]: waits for `a`"
    );
}

#[test]
fn what_goes_is_no_trouble_of_those_that_stay() {
    let told = case(&[As::Ready, As::Leaving, As::Leaving]).told();
    let rest = "2 no longer wanted; web[1]: destroying the object (and 1 more)";
    let expected = [
        "Ready=True Available: 1 of 1 ready, as the Resource describes them".to_owned(),
        format!("Synced=False Progressing: {rest}"),
        format!("Reconciling=True Progressing: {rest}"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn no_object_at_all_is_ready_for_a_reason() {
    let none = |extent| Case { extent, ..case(&[]) }.told();
    assert_eq!(
        none(Extent::Disabled),
        [
            "Ready=True Disabled: the Resource is disabled, so it stands for no object",
            "Synced=True Available: the object is as its Resource describes it",
        ]
    );
    assert_eq!(none(Extent::Known(0))[0], "Ready=True NoInstances: there are to be no instances");
    let unknown = change(&Address::single("web"), Action::Blocked);
    let gate = Change { blocked: Some(Reason::InvalidRepetition), message: "spec.count: it is -1".into(), ..unknown };
    let failed = Case { extent: Extent::Unknown, gate: Some(gate), ..case(&[As::Ready]) };
    assert_eq!(failed.told()[2], "Stalled=True InvalidRepetition: spec.count: it is -1");
    assert_eq!(failed.sum().status.instances.unwrap().desired, None);
}

#[test]
fn leftovers_are_counted_and_named() {
    let mut case = case(&[As::Ready, As::Ready]);
    let mut record = Record::empty("ns".into(), case.members[1].0.clone(), "u".into(), "t".into());
    record.deposed.insert(DeposedKey(7), Arc::new(RecordedObject::default()));
    case.members[1].4 = Some(record);
    let status = case.sum().status;
    assert_eq!((status.instances.unwrap().deposed, status.deposed[0].instance.as_str()), (1, "[1]"));
}

#[test]
fn a_status_fits_however_long_keys_and_messages_are() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(5000));
    let mut case = case(&vec![As::Failed(&LONG, true); 1000]);
    for (number, member) in case.members.iter_mut().enumerate() {
        // Each byte takes six as JSON.
        let key = "\u{1}".repeat(240) + &number.to_string();
        member.0.key = crate::model::InstanceKey::Key(key.into());
    }
    let status = serde_json::to_vec(&case.sum().status).unwrap();
    assert!(status.len() <= STATUS_LIMIT, "{}", status.len());
}
