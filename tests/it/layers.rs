//! The architecture as a table: which module may use which. The picture is in `src/lib.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use quote::ToTokens as _;

use crate::workspace::project;

/// Module, and the modules of the crate that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "archive",
            "config",
            "inspect",
            "lab",
            "look",
            "manifests",
            "model",
            "plan",
            "report",
            "run",
            "schedule",
            "stages",
            "stats",
            "store",
        ],
    ),
    (
        "lab",
        &[
            "archive", "bounds", "captures", "config", "extract", "look", "model", "recycle", "run", "schedule",
            "stages", "stats", "store", "tables", "text",
        ],
    ),
    (
        "look",
        &[
            "config",
            "deltas",
            "extract",
            "manifests",
            "matching",
            "model",
            "report",
            "run",
            "stages",
            "store",
            "tables",
            "text",
        ],
    ),
    (
        "stages",
        &[
            "archive",
            "bounds",
            "captures",
            "config",
            "deltas",
            "extract",
            "inspect",
            "manifests",
            "matching",
            "model",
            "plan",
            "recycle",
            "report",
            "run",
            "schedule",
            "stats",
            "store",
            "tables",
            "text",
        ],
    ),
    ("report", &["deltas", "inspect", "manifests", "model", "plan", "recycle", "run", "schedule", "tables"]),
    ("run", &["archive", "config", "manifests", "model", "plan", "store", "tables"]),
    ("config", &["archive", "deltas", "extract", "model", "plan", "schedule", "stats", "store", "text"]),
    ("manifests", &["extract", "matching", "model", "plan", "schedule", "stats", "store", "tables"]),
    ("archive", &["bounds", "model", "text"]),
    ("store", &["model", "tables"]),
    ("schedule", &["model", "stats"]),
    ("deltas", &["captures", "model", "text"]),
    ("stats", &["captures", "model"]),
    ("captures", &["bounds", "model", "tables", "text"]),
    ("tables", &["extract", "matching", "model", "plan"]),
    ("recycle", &["extract", "matching", "model"]),
    ("plan", &["extract", "matching", "model"]),
    ("matching", &["model"]),
    ("extract", &["model"]),
    ("inspect", &["model"]),
    ("text", &["bounds", "model"]),
    ("allocator", &[]),
    ("bounds", &[]),
    ("model", &[]),
];

