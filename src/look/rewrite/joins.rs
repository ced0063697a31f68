//! Conditions of joins. After ON polars expects columns of one side that equal columns of the other; whatever else stands
//! there it passes over or misreads, without a word. Here such conditions of inner joins go to WHERE, where they mean the
//! same. Those of other joins mean something else there: they are refused, with what to write instead.
//! From WHERE polars takes conditions between tables with commas between them, and misreads some of those too.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, Select, Statement, TableFactor, TableWithJoins,
    VisitMut as _, VisitorMut, visit_expressions,
};

/// The names that columns of tables can be written with.
type Names = BTreeSet<String>;

/// Puts conditions where polars heeds them: whether any were elsewhere; or why that cannot be.
pub(super) fn mend(statements: &mut Vec<Statement>) -> Result<bool, String> {
    let mut conditions = Conditions { changed: false };
    match statements.visit(&mut conditions) {
        ControlFlow::Break(said) => Err(said),
        ControlFlow::Continue(()) => Ok(conditions.changed),
    }
}

/// Moves conditions, select by select.
struct Conditions {
    changed: bool,
}

impl VisitorMut for Conditions {
    type Break = String;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<String> {
        if select.selection.iter().flat_map(conjuncts).any(is_misread) {
            self.chain_up(&mut select.from);
        }
        let mut moved = Vec::new();
        for from in &mut select.from {
            moved.extend(self.of_chain(from)?);
        }
        if !moved.is_empty() {
            let all = select.selection.take().into_iter().chain(moved).map(|one| Expr::Nested(Box::new(one)));
            select.selection = all_of(all);
        }
        ControlFlow::Continue(())
    }
}

impl Conditions {
    /// Makes one chain of tables with commas between them, where that means the same: then polars leaves WHERE alone.
    fn chain_up(&mut self, from: &mut Vec<TableWithJoins>) {
        let is_table = |table: &TableFactor| {
            matches!(table, TableFactor::Table { args: None, .. } | TableFactor::Derived { lateral: false, .. })
        };
        // USING would find columns of tables before the comma.
        let fits = |join: &mut Join| condition(&mut join.join_operator).is_some() && !drops_left(&join.join_operator);
        if from.len() < 2
            || !from.iter_mut().skip(1).all(|one| is_table(&one.relation) && one.joins.iter_mut().all(fits))
        {
            return;
        }
        for one in from.split_off(1) {
            let cross = JoinOperator::CrossJoin(JoinConstraint::None);
            from[0].joins.push(Join { relation: one.relation, global: false, join_operator: cross });
            from[0].joins.extend(one.joins);
        }
        self.changed = true;
    }

    /// Takes from a chain of joins what must go to WHERE.
    fn of_chain(&mut self, from: &mut TableWithJoins) -> ControlFlow<String, Vec<Expr>> {
        self.of_nested(&mut from.relation)?;
        let mut left = names(&from.relation);
        let mut moved = Vec::new();
        for at in 0..from.joins.len() {
            let (join, later) = from.joins[at..].split_first_mut().expect("there is one at its place");
            self.of_nested(&mut join.relation)?;
            let right = names(&join.relation);
            let taken = self.of_join(join, &left, &right)?;
            // WHERE sees rows after all joins: there must be no join to come that adds rows without this side.
            if let (Some(one), Some(blocks)) =
                (taken.first(), later.iter().find(|join| drops_left(&join.join_operator)))
            {
                return ControlFlow::Break(format!(
                    "`{one}` in ON before {}: put the join with that condition into a subquery first, with the condition in its WHERE",
                    kind(&blocks.join_operator)
                ));
            }
            moved.extend(taken);
            left.extend(right);
        }
        ControlFlow::Continue(moved)
    }

    /// Joins in parentheses have no WHERE of their own.
    fn of_nested(&mut self, table: &mut TableFactor) -> ControlFlow<String> {
        let TableFactor::NestedJoin { table_with_joins, .. } = table else { return ControlFlow::Continue(()) };
        match self.of_chain(table_with_joins)?.first() {
            None => ControlFlow::Continue(()),
            Some(one) => ControlFlow::Break(format!(
                "`{one}` in ON of a join in parentheses: write that join as a subquery, (select … where {one})"
            )),
        }
    }

