/// What a pool, or one key of it, holds now and has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Open connections that no exchange uses.
    pub idle: usize,
    /// Connections that an exchange uses; a shared one counts once, however many use it.
    pub in_use: usize,
    /// Connections being opened.
    pub dialling: usize,
    /// Exchanges waiting because a limit binds, or for a dial that may serve them too.
    pub waiting: usize,
    /// Exchanges given an open connection, or a place on one.
    pub hits: u64,
    /// Exchanges given a permit to open one.
    pub misses: u64,
    /// Of these, the exchanges that then found a place on a connection to another host.
    pub coalesced: u64,
    /// Usable connections closed to make room: for another key, or under the idle limit.
    pub evictions: u64,
    /// Connections found dead when they were about to be reused.
    pub stale: u64,
    /// Connections closed for having been idle, or alive, for too long.
    pub expired: u64,
}

impl Stats {
    /// Connections open or being opened: what the limits count.
    pub fn open(&self) -> usize {
        self.idle + self.in_use + self.dialling
    }

    /// With `idle` of those in use counted as idle.
    pub(super) fn with_idle(self, idle: usize) -> Stats {
        let in_use = self.in_use.saturating_sub(idle);
        Stats { idle: self.idle + (self.in_use - in_use), in_use, ..self }
    }
}