/// Crates that only some modules may use.
const CRATES: &[(&str, &[&str])] = &[
    ("arrow_array", &["tables", "store"]),
    ("arrow_ipc", &["store"]),
    ("parquet", &["store"]),
    ("polars", &["store", "look"]),
    ("polars_io", &["store"]),
    ("rayon", &["cli", "look", "matching", "run", "stages"]),
    ("indicatif", &["run", "report"]),
    ("clap", &["cli"]),
    ("fs_err", &["archive", "lab", "store"]),
    ("walkdir", &["archive"]),
    ("fastwarc", &["archive"]),
    ("anyhow", &["cli", "look", "run", "stages"]),
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    let crate_files = production_files();
    for (path, file) in &crate_files {
        let inside = path.strip_prefix(project().join("src")).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if matches!(module, "inside" | "lib" | "main") {
            continue;
        }
        found.insert(module.to_owned());
        let allowed = ALLOWED.iter().find(|(name, _)| *name == module).map(|(_, below)| *below);
        let allowed = allowed.unwrap_or_else(|| panic!("src/{module} is not in the table of layers"));
        let used = Used::of(file);
        for other in &used.modules {
            if other != module && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{} uses crate::{other}", inside.display()));
            }
        }
        for (name, users) in CRATES {
            if used.crates.contains(*name) && !users.contains(&module) {
                wrong.push(format!("{} uses {name}", inside.display()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    let listed: BTreeSet<String> = ALLOWED.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, listed, "the table of layers names the modules that there are");
    assert!(crate_files.len() > 150, "only {} files of production code were read", crate_files.len());
}

#[test]
fn layers_have_no_cycle() {
    // Modules come before those they use, so that no way leads back.
    let position = |module: &str| ALLOWED.iter().position(|(name, _)| *name == module).unwrap();
    for (module, below) in ALLOWED {
        for other in *below {
            assert!(position(module) < position(other), "{module} is listed below {other}, which it uses");
        }
    }
}

/// The files of the library that are not only for tests, parsed: all that `lib.rs` leads to.
fn production_files() -> Vec<(PathBuf, syn::File)> {
    let mut files = Vec::new();
    let mut waiting = vec![(project().join("src/lib.rs"), project().join("src"))];
    while let Some((path, folder)) = waiting.pop() {
        let text = fs::read_to_string(&path).unwrap();
        let mut file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.items.retain(|item| !is_for_tests(attributes(item)));
        for item in &file.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
            {
                let name = module.ident.to_string();
                let flat = folder.join(format!("{name}.rs"));
                let path = if flat.exists() { flat } else { folder.join(&name).join("mod.rs") };
                waiting.push((path, folder.join(name)));
            }
        }
        files.push((path, file));
    }
    files
}

/// `#[cfg(test)]`, but not `#[cfg(any(test, …))]`: that is compiled without tests too.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// What a file names: modules of ours, and the first words of other paths.
#[derive(Default)]
struct Used {
    modules: BTreeSet<String>,
    crates: BTreeSet<String>,
}

impl Used {
    /// Words are looked at one by one, so that macros and nested uses count as well.
    fn of(file: &syn::File) -> Self {
        let mut used = Self::default();
        for item in &file.items {
            if let syn::Item::Mod(syn::ItemMod { content: None, .. }) = item {
                continue;
            }
            let mut words = Vec::new();
            flatten(item.to_token_stream(), &mut words);
            used.words(&words);
        }
        used
    }

    fn words(&mut self, words: &[String]) {
        for (i, word) in words.iter().enumerate() {
            let follows = |offset: usize, what: &str| words.get(i + offset).is_some_and(|word| word == what);
            let before = |offset: usize| i.checked_sub(offset).map(|at| words[at].as_str());
            let path_before = before(1) == Some(":") && before(2) == Some(":");
            if word == "crate" && follows(1, ":") && follows(2, ":") {
                match words.get(i + 3).map(String::as_str) {
                    Some("{") => self.group(&words[i + 4..]),
                    Some(name) => self.module(name),
                    None => {}
                }
            } else if follows(1, ":") && follows(2, ":") {
                // `::name::` and `name::` start a path, `a::name::` does not.
                let leading = path_before && !before(3).is_some_and(is_word);
                if !path_before || leading {
                    self.crates.insert(word.clone());
                }
            }
        }
    }

    /// The first words of the paths in `crate::{a::b, c}`.
    fn group(&mut self, words: &[String]) {
        let (mut depth, mut first) = (0, true);
        for word in words {
            match word.as_str() {
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                "," if depth == 0 => first = true,
                name if first => {
                    self.module(name);
                    first = false;
                }
                _ => {}
            }
        }
    }

    /// Names of our own types and functions at the root do not count.
    fn module(&mut self, name: &str) {
        if name.chars().all(|c| c.is_lowercase() || c == '_') {
            self.modules.insert(name.to_owned());
        }
    }
}

fn is_word(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// All words and signs of a stream, brackets included, strings and comments left out. Items for tests inside modules are
/// left out too.
fn flatten(stream: proc_macro2::TokenStream, words: &mut Vec<String>) {
    for tree in stream {
        match tree {
            proc_macro2::TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    _ => ("(", ")"),
                };
                words.push(open.to_owned());
                flatten(group.stream(), words);
                words.push(close.to_owned());
            }
            proc_macro2::TokenTree::Ident(ident) => words.push(ident.to_string()),
            proc_macro2::TokenTree::Punct(punct) => words.push(punct.as_char().to_string()),
            proc_macro2::TokenTree::Literal(_) => {}
        }
    }
}

#[test]
fn words_are_read_as_paths() {
    let file = syn::parse_file(
        "use crate::{store::Store, model::{Digest, Span}};\n\
         fn f() { crate::text::read(); ::parquet::x(); rayon::join(a, b); crate::store::parquet::y() }\n\
         record! { struct R { a: crate::tables::A = \"crate::cli::B\" } }\n\
         #[cfg(test)] mod tests { use crate::synth::X; }",
    );
    let mut file = file.unwrap();
    file.items.retain(|item| !is_for_tests(attributes(item)));
    let used = Used::of(&file);
    assert_eq!(used.modules.iter().map(String::as_str).collect::<Vec<_>>(), ["model", "store", "tables", "text"]);
    assert!(used.crates.contains("parquet") && used.crates.contains("rayon") && !used.crates.contains("y"));
}