    fn of_join(&mut self, join: &mut Join, left: &Names, right: &Names) -> ControlFlow<String, Vec<Expr>> {
        let Some(on) = condition(&mut join.join_operator) else { return ControlFlow::Continue(Vec::new()) };
        let before = on.clone();
        let (mut kept, mut taken) = (Vec::new(), Vec::new());
        for one in conjuncts(&before) {
            match equality(one, left, right) {
                Some(equality) => kept.push(equality),
                None => taken.push(one.clone()),
            }
        }
        let kept = all_of(kept.into_iter());
        self.changed |= kept.as_ref() != Some(&before);
        match kept {
            Some(kept) => *on = kept,
            None if is_inner(&join.join_operator) => join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None),
            None => {}
        }
        match taken.first() {
            Some(one) if !is_inner_or_cross(&join.join_operator) => ControlFlow::Break(refusal(one, join, left, right)),
            _ => ControlFlow::Continue(taken),
        }
    }
}

fn is_inner(join: &JoinOperator) -> bool {
    matches!(join, JoinOperator::Join(_) | JoinOperator::Inner(_))
}

fn is_inner_or_cross(join: &JoinOperator) -> bool {
    is_inner(join) || matches!(join, JoinOperator::CrossJoin(_))
}

/// Whether rows come out of a join that have nothing of its left side.
fn drops_left(join: &JoinOperator) -> bool {
    use JoinOperator::{FullOuter, Right, RightAnti, RightOuter, RightSemi};
    matches!(join, Right(_) | RightOuter(_) | FullOuter(_) | RightSemi(_) | RightAnti(_))
}

/// What stands after ON.
fn condition(join: &mut JoinOperator) -> Option<&mut Expr> {
    use JoinOperator as Is;
    match join {
        Is::Join(with) | Is::Inner(with) | Is::Left(with) | Is::LeftOuter(with) | Is::Right(with) => on(with),
        Is::RightOuter(with) | Is::FullOuter(with) | Is::Semi(with) | Is::LeftSemi(with) => on(with),
        Is::RightSemi(with) | Is::Anti(with) | Is::LeftAnti(with) | Is::RightAnti(with) => on(with),
        _ => None,
    }
}

fn on(with: &mut JoinConstraint) -> Option<&mut Expr> {
    match with {
        JoinConstraint::On(condition) => Some(condition),
        _ => None,
    }
}

/// What a join is called.
fn kind(join: &JoinOperator) -> &'static str {
    use JoinOperator as Is;
    match join {
        Is::Left(_) | Is::LeftOuter(_) => "left join",
        Is::Right(_) | Is::RightOuter(_) => "right join",
        Is::FullOuter(_) => "full join",
        Is::Semi(_) | Is::LeftSemi(_) => "semi join",
        Is::Anti(_) | Is::LeftAnti(_) => "anti join",
        Is::RightSemi(_) => "right semi join",
        Is::RightAnti(_) => "right anti join",
        _ => "join",
    }
}

/// The parts of a condition that must all hold.
fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => [conjuncts(left), conjuncts(right)].concat(),
        Expr::Nested(inner) => conjuncts(inner),
        one => vec![one],
    }
}

