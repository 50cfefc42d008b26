//! The list of all stories.

use super::{
    Story, changes, cluster, deletions, families, minds, moves, replacements, replicas, settings, troubles, values,
};

macro_rules! stories {
    ($($module:ident :: $name:ident $($varies:ident)?),* $(,)?) => {
        &[$(Story {
            name: stringify!($name),
            play: |play| Box::pin($module::$name(play)),
            varies: !concat!($(stringify!($varies))?).is_empty(),
        }),*]
    };
}

/// All stories, in the order in which they are played. `varies` sets [`Story::varies`].
pub(super) const STORIES: &[Story] = stories![
    changes::create,
    changes::create_chain,
    changes::update,
    changes::update_in_chain,
    changes::dependency_comes_and_goes,
    changes::disabled_and_enabled,
    changes::nothing_changes,
    replacements::replace_destroy_first,
    replacements::replace_create_first,
    replacements::replace_chain_destroy_first,
    replacements::replace_chain_create_first,
    replacements::create_first_is_inherited,
    replacements::replacement_requested,
    replacements::triggered_replacement,
    deletions::delete,
    deletions::delete_all_at_once,
    deletions::delete_what_is_used,
    deletions::orphan,
    deletions::protected_then_deleted,
    deletions::suspended_then_deleted,
    deletions::finalizer_taken_off varies,
    deletions::namespace_deleted,
    deletions::namespace_deleted_rights_first,
    deletions::namespace_deleted_while_created varies,
    deletions::namespace_deleted_while_created_rights_first varies,
    deletions::deleted_before_it_was_held varies,
    deletions::forced_while_created varies,
    families::family_grows,
    families::family_shrinks,
    families::family_changes_keys,
    families::family_deleted,
    families::single_becomes_family,
    moves::rename,
    moves::rename_family,
    moves::import,
    minds::reverted_while_it_runs,
    minds::replacement_reverted varies,
    minds::changed_while_created,
    minds::deleted_while_created varies,
    minds::deleted_and_applied_again varies,
    minds::all_deleted_and_applied_again varies,
    minds::suspended_change,
    minds::protected_replacement,
    troubles::create_fails_then_succeeds,
    troubles::create_refused_then_corrected,
    troubles::create_fails_half_way varies,
    troubles::destroy_fails_then_succeeds,
    troubles::drift_set_right,
    troubles::lost_object_made_again,
    troubles::records_touched_while_called,
    replicas::handed_over,
    replicas::handed_over_while_it_calls,
    replicas::turn_panics_while_it_calls,
    replicas::lease_lost_while_it_calls,
    cluster::object_created,
    cluster::object_updated,
    cluster::object_replaced_destroy_first,
    cluster::object_replaced_create_first,
    cluster::object_deleted,
    cluster::object_put_right,
    cluster::object_lost,
    cluster::object_in_the_way,
    cluster::objects_namespace_deleted,
    cluster::deployment_becomes_ready,
    cluster::upgraded,
    values::publish,
    values::publish_taken_away,
    values::published_deleted,
    values::inputs_come,
    values::inputs_change,
    values::hook_after_create,
    values::hook_before_destroy,
    values::data_read_again,
    values::data_of_object,
    settings::settings_change,
    settings::settings_deleted_first,
];

pub(super) fn names() -> Vec<&'static str> {
    STORIES.iter().map(|story| story.name).collect()
}
