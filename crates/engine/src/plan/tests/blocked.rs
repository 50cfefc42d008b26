//! Blocked objects: the reasons, and the objects that wait for them.

use expect_test::expect;

use super::check;

#[test]
fn a_problem_of_the_resource_blocks_it_and_its_dependents() {
    check(
        "
         want a problem=unreadable
         want b after=a
         want c after=b
         want z input=1",
        expect![[r#"
            a Blocked InvalidManifest: unreadable
            b Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it cannot be planned (InvalidManifest: unreadable) <- a
            c Blocked DependencyNotReady: spec.dependsOn[0]: waits for `b`: it cannot be planned (DependencyNotReady: waits for `a`) <- b
            z Create {id=? input=1 output=?}
            error a InvalidManifest
            error b DependencyNotReady
            error c DependencyNotReady"#]],
    );
}

#[test]
fn an_unknown_type_is_rejected() {
    check(
        "want a type=nonsense",
        expect![[r#"
            a Blocked UnknownType: spec.type: no provider serves the type `nonsense` (hint: add a Provider named `nonsense`, or name a ProviderConfig in `spec.providerConfigRef`)
            error a UnknownType"#]],
    );
}

#[test]
fn a_dangling_reference_names_its_target_and_field() {
    check(
        "want a input=${b.id}",
        expect![[r#"
            a Blocked DependencyNotFound: spec.config.input: references `b`, which does not exist
            error a DependencyNotFound"#]],
    );
}

#[test]
fn a_self_reference_is_rejected() {
    check(
        "want a input=${a.id}",
        expect![[r#"
            a Blocked SelfReference: dependency cycle: a references a (spec.config.input) (hint: remove the reference from a to a (spec.config.input))
            error a SelfReference"#]],
    );
}

#[test]
fn a_cycle_blocks_its_members_and_dependents_only() {
    check(
        "
         want a input=${b.id}
         want b input=${a.id}
         want c after=b
         want z input=1",
        expect![[r#"
            a Blocked DependencyCycle: dependency cycle: a references b (spec.config.input), b references a (spec.config.input) (hint: remove the reference from a to b (spec.config.input))
            b Blocked DependencyCycle: dependency cycle: a references b (spec.config.input), b references a (spec.config.input) (hint: remove the reference from a to b (spec.config.input))
            c Blocked DependencyNotReady: spec.dependsOn[0]: waits for `b`: it cannot be planned (DependencyCycle: a references b (spec.config.input), b references a (spec.config.input)) <- b
            z Create {id=? input=1 output=?}
            error a DependencyCycle
            error b DependencyCycle
            error c DependencyNotReady"#]],
    );
}

#[test]
fn an_orphan_cannot_be_referenced() {
    check(
        "
         want b input=${a.id}
         have a input=1
         have b input=A uses=a",
        expect![[r#"
            a Blocked SourceIncomplete: not destroyed although its manifest is missing: `b` has an error <- b
            b Blocked DependencyNotFound: spec.config.input: references `a`, which does not exist
            warning a SourceIncomplete
            error b DependencyNotFound"#]],
    );
}

#[test]
fn a_failed_expression_names_its_field() {
    check(
        "
         want a input=1
         have a input=1
         want b input=${a.nonsense}",
        expect![[r#"
            a NoOp
            b Blocked InvalidExpression: spec.config.input: `${a.nonsense}` has no value
            error b InvalidExpression"#]],
    );
}

#[test]
fn a_misspelled_attribute_is_rejected_before_the_driver_is_called() {
    check(
        "want a inptu=1",
        expect![[r#"
            a Blocked InvalidConfig: spec.config.inptu: is not an attribute of this type (hint: did you mean `input`?)
            error a InvalidConfig"#]],
    );
}

#[test]
fn a_diagnostic_of_the_driver_blocks_the_object() {
    check(
        "
         want a input=1
         actual a invalid",
        expect![[r#"
            a Blocked InvalidConfig: spec.config.input: is refused
            error a InvalidConfig"#]],
    );
}

#[test]
fn a_failed_plan_blocks_the_object() {
    check(
        "
         want a input=1
         actual a unplannable
         want b after=a",
        expect![[r#"
            a Blocked OperationFailed: the change could not be planned: no connection
            b Blocked DependencyNotReady: spec.dependsOn[0]: waits for `a`: it cannot be planned (OperationFailed: no connection) <- a
            error a OperationFailed
            error b DependencyNotReady"#]],
    );
}

#[test]
fn a_failed_read_blocks_the_object() {
    check(
        "
         want a input=1
         have a input=1
         actual a unreadable",
        expect![[r#"
            a Blocked OperationFailed: the object could not be read: no connection
            error a OperationFailed"#]],
    );
}

#[test]
fn a_plan_that_violates_the_contract_is_a_driver_error() {
    check(
        "
         want a input=1
         actual a breaks-contract",
        expect![[r#"
            a Blocked DriverFault: driver produced an invalid plan: `input` has neither its configured nor its prior value (hint: this is a bug in the provider; report it to its developers)
            error a DriverFault"#]],
    );
}

#[test]
fn a_replacement_path_that_does_not_exist_is_a_driver_error() {
    check(
        "
         want a input=2
         have a input=1
         actual a odd-path",
        expect![[r#"
            a Blocked DriverFault: driver produced an invalid plan: `nowhere` requires replacement, but does not exist (hint: this is a bug in the provider; report it to its developers)
            error a DriverFault"#]],
    );
}

#[test]
fn a_suspended_object_is_unchanged_and_its_dependents_are_planned() {
    check(
        "
         want a input=2 suspended
         have a input=1
         want b input=${a.input}",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b Create {id=? input=1 output=?}
            warning a Suspended"#]],
    );
}

#[test]
fn a_dependent_of_a_suspended_object_that_does_not_exist_waits() {
    check(
        "
         want a input=2 suspended
         want b input=${a.input}",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it is blocked (Suspended: suspended) <- a
            warning a Suspended
            warning b DependencyNotReady"#]],
    );
}

#[test]
fn an_object_that_the_caller_blocks_is_unchanged() {
    check(
        "
         want a input=2
         have a input=1
         want b input=${a.input}
         option held=a",
        expect![[r#"
            a Blocked OperationFailed: it failed and backs off
            b Create {id=? input=1 output=?}
            error a OperationFailed"#]],
    );
}

#[test]
fn dependents_wait_for_a_blocked_object_that_is_not_up_to_date() {
    check(
        "
         want a input=1
         have a input=1
         want b input=${a.input}
         option closed=a",
        expect![[r#"
            a Blocked PostconditionFailed: it failed and backs off
            b Blocked DependencyNotReady: spec.config.input: waits for `a`: it cannot be planned (PostconditionFailed: it failed and backs off) <- a
            error a PostconditionFailed
            error b DependencyNotReady"#]],
    );
    for half_made in ["tainted", "hooking"] {
        check(
            &format!(
                "
                 want a input=1
                 have a input=1 {half_made}
                 want b input=${{a.input}}
                 option held=a"
            ),
            expect![[r#"
                a Blocked OperationFailed: it failed and backs off
                b Blocked DependencyNotReady: spec.config.input: waits for `a`: it cannot be planned (OperationFailed: it failed and backs off) <- a
                error a OperationFailed
                error b DependencyNotReady"#]],
        );
    }
}

#[test]
fn nothing_is_created_in_a_terminating_namespace() {
    check(
        "
         want a input=1
         want b force=2
         have b force=1
         want c input=2
         have c input=1
         option terminating",
        expect![[r#"
            a Blocked NamespaceTerminating: nothing can be created because the namespace is terminating
            b Blocked NamespaceTerminating: nothing can be created because the namespace is terminating
            c Update {id=C input=2 output=?}
            error a NamespaceTerminating
            error b NamespaceTerminating"#]],
    );
}

#[test]
fn failed_creates_are_limited() {
    check(
        "
         want a input=1
         have a input=1 tainted
         record a failed=3
         option cap=3",
        expect![[r#"
            a Blocked RepeatedCreateFailures: creating the new object failed 3 times in a row (hint: change the Resource, or set the annotation `purlin.dev/replace-requested-at` to try again)
            error a RepeatedCreateFailures"#]],
    );
}

#[test]
fn objects_beyond_the_limit_of_the_namespace_are_not_created() {
    check(
        "
         want a input=1
         want b input=1
         want c input=2
         have c input=1
         want d input=1
         option quota=1",
        expect![[r#"
            a Create {id=? input=1 output=?}
            b Blocked QuotaExceeded: the namespace has reached its limit of 10 objects (hint: delete other objects, or ask an administrator to set `objects` in the annotation `purlin.dev/quota` of the Namespace)
            c Update {id=C input=2 output=?}
            d Blocked QuotaExceeded: the namespace has reached its limit of 10 objects (hint: delete other objects, or ask an administrator to set `objects` in the annotation `purlin.dev/quota` of the Namespace)
            error b QuotaExceeded
            error d QuotaExceeded"#]],
    );
}

#[test]
fn a_requested_replacement_ignores_the_limit() {
    check(
        "
         want a input=1 request=now
         have a input=1 tainted
         record a failed=3
         option cap=3",
        expect!["a Replace DestroyFirst (tainted) {id=? input=1 output=?}"],
    );
}

#[test]
fn a_single_run_only_warns_about_failed_creates() {
    check(
        "
         want a input=1
         have a input=1 tainted
         record a failed=3",
        expect![[r#"
            a Replace DestroyFirst (tainted) {id=? input=1 output=?}
            warning a RepeatedCreateFailures: creating the new object failed 3 times in a row"#]],
    );
}

#[test]
fn too_many_deposed_objects_block_create_first_replacements() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd
         deposed a 1 id=1
         deposed a 2 id=2
         deposed a 3 id=3",
        expect![[r#"
            a Blocked TooManyDeposedObjects: 3 deposed objects exist; no new object is created until they are destroyed
            a#1 Destroy (deposed by a replacement)
            a#2 Destroy (deposed by a replacement)
            a#3 Destroy (deposed by a replacement)
            error a TooManyDeposedObjects"#]],
    );
}

#[test]
fn tainted_deposed_objects_are_destroyed_when_there_are_too_many() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd tainted
         deposed a 1 id=1
         deposed a 2 id=2 tainted
         deposed a 3 id=3 tainted",
        expect![[r#"
            a Blocked TooManyDeposedObjects: 3 deposed objects exist; no new object is created until they are destroyed
            a#1 Blocked TooManyDeposedObjects: the deposed object is kept while its object is blocked: 3 deposed objects exist; no new object is created until they are destroyed
            a#2 Destroy (deposed by a replacement)
            a#3 Destroy (deposed by a replacement)
            error a TooManyDeposedObjects"#]],
    );
}

#[test]
fn a_destroy_first_replacement_does_not_wait_for_deposed_objects_that_wait_for_it() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd
         deposed a 1 id=1
         deposed a 2 id=2
         deposed a 3 id=3
         want b input=${a.id} force=2
         have b input=3 force=1 uses=a
         want c input=${b.id} force=2
         have c input=B force=1 uses=b",
        expect![[r#"
            a Blocked TooManyDeposedObjects: 3 deposed objects exist; no new object is created until they are destroyed
            a#1 Destroy (deposed by a replacement)
            a#2 Destroy (deposed by a replacement)
            a#3 Destroy (deposed by a replacement)
            b Replace DestroyFirst (attributes force replacement) [force] {force=2 id=? input=A output=?}
            c Replace DestroyFirst (attributes force replacement) [force] {force=2 id=? input=? output=?}
            error a TooManyDeposedObjects"#]],
    );
}

#[test]
fn a_destroy_first_replacement_waits_for_a_tainted_dependency_with_too_many_deposed_objects() {
    check(
        "
         want a force=2 cbd
         have a force=1 cbd tainted
         deposed a 1 id=1
         deposed a 2 id=2
         deposed a 3 id=3
         want b input=${a.id} force=2
         have b input=3 force=1 uses=a",
        expect![[r#"
            a Blocked TooManyDeposedObjects: 3 deposed objects exist; no new object is created until they are destroyed
            a#1 Blocked InUse: in use by `b`, which is blocked: DependencyNotReady (hint: resolve the problem that blocks `b` first) <- b
            a#2 Blocked InUse: in use by `b`, which is blocked: DependencyNotReady (hint: resolve the problem that blocks `b` first) <- b
            a#3 Blocked TooManyDeposedObjects: the deposed object is kept while its object is blocked: 3 deposed objects exist; no new object is created until they are destroyed
            b Blocked DependencyNotReady: must be replaced, but the old object is kept until the new one can be created: waits for `a`: it is blocked (TooManyDeposedObjects) <- a
            error a TooManyDeposedObjects
            error a InUse: deposed 00000001: in use by `b`, which is blocked: DependencyNotReady (hint: resolve the problem that blocks `b` first)
            error a InUse: deposed 00000002: in use by `b`, which is blocked: DependencyNotReady (hint: resolve the problem that blocks `b` first)
            error b DependencyNotReady"#]],
    );
}

#[test]
fn a_destroy_first_replacement_waits_for_its_dependencies() {
    check(
        "
         want a input=1 suspended
         have a input=1
         want b force=2 after=a
         have b force=1 uses=a",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b Blocked DependencyNotReady: must be replaced, but the old object is kept until the new one can be created: waits for `a`: it is blocked (Suspended) <- a
            warning a Suspended
            warning b DependencyNotReady"#]],
    );
}

#[test]
fn a_create_first_replacement_does_not_wait() {
    check(
        "
         want a input=1 suspended
         have a input=1
         want b force=2 after=a cbd
         have b force=1 uses=a cbd",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b Replace CreateFirst (attributes force replacement) [force] {force=2 id=? output=?}
            warning a Suspended"#]],
    );
}

#[test]
fn an_update_does_not_wait_for_a_suspended_dependency() {
    check(
        "
         want a input=1 suspended
         have a input=1
         want b input=2 after=a
         have b input=1 uses=a",
        expect![[r#"
            a Blocked Suspended: suspended (hint: set `spec.suspend: false`)
            b Update {id=B input=2 output=?}
            warning a Suspended"#]],
    );
}