fn all_of(conditions: impl Iterator<Item = Expr>) -> Option<Expr> {
    conditions.reduce(|left, right| both(left, BinaryOperator::And, right))
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// A condition that is an equality of a column of the left side and one of the right side, in this order: where both sides
/// have columns of both names, polars goes by the order. Two columns without a table are told apart by polars, or refused.
fn equality(condition: &Expr, left: &Names, right: &Names) -> Option<Expr> {
    let Expr::BinaryOp { left: a, op: BinaryOperator::Eq, right: b } = condition else { return None };
    if !is_column(a) || !is_column(b) {
        return None;
    }
    let table = |side| table(side).filter(|name| left.contains(*name) || right.contains(*name));
    match (table(a), table(b)) {
        (None, None) => Some(condition.clone()),
        (Some(a_of), Some(b_of)) if left.contains(a_of) && right.contains(b_of) => Some(condition.clone()),
        (Some(a_of), Some(b_of)) if right.contains(a_of) && left.contains(b_of) => {
            Some(both((**b).clone(), BinaryOperator::Eq, (**a).clone()))
        }
        _ => None,
    }
}

fn is_column(side: &Expr) -> bool {
    matches!(side, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Whether polars makes a wrong condition of a join from a condition in WHERE, between tables with commas between them: it
/// takes comparisons with a table on each side, but each side must be one column.
fn is_misread(condition: &Expr) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right } = condition else { return false };
    let is_plain = is_column(left) && is_column(right);
    !is_plain && !tables_of(left).is_empty() && !tables_of(right).is_empty()
}

/// The tables that columns of an expression are written with.
fn tables_of(expression: &Expr) -> Names {
    let mut tables = Names::new();
    let _: ControlFlow<()> = visit_expressions(expression, |part| {
        tables.extend(table(part).map(str::to_owned));
        ControlFlow::Continue(())
    });
    tables
}

/// The table that a column is written with.
fn table(column: &Expr) -> Option<&str> {
    match column {
        Expr::CompoundIdentifier(parts) => parts.first().map(|part| part.value.as_str()),
        _ => None,
    }
}

/// The names that columns of a table can be written with.
fn names(table: &TableFactor) -> Names {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Names::from([alias.name.value.clone()]),
        TableFactor::Table { name, .. } => {
            name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.clone()).into_iter().collect()
        }
        TableFactor::NestedJoin { table_with_joins: inner, .. } => {
            let tables = std::iter::once(&inner.relation).chain(inner.joins.iter().map(|join| &join.relation));
            tables.flat_map(names).collect()
        }
        _ => Names::new(),
    }
}

