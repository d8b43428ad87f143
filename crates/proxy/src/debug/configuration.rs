//! Whether the configuration is another one than at the start. It is read at the start only.

use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::PathBuf;

/// Longest file that is looked at, in bytes; a ConfigMap has 1 MiB at most.
const LONGEST: u64 = 1 << 20;

/// The file, and what it held at the start.
#[derive(Clone, Debug)]
pub struct ConfigurationFile {
    path: PathBuf,
    /// Nothing if the file was not there.
    then: Option<[u8; 32]>,
}

impl ConfigurationFile {
    /// Notes what a file holds now.
    #[must_use]
    pub fn noted(path: PathBuf) -> Self {
        Self {
            then: digest(&path),
            path,
        }
    }

    /// Whether the file holds something else. One that is gone is not changed: nothing waits for a restart.
    pub(super) fn is_changed(&self) -> bool {
        digest(&self.path).is_some_and(|now| Some(now) != self.then)
    }
}

fn digest(path: &PathBuf) -> Option<[u8; 32]> {
    let mut content = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut content).ok()?;
    Some(Sha256::digest(&content).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_content_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("routerConfiguration.yaml");
        let absent = ConfigurationFile::noted(path.clone());
        assert!(!absent.is_changed());
        std::fs::write(&path, "a").unwrap();
        assert!(absent.is_changed(), "it has come");
        let noted = ConfigurationFile::noted(path.clone());
        std::fs::write(&path, "a").unwrap();
        assert!(!noted.is_changed(), "written again, the same");
        std::fs::write(&path, "b").unwrap();
        assert!(noted.is_changed());
        std::fs::remove_file(&path).unwrap();
        assert!(!noted.is_changed());
    }
}
