//! The view of files, beside `purlin dev`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::browser::{Browser, browser, drain};
use crate::controlplane::wait_until;

/// A directory with a directory `files`.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("files")).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn example(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
        for entry in fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            fs::copy(&entry, self.path("files").join(entry.file_name().unwrap())).unwrap();
        }
    }

    pub(crate) fn purlin(&self, arguments: &[&str]) -> Running {
        Running::start(Command::new(env!("CARGO_BIN_EXE_purlin")).args(arguments).current_dir(self.0.path()))
    }

    pub(crate) fn run(&self, arguments: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        let ran = command.args(arguments).current_dir(self.0.path()).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// A command that runs until it is dropped.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        Self { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() }
    }

    /// The address that `purlin ui` prints.
    pub(crate) fn address(&mut self) -> String {
        let mut lines = BufReader::new(self.child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        drain(lines);
        drain(self.child.stderr.take().unwrap());
        assert!(line.starts_with("http://127.0.0.1:"), "{line}");
        line.trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The quick start after its change, with the view open.
fn quick_start(test: &str) -> Option<(Place, Running, Browser, String)> {
    let mut page = browser(test)?;
    let place = Place::new();
    place.example("quickstart");
    place.run(&["apply", "-f", "files", "--yes"]);
    place.example("quickstart-changed");
    let mut view = place.purlin(&["ui", "-f", "files"]);
    let address = view.address();
    page.open(&address);
    page.wait_text("#count", "8 objects");
    Some((place, view, page, address))
}

const SELECTED: &str = "document.querySelector('.row[aria-selected=true]')?.dataset.object";

#[test]
fn the_graph_and_the_details_of_an_object_can_be_clicked() {
    let Some((_place, _view, mut page, _)) = quick_start("the graph and the details of an object") else { return };
    // What others wait for is on the left.
    page.wait("purlin.graph.position('network').column < purlin.graph.position('app').column");
    page.document("ui");
    page.click_node("app");
    page.wait_text("#panel h2", "app");
    page.wait_text("#panel pre", "# app must be replaced: created, then destroyed");
    page.wait_text("#panel .links", "database — app depends on database");
    page.wait_text("#panel .entries", "it is new");
    page.wait_text("#panel", "events exist only in a cluster");
    page.document("ui-object");
    page.click("#panel .links button");
    page.wait_text("#panel h2", "database");
    page.click("#mode-steps");
    page.wait_text("#count", "6 steps");
    page.wait("purlin.graph.position('app destroy')");
    page.click("#close");
    page.wait("document.querySelector('#panel').hidden");
    page.click("#zoom-fit");
    page.document("ui-steps");
    page.assert_no_problems();
}

#[test]
fn the_address_is_a_link_to_an_object() {
    let Some((place, _view, mut page, address)) = quick_start("links to objects") else { return };
    page.wait("location.hash === '#/default'");
    assert!(!page.value("location.href").as_str().unwrap().contains("token"), "the token leaves the address");
    let base = address.split('#').next().unwrap();
    place.write("files/odd.yaml", &family());
    page.wait_text("#count", "10 objects");
    // Another document of the same tab still has the token.
    page.open(&format!("{base}#/default/{}", "odd%5B%22a%2Fb%20%C3%BC%22%5D"));
    page.wait_text("#panel h2", "odd[\"a/b ü\"]");
    page.wait_text("#panel pre", "will be created");
    page.open(&format!("{base}#/default/no-such-object"));
    page.wait_text("#panel", "This object does not exist here.");
    // Without a token, nothing is shown.
    page.value("sessionStorage.clear()");
    page.open(base);
    page.wait_text("#sign-in[open]", "Open the address that `purlin ui` printed");
    assert_eq!(page.text("#rows"), "");
    page.assert_no_problems();
}

/// A family whose keys have characters that an address must encode.
fn family() -> String {
    "apiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: { name: odd }\nspec:\n  type: terraform_data\n  \
     forEach: \"${{'a/b ü': 1, 'c': 2}}\"\n  config: { input: \"${each.key}\" }\n"
        .to_owned()
}

#[test]
fn everything_can_be_done_with_keys() {
    let Some((_place, _view, mut page, _)) = quick_start("keys") else { return };
    page.key("/");
    page.wait("document.activeElement.id === 'search'");
    page.type_text("terraform replace");
    page.wait_text("#count", "2 of 8 objects");
    page.key("ArrowDown");
    page.wait(&format!("{SELECTED} === 'app'"));
    page.key("ArrowDown");
    page.wait(&format!("{SELECTED} === 'image'"));
    page.key("Enter");
    page.wait_text("#panel h2", "image");
    page.wait("document.activeElement.id === 'panel'");
    // What waits for the image, and back.
    page.key("ArrowRight");
    page.wait_text("#panel h2", "app");
    page.key("ArrowLeft");
    page.wait_text("#panel h2", "database");
    // Esc goes back step by step: the details, the search, and its field. The keyboard is never lost.
    page.key("Escape");
    page.wait("document.querySelector('#panel').hidden && document.activeElement.id === 'list'");
    page.wait_text("#count", "2 of 8 objects");
    page.key("Escape");
    page.wait_text("#count", "8 objects");
    page.key("/");
    page.type_text("image");
    page.wait_text("#count", "of 8 objects");
    // A name comes before the messages that mention it, and Enter opens the first result.
    page.key("Enter");
    page.wait_text("#panel h2", "image");
    page.key("/");
    page.key("Escape");
    page.wait("document.activeElement.id === 'search' && document.activeElement.value === ''");
    page.wait("!document.querySelector('#count').textContent.includes('of')");
    page.key("Escape");
    page.wait("document.activeElement.id === 'list'");
    page.key("?");
    page.wait("document.querySelector('#keys').open");
    page.key("Escape");
    page.wait("!document.querySelector('#keys').open");
    page.key("s");
    page.wait_text("#count", "6 steps");
    page.key("o");
    page.wait_text("#count", "8 objects");
    page.assert_no_problems();
}

#[test]
fn troubled_objects_are_listed_first_and_numbers_in_their_order() {
    let Some(mut page) = browser("the order of the list") else { return };
    let place = Place::new();
    let object = |name: &str, config: &str| {
        format!("---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec: {config}\n")
    };
    let plain = "{ type: terraform_data, config: { input: 1 } }";
    let mut all: String = (1..=12).map(|number| object(&format!("app-{number}"), plain)).collect();
    place.write("files/all.yaml", &all);
    place.run(&["apply", "-f", "files", "--yes"]);
    all += &object("broken", "{ type: terraform_data, config: { inptu: 1 } }");
    all += &object("late", "{ type: terraform_data, config: { input: \"a new one, as app-2 is\" } }");
    place.write("files/all.yaml", &all);
    let mut view = place.purlin(&["ui", "-f", "files"]);
    page.open(&view.address());
    page.wait_text("#count", "14 objects");
    let order = "[...document.querySelectorAll('.row')].map((row) => row.dataset.object).join(' ')";
    let names = |from: u32| (from..=12).map(|number| format!("app-{number}")).collect::<Vec<_>>().join(" ");
    page.wait(&format!("{order}.startsWith('broken late {}'.slice(0, 60))", names(1)));
    page.key("/");
    page.type_text("app-2");
    page.wait(&format!("{order} === 'app-2'"));
    page.assert_no_problems();
}

#[test]
fn objects_are_filtered_by_state_and_colors_follow_the_system() {
    let Some((_place, _view, mut page, _)) = quick_start("filters and colors") else { return };
    page.click("#states button.ready");
    page.wait_text("#count", "4 of 8 objects");
    page.wait_text("#states button[aria-pressed=true]", "ready 4");
    page.click("#states button.ready");
    page.wait_text("#count", "8 objects");
    let background = "getComputedStyle(document.body).backgroundColor";
    let light = page.value(background);
    page.scheme("dark");
    page.wait("document.documentElement.dataset.theme === 'dark'");
    assert_ne!(page.value(background), light);
    page.document("ui-dark");
    page.key("t");
    page.wait(&format!("{background} === {light}"));
    page.assert_no_problems();
}

#[test]
fn steps_of_purlin_dev_are_shown_while_they_run() {
    let Some(mut page) = browser("running steps") else { return };
    let place = Place::new();
    let slow = |name: &str, input: &str, hook: &str| {
        format!(
            "---\napiVersion: purlin.dev/v1alpha1\nkind: Resource\nmetadata: {{ name: {name} }}\nspec:\n  \
             type: terraform_data\n  config: {{ input: \"{input}\" }}\n{hook}"
        )
    };
    let go = place.path("go");
    let wait = format!(
        "  hooks:\n  - name: wait\n    when: AfterCreate\n    exec: {{ command: [sh, -c, \"until test -e {}; do sleep \
         0.05; done\"] }}\n",
        go.display()
    );
    place.write("files/all.yaml", &(slow("base", "one", &wait) + &slow("user", "${base.output}", "")));
    let mut view = place.purlin(&["ui", "-f", "files"]);
    page.open(&view.address());
    page.wait_text("#states", "waiting 2");
    let mut dev = place.purlin(&["dev", "-f", "files"]);
    drain(dev.child.stdout.take().unwrap());
    drain(dev.child.stderr.take().unwrap());
    page.wait_text(".row[data-object=base]", "running");
    page.wait_text(".row[data-object=user]", "waiting");
    page.click(".row[data-object=user]");
    page.wait_text("#panel .links", "base — user depends on base");
    fs::write(&go, "").unwrap();
    page.wait_text("#states", "ready 2");
    page.wait_text("#panel .entries", "succeeded");
    // An edit is applied, and both are seen.
    place.write("files/all.yaml", &slow("base", "two", ""));
    page.wait_text("#count", "1 object");
    wait_until("the page shows the new value", crate::browser::LIMIT, || {
        page.click(".row[data-object=base]");
        page.text("#panel").contains("\"input\": \"two\"")
    });
    page.assert_no_problems();
}
