//! What an exchange of Mimus may take: counts, checked in, held to within a few percent.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::counts::{Count, Counts};
use crate::table;

/// By as much may a count exceed its budget.
const TOLERANCE: f64 = 0.03;
/// And by as much in any case, for counts of a few: a wake-up more or less in twenty exchanges.
const SLACK: f64 = 0.05;
/// Below that share of it, a budget should be tightened.
const LOOSE: f64 = 0.93;

/// The checked-in file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// A budget for each workload and client of ours.
    #[serde(default, rename = "budget")]
    pub budgets: Vec<Budget>,
}

/// What each exchange of one workload may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The workload.
    pub workload: String,
    /// `client/config`.
    pub contender: String,
    /// The counts.
    pub counts: Counts,
}

/// How a count stands to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As budgeted.
    Kept,
    /// More: a regression.
    Over,
    /// So much less that the budget would hide a regression.
    Loose,
    /// There is no budget for it.
    Unbudgeted,
    /// It has a budget and was not counted.
    Uncounted,
}

/// One count against its budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The workload.
    pub workload: String,
    /// `client/config`.
    pub contender: String,
    /// What is counted.
    pub count: Count,
    /// What is allowed.
    pub budget: Option<f64>,
    /// What was found.
    pub found: Option<f64>,
    /// What that comes to.
    pub standing: Standing,
}

impl Budgets {
    /// Reads the file; none is no budgets.
    pub fn load(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path)?;
        toml::from_str(&text).with_context(|| format!("{} holds no budgets", path.display()))
    }

    /// Writes the file, with counts rounded to what is reproducible.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = String::from(
            "# What one exchange of Mimus may take, within 3 %. `mimus-bench budget --update` writes it.\n",
        );
        for budget in &self.budgets {
            let _ = write!(
                text,
                "\n[[budget]]\nworkload = \"{}\"\ncontender = \"{}\"\ncounts = {{ ",
                budget.workload, budget.contender
            );
            let counts = Count::ALL.into_iter().filter_map(|count| {
                let value = budget.counts.get(count)?;
                Some(format!("{} = {}", count.title().replace(' ', "-"), rounded(value)))
            });
            text.push_str(&counts.collect::<Vec<_>>().join(", "));
            text.push_str(" }\n");
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn of(&self, workload: &str, contender: &str) -> Option<&Budget> {
        self.budgets.iter().find(|b| b.workload == workload && b.contender == contender)
    }

    /// Takes in what was found: rows that were counted replace theirs, others stay.
    pub fn update(&mut self, found: Vec<Budget>) {
        for new in found {
            let same =
                |old: &&mut Budget| old.workload == new.workload && old.contender == new.contender;
            match self.budgets.iter_mut().find(same) {
                Some(old) => *old = new,
                None => self.budgets.push(new),
            }
        }
    }

    /// Each count of `found` against its budget.
    pub fn compare(&self, found: &[Budget]) -> Vec<Line> {
        let mut lines = Vec::new();
        for row in found {
            let budget = self.of(&row.workload, &row.contender).map(|budget| budget.counts);
            for count in Count::ALL {
                let budget = budget.and_then(|counts| counts.get(count));
                let found = row.counts.get(count);
                if budget.is_none() && found.is_none() {
                    continue;
                }
                lines.push(Line {
                    workload: row.workload.clone(),
                    contender: row.contender.clone(),
                    count,
                    budget,
                    found,
                    standing: standing(budget, found),
                });
            }
        }
        lines
    }
}

fn standing(budget: Option<f64>, found: Option<f64>) -> Standing {
    match (budget, found) {
        (None, _) => Standing::Unbudgeted,
        (Some(_), None) => Standing::Uncounted,
        (Some(budget), Some(found)) if found > budget * (1.0 + TOLERANCE) + SLACK => Standing::Over,
        (Some(budget), Some(found)) if found < budget * LOOSE - SLACK => Standing::Loose,
        _ => Standing::Kept,
    }
}

/// Prints the lines; fails if one is over, or could not be counted.
pub fn report(lines: &[Line]) -> ExitCode {
    let mut table =
        table::new(&["workload", "contender", "count", "budget", "found", "change", ""]);
    let (mut bad, mut loose) = (0, 0);
    for line in lines {
        let call = match line.standing {
            Standing::Kept => "",
            Standing::Over => "OVER",
            Standing::Loose => "far under: tighten with `budget --update`",
            Standing::Unbudgeted => "no budget: set with `budget --update`",
            Standing::Uncounted => "NOT COUNTED",
        };
        bad += usize::from(matches!(line.standing, Standing::Over | Standing::Uncounted));
        loose += usize::from(line.standing == Standing::Loose);
        let change =
            line.budget.zip(line.found).map(|(b, f)| format!("{:+.1} %", (f / b - 1.0) * 100.0));
        table.add_row([
            line.workload.clone(),
            line.contender.clone(),
            line.count.title().to_owned(),
            line.budget.map(rounded).unwrap_or_default(),
            line.found.map(rounded).unwrap_or_default(),
            change.unwrap_or_default(),
            call.to_owned(),
        ]);
    }
    table::print(&table);
    table::say(&format!("{} counts, {bad} over their budget, {loose} far under", lines.len()));
    ExitCode::from(u8::from(bad > 0))
}

fn rounded(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(instructions: f64, allocations: f64) -> Budget {
        Budget {
            workload: "get".into(),
            contender: "mimus/async".into(),
            counts: Counts {
                instructions: Some(instructions),
                allocations: Some(allocations),
                ..Counts::default()
            },
        }
    }

    fn standings(budget: Budget, found: Budget) -> Vec<Standing> {
        let lines = Budgets { budgets: vec![budget] }.compare(&[found]);
        lines.iter().map(|line| line.standing).collect()
    }

    #[test]
    fn three_percent_is_kept_and_more_is_over() {
        use Standing::{Kept, Over};
        assert_eq!(standings(row(10_000.0, 8.0), row(10_299.0, 8.0)), [Kept, Kept]);
        assert_eq!(standings(row(10_000.0, 8.0), row(10_301.0, 8.0)), [Over, Kept]);
        assert_eq!(standings(row(10_000.0, 8.0), row(10_000.0, 9.0)), [Kept, Over]);
    }

    #[test]
    fn far_under_is_told() {
        let found = standings(row(10_000.0, 8.0), row(8_000.0, 8.0));
        assert_eq!(found, [Standing::Loose, Standing::Kept]);
    }

    #[test]
    fn what_has_a_budget_must_be_counted() {
        let uncounted = Budget { counts: Counts::default(), ..row(1.0, 1.0) };
        let found = standings(row(10_000.0, 8.0), uncounted);
        assert_eq!(found, [Standing::Uncounted, Standing::Uncounted]);
        assert!(
            Budgets::default()
                .compare(&[row(1.0, 1.0)])
                .iter()
                .all(|line| { line.standing == Standing::Unbudgeted })
        );
    }

    #[test]
    fn the_file_holds_what_was_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("budgets.toml");
        let mut budgets = Budgets::default();
        budgets.update(vec![row(10_000.0, 7.96)]);
        budgets.update(vec![row(9_000.0, 7.0)]);
        budgets.save(&path).expect("it is written");
        assert_eq!(Budgets::load(&path).expect("it is read"), budgets);
        assert_eq!(budgets.budgets.len(), 1);
    }
}
