//! The direction of imports: each layer knows those below it and none above.

use std::path::{Path, PathBuf};

/// Each layer, and what of ours it may import. `domain` imports nothing of ours.
const LAYERS: [(&str, &[&str]); 14] = [
    ("domain", &[]),
    ("redis_client", &[]),
    ("store", &["domain", "redis_client", "telemetry"]),
    ("notify", &["domain", "redis_client"]),
    ("vault", &["domain"]),
    ("upstream", &["domain", "telemetry"]),
    ("identity", &["domain", "upstream"]),
    ("mcp", &["domain"]),
    ("api_key", &["domain"]),
    ("system", &["domain"]),
    ("telemetry", &[]),
    ("flow", &["domain", "store", "notify", "vault", "identity", "upstream", "mcp", "telemetry"]),
    ("config", &["domain", "flow", "identity", "upstream", "api_key", "redis_client"]),
    ("web", &["domain", "flow", "identity", "upstream", "mcp", "api_key", "config", "telemetry"]),
];

/// Crates that only these layers may name.
const FOREIGN: [(&str, &[&str]); 9] = [
    ("metrics", &["telemetry"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
    ("actix_web", &["web", "app", "cli"]),
    ("rusqlite", &["store"]),
    ("redis", &["redis_client", "store", "notify"]),
    ("reqwest", &["upstream", "cli"]),
    ("jsonwebtoken", &["upstream"]),
    ("askama", &["web"]),
    ("tokio", &["redis_client", "store", "notify", "identity", "upstream", "flow", "web", "app", "cli"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every source file: its layer, its path, and its code without comments.
fn files() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    let file = |path: PathBuf| {
        let below = path.strip_prefix(&root).unwrap().to_owned();
        let layer = below
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_string_lossy()
            .trim_end_matches(".rs")
            .to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let code =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        (layer, below, code)
    };
    found.into_iter().map(file).collect()
}

/// The modules of ours that the code names.
fn imports(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let rest = rest.trim_start_matches('{');
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
        named.push(name);
    }
    named
}

#[test]
fn every_layer_imports_only_what_is_below_it() {
    let files = files();
    assert!(files.len() > 60);
    for (layer, path, code) in &files {
        if ["main", "lib", "app", "cli"].contains(&layer.as_str()) {
            continue;
        }
        let (_, allowed) =
            LAYERS.iter().find(|(name, _)| name == layer).unwrap_or_else(|| panic!("{layer} has no place"));
        for import in imports(code) {
            let fine = import == *layer || allowed.contains(&import.as_str());
            assert!(fine, "{}: `{layer}` must not import `{import}`", path.display());
        }
        assert!(
            !code.contains("use crate::{"),
            "{}: one line a module, so that this test can read it",
            path.display()
        );
    }
}

/// Operators alert on messages: what the log may say above `debug` is written down.
#[test]
fn every_message_of_the_log_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let explained = std::fs::read_to_string(root.join("docs/LOGGING.md")).unwrap();
    let mut found = 0;
    for (_, path, code) in files() {
        for level in ["error", "warn", "info"] {
            for call in code.split(&format!("tracing::{level}!(")).skip(1) {
                let call = call.split(");").next().unwrap();
                let message = call.rsplit('"').nth(1).unwrap_or_else(|| panic!("{}: {call}", path.display()));
                // What is put in may be anything; what stands before and after it is ours.
                let words = message.split(['{', '}']).step_by(2).max_by_key(|words| words.len()).unwrap();
                assert!(explained.contains(words), "{}: `{message}` is not explained", path.display());
                found += 1;
            }
        }
    }
    assert!(found > 40, "{found}");
}

/// Whether a path in the code begins with this crate's name.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        let starts = !before.is_alphanumeric() && !"_:\"".contains(before);
        starts && code[at + name.len()..].starts_with("::")
    })
}

#[test]
fn every_foreign_crate_stays_where_it_belongs() {
    for (layer, path, code) in files() {
        for (foreign, allowed) in FOREIGN {
            assert!(
                !names_crate(&code, foreign) || allowed.contains(&layer.as_str()),
                "{}: `{layer}` must not name `{foreign}`",
                path.display()
            );
        }
    }
}

#[test]
fn only_the_composition_root_names_concrete_backends() {
    for (layer, path, code) in files() {
        let concrete = ["Sqlite::open(", "Redis::start(", "Local::new()", "Loopback::new()", "Proxy::new("];
        // One way of telling is built upon another.
        let allowed = ["app", "cli", "notify"].contains(&layer.as_str());
        for name in concrete {
            assert!(allowed || !code.contains(name), "{}: `{name}`", path.display());
        }
    }
}

#[test]
fn main_is_thin_and_files_are_short() {
    for (layer, path, code) in files() {
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        let longest = if layer == "main" { 10 } else { 420 };
        assert!(lines <= longest, "{}: {lines} lines of code", path.display());
    }
}

#[test]
fn the_documents_name_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let (_, walks) = map.split_once("## The state machine").unwrap();
    let mut named = 0;
    for word in walks.split(|c: char| c.is_whitespace() || "`(),:;|".contains(c)) {
        let word = word.trim_end_matches('.');
        let places = ["", "src/", "src/web/", "src/store/sqlite/", "src/store/redis/"];
        if word.contains('/') && [".rs", ".html", ".toml"].iter().any(|end| word.ends_with(end)) {
            assert!(places.iter().any(|place| root.join(place).join(word).exists()), "{word} is not there");
            named += 1;
        }
    }
    assert!(named > 30, "{named}");
    for (layer, path, _) in files() {
        assert!(map.contains(&layer), "{} is not on the map", path.display());
    }
    let configuration = std::fs::read_to_string(root.join("docs/CONFIGURATION.md")).unwrap();
    let settings = ["file.rs", "console.rs", "providers.rs", "payments.rs"]
        .map(|file| std::fs::read_to_string(root.join("src/config").join(file)).unwrap());
    for line in
        settings.iter().flat_map(|text| text.lines()).filter_map(|line| line.trim().strip_prefix("pub "))
    {
        let Some((key, _)) = line.split_once(": ") else { continue };
        let written = [format!("`{key}"), format!("[{key}"), format!(".{key}`")];
        assert!(written.iter().any(|form| configuration.contains(form)), "{key} is not explained");
    }
}
