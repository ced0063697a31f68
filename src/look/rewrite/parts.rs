//! Parts of a question that polars answers without the functions given to it: queries in `with`, in parentheses, and the
//! sides of `union` and its like. Here each such part that needs them becomes a frame of its own, inside out, so that
//! everywhere is as good as the outermost select.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use polars::prelude::{LazyFrame, PolarsError, PolarsResult};
use sqlparser::ast::{Cte, Expr, Query, SetExpr, Statement, Visit, VisitMut, VisitorMut, visit_expressions};

/// What tables and parts are called, and what they hold.
pub(in crate::look) type Frames = BTreeMap<String, LazyFrame>;

/// Answers questions in parts.
pub(in crate::look) struct Parts<'a> {
    /// The function that parts need.
    pub(in crate::look) function: &'a str,
    /// Answers a question about frames, with the function at its outermost level.
    pub(in crate::look) ask: &'a dyn Fn(&Frames, &str) -> PolarsResult<LazyFrame>,
}

impl Parts<'_> {
    /// Whether the function is called somewhere.
    pub(super) fn has_some(&self, query: &Query) -> bool {
        self.needs(query)
    }

    fn needs<T: Visit>(&self, part: &T) -> bool {
        let calls = |part: &Expr| match part {
            Expr::Function(call) => {
                let name = call.name.0.last().and_then(|part| part.as_ident());
                name.is_some_and(|name| name.value.eq_ignore_ascii_case(self.function))
            }
            _ => false,
        };
        let found = |part: &Expr| if calls(part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        visit_expressions(part, found).is_break()
    }

    pub(super) fn answer(&self, frames: &Frames, query: &Query) -> PolarsResult<LazyFrame> {
        let mut frames = frames.clone();
        let mut query = query.clone();
        // What refers to itself is left to polars.
        if let Some(with) = query.with.take_if(|with| !with.recursive) {
            with.cte_tables.into_iter().try_for_each(|named| self.put_named(&mut frames, named))?;
        }
        let mut taking = Taking { parts: self, frames: &mut frames, is_outermost: true };
        if let ControlFlow::Break(error) = VisitMut::visit(&mut query, &mut taking) {
            return Err(error);
        }
        if let SetExpr::SetOperation { .. } = *query.body {
            self.take_sides(&mut frames, &mut query.body)?;
        }
        (self.ask)(&frames, &query.to_string())
    }

    /// Puts a query of `with` among the frames.
    fn put_named(&self, frames: &mut Frames, mut named: Cte) -> PolarsResult<()> {
        let mut frame = self.answer(frames, &named.query)?;
        if !named.alias.columns.is_empty() {
            *named.query = Self::put(frames, frame)?;
            frame = (self.ask)(frames, &format!("WITH {named} SELECT * FROM {}", named.alias.name))?;
        }
        frames.insert(named.alias.name.value, frame);
        Ok(())
    }

    /// A query for a part that became a frame.
    fn put(frames: &mut Frames, part: LazyFrame) -> PolarsResult<Query> {
        let name = format!("part {}", frames.len());
        let query = super::parse(&format!("SELECT * FROM \"{name}\""));
        frames.insert(name, part);
        match query.map(|mut statements| statements.pop()) {
            Ok(Some(Statement::Query(query))) => Ok(*query),
            _ => Err(PolarsError::SQLInterface("a part cannot be named".into())),
        }
    }

    /// Makes frames of the sides of a set operation that need the function. Those in parentheses are queries.
    fn take_sides(&self, frames: &mut Frames, side: &mut SetExpr) -> PolarsResult<()> {
        match side {
            SetExpr::SetOperation { left, right, .. } => {
                self.take_sides(frames, left)?;
                self.take_sides(frames, right)
            }
            SetExpr::Select(select) if self.needs(select) => {
                let frame = (self.ask)(frames, &select.to_string())?;
                *side = *Self::put(frames, frame)?.body;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Makes frames of the queries within a query that need the function.
struct Taking<'a> {
    parts: &'a Parts<'a>,
    frames: &'a mut Frames,
    /// The query itself comes first.
    is_outermost: bool,
}

impl VisitorMut for Taking<'_> {
    type Break = PolarsError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<PolarsError> {
        if std::mem::take(&mut self.is_outermost) || !self.parts.needs(query) {
            return ControlFlow::Continue(());
        }
        let part = self.parts.answer(self.frames, query).and_then(|frame| Parts::put(self.frames, frame));
        match part {
            Ok(part) => {
                *query = part;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

#[cfg(test)]
mod tests {
    /// What is asked of polars for a query, in order.
    fn asked(query: &str) -> Vec<String> {
        super::super::asked(query, "f").unwrap()
    }

    #[test]
    fn parts_that_need_the_function_are_asked_for_first() {
        assert_eq!(asked("select f(a) from t where (a + f(b)) > 1"), ["SELECT f(a) FROM t WHERE (a + f(b)) > 1"]);
        assert_eq!(asked("select *  from (select a from t) u"), ["select *  from (select a from t) u"]);
        assert_eq!(
            asked("select * from (select F(a) as x from t) u where x in (select b from v)"),
            ["SELECT F(a) AS x FROM t", "SELECT * FROM (SELECT * FROM \"part 0\") u WHERE x IN (SELECT b FROM v)"]
        );
        assert_eq!(
            asked("select * from (select * from (select ')', f(a) -- )\n from t))"),
            [
                "SELECT ')', f(a) FROM t",
                "SELECT * FROM (SELECT * FROM \"part 0\")",
                "SELECT * FROM (SELECT * FROM \"part 0\")"
            ]
        );
        assert_eq!(
            asked("select * from t where b in (select f(b) from v) and f(t.a) = 'x'"),
            ["SELECT f(b) FROM v", "SELECT * FROM t WHERE b IN (SELECT * FROM \"part 0\") AND f(t.a) = 'x'"]
        );
    }

    #[test]
    fn queries_of_with_are_frames_by_their_names() {
        assert_eq!(
            asked("with a(x) as (select f(b) from t), c as (select * from a) select * from c order by x"),
            [
                "SELECT f(b) FROM t",
                "WITH a (x) AS (SELECT * FROM \"part 0\") SELECT * FROM a",
                "SELECT * FROM a",
                "SELECT * FROM c ORDER BY x"
            ]
        );
        // Also where a query within needs both.
        assert_eq!(
            asked("with a as (select b from t) select * from (select f(b) from a) u"),
            ["SELECT b FROM t", "SELECT f(b) FROM a", "SELECT * FROM (SELECT * FROM \"part 1\") u"]
        );
    }

    #[test]
    fn sides_of_unions_are_asked_for_one_by_one() {
        assert_eq!(
            asked("select f(a) as x from t union all select b from u order by x limit 3"),
            ["SELECT f(a) AS x FROM t", "SELECT * FROM \"part 0\" UNION ALL SELECT b FROM u ORDER BY x LIMIT 3"]
        );
        assert_eq!(
            asked("select a from t union (select f(b) from u limit 1) except select f(c) from v"),
            [
                "SELECT f(b) FROM u LIMIT 1",
                "SELECT f(c) FROM v",
                "SELECT a FROM t UNION (SELECT * FROM \"part 0\") EXCEPT SELECT * FROM \"part 1\""
            ]
        );
    }

    #[test]
    fn what_is_no_sound_query_stays_as_it_is() {
        for query in
            ["", "(", ")", "select (select f(", "with", "with a as", "'", "union f", "/*", "é(", "select 'f' -- f"]
        {
            assert_eq!(asked(query), [query]);
        }
    }
}
