//! Names in code, followed to the files that define them.

use super::graph::Graph;
use super::modules::{Module, Package};
use crate::scan::Kind;
use crate::source::Source;

/// Definition that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item of a module.
    Item(usize),
}

/// Most imports that are followed for one name: more would be a loop of them.
const DEPTH_MAX: usize = 16;

/// Adds an edge for each name of each module.
pub(super) fn add_edges(package: &Package<'_>, graph: &mut Graph) {
    for index in 0..package.modules.len() {
        let module = &package.modules[index];
        for import in module.imports.iter().filter(|import| !import.public) {
            add(package, graph, index, &import.path);
        }
        let source = package.sources[module.file];
        let mut last = 0;
        for &at in &module.code {
            if at >= last {
                let (path, end) = path_at(source, at);
                last = end;
                add(package, graph, index, &path);
            }
        }
    }
}

/// Adds the edge of one path, if it leads to an item of the package.
fn add(package: &Package<'_>, graph: &mut Graph, from: usize, path: &[String]) {
    let file = |module: usize| &*package.sources[package.modules[module].file].path;
    for end in 1..=path.len() {
        if let Some(Target::Item(target)) = resolve(package, from, &path[..end], 0) {
            if !is_within(package, from, target) {
                graph.add(file(from), file(target), &path[end - 1]);
            }
            return;
        }
    }
}

/// Returns `true` if a module is another one, or nested in it.
fn is_within(package: &Package<'_>, module: usize, other: usize) -> bool {
    let parent = |&module: &usize| package.modules[module].parent;
    std::iter::successors(Some(module), parent).any(|module| module == other)
}

/// Path that begins at a token, and the index behind it; an empty one where none does.
fn path_at(source: &Source, at: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    if source.tokens[at].kind == Kind::Text {
        return (path_in(source.word(at)), at + 1);
    }
    let member = at > 0 && source.is_sign(at - 1, b'.');
    if !source.is_word(at) || member {
        return (path, at + 1);
    }
    let mut end = at;
    loop {
        path.push(source.word(end).to_owned());
        end += 1;
        let more = source.is_sign(end, b':') && source.is_sign(end + 1, b':');
        if !more || !source.is_word(end + 2) {
            break;
        }
        end += 2;
    }
    let bare = path.len() == 1 && path[0].starts_with(|c: char| c.is_lowercase());
    if bare && !source.is_sign(end, b'(') && !source.is_sign(end, b'!') {
        path.clear();
    }
    (path, end)
}

/// Path that an attribute names in a string, as `serde`'s `with` does.
fn path_in(text: &str) -> Vec<String> {
    let relative = ["crate::", "self::", "super::"].iter().any(|start| text.starts_with(start));
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    if relative && text.chars().all(plain) {
        // What it names is a module of functions or one of them: either way, something in it.
        text.split("::").map(str::to_owned).chain(["*".to_owned()]).collect()
    } else {
        Vec::new()
    }
}

fn resolve(package: &Package<'_>, from: usize, path: &[String], depth: usize) -> Option<Target> {
    if depth > DEPTH_MAX {
        return None;
    }
    let mut here = from;
    for (at, name) in path.iter().enumerate() {
        let target = match name.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(here),
            "super" => Target::Module(package.modules[here].parent?),
            "*" => return Some(Target::Item(here)),
            name => lookup(package, here, name, depth)?,
        };
        match target {
            Target::Module(module) => here = module,
            Target::Item(module) => return Some(Target::Item(module)),
        }
        if at + 1 == path.len() {
            return Some(Target::Module(here));
        }
    }
    None
}

/// Definition of a name within a module, behind whatever imports hand it on.
fn lookup(package: &Package<'_>, module: usize, name: &str, depth: usize) -> Option<Target> {
    let here: &Module = &package.modules[module];
    if let Some(&child) = here.children.get(name) {
        return Some(Target::Module(child));
    }
    if here.items.contains(name) {
        return Some(Target::Item(module));
    }
    if let Some(import) = here.imports.iter().find(|import| import.alias == name) {
        return resolve(package, module, &import.path, depth + 1);
    }
    let all = here.imports.iter().filter(|import| import.alias == "*");
    for import in all {
        if let Some(Target::Module(inner)) = resolve(package, module, &import.path, depth + 1)
            && let Some(found) = lookup(package, inner, name, depth + 1)
        {
            return Some(found);
        }
    }
    package.macros.get(name).filter(|_| module == 0).map(|&module| Target::Item(module))
}
