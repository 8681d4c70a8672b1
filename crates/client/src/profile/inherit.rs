//! How one file extends another, and what comes of it. The build script reads files by it, too.

use toml::{Table, Value};

use super::{
    error::Error,
    schema::{File, KINDS},
};

/// How deep files may extend each other.
const DEPTH: usize = 8;

/// The table of a file.
pub(super) fn parse(text: &str) -> Result<Table, Error> {
    text.parse().map_err(Error::syntax)
}

/// The table of a file that is compiled in, and apart from it what that says of itself (`base`, `aliases`) and
/// not of a browser: nobody inherits it.
pub(super) fn parse_listed(text: &str) -> Result<(Table, Table), Error> {
    let mut table = parse(text)?;
    let mut listing = Table::new();
    for key in ["base", "aliases"] {
        if let Some(value) = table.remove(key) {
            listing.insert(key.to_owned(), value);
        }
    }
    Ok((table, listing))
}

/// What a file says with all that it extends, whose tables `find` knows. It is [checked](File::check) by who does
/// not know it.
pub(super) fn whole(
    mut table: Table,
    find: impl Fn(&str) -> Result<Table, Error>,
) -> Result<(Table, File), Error> {
    for _ in 0..DEPTH {
        let Some(parent) = table.remove("extends") else {
            resolve_kinds(&mut table)?;
            let file: Result<File, _> = table.clone().try_into();
            let file = file.map_err(|error| Error::invalid(name_of(&table), one_line(&error)))?;
            return Ok((table, file));
        };
        let Some(parent) = parent.as_str() else {
            return Err(Error::invalid(name_of(&table), "`extends` is not the name of a profile"));
        };
        let mut below = find(parent)?;
        overlay(&mut below, table);
        table = below;
    }
    Err(Error::invalid(name_of(&table), "files extend each other too deeply"))
}

/// An error's text in one line: TOML's have several.
pub(super) fn one_line(error: &impl ToString) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn name_of(table: &Table) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or("?")
}

/// Tables are joined, anything else replaces what was there.
pub(super) fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Gives each kind that is `like` another what it does not say itself.
fn resolve_kinds(table: &mut Table) -> Result<(), Error> {
    let name = name_of(table).to_owned();
    let Some(Value::Table(kinds)) = table.get_mut("kinds") else {
        return Ok(());
    };
    for _ in 0..KINDS.len() {
        let waiting = |kind: &Value| kind.get("like").is_some();
        let ready: Vec<String> = kinds
            .iter()
            .filter(|(_, kind)| {
                let like = kind.get("like").and_then(Value::as_str);
                like.is_some_and(|like| kinds.get(like).is_some_and(|model| !waiting(model)))
            })
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in ready {
            let Some(Value::Table(mut own)) = kinds.remove(&kind) else { continue };
            let like = own.remove("like");
            let model = like.as_ref().and_then(Value::as_str).and_then(|like| kinds.get(like));
            let mut whole = model.and_then(Value::as_table).cloned().unwrap_or_default();
            overlay(&mut whole, own);
            kinds.insert(kind, Value::Table(whole));
        }
    }
    match kinds.iter().find(|(_, kind)| kind.get("like").is_some()) {
        None => Ok(()),
        Some((kind, _)) => Err(Error::invalid(
            &name,
            format!("kinds.{kind}.like: it is like one that is not there"),
        )),
    }
}
