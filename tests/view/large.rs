//! The page stays responsive with 2,000 objects. The machine of the test may be slow, so the time of tasks is printed and not
//! compared; what keeps them short is: the layout in a worker, drawing in slices, and a list with few elements.

use std::fmt::Write as _;

use crate::browser::browser;
use crate::files::Place;

const OBJECTS: usize = 2_000;

/// Records the tasks of the page that take longer than 50 milliseconds.
const OBSERVE: &str = "window.long = []; new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => \
                       one.duration))).observe({ type: 'longtask', buffered: true });";

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
fn two_thousand_objects_are_laid_out_beside_the_page_and_drawn_in_slices() {
    let Some(mut page) = browser("2,000 objects") else { return };
    let place = Place::new();
    place.write("files/all.yaml", &manifests());
    let mut view = place.purlin(&["ui", "-f", "files"]);
    page.before_each_page(OBSERVE);
    page.open(&view.address());
    page.wait_text("#count", "2000 objects");
    page.wait("purlin.graph.stats.layouts > 0 && purlin.graph.stats.drawn >= 2000");
    assert!(page.workers().iter().any(|url| url.ends_with("/ui/layout.js")), "{:?}", page.workers());
    page.document("ui-2000");
    for _ in 0..6 {
        page.key("+");
    }
    for _ in 0..6 {
        page.key("-");
    }
    page.key("/");
    page.type_text("n1999");
    page.wait_text("#count", "1 of 2000 objects");
    page.key("Enter");
    page.wait_text("#panel pre", "# n1999 will be created");
    page.wait("purlin.graph.position('n1999').x > 290");
    page.key("s");
    page.wait_text("#count", "1 of 2000 steps");
    page.wait("purlin.graph.stats.layouts > 1");
    let slice = page.value("purlin.graph.stats.largestSlice");
    assert!(slice.as_u64().unwrap() <= 400, "{slice}");
    let rows = page.value("document.querySelectorAll('.row').length");
    assert!(rows.as_u64().unwrap() < 100, "{rows}");
    let long = page.value("long");
    println!("tasks of more than 50 ms: {long}");
    page.assert_no_problems();
}
