//! What fingerprints stand for, in words, so that people can be told whose mentions a page has.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::live::{Live, LiveExtractor};
use crate::extract::Extractor;
use crate::model::Digest;
use crate::store::Store;

#[derive(Serialize, Deserialize)]
struct InWords {
    definition: String,
}

fn file(fingerprint: Digest) -> String {
    format!("definitions/{fingerprint}.json")
}

/// A model or a worker by its name; others have none.
fn words(live: &LiveExtractor) -> Option<String> {
    match live.extractor()? {
        Extractor::Llm(model) => Some(model.spec().model.clone()),
        Extractor::Command(command) => {
            let ready = command.ready();
            Some(format!("{} {}", ready.name, ready.version).trim_end().to_owned())
        }
        _ => None,
    }
}

/// Keeps the names of models and workers that are in use.
pub(super) fn remember(store: &Store, live: &Live) -> Result<()> {
    for live in &live.all {
        let name = file(live.fingerprint);
        if let Some(definition) = words(live).filter(|_| !store.has_meta_file(&name)) {
            store.write_meta_file(&name, &InWords { definition })?;
        }
    }
    Ok(())
}

/// What a fingerprint stands for, if it has a name.
pub(crate) fn in_words(store: &Store, fingerprint: Digest) -> Result<Option<String>> {
    Ok(store.meta_file::<InWords>(&file(fingerprint))?.map(|words| words.definition))
}
