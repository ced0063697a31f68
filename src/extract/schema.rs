//! The attributes of an extractor's mentions: columns of its table.

/// Columns that every mentions table has. Names are compared without case, as some readers do.
pub(crate) const REQUIRED_COLUMNS: [&str; 10] =
    ["url", "start", "end", "text", "pattern", "term", "origin", "since", "snapshot", "whole"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attribute {
    pub name: String,
    /// A list of values instead of one.
    pub many: bool,
}

/// Attributes in column order, names distinct without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    attributes: Vec<Attribute>,
}

impl Schema {
    /// Says what is wrong with the name, if it cannot be a column.
    pub fn push(&mut self, attribute: Attribute) -> Result<(), String> {
        let name = &attribute.name;
        let plain = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        if name.is_empty() || !plain {
            return Err(format!("attribute '{name}' cannot name a column: letters, digits and '_' only"));
        }
        if REQUIRED_COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(name)) {
            return Err(format!("attribute '{name}' is named like a column that every mentions table has"));
        }
        if let Some(other) = self.attributes.iter().find(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err(format!("attributes '{name}' and '{}' would be one column to many readers", other.name));
        }
        self.attributes.push(attribute);
        Ok(())
    }

    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }
}
