//! The order of nodes within a tuple.

use std::cmp::Ordering;

/// Orders node names, the inner nodes of a path by their number: `a`, `a>u.2`, `a>u.10`, `u`.
pub(in crate::deltas) fn by_name(a: &str, b: &str) -> Ordering {
    key(a).cmp(&key(b))
}

fn key(name: &str) -> (&str, u32, &str) {
    let inner = name.rsplit_once('.').filter(|(path, _)| path.contains('>'));
    match inner.and_then(|(path, number)| Some((path, number.parse().ok()?))) {
        Some((path, number)) => (path, number, name),
        None => (name, 0, name),
    }
}

#[cfg(test)]
mod tests {
    use super::by_name;

    #[test]
    fn inner_nodes_go_by_number() {
        let mut names = ["u", "a>u.10", "a>u.2", "a", "a>u.1", "b>a.1", "aa"];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(names, ["a", "a>u.1", "a>u.2", "a>u.10", "aa", "b>a.1", "u"]);
    }
}
