mod ahead;
mod aliases;
mod futures;
mod machine;
mod mock;
mod model;
mod places;
mod sharing;
