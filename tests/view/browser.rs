//! Chromium, driven with the DevTools protocol over its pipe: JSON messages that end with a zero byte. It needs no port and
//! no WebSocket, and the browser ends with this process.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::controlplane::poll;

/// How long a condition may take. Generous, because only a failing test waits this long.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// File descriptors 3 and 4 are the pipe.
const WITH_PIPE: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// The maximum size of a screenshot of the documentation, in bytes.
const LARGEST_PICTURE: usize = 150 * 1024;

/// The programs that are tried.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    /// Dropped first when the browser is closed.
    requests: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What the page reported: exceptions, errors, and violations of its policy.
    problems: Vec<String>,
    /// The addresses of the workers that the page has started.
    workers: Vec<String>,
    _profile: TempDir,
}

/// Starts a browser. `None` if there is none on this machine, which is printed.
///
/// # Panics
/// If there is none, and `PURLIN_REQUIRE_BROWSER` is set.
pub(crate) fn browser(test: &str) -> Option<Browser> {
    let found = std::env::var_os("PATH").and_then(|path| {
        let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let programs = PROGRAMS.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
        programs.into_iter().find(|program| program.is_file())
    });
    if found.is_none() {
        assert!(std::env::var_os("PURLIN_REQUIRE_BROWSER").is_none(), "there is no chromium, but it is required");
        // Not with a macro: the test framework would capture the line.
        let notice = format!("NOT TESTED: {test}: there is no browser (hint: install Debian's package `chromium`)\n");
        let _ = std::io::stderr().write_all(notice.as_bytes());
    }
    found.map(|program| Browser::start(&program))
}

impl Browser {
    fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", WITH_PIPE])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-pipe", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let (send, messages) = channel();
        let answers = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON of the browser");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (problems, workers) = (Vec::new(), Vec::new());
        let requests = child.stdin.take();
        let mut browser =
            Self { child, requests, messages, session: None, next: 0, problems, workers, _profile: profile };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page").unwrap();
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Performance.enable", json!({ "timeDomain": "threadTicks" }));
        let workers = json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        browser.call("Target.setAutoAttach", workers);
        browser.window(1280, 760);
        browser.scheme("light");
        browser
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.requests.as_mut().unwrap().write_all(&bytes).expect("the browser runs");
        loop {
            let answer = self.messages.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.event(&answer);
        }
    }

    fn event(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.problems.push(parameters["exceptionDetails"].to_string()),
            // A refused request is no problem of the page.
            "Log.entryAdded" if parameters["entry"]["source"] != "network" => {
                self.problems.push(parameters["entry"].to_string());
            }
            "Target.attachedToTarget" if parameters["targetInfo"]["type"] == "worker" => {
                self.workers.push(parameters["targetInfo"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }

    pub(crate) fn window(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// The color scheme of the system: `light` or `dark`.
    pub(crate) fn scheme(&mut self, name: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": name });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Opens an address in a new document, also if only its fragment differs.
    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// The value of an expression; null if it throws.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let evaluate = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        self.call("Runtime.evaluate", evaluate)["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, selector: &str) -> String {
        let expression = format!("document.querySelector({})?.textContent", json!(selector));
        self.value(&expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, expression: &str) {
        let expression = format!("(async () => Boolean(await ({expression})))()");
        let held = poll(LIMIT, || (self.value(&expression) == true).then_some(()));
        if held.is_none() {
            let file = self.keep("failed");
            let shown = self.text("body");
            panic!("never true: {expression}; {}; {:?}; the page: {shown}", file.display(), self.problems);
        }
    }

    /// Waits until an element has a text.
    pub(crate) fn wait_text(&mut self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.wait(&format!(
            "[...document.querySelectorAll({selector})].some((one) => one.textContent.includes({text}))"
        ));
    }

    /// Clicks the middle of a visible element with the mouse.
    pub(crate) fn click(&mut self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.wait(&format!("{found} && {found}.getClientRects().length > 0 && !{found}.disabled"));
        let middle = "((box) => [box.x + box.width / 2, box.y + box.height / 2])";
        let at = self.value(&format!("{middle}({found}.getBoundingClientRect())"));
        self.click_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    }

    /// Clicks a node of the graph, which is drawn, with the mouse.
    pub(crate) fn click_node(&mut self, id: &str) {
        let position = format!("purlin.graph.position({})", json!(id));
        self.wait(&position);
        let at = self.value(&position);
        self.click_at(at["x"].as_f64().unwrap(), at["y"].as_f64().unwrap());
    }

    pub(crate) fn click_at(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key: a character, or the name of a key.
    pub(crate) fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut event = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        match key {
            // Without its character, it submits no form.
            "Enter" => event["text"] = "\r".into(),
            _ if code == 0 => event["text"] = key.into(),
            _ => {}
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Types a text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The processor time of the page's main thread until now, in milliseconds. Other programs have no influence on it.
    pub(crate) fn processor_time(&mut self) -> f64 {
        let metrics = self.call("Performance.getMetrics", json!({}))["metrics"].clone();
        let tasks = metrics.as_array().unwrap().iter().find(|metric| metric["name"] == "TaskDuration").unwrap();
        tasks["value"].as_f64().unwrap() * 1000.0
    }

    /// The addresses of the workers of the page.
    pub(crate) fn workers(&self) -> &[String] {
        &self.workers
    }

    /// Waits until the page has drawn what has changed.
    pub(crate) fn wait_for_drawing(&mut self) {
        let frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        self.wait(frames);
        let draws = self.value("purlin.graph.stats.draws");
        self.value("purlin.graph.recolor()");
        self.wait(&format!("purlin.graph.stats.draws > {draws}"));
    }

    fn picture(&mut self) -> Vec<u8> {
        let data = self.call("Page.captureScreenshot", json!({ "format": "png" }))["data"].clone();
        base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap()).unwrap()
    }

    /// Writes a screenshot below the target directory.
    pub(crate) fn keep(&mut self, name: &str) -> PathBuf {
        let directory = crate::programs::target_dir().join("purlin-view");
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join(format!("{name}.png"));
        fs::write(&file, self.picture()).unwrap();
        file
    }

    /// Takes the screenshot `docs/images/NAME.png`, after the last drawing. Fonts differ between machines, so its pixels are
    /// not compared.
    pub(crate) fn document(&mut self, name: &str) {
        self.wait_for_drawing();
        self.keep(name);
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(format!("{name}.png"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&kept, self.picture()).unwrap();
        }
        let size = fs::metadata(&kept).unwrap_or_else(|error| panic!("{}: {error}", kept.display())).len();
        assert!(size as usize <= LARGEST_PICTURE, "{}: {size} bytes", kept.display());
    }

    /// Asserts that the page reported no problem.
    pub(crate) fn assert_no_problems(&mut self) {
        self.value("1");
        assert!(self.problems.is_empty(), "{:#?}", self.problems);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing the pipe ends the browser.
        drop(self.requests.take());
        if poll(Duration::from_secs(10), || self.child.try_wait().ok().flatten()).is_none() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Reads a stream to its end on a thread, so that its writer never blocks.
pub(crate) fn drain(mut stream: impl Read + Send + 'static) {
    std::thread::spawn(move || drop(stream.read_to_end(&mut Vec::new())));
}
