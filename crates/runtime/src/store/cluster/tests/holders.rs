//! Operations whose holder changes.

use super::*;

fn held_by(process: &str) -> Arc<Record> {
    let mut record = Record::clone(&first_intent("web"));
    record.intent.as_mut().unwrap().holder.process = process.into();
    Arc::new(record)
}

#[tokio::test(start_paused = true)]
async fn one_process_takes_an_operation_over_and_the_earlier_holder_records_no_result() {
    let scene = fixture();
    let (first, second) = (held_by("1"), held_by("2"));
    let left = scene.journal.intend(first.clone(), None).await.unwrap();
    let taken = scene.journal.take_over(second.clone(), left).await.unwrap();
    let refused = [
        scene.journal.take_over(held_by("3"), left).await,
        scene.journal.record(with_object(&first), stored(&first, left)).await,
    ];
    assert!(refused.iter().all(|one| matches!(one, Err(JournalError::Conflict { .. }))), "{refused:?}");
    scene.journal.record(with_object(&second), stored(&second, taken)).await.unwrap();
}
