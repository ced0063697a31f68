//! What becomes of a capture, before anything of it is read as text: which URL it is of, what its body is once
//! decoded, whether it holds a page, and what is to be rejected.
//!
//! `ingest` writes what comes of it and `inspect` only counts it; both ask here, so that they cannot disagree.

use std::fmt::Display;
use std::path::Path;

use super::Answer;
use crate::bounds::MAX_BODY;
use crate::model::{Body, Loss, RawCapture, Reject};
use crate::text::{self, PayloadKind, encoding, url};

/// A capture that counts.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Normalised.
    pub(crate) url: String,
    /// The body without its encodings, if there is one that can be decoded.
    pub(crate) payload: Option<Vec<u8>>,
    /// The body is short or cannot be decoded: never a page.
    pub(crate) broken: bool,
    /// The payload is text of a good response.
    pub(crate) is_text: bool,
}

/// Takes the body out of `raw`; `read` reads one that is a file. `None` if the capture is no row of `captures`;
/// `reject` is told why.
pub(crate) fn judge<E: Display>(
    raw: &mut RawCapture,
    equate_schemes: bool,
    read: impl FnOnce(&Path) -> Result<Vec<u8>, E>,
    mut reject: impl FnMut(Reject),
) -> Option<Judged> {
    let mut reject = |raw: &RawCapture, url: &str, reason: String| {
        reject(Reject {
            source_file: raw.source_file.clone(),
            source_offset: Some(raw.source_offset),
            url: Some(url.to_owned()),
            reason,
            lost: Loss::Nothing,
        });
    };
    let url = match url::normalise(&raw.url, equate_schemes) {
        Ok(url) => url,
        Err(error) => {
            reject(raw, &raw.url, error.to_string());
            return None;
        }
    };
    let body = match std::mem::replace(&mut raw.body, Body::None) {
        Body::None => None,
        Body::Bytes(bytes) => Some(bytes),
        Body::File(path) => match read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                reject(raw, &url, error.to_string());
                return None;
            }
        },
    };
    // What is wrong with the body of an error page interests nobody.
    let is_page = Answer::of(raw.status) == Answer::Page;
    let mut broken = false;
    if let Some(reason) = raw.truncated.take() {
        broken = true;
        if is_page {
            reject(raw, &url, reason);
        }
    }
    let mut payload = None;
    if let Some(body) = body {
        let transfer = raw.transfer_encoding.as_deref();
        match encoding::decode_body(body, transfer, raw.content_encoding.as_deref(), MAX_BODY) {
            Ok(decoded) => payload = Some(decoded.bytes),
            Err(error) if !broken && is_page => {
                broken = true;
                reject(raw, &url, error.to_string());
            }
            Err(_) => broken = true,
        }
    }
    let is_text = is_page
        && !broken
        && raw.revisit.is_none()
        && payload.as_ref().is_some_and(|bytes| text::kind(bytes, raw.content_type.as_deref()) != PayloadKind::Binary);
    Some(Judged { url, payload, broken, is_text })
}

/// The type of a `Content-Type` header without its parameters.
#[must_use]
pub(crate) fn media_type(header: &str) -> Option<String> {
    let essence = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!essence.is_empty()).then_some(essence)
}
