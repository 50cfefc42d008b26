use super::*;
use model::RecordedObject;

fn context(type_name: &str) -> CallContext {
    CallContext {
        type_name: type_name.into(),
        namespace: "shop".into(),
        address: "web".into(),
        service_account: "deployer".into(),
        deadline: process::Clock::now(&process::SystemClock) + jiff::SignedDuration::from_secs(20),
        operation_id: "op-1".into(),
        ..CallContext::default()
    }
}

fn recorded(value: Value) -> RecordedObject {
    RecordedObject { value, service_account: Arc::from("deployer"), ..RecordedObject::default() }
}

fn world(yaml: &str) -> Arc<World> {
    World::new(serde_saphyr::from_str(yaml).unwrap())
}

fn config(value: &str) -> Value {
    Value::map([("value", Value::from(value)), ("secret", Value::from("s"))])
}

fn create(config: Value) -> ApplyRequest {
    let response = plan(&PlanRequest {
        prior: None,
        config: config.clone(),
        entropy: [7; 16],
        previous_plan: None,
        ignored: None,
        replaces: None,
    });
    ApplyRequest { prior: None, config, planned: Some(response.planned), private: response.private }
}

#[tokio::test]
async fn an_object_is_created_updated_and_destroyed_once() {
    let driver = Scripted::new(world("{}"));
    let context = context("scripted_thing");
    let created = driver.apply(&context, create(config("a"))).await.object.unwrap();
    assert!(matches!(created.value.get("secret"), Some(Value::Sensitive(_))));
    let prior = Arc::new(recorded(created.value));
    let request = PlanRequest {
        prior: Some(Arc::clone(&prior)),
        config: config("b"),
        entropy: [8; 16],
        previous_plan: None,
        ignored: None,
        replaces: None,
    };
    let planned = driver.plan(&context, request).await.unwrap();
    assert_eq!(planned.planned.get("computed"), Some(&Value::Unknown));
    let update = ApplyRequest {
        prior: Some(Arc::clone(&prior)),
        config: config("b"),
        planned: Some(planned.planned),
        private: planned.private,
    };
    let changed = driver.apply(&context, update).await.object.unwrap();
    assert_eq!(changed.value.get("computed"), Some(&Value::from(2)));
    let destroy = ApplyRequest { prior: Some(prior), config: Value::Null, planned: None, private: Arc::from([]) };
    for _ in 0..2 {
        assert!(driver.apply(&context, destroy.clone()).await.error.is_none());
    }
    let kinds: Vec<EffectKind> = driver.world.effects().iter().map(|effect| effect.kind).collect();
    assert_eq!(kinds, [EffectKind::Created, EffectKind::Updated, EffectKind::Destroyed]);
}

#[test]
fn changes_of_force_and_name_replace() {
    let prior = Value::map([("force", "a".into()), ("name", "n".into()), ("id", "n".into())]);
    let config = Value::map([("force", Value::Unknown), ("name", "m".into())]);
    let prior = Some(Arc::new(recorded(prior)));
    let response =
        plan(&PlanRequest { prior, config, entropy: [0; 16], previous_plan: None, ignored: None, replaces: None });
    let paths: Vec<String> = response.requires_replace.iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["force", "name"]);
    assert_eq!(response.identity, Some(Value::map([("name", Value::from("m"))])));
}

#[tokio::test]
async fn outcomes_are_played_in_order() {
    let driver = Scripted::new(world(
        "lines: [{on: web, operation: create, answers: [{fail: {kind: terminal, message: no}}, {failPartly: {}}]}]",
    ));
    let context = context("scripted");
    let first = driver.apply(&context, create(config("a"))).await;
    assert!(first.object.is_none());
    assert_eq!(first.error.unwrap().kind, ErrorKind::Terminal);
    let second = driver.apply(&context, create(config("a"))).await;
    assert!(second.object.is_some() && second.error.is_some());
    assert!(driver.world.unused().is_empty());
}

#[tokio::test]
async fn an_interrupted_create_can_be_repeated_or_found() {
    for recovery in ["repeat", "find"] {
        let world = world(&format!(
            "{{createRecovery: {recovery}, lines: [{{on: web, operation: create, answers: [crashAfter]}}]}}"
        ));
        let driver = Scripted::new(Arc::clone(&world));
        let context = context("scripted");
        tokio::select! {
            _ = driver.apply(&context, create(config("a"))) => panic!("the call must not return"),
            cut = world.until_crash() => assert_eq!(cut.operation, Operation::Create),
        }
        let restarted = Scripted::new(Arc::clone(&world));
        let object = if recovery == "repeat" {
            restarted.apply(&context, create(config("a"))).await.object
        } else {
            restarted.find_created(&context, &Value::Null).await.unwrap()
        };
        assert!(object.is_some());
        assert_eq!(world.effects().len(), 1, "the object is created once");
    }
}

#[tokio::test]
async fn a_held_call_waits_for_its_gate() {
    let world = world("lines: [{on: '*', operation: create, answers: [{hold: gate}, loseAnswer]}]");
    let driver = Scripted::new(Arc::clone(&world));
    let context = context("scripted");
    let watching = async {
        world.until_waiting("gate", "web").await;
        assert!(world.effects().is_empty());
        world.release("gate");
    };
    let (response, ()) = tokio::join!(driver.apply(&context, create(config("a"))), watching);
    assert!(response.object.is_none() && response.error.is_some());
    assert_eq!(world.objects().len(), 1);
}

#[tokio::test]
async fn a_create_with_an_existing_name_fails() {
    let driver = Scripted::new(world("{}"));
    let named = Value::map([("name", Value::from("n"))]);
    driver.world.put("n", &Value::Null);
    let response = driver.apply(&context("scripted"), create(named)).await;
    assert_eq!(response.error.unwrap().kind, ErrorKind::AlreadyExists);
}
