"""One package for each area; the runner finds them by being here."""