/// Why a condition is not taken, and what to write instead.
fn refusal(condition: &Expr, join: &Join, left: &Names, right: &Names) -> String {
    let kind = kind(&join.join_operator);
    let of: Names =
        tables_of(condition).into_iter().filter(|name| left.contains(name) || right.contains(name)).collect();
    let why = format!("`{condition}` in ON of {kind}: only equalities of columns of the two tables can stand there");
    let lacks_table = |side: &Expr| is_column(side) && table(side).is_none();
    if matches!(condition, Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if lacks_table(left) || lacks_table(right))
    {
        return format!("{why}, each written with its table, such as p.url = l.url");
    }
    // The side whose rows may go before the join without a change to what the join means.
    let side = match join.join_operator {
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Some(left),
        JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => Some(left),
        JoinOperator::FullOuter(_) => None,
        _ => Some(right),
    };
    match side {
        Some(side) if !of.is_empty() && of.is_subset(side) => {
            let name = of.iter().next().map_or("", String::as_str);
            let as_before = if std::ptr::eq(side, right) { format!("{kind} ") } else { "from ".to_owned() };
            format!("{why}; put it into a subquery of that table first: {as_before}(select * from … where …) {name}")
        }
        _ => format!("{why}; DuckDB on catalog.sql takes others"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Question;

    fn mend(query: &str) -> Result<String, String> {
        Question::new(query).map(|question| question.text)
    }

    #[test]
    fn conditions_of_inner_joins_go_to_where() {
        for (query, mended) in [
            (
                "select * from m join n on m.u = n.u and n.s - m.e < 20",
                "SELECT * FROM m JOIN n ON m.u = n.u WHERE (n.s - m.e < 20)",
            ),
            (
                "select * from m join n on (m.u = n.u and (n.t = 'x' or m.t = 'y')) where m.a or m.b",
                "SELECT * FROM m JOIN n ON m.u = n.u WHERE (m.a OR m.b) AND (n.t = 'x' OR m.t = 'y')",
            ),
            // The left side comes first; both columns of one side are no equality of two.
            (
                "select * from m join n on n.u = m.v and n.a = n.b join o on o.x = n.y",
                "SELECT * FROM m JOIN n ON m.v = n.u JOIN o ON n.y = o.x WHERE (n.a = n.b)",
            ),
            // A column without its table may be one of either side.
            ("select * from m join n on m.u = n.u and n.t = k", "SELECT * FROM m JOIN n ON m.u = n.u WHERE (n.t = k)"),
            ("select * from m inner join n on m.a < n.b", "SELECT * FROM m CROSS JOIN n WHERE (m.a < n.b)"),
            (
                "with w as (select m.u from m join n on m.u = n.u and n.s > 1) select * from w where u in \
                 (select n.u from n join m on n.u = m.u and m.s > 2) union select u from (select n.u from n join m on n.u = m.u and m.s > 3) x",
                "WITH w AS (SELECT m.u FROM m JOIN n ON m.u = n.u WHERE (n.s > 1)) SELECT * FROM w WHERE u IN \
                 (SELECT n.u FROM n JOIN m ON n.u = m.u WHERE (m.s > 2)) UNION SELECT u FROM (SELECT n.u FROM n JOIN m ON n.u = m.u WHERE (m.s > 3)) x",
            ),
            // Tables with commas between them.
            (
                "select * from m, n join o on o.u = n.u where m.u = n.u and n.s - m.s > m.e",
                "SELECT * FROM m CROSS JOIN n JOIN o ON n.u = o.u WHERE m.u = n.u AND n.s - m.s > m.e",
            ),
            // Left joins to come keep every row.
            (
                "select * from m join n on m.u = n.u and n.s > 1 left join o on o.u = m.u",
                "SELECT * FROM m JOIN n ON m.u = n.u LEFT JOIN o ON m.u = o.u WHERE (n.s > 1)",
            ),
        ] {
            assert_eq!(mend(query).as_deref(), Ok(mended), "{query}");
        }
    }

    #[test]
    fn what_polars_heeds_stays_as_it_is_written() {
        for query in [
            "select  *  from m join n on m.u = n.u and m.a.b = n.a.b",
            "select * from m left join n on m.u = n.u where n.s > 1",
            "select * from m join n on u = v",
            "select * from m join n using (u)",
            "select * from m, n where m.u < n.u",
            "select * from m, n where m.u = n.u and n.s - m.s > 20",
            "select * from m, n join o using (u) where n.s - m.s > m.e",
            "select 1; select 2",
            "select * from m join",
            "",
        ] {
            assert_eq!(mend(query).as_deref(), Ok(query));
        }
    }

    #[test]
    fn conditions_of_other_joins_are_refused_with_what_to_write() {
        for (query, said) in [
            ("m left join n on m.u = n.u and n.s > 5", "`n.s > 5` in ON of left join: only"),
            ("m left join n on m.u = n.u and n.s > 5", "first: left join (select * from … where …) n"),
            ("m right join n on m.u = n.u and m.s > 5", "first: from (select * from … where …) m"),
            ("m left join n on m.u = n.u and m.s > 5", "DuckDB on catalog.sql"),
            ("m full join n on m.u = n.u and n.s > 5", "`n.s > 5` in ON of full join"),
            ("m semi join n on m.u = n.u and n.s > m.s", "`n.s > m.s` in ON of semi join"),
            ("m left anti join n on m.u = n.u or n.s > 1", "`m.u = n.u OR n.s > 1` in ON of anti join"),
            ("m left join n on m.u = v", "each written with its table"),
            ("m left join n on true", "`true` in ON of left join"),
            ("m join n on select and n.s > m.s", "a name that is a word of SQL needs quotes"),
            ("m join n on m.u = n.u and n.s > 5 right join o on o.u = m.u", "`n.s > 5` in ON before right join"),
            ("m join (n join o on n.u = o.u and n.s > 5) x on x.u = m.u", "`n.s > 5` in ON of a join in parentheses"),
        ] {
            for query in [format!("select * from {query}"), format!("with w as (select * from {query}) select 1")] {
                let error = mend(&query).unwrap_err();
                assert!(error.contains(said), "{query}: {error}");
            }
        }
    }
}
