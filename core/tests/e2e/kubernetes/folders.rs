//! The folders of `deploy/kubernetes` as Kustomize reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_yaml::Value;

/// `deploy/kubernetes`.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes")
}

pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a YAML file. A key that stands twice is an error.
pub(super) fn documents(path: &Path) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(&read(path))
        .map(|document| {
            Value::deserialize(document)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

/// The elements of a list; none where there is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_sequence().map_or(&[], Vec::as_slice)
}

/// The text of a field that has to be there.
pub(super) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value:?} is no text"))
}

/// A folder with a `kustomization.yaml`.
pub(super) struct Kustomization {
    pub folder: PathBuf,
    /// The file itself.
    pub value: Value,
}

impl Kustomization {
    pub(super) fn read(folder: &Path) -> Self {
        let path = folder.join("kustomization.yaml");
        let mut documents = documents(&path);
        assert_eq!(documents.len(), 1, "{}", path.display());
        let folder = fs::canonicalize(folder).unwrap();
        Self {
            folder,
            value: documents.remove(0),
        }
    }

    /// All of them, below [`root`].
    pub(super) fn all() -> Vec<Self> {
        let mut found = Vec::new();
        let mut folders = vec![root()];
        while let Some(folder) = folders.pop() {
            if folder.join("kustomization.yaml").exists() {
                found.push(Self::read(&folder));
            }
            let inside = fs::read_dir(&folder).unwrap();
            let inside = inside.map(|entry| entry.unwrap().path());
            folders.extend(inside.filter(|path| path.is_dir()));
        }
        assert!(found.len() >= 3, "only {} kustomizations", found.len());
        found
    }

    /// The files and folders that it names, as paths.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        let fields = ["resources", "components"];
        let resources = fields.iter().flat_map(|field| list(&self.value[*field]));
        let patches = list(&self.value["patches"])
            .iter()
            .map(|patch| &patch["path"]);
        let generators = list(&self.value["configMapGenerator"]).iter();
        let files = generators.flat_map(|generator| list(&generator["files"]));
        let names = resources.chain(patches).chain(files);
        names
            .filter_map(Value::as_str)
            .map(|name| self.folder.join(name))
            .collect()
    }

    /// Those that it is made of: kustomizations that it names.
    fn parts(&self) -> Vec<Self> {
        let named = self.named().into_iter();
        named
            .filter(|path| path.is_dir())
            .map(|path| Self::read(&path))
            .collect()
    }

    /// The manifests and patches that it names, and those of its parts.
    pub(super) fn manifests(&self) -> Vec<Value> {
        let mut all: Vec<Value> = self.parts().iter().flat_map(Self::manifests).collect();
        let files = self.named().into_iter();
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        all.extend(files.flat_map(|path| documents(&path)));
        all
    }

    /// Its manifests of one kind.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<Value> {
        let all = self.manifests().into_iter();
        all.filter(|manifest| manifest["kind"] == *kind).collect()
    }

    /// The files of the ConfigMap that its pods mount; none for a component, which is no whole.
    pub(super) fn configuration(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for part in self.parts() {
            files.extend(part.configuration());
        }
        for generator in list(&self.value["configMapGenerator"]) {
            if generator["behavior"] == "replace" {
                files.clear();
            }
            for file in list(&generator["files"]) {
                let path = self.folder.join(text(file));
                let name = path.file_name().unwrap().to_str().unwrap();
                files.insert(name.to_owned(), read(&path));
            }
        }
        files
    }
}
