//! The files of the project, as a clean clone would have them.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that git does not keep, by the paths in `.gitignore`.
const IGNORED: [&str; 5] = [".git", "target", "bench/out", "bench/target", "fuzz/target"];

/// One text file.
#[derive(Debug)]
pub struct File {
    /// Path below the project's root, with forward slashes.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

/// The project's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// All text files, sorted by path. What is not UTF-8 is no text and left out.
#[must_use]
pub fn files() -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    walk(&root, "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// All Rust source files, sorted by path.
#[must_use]
pub fn rust_files() -> Vec<File> {
    files()
        .into_iter()
        .filter(|f| f.path.ends_with(".rs"))
        .collect()
}

/// The text of one file, or nothing when it is not there.
#[must_use]
pub fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

fn walk(folder: &Path, below: &str, found: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        if IGNORED.contains(&path.as_str()) || name == "__pycache__" {
            continue;
        }
        // Without following symlinks, so that a link cannot make a loop.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, found),
            Ok(kind) if kind.is_file() => {
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    found.push(File { path, text });
                }
            }
            _ => {}
        }
    }
}
