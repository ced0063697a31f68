//! The running example of the WHOWEDA paper: `www.panacea.gov` on 15 January and on 15 February 2001.
//!
//! The paper's text names the nodes, the tuples they form and what became of them; its figures hold the rest. URLs,
//! drugs without a name there, and all prose are made up to fit. Where the text leaves a choice:
//! - Beta Carotene has no `u` of its own among the updated nodes, so the cancer page b1 leads to d2 and k2 itself;
//!   likewise the diabetes page b3 to d4 and k5.
//! - Alzheimer's disease has no list page among the deleted nodes, so the front page a0 leads to d12 and k12 itself.
//! - Vasomax was three links away at the manufacturer (u4, u5, u6), which makes the longest path four links.
//! - Tolcapone is two links away (u10 for the disease, u11 for the drug), Viagra one (u12) below b4.
//! - The manufacturer's pages stay up in the second crawl, no longer linked: deleted from the web table, not from the
//!   Web.
//!
//! Tests evaluate the query and the delta rules by brute force over the pages made here.

use std::fmt::Write as _;

use crate::lab::synth::clock::{iso_date, moment};
use crate::lab::synth::site::SynthPage;

/// 15 January and 15 February 2001, in days since 1970.
pub(crate) const DAYS: [i64; 2] = [11_337, 11_368];

/// A page of the example.
pub(crate) struct Node {
    /// Its name in the paper; empty for pages that the paper does not show.
    pub(crate) id: &'static str,
    pub(crate) url: &'static str,
    pub(crate) title: &'static str,
    /// What it says on the two dates; `None`: it is not there.
    bodies: [Option<Body>; 2],
}

#[derive(Clone, Copy)]
struct Body {
    text: &'static str,
    /// URLs and labels.
    links: &'static [(&'static str, &'static str)],
}

const fn body(text: &'static str, links: &'static [(&'static str, &'static str)]) -> Option<Body> {
    Some(Body { text, links })
}

const fn node(id: &'static str, url: &'static str, title: &'static str, old: Option<Body>, new: Option<Body>) -> Node {
    Node { id, url, title, bodies: [old, new] }
}

const fn same(
    id: &'static str,
    url: &'static str,
    title: &'static str,
    text: &'static str,
    links: &'static [(&'static str, &'static str)],
) -> Node {
    node(id, url, title, body(text, links), body(text, links))
}

macro_rules! site {
    ($path:literal) => {
        concat!("http://www.panacea.gov/", $path)
    };
}
macro_rules! maker {
    ($path:literal) => {
        concat!("http://www.pfizer.com/", $path)
    };
}

