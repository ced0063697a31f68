//! Tables of the plan selector: what was expected, and what it came to.

use crate::plan::{AlternativeKind, Costed, Served};
use crate::tables::record::{Table, record};

record! {
    /// One alternative, as a whole or for one extractor.
    pub struct PlanRow {
        extractor: Option<String> = "extractor; NULL: the alternative as a whole",
        alternative: AlternativeKind = "none (every page from scratch), equal (equal pages are taken over, no page is matched), a matcher for all changed pages, or refined (edges first, then the best matcher of each page)",
        matcher: Served = "matcher; none where no page is matched",
        recycle: bool = "whether changed pages are recycled",
        chosen: bool = "whether the snapshot was done this way",
        predicted_s: f64 = "seconds of work expected, over all threads",
        predicted_price: f64 = "price expected, by what a byte cost in the night before, else by what the pipeline file says; answers already kept are not taken off",
        bytes_matched: i64 = "text of pages that are matched",
        bytes_extracted: i64 = "text that extractors are given",
        m: i64 = "number of pages",
        m_b: i64 = "size of the pages' text, in blocks of 4,096 bytes",
        l: f64 = "mean length of a page's text in bytes",
        n: i64 = "mentions of the snapshot before",
        n_b: i64 = "their size on disk, in blocks of 4,096 bytes",
        f: f64 = "share of pages with an old version",
        e: f64 = "share of pages equal to their old version",
        g: Option<f64> = "share of a changed page's text that is extracted again",
        h: Option<f64> = "copy regions per matched page",
        w1_io: f64 = "seconds to read a block of a changed page's text",
        w1_mat: Option<f64> = "seconds to match a byte of both pages, in the mean over changed pages",
        w1_ex: Option<f64> = "seconds to extract a byte of a recycled page, beginning with the page included",
        w2_io: Option<f64> = "seconds to read a block of the old mentions",
        w2_find: Option<f64> = "seconds to copy a mention, and to find a region that mentions are copied from",
        w3_io: f64 = "seconds to read a block of a page without an old version",
        w3_ex: Option<f64> = "seconds to extract a byte of a whole page",
    }
}

impl Table for PlanRow {
    const NAME: &'static str = "plans";
    const ABOUT: &'static str =
        "what each way to do the snapshot was expected to cost, with the model's parameters (follows measured times)";
}

record! {
    /// What an extractor came to on the pages served one way.
    pub struct PlanCost {
        extractor: Option<String> = "extractor; NULL: matching and choosing, which serve all of them",
        matcher: Costed = "matcher of these pages; equal: taken over; units: equal lines, blocks or paragraphs; none: from scratch; plan: choosing",
        pages: i64 = "number of pages",
        bytes_matched: Option<i64> = "text of new pages that were matched; on rows without extractor",
        bytes_extracted: Option<i64> = "text that the extractor was given",
        lower_bound_bytes: Option<i64> = "text in windows that no old region longer than the reach covers; bytes_extracted may be less, for shorter regions serve too; NULL where regions are not complete",
        mentions_copied: Option<i64> = "mentions taken from old pages",
        mentions_extracted: Option<i64> = "mentions found",
        requests: Option<i64> = "requests that were sent, attempts included; where answers are kept, all on the row none",
        input_tokens: Option<i64> = "tokens of these requests, where they are counted",
        output_tokens: Option<i64> = "tokens of their answers",
        price: Option<f64> = "what they cost",
        match_s: Option<f64> = "seconds of matching; on rows without extractor",
        extract_s: Option<f64> = "seconds of extracting",
        copy_s: Option<f64> = "seconds of copying",
        choose_s: Option<f64> = "seconds of choosing the plan; on the row plan",
    }
}

impl Table for PlanCost {
    const NAME: &'static str = "plan_costs";
    const ABOUT: &'static str = "what the snapshot's plan came to, over all threads (follows measured times)";
}
