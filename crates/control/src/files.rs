//! A directory of manifests, read as a whole.

use crate::problem::{Problem, Severity, Sink};
use crate::resources::{self, Objects};
use crate::yaml;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of all files together.
const MAX_TOTAL_BYTES: usize = 4 * yaml::MAX_FILE_BYTES;

/// The content of a directory at one moment.
#[derive(Debug)]
pub(crate) struct Reading {
    /// File names, as the directory was given plus the name, and what they hold; in the order of the names.
    pub(crate) files: Vec<(Arc<str>, Vec<u8>)>,
    /// What could not be read.
    pub(crate) unread: Vec<Problem>,
}

/// Reads every manifest directly in the directory, as [`load`] describes. Blocks.
pub(crate) fn read(dir: &Path) -> Reading {
    let mut reading = Reading {
        files: Vec::new(),
        unread: Vec::new(),
    };
    let paths = match manifests(dir) {
        Ok(paths) => paths,
        Err(e) => {
            reading.unread.push(Problem::of_file(
                display(dir),
                format!("cannot read the directory: {e}"),
            ));
            return reading;
        }
    };
    let mut room = MAX_TOTAL_BYTES;
    for path in paths {
        match read_file(&path, room.min(yaml::MAX_FILE_BYTES)) {
            Ok(content) => {
                room -= content.len();
                reading.files.push((display(&path), content));
            }
            Err(e) => reading.unread.push(Problem::of_file(
                display(&path),
                format!("cannot read the file: {e}"),
            )),
        }
    }
    reading
}

/// Every object in the `.yaml`, `.yml` and `.json` files directly in the directory, checked as a whole.
///
/// Hidden files are left out and symbolic links followed, as in a mounted ConfigMap, whose files are links through the
/// hidden `..data`. Files that are not regular are left out. Blocks while it reads.
///
/// # Errors
/// Everything that is wrong, with warnings and notes among it, in the order of files and lines. Never without an error.
pub fn load(dir: &Path) -> Result<Objects, Vec<Problem>> {
    parse(&read(dir))
}

impl Reading {
    /// Equal for readings with equal content.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.files.hash(&mut hasher);
        self.unread.hash(&mut hasher);
        hasher.finish()
    }
}

/// Reads the objects out of the files and checks them.
pub(crate) fn parse(reading: &Reading) -> Result<Objects, Vec<Problem>> {
    let mut problems = reading.unread.clone();
    let mut objects = Objects::default();
    for (name, content) in &reading.files {
        let sink = Sink::new(Arc::clone(name));
        match yaml::documents(content) {
            Ok(documents) => {
                for document in &documents {
                    resources::read_document(document, &sink, &mut objects);
                }
            }
            Err(e) => sink.add(Severity::Error, e.line, "", e.message),
        }
        problems.extend(sink.into_problems());
    }
    problems.extend(resources::check_names(&objects));
    let valid = !problems.iter().any(Problem::is_error);
    if valid {
        problems.extend(resources::check_targets(&objects));
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    if !valid {
        return Err(problems);
    }
    objects.warnings = problems;
    Ok(objects)
}

fn manifests(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let manifest = path
            .extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e == *known));
        // A link that leads nowhere stays in the list, so that reading it reports it.
        let other = || fs::metadata(&path).is_ok_and(|m| !m.is_file());
        if !hidden && manifest && !other() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read_file(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One byte more tells a file that is too large from one that just fits.
    File::open(path)?
        .take(most as u64 + 1)
        .read_to_end(&mut content)?;
    if content.len() <= most {
        return Ok(content);
    }
    Err(io::Error::other(if most < yaml::MAX_FILE_BYTES {
        format!(
            "the files together are larger than {} MiB",
            MAX_TOTAL_BYTES >> 20
        )
    } else {
        format!("larger than {} MiB", yaml::MAX_FILE_BYTES >> 20)
    }))
}

fn display(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}
