//! The fields that -H asks for.

use crate::{
    exit::{Exit, Failure},
    flags::values::HeaderFlag,
    payload::read_input,
};

/// The fields to send, and those not to send.
#[derive(Default)]
pub(crate) struct FieldFlags {
    send: Vec<(String, String)>,
    removed: Vec<String>,
}

impl FieldFlags {
    /// Reads the files among the flags and sorts the rest.
    pub(crate) fn from_flags(flags: &[HeaderFlag]) -> Result<Self, Failure> {
        let mut fields = FieldFlags::default();
        for flag in flags {
            match flag {
                HeaderFlag::File(path) => {
                    let text = read_input(path.as_ref())?;
                    for line in String::from_utf8_lossy(&text).lines().filter(|l| !l.is_empty()) {
                        let flag = line.parse().map_err(|e| {
                            Failure::new(Exit::Usage, format!("the field {line:?} in {path}: {e}"))
                        })?;
                        fields.add(&flag)?;
                    }
                }
                flag => fields.add(flag)?,
            }
        }
        Ok(fields)
    }

    fn add(&mut self, flag: &HeaderFlag) -> Result<(), Failure> {
        match flag {
            HeaderFlag::Send { name, value } => self.send.push((name.clone(), value.clone())),
            HeaderFlag::Remove { name } => {
                // RFC 9112 sections 3.2 and 6: a request without these is another request.
                const NEEDED: [&str; 3] = ["host", "content-length", "transfer-encoding"];
                if NEEDED.iter().any(|needed| name.eq_ignore_ascii_case(needed)) {
                    let what = format!("{name} cannot be taken out of a request");
                    return Err(Failure::new(Exit::Usage, what));
                }
                self.removed.push(name.clone());
            }
            HeaderFlag::File(path) => {
                let what = format!("@{path} inside a file of fields is not read");
                return Err(Failure::new(Exit::Usage, what));
            }
        }
        Ok(())
    }

    /// The fields to send, in order.
    pub(crate) fn send(&self) -> impl Iterator<Item = (&str, &str)> {
        self.send.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The names not to send.
    pub(crate) fn removed(&self) -> impl Iterator<Item = &str> {
        self.removed.iter().map(String::as_str)
    }

    /// Whether the user has a say about this field.
    pub(crate) fn mention(&self, name: &str) -> bool {
        self.send().map(|(n, _)| n).chain(self.removed()).any(|n| n.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(flags: &[&str]) -> Result<FieldFlags, Failure> {
        let flags: Vec<HeaderFlag> = flags.iter().map(|f| f.parse().unwrap()).collect();
        FieldFlags::from_flags(&flags)
    }

    #[test]
    fn order_and_duplicates_are_kept() {
        let fields = fields(&["B: 1", "a: 2", "B: 3", "Accept:"]).unwrap();
        assert_eq!(fields.send().collect::<Vec<_>>(), [("B", "1"), ("a", "2"), ("B", "3")]);
        assert_eq!(fields.removed().collect::<Vec<_>>(), ["Accept"]);
        assert!(fields.mention("ACCEPT") && fields.mention("b") && !fields.mention("c"));
    }

    #[test]
    fn what_a_request_needs_stays() {
        for flag in ["Host:", "content-length:", "Transfer-Encoding:"] {
            assert_eq!(fields(&[flag]).err().unwrap().exit, Exit::Usage);
        }
    }
}
