//! What a person is shown of the tables.

pub mod compare;
pub mod overview;
pub mod schedules;
pub mod side_by_side;
