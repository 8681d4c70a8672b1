//! What goes to standard output: coloured on a terminal, plain elsewhere.

use std::{
    io::{self, IsTerminal, Stdout, Write},
    time::Duration,
};

use crate::setup::ms;

/// One row of the table.
pub struct Row {
    pub what: &'static str,
    pub took: Duration,
    /// The facts, or what is wrong.
    pub outcome: Result<String, String>,
}

#[derive(Clone, Copy)]
pub enum Ink {
    Bold,
    Dim,
    Green,
    Red,
    Cyan,
}

impl Ink {
    /// The parameter of SGR (ECMA-48 section 8.3.117).
    fn code(self) -> u8 {
        match self {
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Green => 32,
            Ink::Red => 31,
            Ink::Cyan => 36,
        }
    }
}

/// The widths of the columns.
const WHAT: usize = 44;
const TOOK: usize = 8;

pub struct Report {
    out: Stdout,
    coloured: bool,
    right: usize,
    wrong: usize,
}

impl Report {
    pub fn new() -> Self {
        let out = io::stdout();
        // no-color.org: any value but an empty one turns colours off.
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Report { coloured: out.is_terminal() && !unwanted, out, right: 0, wrong: 0 }
    }

    pub fn paint(&self, ink: Ink, text: &str) -> String {
        match self.coloured {
            true => format!("\x1b[{}m{text}\x1b[0m", ink.code()),
            false => text.to_owned(),
        }
    }

    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", text.trim_end())
    }

    pub fn title(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(Ink::Bold, text);
        self.line(&text)
    }

    pub fn section(&mut self, name: &str) -> io::Result<()> {
        let name = self.paint(Ink::Bold, name);
        self.line(&format!("\n{name}"))
    }

    pub fn row(&mut self, row: Row) -> io::Result<()> {
        let (verdict, found) = match row.outcome {
            Ok(facts) => {
                self.right += 1;
                (self.paint(Ink::Green, "right"), facts)
            }
            Err(why) => {
                self.wrong += 1;
                (self.paint(Ink::Red, "WRONG"), self.paint(Ink::Red, &why))
            }
        };
        let took = self.paint(Ink::Dim, &format!("{:>TOOK$}", ms(row.took)));
        self.line(&format!("  {verdict}  {:<WHAT$} {took}  {found}", row.what))
    }

    /// Prints the last line, and gives the number of wrong rows.
    pub fn sum(mut self) -> io::Result<usize> {
        let ink = if self.wrong == 0 { Ink::Green } else { Ink::Red };
        let sum = self.paint(ink, &format!("{} right, {} wrong", self.right, self.wrong));
        self.line(&format!("\n{sum}"))?;
        Ok(self.wrong)
    }
}