/// Every page of both dates.
#[rustfmt::skip]
pub(crate) const NODES: &[Node] = &[
    node("a0", site!(""), "Panacea: drugs by disease",
        body("Choose a disease to see the drugs that are used against it. Alzheimer's disease: Tacrine is the only drug on file.", &[
            (site!("aids.html"), "AIDS"), (site!("cancer.html"), "Cancer"), (site!("heart.html"), "Heart disease"),
            (site!("diabetes.html"), "Diabetes"), (site!("impotence.html"), "Impotence"),
            (site!("drugs/tacrine-effects.html"), "Side effects of Tacrine"), (site!("drugs/tacrine-uses.html"), "Uses of Tacrine"),
            (site!("about.html"), "About this site")]),
        body("Choose a disease to see the drugs that are used against it. New this month: Parkinson's disease. The entry on Alzheimer's disease is under review.", &[
            (site!("aids.html"), "AIDS"), (site!("cancer.html"), "Cancer"), (site!("heart.html"), "Heart disease"),
            (site!("impotence.html"), "Impotence"), (site!("parkinson.html"), "Parkinson's disease"),
            (site!("about.html"), "About this site")])),

    same("b0", site!("aids.html"), "Drugs used against AIDS",
        "Protease inhibitors slow the virus down. They are taken together with other drugs.",
        &[(site!("drugs/indavir.html"), "Indavir"), (site!("drugs/ritonavir.html"), "Ritonavir"), (site!(""), "All diseases")]),
    same("u0", site!("drugs/indavir.html"), "Indavir",
        "Issues on file for Indavir.",
        &[(site!("drugs/indavir-description.html"), "Description"), (site!("drugs/indavir-effects.html"), "Side effects of Indavir"),
          (site!("drugs/indavir-uses.html"), "Uses of Indavir"), ("#makers", "Manufacturers"), (site!("aids.html"), "Back to AIDS")]),
    same("d0", site!("drugs/indavir-effects.html"), "Side effects of Indavir",
        "Nausea, headache and kidney stones have been reported. Drink plenty of water.", &[(site!("drugs/indavir.html"), "Back to Indavir")]),
    same("k0", site!("drugs/indavir-uses.html"), "Uses of Indavir",
        "Indavir is used in adults, in combination with two other antiviral drugs.", &[(site!("drugs/indavir.html"), "Back to Indavir")]),
    same("", site!("drugs/indavir-description.html"), "Description of Indavir",
        "White capsules of 200 and 400 mg. Clinical pharmacology: taken up within an hour on an empty stomach.", &[(site!("drugs/indavir.html"), "Back to Indavir")]),
    same("u1", site!("drugs/ritonavir.html"), "Ritonavir",
        "Issues on file for Ritonavir.",
        &[(site!("drugs/ritonavir-effects.html"), "Side effects of Ritonavir"), (site!("drugs/ritonavir-uses.html"), "Uses of Ritonavir"),
          (site!("drugs/ritonavir-warnings.html"), "Warnings"), (site!("aids.html"), "Back to AIDS")]),
    same("d1", site!("drugs/ritonavir-effects.html"), "Side effects of Ritonavir",
        "Weakness, stomach upset and a tingling around the mouth have been reported.", &[(site!("drugs/ritonavir.html"), "Back to Ritonavir")]),
    same("k1", site!("drugs/ritonavir-uses.html"), "Uses of Ritonavir",
        "Ritonavir is used alone or together with nucleoside analogues.", &[(site!("drugs/ritonavir.html"), "Back to Ritonavir")]),
    same("", site!("drugs/ritonavir-warnings.html"), "Warnings about Ritonavir",
        "Many sedatives must not be taken with it. Ask a pharmacist.", &[(site!("drugs/ritonavir.html"), "Back to Ritonavir")]),

    node("b1", site!("cancer.html"), "Drugs used against cancer",
        body("Beta Carotene is under trial for prevention.", &[
            (site!("drugs/carotene-effects.html"), "Side effects of Beta Carotene"), (site!("drugs/carotene-uses.html"), "Uses of Beta Carotene"),
            (site!(""), "All diseases")]),
        body("Beta Carotene is under trial for prevention. Two large trials found no benefit for smokers.", &[
            (site!("drugs/carotene-effects.html"), "Side effects of Beta Carotene"), (site!("drugs/carotene-uses.html"), "Uses of Beta Carotene"),
            (site!(""), "All diseases")])),
    node("d2", site!("drugs/carotene-effects.html"), "Side effects of Beta Carotene",
        body("The skin may turn yellow. This is harmless.", &[(site!("cancer.html"), "Back to cancer")]),
        body("The skin may turn yellow, which is harmless. Heavy smokers should not take it.", &[(site!("cancer.html"), "Back to cancer")])),
    node("k2", site!("drugs/carotene-uses.html"), "Uses of Beta Carotene",
        body("Taken as a food supplement, 15 mg a day.", &[(site!("cancer.html"), "Back to cancer")]),
        body("Taken as a food supplement, at most 10 mg a day.", &[(site!("cancer.html"), "Back to cancer")])),

    same("b2", site!("heart.html"), "Drugs used against heart disease",
        "Blood thinners and drugs that lower blood fat.",
        &[(site!("drugs/hirudin.html"), "Hirudin"), (site!("drugs/niacin.html"), "Niacin"), (site!(""), "All diseases")]),
    node("u2", site!("drugs/hirudin.html"), "Hirudin",
        body("Issues on file for Hirudin.", &[
            (site!("drugs/hirudin-effects.html"), "Side effects of Hirudin"), (site!("drugs/hirudin-uses.html"), "Uses of Hirudin"),
            (site!("heart.html"), "Back to heart disease")]),
        body("Issues on file for Hirudin, a substance first found in leeches.", &[
            (site!("drugs/hirudin-effects.html"), "Side effects of Hirudin"), (site!("drugs/hirudin-uses.html"), "Uses of Hirudin"),
            (site!("heart.html"), "Back to heart disease")])),
    node("d3", site!("drugs/hirudin-effects.html"), "Side effects of Hirudin",
        body("Bleeding is the main risk.", &[(site!("drugs/hirudin.html"), "Back to Hirudin")]),
        body("Bleeding is the main risk. Allergic reactions are rare.", &[(site!("drugs/hirudin.html"), "Back to Hirudin")])),
    node("k3", site!("drugs/hirudin-uses.html"), "Uses of Hirudin",
        body("Prevents clots after surgery.", &[(site!("drugs/hirudin.html"), "Back to Hirudin")]),
        body("Prevents clots after hip surgery and in unstable angina.", &[(site!("drugs/hirudin.html"), "Back to Hirudin")])),
    node("u3", site!("drugs/niacin.html"), "Niacin",
        body("Issues on file for Niacin.", &[(site!("drugs/niacin-uses.html"), "Uses of Niacin"), (site!("heart.html"), "Back to heart disease")]),
        body("Issues on file for Niacin.", &[
            (site!("drugs/niacin-effects.html"), "Side effects of Niacin"), (site!("drugs/niacin-uses.html"), "Uses of Niacin"),
            (site!("heart.html"), "Back to heart disease")])),
    node("d7", site!("drugs/niacin-effects.html"), "Side effects of Niacin",
        None,
        body("Flushing of the face within minutes is common and passes.", &[(site!("drugs/niacin.html"), "Back to Niacin")])),
    same("k4", site!("drugs/niacin-uses.html"), "Uses of Niacin",
        "Lowers blood fat when diet alone does not.", &[(site!("drugs/niacin.html"), "Back to Niacin")]),

    node("b3", site!("diabetes.html"), "Drugs used against diabetes",
        body("Acarbose slows the digestion of starch.", &[
            (site!("drugs/acarbose-effects.html"), "Side effects of Acarbose"), (site!("drugs/acarbose-uses.html"), "Uses of Acarbose"),
            (site!(""), "All diseases")]),
        None),
    node("d4", site!("drugs/acarbose-effects.html"), "Side effects of Acarbose",
        body("Wind and stomach pain in the first weeks.", &[(site!("diabetes.html"), "Back to diabetes")]), None),
    node("k5", site!("drugs/acarbose-uses.html"), "Uses of Acarbose",
        body("Taken with the first bite of a meal.", &[(site!("diabetes.html"), "Back to diabetes")]), None),
    node("d12", site!("drugs/tacrine-effects.html"), "Side effects of Tacrine",
        body("Liver values must be checked every other week.", &[(site!(""), "All diseases")]), None),
    node("k12", site!("drugs/tacrine-uses.html"), "Uses of Tacrine",
        body("Eases mild to moderate loss of memory in Alzheimer's disease.", &[(site!(""), "All diseases")]), None),

    node("b4", site!("impotence.html"), "Drugs used against impotence",
        body("Information on Vasomax is provided by its manufacturer.", &[
            (maker!("vasomax.html"), "Vasomax"), (site!("drugs/caverject.html"), "Caverject"), (site!(""), "All diseases")]),
        body("Information on Vasomax is now provided here.", &[
            (site!("drugs/vasomax.html"), "Vasomax"), (site!("drugs/caverject.html"), "Caverject"), (site!("drugs/viagra.html"), "Viagra"),
            (site!(""), "All diseases")])),
    same("u4", maker!("vasomax.html"), "Vasomax from the manufacturer",
        "Welcome. Please read on for professionals.", &[(maker!("vasomax/professionals.html"), "For professionals"), (maker!(""), "Company")]),
    same("u5", maker!("vasomax/professionals.html"), "Vasomax for professionals",
        "This section is meant for doctors and pharmacists.", &[(maker!("vasomax/facts.html"), "Product facts"), (maker!("vasomax.html"), "Back")]),
    same("u6", maker!("vasomax/facts.html"), "Vasomax product facts",
        "Facts on file at the manufacturer.",
        &[(maker!("vasomax/effects.html"), "Side effects of Vasomax"), (maker!("vasomax/uses.html"), "Uses of Vasomax"), (maker!("vasomax.html"), "Back")]),
    same("d5", maker!("vasomax/effects.html"), "Side effects of Vasomax",
        "A stuffed nose and dizziness were seen in trials.", &[(maker!("vasomax/facts.html"), "Back")]),
    same("k6", maker!("vasomax/uses.html"), "Uses of Vasomax",
        "Taken half an hour before it is needed.", &[(maker!("vasomax/facts.html"), "Back")]),
    node("u7", site!("drugs/caverject.html"), "Caverject",
        body("Caverject is given by injection. Its issues are on a page of their own.", &[
            (site!("drugs/caverject-issues.html"), "Issues"), (site!("impotence.html"), "Back to impotence")]),
        body("Caverject is given by injection.", &[
            (site!("drugs/caverject-effects.html"), "Side effects of Caverject"), (site!("drugs/caverject-uses.html"), "Uses of Caverject"),
            (site!("impotence.html"), "Back to impotence")])),
    node("u8", site!("drugs/caverject-issues.html"), "Issues of Caverject",
        body("Issues on file for Caverject.", &[
            (site!("drugs/caverject-effects.html"), "Side effects of Caverject"), (site!("drugs/caverject-uses.html"), "Uses of Caverject"),
            (site!("drugs/caverject.html"), "Back to Caverject")]),
        None),
    same("d6", site!("drugs/caverject-effects.html"), "Side effects of Caverject",
        "Pain at the place of injection is common.", &[(site!("drugs/caverject.html"), "Back to Caverject")]),
    same("k7", site!("drugs/caverject-uses.html"), "Uses of Caverject",
        "Used when tablets do not help, under medical supervision.", &[(site!("drugs/caverject.html"), "Back to Caverject")]),
    node("u9", site!("drugs/vasomax.html"), "Vasomax",
        None,
        body("Issues on file for Vasomax.", &[
            (site!("drugs/vasomax-effects.html"), "Side effects of Vasomax"), (site!("drugs/vasomax-uses.html"), "Uses of Vasomax"),
            (site!("impotence.html"), "Back to impotence")])),
    node("d8", site!("drugs/vasomax-effects.html"), "Side effects of Vasomax",
        None, body("A stuffed nose, dizziness and a fast pulse.", &[(site!("drugs/vasomax.html"), "Back to Vasomax")])),
    node("k8", site!("drugs/vasomax-uses.html"), "Uses of Vasomax",
        None, body("For men with mild complaints.", &[(site!("drugs/vasomax.html"), "Back to Vasomax")])),
    node("u12", site!("drugs/viagra.html"), "Viagra",
        None,
        body("Issues on file for Viagra.", &[
            (site!("drugs/viagra-effects.html"), "Side effects of Viagra"), (site!("drugs/viagra-uses.html"), "Uses of Viagra"),
            (site!("impotence.html"), "Back to impotence")])),
    node("d9", site!("drugs/viagra-effects.html"), "Side effects of Viagra",
        None, body("Headache, flushing, and colours that look bluish.", &[(site!("drugs/viagra.html"), "Back to Viagra")])),
    node("k9", site!("drugs/viagra-uses.html"), "Uses of Viagra",
        None, body("Taken about an hour before it is needed, never with nitrates.", &[(site!("drugs/viagra.html"), "Back to Viagra")])),
    node("u10", site!("parkinson.html"), "Drugs used against Parkinson's disease",
        None, body("Tolcapone makes other drugs last longer.", &[(site!("drugs/tolcapone.html"), "Tolcapone"), (site!(""), "All diseases")])),
    node("u11", site!("drugs/tolcapone.html"), "Tolcapone",
        None,
        body("Issues on file for Tolcapone.", &[
            (site!("drugs/tolcapone-effects.html"), "Side effects of Tolcapone"), (site!("drugs/tolcapone-uses.html"), "Uses of Tolcapone"),
            (site!("parkinson.html"), "Back to Parkinson's disease")])),
    node("d10", site!("drugs/tolcapone-effects.html"), "Side effects of Tolcapone",
        None, body("Involuntary movements, and in rare cases damage to the liver.", &[(site!("drugs/tolcapone.html"), "Back to Tolcapone")])),
    node("k10", site!("drugs/tolcapone-uses.html"), "Uses of Tolcapone",
        None, body("Given together with levodopa.", &[(site!("drugs/tolcapone.html"), "Back to Tolcapone")])),
    same("", site!("about.html"), "About Panacea",
        "Panacea collects what is known about drugs. It gives no medical advice.", &[(site!(""), "All diseases")]),
];

