use std::sync::Arc;

use super::*;
use crate::reconcile::summarize::{KnownHealth, Steps};
use model::{DeposedKey, Operation, Record, RecordedObject, Stem, Step};

/// The state of one instance.
#[derive(Clone)]
enum MemberState {
    Ready,
    Creating,
    Failed(&'static str, bool),
    Blocked(Reason, &'static str),
    Destroying,
}

/// An instance, whether it is desired, its planned change, its steps and its record.
type MemberCase = (Address, bool, Change, Steps<StepState>, Option<Record>);

struct Case {
    resource: Instance,
    extent: InstanceCount,
    gate: Option<Change>,
    members: Vec<MemberCase>,
    previous: PublishedStatus,
}

fn change(address: &Address, action: Action) -> Change {
    Change::plain(address.clone(), "terraform_data", action)
}

fn in_state(step: Step, state: StepState) -> Steps<StepState> {
    let mut steps = Steps::default();
    steps.insert(step, state);
    steps
}

fn member(address: Address, like: &MemberState) -> MemberCase {
    let step = |operation| Step { address: address.clone(), deposed: None, operation, replaces: false };
    let (desired, change, steps) = match like {
        MemberState::Ready => (true, change(&address, Action::NoOp), Steps::default()),
        MemberState::Creating => {
            (true, change(&address, Action::Create), in_state(step(Operation::Create), StepState::Running))
        }
        MemberState::Failed(message, retryable) => {
            let failed = StepState::Failed {
                reason: Reason::OperationFailed,
                message: (*message).to_owned(),
                retryable: *retryable,
            };
            (true, change(&address, Action::Create), in_state(step(Operation::Create), failed))
        }
        MemberState::Blocked(reason, message) => {
            let blocked = change(&address, Action::Blocked);
            (true, Change { blocked: Some(*reason), message: (*message).to_owned(), ..blocked }, Steps::default())
        }
        MemberState::Destroying => {
            (false, change(&address, Action::Destroy), in_state(step(Operation::Destroy), StepState::Running))
        }
    };
    (address, desired, change, steps, None)
}

fn case(members: &[MemberState]) -> Case {
    let at = |index| Stem::from("web").instance(model::InstanceKey::Index(index));
    let members: Vec<_> = (0..).zip(members).map(|(index, like)| member(at(index), like)).collect();
    let desired = members.iter().filter(|(_, wanted, ..)| *wanted).count();
    Case {
        resource: Instance { generation: 3, ..Instance::plain(Address::single("web"), "terraform_data") },
        extent: InstanceCount::Known(desired as u64),
        gate: None,
        members,
        previous: PublishedStatus::empty(),
    }
}

impl Case {
    fn sum(&self) -> Summary {
        let members: Vec<Member<'_>> = self
            .members
            .iter()
            .map(|(address, wanted, change, steps, record)| Member {
                address,
                desired: *wanted,
                object: ObjectInput {
                    provider_is_rejected: false,
                    instance: &self.resource,
                    record: record.as_ref(),
                    only_waits: false,
                    reading: None,
                    change: Some(change),
                    deposed: &[],
                    lifecycle: None,
                    dependencies: &[],
                    steps,
                    health: KnownHealth::Ready,
                    awaits_plan: false,
                    waiting_for: &[],
                    last_failure: None,
                    remarks: None,
                    previous: &self.previous,
                    namespace: "",
                    now: Timestamp::UNIX_EPOCH,
                },
            })
            .collect();
        summarize_family(&FamilyInput {
            resource: &self.resource,
            extent: self.extent,
            gate: self.gate.as_ref(),
            members: &members,
            lost: None,
            previous: &self.previous,
            namespace: "",
            now: Timestamp::UNIX_EPOCH,
        })
    }

    fn conditions(&self) -> Vec<String> {
        let condition = |c: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={} {}: {}", c.type_, c.status, c.reason, c.message)
        };
        self.sum().status.conditions.iter().map(condition).collect()
    }
}

#[test]
fn a_troubled_instance_leads_the_message_and_all_are_counted() {
    let mut all = vec![MemberState::Ready; 997];
    all.insert(3, MemberState::Failed("no quota", true));
    all.extend([MemberState::Creating, MemberState::Failed("no quota either", true)]);
    let case = case(&all);
    assert_eq!(
        case.conditions(),
        [
            "Ready=False OperationFailed: 997 of 1000 ready; web[3]: no quota (and 2 more)",
            "Synced=False OperationFailed: see the condition Ready",
            "Reconciling=True OperationFailed: see the condition Ready",
        ]
    );
    let instances = case.sum().status.instances.unwrap();
    let troubled: Vec<&str> = instances.troubled.iter().map(|one| one.address.as_str()).collect();
    assert_eq!((instances.desired, instances.ready, troubled), (Some(1000), 997, vec!["web[3]", "web[999]"]));
    assert_eq!(case.sum().notes[0].note, "web[3]: no quota", "an event has no changing counts");
}

#[test]
fn a_family_is_stalled_only_when_no_step_is_active() {
    let stalled = MemberState::Failed("refused", false);
    let kinds = |case: &Case| case.sum().status.conditions.into_iter().map(|c| c.type_).collect::<Vec<_>>();
    assert_eq!(kinds(&case(&[stalled.clone(), MemberState::Creating])), ["Ready", "Synced", "Reconciling"]);
    assert_eq!(kinds(&case(&[stalled.clone(), MemberState::Ready])), ["Ready", "Synced", "Stalled"]);
    assert_eq!(kinds(&case(&[MemberState::Failed("later", true), stalled])), ["Ready", "Synced", "Stalled"]);
    let waits = MemberState::Blocked(Reason::DependencyNotReady, "waits for `a`");
    assert_eq!(
        case(&[waits, MemberState::Ready]).conditions()[0],
        "Ready=False DependencyNotReady: 1 of 2 ready; web[0]: waits for `a`"
    );
}

#[test]
fn a_suspended_family_without_instances_is_suspended() {
    let mut case = case(&[]);
    case.resource.suspended = true;
    for extent in [InstanceCount::Known(0), InstanceCount::Disabled] {
        case.extent = extent;
        assert!(case.conditions()[0].starts_with("Ready=Unknown Suspended"), "{:?}", case.conditions());
    }
}

#[test]
fn instances_being_destroyed_do_not_affect_readiness() {
    let conditions = case(&[MemberState::Ready, MemberState::Destroying, MemberState::Destroying]).conditions();
    let rest = "2 no longer desired; web[1]: destroying the object (and 1 more)";
    let expected = [
        "Ready=True Available: 1 of 1 ready".to_owned(),
        format!("Synced=False Progressing: {rest}"),
        "Reconciling=True Progressing: see the condition Synced".to_owned(),
    ];
    assert_eq!(conditions, expected);
}

#[test]
fn a_family_without_instances_is_ready() {
    let none = |extent| Case { extent, ..case(&[]) }.conditions();
    assert_eq!(
        none(InstanceCount::Disabled),
        [
            "Ready=True Disabled: the Resource is disabled and has no objects",
            "Synced=True Available: the object matches its Resource",
        ]
    );
    assert_eq!(none(InstanceCount::Known(0))[0], "Ready=True NoInstances: the desired number of instances is 0");
    let unknown = change(&Address::single("web"), Action::Blocked);
    let gate = Change { blocked: Some(Reason::InvalidRepetition), message: "spec.count: it is -1".into(), ..unknown };
    let failed = Case { extent: InstanceCount::Unknown, gate: Some(gate), ..case(&[MemberState::Ready]) };
    assert_eq!(failed.conditions()[2], "Stalled=True InvalidRepetition: spec.count: it is -1");
    assert_eq!(failed.sum().status.instances.unwrap().desired, None);
}

#[test]
fn deposed_objects_are_counted_and_named() {
    let mut case = case(&[MemberState::Ready, MemberState::Ready]);
    let mut record = Record::empty("ns".into(), case.members[1].0.clone(), "u".into(), "t".into());
    record.deposed.insert(DeposedKey(7), Arc::new(RecordedObject::default()));
    case.members[1].4 = Some(record);
    let status = case.sum().status;
    assert_eq!((status.instances.unwrap().deposed, status.deposed[0].instance.as_str()), (1, "[1]"));
}

#[test]
fn a_status_fits_with_long_keys_and_messages() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(5000));
    let mut case = case(&vec![MemberState::Failed(&LONG, true); 1000]);
    for (number, member) in case.members.iter_mut().enumerate() {
        // Each byte takes six bytes as JSON.
        let key = "\u{1}".repeat(240) + &number.to_string();
        member.0.key = model::InstanceKey::Key(key.into());
    }
    let status = serde_json::to_vec(&case.sum().status).unwrap();
    assert!(status.len() <= STATUS_LIMIT, "{}", status.len());
}
