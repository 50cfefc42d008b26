//! A fake API server for Secrets and the metadata of Resources that fails on demand, for failures that a real server
//! cannot produce. Tests against a real server cover its normal behavior.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// The outcome of one request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It succeeds.
    None,
    /// It is rejected with this code and has no effect.
    Code(u16),
    /// The connection is cut before it takes effect.
    CutBefore,
    /// It takes effect, but the response is lost.
    LoseAnswer,
}

#[derive(Debug, Default)]
pub struct Server {
    pub objects: BTreeMap<String, Value>,
    pub faults: VecDeque<Fault>,
    /// The method and the last path segment of each request.
    pub requests: Vec<String>,
    version: u64,
}

pub type SharedServer = Arc<Mutex<Server>>;

/// Returns a fake server and a client for it.
pub fn server() -> (SharedServer, Client) {
    let shared = SharedServer::default();
    let server = shared.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let (fault, answer) = {
                let mut server = server.lock().unwrap();
                let path = parts.uri.path().to_owned();
                server.requests.push(format!("{} {}", parts.method, path.rsplit('/').next().unwrap()));
                let fault = server.faults.pop_front().unwrap_or(Fault::None);
                let answer = match fault {
                    Fault::Code(code) => Err(code),
                    Fault::CutBefore => Err(0),
                    _ => server.handle(&parts.method, &path, &body, parts.uri.query().unwrap_or_default()),
                };
                (fault, answer)
            };
            match fault {
                Fault::CutBefore => return Err(std::io::Error::other("connection reset by peer")),
                Fault::LoseAnswer => std::future::pending::<()>().await,
                _ => {}
            }
            let (code, value) = match answer {
                Ok(value) => (200, value),
                Err(code) => {
                    (code, json!({"kind": "Status", "status": "Failure", "code": code, "message": "injected fault"}))
                }
            };
            let response = Response::builder().status(StatusCode::from_u16(code).unwrap());
            Ok(response.body(Body::from(value.to_string().into_bytes())).unwrap())
        }
    });
    (shared, Client::new(service, "purlin-system"))
}

impl Server {
    pub fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    pub fn take_requests(&mut self) -> Vec<String> {
        std::mem::take(&mut self.requests)
    }

    fn handle(&mut self, method: &Method, path: &str, body: &[u8], query: &str) -> Result<Value, u16> {
        let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() };
        let known = self.objects.get(path).cloned();
        match *method {
            Method::POST => {
                let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
                if self.objects.contains_key(&path) { Err(409) } else { Ok(self.put(&path, body)) }
            }
            Method::GET if path.ends_with("/secrets") => Ok(self.list(query)),
            Method::GET => known.ok_or(404),
            Method::PUT => {
                let known = known.ok_or(404u16)?;
                let same = known["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"];
                if same { Ok(self.put(path, body)) } else { Err(409) }
            }
            Method::DELETE => {
                let known = known.ok_or(404u16)?;
                let wanted = &body["preconditions"]["resourceVersion"];
                if !wanted.is_null() && *wanted != known["metadata"]["resourceVersion"] {
                    return Err(409);
                }
                self.objects.remove(path);
                Ok(json!({"kind": "Status", "status": "Success"}))
            }
            Method::PATCH => {
                let mut object = known.ok_or(404u16)?;
                for operation in body.as_array().unwrap() {
                    apply(&mut object, operation).ok_or(422u16)?;
                }
                Ok(self.put(path, object))
            }
            _ => Err(405),
        }
    }

    /// Supports only the selectors that the store uses: equality and presence of labels.
    fn list(&self, query: &str) -> Value {
        let query: BTreeMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let selector = query["labelSelector"].replace("%2F", "/").replace("%3D", "=").replace("%2C", ",");
        let selects_records = selector.contains("+in+");
        let secrets = self.objects.iter().filter(|(path, _)| path.contains("/secrets/")).map(|(_, secret)| secret);
        let selected = secrets.filter(|secret| {
            let labels = &secret["metadata"]["labels"];
            if selects_records {
                return labels["purlin.dev/record"] != "part";
            }
            selector.split(',').all(|term| match term.split_once('=') {
                Some((key, value)) => labels[key] == value,
                None => !labels[term].is_null(),
            })
        });
        json!({"metadata": {}, "items": selected.collect::<Vec<_>>()})
    }
}

/// Applies one operation of a JSON patch; `None` if it does not apply.
fn apply(object: &mut Value, operation: &Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    let (parent, key) = path.rsplit_once('/')?;
    let key = key.replace("~1", "/");
    let value = operation["value"].clone();
    match (operation["op"].as_str()?, object.pointer_mut(parent)?) {
        ("test", Value::Object(map)) => (map.get(&key).unwrap_or(&Value::Null) == &value).then_some(()),
        ("test", Value::Array(list)) => (*list.get(key.parse::<usize>().ok()?)? == value).then_some(()),
        ("add", Value::Object(map)) => {
            map.insert(key, value);
            Some(())
        }
        ("add", Value::Array(list)) if key == "-" => {
            list.push(value);
            Some(())
        }
        ("remove", Value::Object(map)) => map.remove(&key).map(drop),
        ("remove", Value::Array(list)) => {
            let position = key.parse::<usize>().ok()?;
            (position < list.len()).then(|| drop(list.remove(position)))
        }
        _ => None,
    }
}
