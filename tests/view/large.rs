//! The page stays responsive with 2,000 objects. Workers compute the layout and draw, and the list has few elements. No task of
//! the page can take longer than the processor time of everything that follows a key, which is compared: it does not depend
//! on the load of the machine.

use std::fmt::Write as _;

use crate::browser::{Browser, browser};
use crate::files::Place;

const OBJECTS: usize = 2_000;

/// The most processor time of a key and all that it causes, in milliseconds. It is about 20 on a machine of 2024.
const LONGEST: f64 = 100.0;

/// Parts of 50 objects, each of which uses up to three objects before it.
fn manifests() -> String {
    let mut all = String::new();
    for number in 0..OBJECTS {
        let before = (1..=3).map(|back| number.wrapping_sub(back * back * 2 + number % 5));
        let used = before.filter(|other| *other < number && other / 50 == number / 50);
        let input: String = used.map(|other| format!("${{n{other}.id}}")).collect();
        let _ = write!(
            all,
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: n{number} }}\nspec:\n  type: \
             terraform_data\n  config: {{ input: \"{input}\" }}\n"
        );
    }
    all
}

#[test]
fn two_thousand_objects_are_laid_out_and_drawn_by_workers() {
    let Some(mut page) = browser("2,000 objects") else { return };
    let place = Place::new();
    place.write("files/all.yaml", &manifests());
    let mut view = place.purlin(&["ui", "-f", "files"]);
    page.open(&view.address());
    page.wait_text("#count", "2000 objects");
    page.wait("purlin.graph.stats.layouts > 0 && purlin.graph.stats.drawn >= 2000");
    for worker in ["layout.js", "paint.js"] {
        assert!(page.workers().iter().any(|url| url.ends_with(worker)), "{worker}: {:?}", page.workers());
    }
    // Names of a readable size, as many as have room, as on a map.
    page.wait("purlin.graph.stats.labels.length >= 20");
    page.window(920, 440);
    page.document("ui-2000");
    page.window(1280, 760);
    let mut costs = Vec::new();
    let mut press = |page: &mut Browser, key: &str, effect: &str| {
        let before = page.processor_time();
        page.key(key);
        page.wait(effect);
        page.wait_for_drawing();
        costs.push((key.to_owned(), page.processor_time() - before));
    };
    press(&mut page, "+", "true");
    press(&mut page, "-", "true");
    press(&mut page, "f", "true");
    press(&mut page, "/", "document.activeElement.id === 'search'");
    for key in ["n", "1", "9", "9", "9"] {
        press(&mut page, key, "true");
    }
    page.wait_text("#count", "1 of 2000 objects");
    press(&mut page, "Enter", "document.querySelector('#panel pre')");
    page.wait_text("#panel pre", "# n1999 will be created");
    page.wait("purlin.graph.position('n1999').x > 290");
    press(&mut page, "s", "purlin.graph.stats.layouts === 2");
    press(&mut page, "o", "purlin.graph.stats.layouts === 3");
    println!("processor time of the page in milliseconds: {costs:.1?}");
    assert!(costs.iter().all(|(_, cost)| *cost < LONGEST), "{costs:?}");
    let rows = page.value("document.querySelectorAll('.row').length");
    assert!(rows.as_u64().unwrap() < 100, "{rows}");
    page.assert_no_problems();
}