impl Node {
    /// The page on a date (0 or 1).
    fn html(&self, date: usize) -> Option<String> {
        let body = self.bodies[date]?;
        let mut html = String::new();
        let _ = write!(
            html,
            "<HTML>\n<HEAD>\n<META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=utf-8\">\n\
             <TITLE>{0}</TITLE>\n</HEAD>\n<BODY>\n<H1>{0}</H1>\n<P>{1}</P>\n<UL>\n",
            self.title, body.text
        );
        for (target, label) in body.links {
            let _ = writeln!(html, "<LI><A HREF=\"{}\">{label}</A></LI>", relative(self.url, target));
        }
        html.push_str("</UL>\n</BODY>\n</HTML>\n");
        Some(html)
    }
}

/// A link as its author would write it: relative within a host.
fn relative(from: &str, target: &'static str) -> String {
    let split = |url: &str| {
        let slash = url[7..].find('/').map_or(url.len(), |place| place + 7);
        (url[..slash].to_owned(), url[slash + 1..].to_owned())
    };
    if target.starts_with('#') {
        return target.to_owned();
    }
    let ((from_host, from_path), (host, path)) = (split(from), split(target));
    match (from_host == host, from_path.split_once('/'), path.split_once('/')) {
        (false, _, _) => target.to_owned(),
        (true, Some((folder, _)), Some((same, file))) if folder == same => file.to_owned(),
        (true, Some(_), _) => format!("../{path}"),
        (true, None, _) if path.is_empty() => "/".to_owned(),
        (true, None, _) => path,
    }
}

pub(crate) fn pages(snapshot: u32) -> Vec<SynthPage> {
    let date = snapshot as usize;
    let page = |(number, node): (i64, &Node)| {
        let html = node.html(date)?;
        // A page that says the same as a month before was not touched.
        let touched = if date == 1 && node.html(0).as_ref() == Some(&html) { 0 } else { date };
        let fetched = moment(DAYS[date], 3600 + number);
        Some(SynthPage::fixed(node.url, &html, fetched, moment(DAYS[touched] - 2, 9 * 3600 + number)))
    };
    (0..).zip(NODES).filter_map(page).collect()
}

/// Which node of the paper a page is, and on which dates it is there: lines of a CSV file.
pub(crate) fn node_lines() -> String {
    let mut out = format!("node,url,{},{}\n", iso_date(DAYS[0]), iso_date(DAYS[1]));
    for node in NODES {
        let there = |date: usize| match (node.bodies[date].is_some(), date) {
            (false, _) => "absent",
            (true, 1) if node.bodies[0].is_some() && node.html(0) != node.html(1) => "modified",
            (true, 1) if node.bodies[0].is_some() => "unchanged",
            (true, _) => "present",
        };
        let _ = writeln!(out, "{},{},{},{}", node.id, node.url, there(0), there(1));
    }
    out
}

#[cfg(test)]
mod tests;
